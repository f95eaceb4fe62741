//! Sources that were forgotten. A binding remembers each of them, so that what comes of the source
//! later, of material that it got before, is not kept: such as by a job that runs for hours.
//! `scopes` has the same for scopes, in the same table.

use jiff::{SignedDuration, Timestamp};
use memhost_ports::to_json;
use serde::{Deserialize, Serialize};

use super::{Owner, Reader, Records};
use memhost_store::{self as store, StoreError, Table, TableWrite};
use memhost_types::{Binding, BindingId, CompanyId, OperationId, SourceRef, SourceSelector};

/// How long a forgotten source is remembered: longer than a job may take, and than a delivery
/// waits.
const KEPT: SignedDuration = SignedDuration::from_hours(24 * 365);

/// When a source was forgotten at a binding. `Table::ForgottenSources` has it below the binding's
/// id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Forgotten {
    /// What operations with a lower number than this have captured.
    sequence: u64,
    /// What came as an event before this.
    before: Timestamp,
    at: Timestamp,
}

/// Since when the host has what an operation captures.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Since {
    /// An event that came then.
    Received(Timestamp),
    /// This operation.
    Operation(OperationId),
}

impl Forgotten {
    pub(super) fn has(self, since: Since) -> bool {
        match since {
            Since::Received(at) => at < self.before,
            Since::Operation(id) => id.sequence() < self.sequence,
        }
    }
}

/// Which records of a source are forgotten.
#[derive(Clone, Copy)]
pub(super) enum Part<'a> {
    All,
    /// Those that everybody in the company may read.
    Company,
    /// Those that are private to somebody.
    Of(&'a Owner),
}

impl<'a> Part<'a> {
    /// All that a reader may read.
    pub(super) fn read_by(reader: &Reader) -> (Self, Option<Owner>) {
        match reader {
            Reader::All => (Self::All, None),
            Reader::Agent(agent) => (Self::Company, Some(Owner::Agent(agent.clone()))),
            Reader::Person(person) => (Self::Company, Some(Owner::Person(person.clone()))),
            Reader::Nobody => (Self::Company, None),
        }
    }

    /// That of a record which belongs to this owner, or else to the company.
    pub(super) fn with(owner: Option<&'a Owner>) -> Self {
        owner.map_or(Self::Company, Self::Of)
    }
}

fn key(
    company: &CompanyId,
    binding: BindingId,
    source: &SourceSelector,
    part: Part<'_>,
) -> Vec<u8> {
    // The names of the fields are part of it, and none of them is left out: two sources have one
    // key only if they are equal. JSON has no zero byte.
    key_of(company, binding, to_json(source).unwrap_or_default(), part)
}

/// The key of what was forgotten: `text` says what it is, without a zero byte.
pub(super) fn key_of(
    company: &CompanyId,
    binding: BindingId,
    mut text: Vec<u8>,
    part: Part<'_>,
) -> Vec<u8> {
    match part {
        Part::All => {}
        Part::Company => text.extend_from_slice(b"\0c"),
        Part::Of(Owner::Agent(agent)) => text.extend([b"\0a", agent.as_str().as_bytes()].concat()),
        Part::Of(Owner::Person(person)) => text.extend([b"\0p", person.as_bytes()].concat()),
    }
    store::company_key(
        company,
        &[binding.0.as_bytes(), &blake3::hash(&text).as_bytes()[..]].concat(),
    )
}

impl Records {
    /// The rows that say that sources are forgotten from an operation on, for the records that a
    /// reader may read; events that came before `before` are part of it.
    pub(crate) async fn forgets(
        &self,
        reader: &Reader,
        binding: &Binding,
        sources: &[SourceSelector],
        by: OperationId,
        before: Timestamp,
        now: Timestamp,
    ) -> Result<Vec<TableWrite>, StoreError> {
        let mut keys = Vec::with_capacity(2 * sources.len());
        for source in sources {
            let (part, own) = Part::read_by(reader);
            keys.push(key(&binding.company_id, binding.id, source, part));
            keys.extend(
                own.as_ref().map(|own| key(&binding.company_id, binding.id, source, Part::Of(own))),
            );
        }
        let mut rows = Vec::with_capacity(keys.len());
        for key in keys {
            rows.push(self.forgotten_from(key, by, before, now).await?);
        }
        Ok(rows)
    }

    /// The row that says that what has this key is forgotten from an operation on.
    pub(super) async fn forgotten_from(
        &self,
        key: Vec<u8>,
        by: OperationId,
        before: Timestamp,
        now: Timestamp,
    ) -> Result<TableWrite, StoreError> {
        let known = self.forgotten_at(&key).await?;
        let row = Forgotten {
            sequence: known.map_or(0, |known| known.sequence).max(by.sequence()),
            before: known.map_or(before, |known| known.before.max(before)),
            at: now,
        };
        Ok(TableWrite::new(
            Table::ForgottenSources,
            key,
            Some(store::encode("forgotten source", &row)?),
        ))
    }

    pub(super) async fn forgotten_at(&self, key: &[u8]) -> Result<Option<Forgotten>, StoreError> {
        let found = self.store.get(Table::ForgottenSources, key).await?;
        found.map(|value| store::decode("forgotten source", &value)).transpose()
    }

    /// Whether what belongs to an owner, or else to the company, was forgotten of a source after
    /// the host got what is captured from it.
    pub(crate) async fn is_forgotten(
        &self,
        binding: &Binding,
        source: &SourceRef,
        owner: Option<&Owner>,
        since: Since,
    ) -> Result<bool, StoreError> {
        let prefix = store::company_key(&binding.company_id, binding.id.0.as_bytes());
        if self.store.scan(Table::ForgottenSources, &prefix, None, 1).await?.entries.is_empty() {
            return Ok(false);
        }
        let mut keys = Vec::new();
        for selector in SourceSelector::all_of(source) {
            for part in [Part::All, Part::with(owner)] {
                keys.push(key(&binding.company_id, binding.id, &selector, part));
            }
        }
        for key in keys {
            if self.forgotten_at(&key).await?.is_some_and(|known| known.has(since)) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Removes what was forgotten so long ago that nothing comes of it any more. Answers how many
    /// there were.
    pub(crate) async fn sweep_sources(
        &self,
        company: &CompanyId,
        now: Timestamp,
    ) -> Result<u64, StoreError> {
        let until = now.checked_sub(KEPT).unwrap_or(Timestamp::MIN);
        let mut rows = store::scan_all(
            &*self.store,
            Table::ForgottenSources,
            &store::company_key(company, b""),
        );
        let (mut old, mut count) = (Vec::new(), 0);
        while let Some((key, row)) = rows.next_row::<Forgotten>("forgotten source").await? {
            if row.at < until {
                count += 1;
                old.push(store::Change::always(Table::ForgottenSources, key, None));
            }
            if old.len() >= super::AT_ONCE {
                store::write(&*self.store, &std::mem::take(&mut old)).await?;
            }
        }
        if !old.is_empty() {
            store::write(&*self.store, &old).await?;
        }
        Ok(count)
    }
}
