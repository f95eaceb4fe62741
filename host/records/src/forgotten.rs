//! Forgetting by source and by scope: which rows are meant, and what a binding remembers of it, so
//! that what is captured later of material that the host had before is not kept, such as by a job
//! that runs for hours. Both are one mechanism and share a table; no scope has the key of a source.

use jiff::{SignedDuration, Timestamp};
use memhost_executor::to_json;
use serde::{Deserialize, Serialize};

use super::keys::prefix;
use super::records::AT_ONCE;
use super::{Owner, Reader, Records, source_index};
use memhost_store::{self as store, Change, StoreError, Table, TableWrite};
use memhost_types::{
    Binding, CompanyId, OperationId, RecordHandle, RecordRow, Scope, SourceRef, SourceSelector,
};

/// How long a binding remembers what was forgotten: longer than a job may take, and than a delivery
/// waits.
const KEPT: SignedDuration = SignedDuration::from_hours(24 * 365);
/// Stands for all scopes: its row says when one was forgotten last.
const ANY_SCOPE: &[u8] = b"any scope";

/// The records of a binding that came from sources, or that were written in a scope.
#[derive(Debug, Clone, Copy)]
pub enum Selection<'a> {
    /// Those whose source is one of these.
    Sources(&'a [SourceSelector]),
    /// Those whose scope is within this one.
    Scope(&'a Scope),
}

/// How old the material is that an operation captures.
#[derive(Debug, Clone, Copy)]
pub enum Since {
    /// It is of an event that happened at this time.
    Happened(Timestamp),
    /// The host received it with this operation.
    Operation(OperationId),
}

/// When a source or a scope was forgotten at a binding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Forgotten {
    /// Material captured by operations with a lower number.
    sequence: u64,
    /// Events that happened before this time.
    before: Timestamp,
    at: Timestamp,
}

impl Forgotten {
    fn has(self, since: Since) -> bool {
        match since {
            Since::Happened(at) => at < self.before,
            Since::Operation(id) => id.sequence() < self.sequence,
        }
    }
}

/// Which records of a source or a scope are forgotten.
#[derive(Clone, Copy)]
enum Part<'a> {
    All,
    /// Those that everybody in the company may read.
    Company,
    /// Those that are private to somebody.
    Of(&'a Owner),
}

impl<'a> Part<'a> {
    /// The part that the record of this owner, or else of the company, is in.
    fn with(owner: Option<&'a Owner>) -> Self {
        owner.map_or(Self::Company, Self::Of)
    }
}

/// The key of what was forgotten. `text` names it, without a zero byte.
fn key(binding: &Binding, mut text: Vec<u8>, part: Part<'_>) -> Vec<u8> {
    match part {
        Part::All => {}
        Part::Company => text.extend_from_slice(b"\0c"),
        Part::Of(Owner::Agent(agent)) => text.extend([b"\0a", agent.as_str().as_bytes()].concat()),
        Part::Of(Owner::Person(person)) => text.extend([b"\0p", person.as_bytes()].concat()),
    }
    let prefix = prefix(&binding.company_id, binding.id);
    [&prefix[..], blake3::hash(&text).as_bytes()].concat()
}

/// The names of the fields are part of it, and no field that is set is left out: two sources, or
/// two scopes, have one text only if they are equal. Every scope names its company, which no source
/// does. JSON has no zero byte.
fn text_of(of: &impl Serialize) -> Vec<u8> {
    to_json(of).unwrap_or_default()
}

impl Selection<'_> {
    /// The texts of what is forgotten, whose keys have a part each.
    fn texts(self) -> Vec<Vec<u8>> {
        match self {
            Self::Sources(sources) => sources.iter().map(text_of).collect(),
            Self::Scope(scope) => vec![text_of(scope)],
        }
    }

    /// The keys of the rows that say that the records which a reader may read are forgotten.
    fn keys(self, reader: &Reader, binding: &Binding) -> Vec<Vec<u8>> {
        let own = match reader {
            Reader::Agent(agent) => Some(Owner::Agent(agent.clone())),
            Reader::Person(person) => Some(Owner::Person(person.clone())),
            Reader::All | Reader::Nobody => None,
        };
        let first = if *reader == Reader::All { Part::All } else { Part::Company };
        let parts = [first].into_iter().chain(own.as_ref().map(Part::Of));
        let any =
            matches!(self, Self::Scope(_)).then(|| key(binding, ANY_SCOPE.to_vec(), Part::All));
        let texts = self.texts();
        let keys = texts
            .iter()
            .flat_map(|text| parts.clone().map(|part| key(binding, text.clone(), part)));
        any.into_iter().chain(keys).collect()
    }
}

impl Records {
    /// The rows that say that records are forgotten from the operation `by` on, as far as a reader
    /// may read them. Material of events that happened before `before` is part of it, also if they
    /// come later.
    ///
    /// # Errors
    /// Where the store fails.
    pub async fn forgets(
        &self,
        reader: &Reader,
        binding: &Binding,
        what: Selection<'_>,
        by: OperationId,
        (before, now): (Timestamp, Timestamp),
    ) -> Result<Vec<TableWrite>, StoreError> {
        let mut rows = Vec::new();
        for key in what.keys(reader, binding) {
            let known = self.forgotten_at(&key).await?;
            let row = Forgotten {
                sequence: known.map_or(0, |known| known.sequence).max(by.sequence()),
                before: known.map_or(before, |known| known.before.max(before)),
                at: now,
            };
            let value = Some(store::encode("forgotten source", &row)?);
            rows.push(TableWrite::new(Table::ForgottenSources, key, value));
        }
        Ok(rows)
    }

    async fn forgotten_at(&self, key: &[u8]) -> Result<Option<Forgotten>, StoreError> {
        let found = self.store.get(Table::ForgottenSources, key).await?;
        found.map(|value| store::decode("forgotten source", &value)).transpose()
    }

    /// Those of the records that an operation has just written in a scope, with their sources,
    /// whose material was forgotten. `owner`: `None` is the company.
    ///
    /// # Errors
    /// Where the store fails.
    pub async fn forgotten_of(
        &self,
        binding: &Binding,
        scope: &Scope,
        owner: Option<&Owner>,
        since: Since,
        arrived: Vec<(RecordHandle, Option<SourceRef>)>,
    ) -> Result<Vec<RecordHandle>, StoreError> {
        let mut gone = Vec::new();
        if arrived.is_empty() {
            return Ok(gone);
        }
        let is_all_gone = self.is_scope_forgotten(binding, scope, owner, since).await?;
        for (handle, source) in arrived {
            let is_gone = match &source {
                _ if is_all_gone => true,
                Some(source) => self.is_source_forgotten(binding, source, owner, since).await?,
                None => false,
            };
            if is_gone {
                gone.push(handle);
            }
        }
        Ok(gone)
    }

    /// Whether the source or the scope of material was forgotten since then, as far as it belongs
    /// to this owner. `None`: the company.
    ///
    /// # Errors
    /// Where the store fails.
    pub async fn is_forgotten(
        &self,
        binding: &Binding,
        (scope, source): (&Scope, &SourceRef),
        owner: Option<&Owner>,
        since: Since,
    ) -> Result<bool, StoreError> {
        Ok(self.is_source_forgotten(binding, source, owner, since).await?
            || self.is_scope_forgotten(binding, scope, owner, since).await?)
    }

    async fn is_source_forgotten(
        &self,
        binding: &Binding,
        source: &SourceRef,
        owner: Option<&Owner>,
        since: Since,
    ) -> Result<bool, StoreError> {
        let prefix = prefix(&binding.company_id, binding.id);
        if self.store.scan(Table::ForgottenSources, &prefix, None, 1).await?.entries.is_empty() {
            return Ok(false);
        }
        let texts = SourceSelector::all_of(source).map(|selector| text_of(&selector));
        self.is_any_forgotten(binding, texts, owner, since).await
    }

    /// It costs one read, unless a scope was forgotten at the binding since then.
    async fn is_scope_forgotten(
        &self,
        binding: &Binding,
        scope: &Scope,
        owner: Option<&Owner>,
        since: Since,
    ) -> Result<bool, StoreError> {
        let any = key(binding, ANY_SCOPE.to_vec(), Part::All);
        if !self.forgotten_at(&any).await?.is_some_and(|last| last.has(since)) {
            return Ok(false);
        }
        let texts = scope.all_around().map(|around| text_of(&around));
        self.is_any_forgotten(binding, texts, owner, since).await
    }

    async fn is_any_forgotten(
        &self,
        binding: &Binding,
        texts: impl Iterator<Item = Vec<u8>> + Send,
        owner: Option<&Owner>,
        since: Since,
    ) -> Result<bool, StoreError> {
        for text in texts {
            for part in [Part::All, Part::with(owner)] {
                let found = self.forgotten_at(&key(binding, text.clone(), part)).await?;
                if found.is_some_and(|known| known.has(since)) {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    /// The changes by which another binding, in the place of one, knows what was forgotten there.
    ///
    /// # Errors
    /// Where the store fails.
    pub async fn forgotten_at_another(
        &self,
        before: &Binding,
        now: &Binding,
    ) -> Result<Vec<Change>, StoreError> {
        let from = prefix(&before.company_id, before.id);
        let to = prefix(&now.company_id, now.id);
        let mut rows = store::scan_all(&*self.store, Table::ForgottenSources, &from);
        let mut changes = Vec::new();
        while let Some((key, row)) = rows.next().await? {
            let key = [&to[..], &key[from.len()..]].concat();
            changes.push(Change::always(Table::ForgottenSources, key, Some(row)));
        }
        Ok(changes)
    }

    /// At most so many wanted rows of a selection. For a scope it reads all rows of the binding.
    ///
    /// # Errors
    /// Where the store fails.
    pub async fn select(
        &self,
        binding: &Binding,
        what: Selection<'_>,
        most: usize,
        is_wanted: impl Fn(&RecordRow) -> bool,
    ) -> Result<Vec<RecordRow>, StoreError> {
        let scope = match what {
            Selection::Sources(sources) => {
                return self.of_sources(binding, sources, most, is_wanted).await;
            }
            Selection::Scope(scope) => scope,
        };
        let mut rows = self.rows(&binding.company_id, binding.id);
        let mut found = Vec::new();
        while found.len() < most
            && let Some(row) = rows.next().await?
        {
            if scope.covers(&row.scope) && is_wanted(&row) {
                found.push(row);
            }
        }
        Ok(found)
    }

    /// At most so many rows of a binding whose source is one of these and that are wanted.
    async fn of_sources(
        &self,
        binding: &Binding,
        sources: &[SourceSelector],
        most: usize,
        is_wanted: impl Fn(&RecordRow) -> bool,
    ) -> Result<Vec<RecordRow>, StoreError> {
        let mut found: Vec<RecordRow> = Vec::new();
        for (number, source) in sources.iter().enumerate() {
            let Some(thing) = source.thing() else { continue };
            let prefix = source_index::prefix(&binding.company_id, binding.id, thing);
            let mut entries = store::scan_all(&*self.store, Table::RecordSources, &prefix);
            while found.len() < most
                && let Some((key, _)) = entries.next().await?
            {
                let Some(record) =
                    std::str::from_utf8(&key[prefix.len()..]).ok().and_then(|id| id.parse().ok())
                else {
                    continue;
                };
                let Some(row) = self.row(binding, &record).await? else { continue };
                let Some(from) = &row.source else { continue };
                // One of several sources finds it first.
                let is_first = source.matches(from)
                    && !sources[..number].iter().any(|source| source.matches(from));
                if is_first && is_wanted(&row) {
                    found.push(row);
                }
            }
        }
        Ok(found)
    }

    /// Removes what was forgotten so long ago that nothing comes of it any more. Answers the number
    /// of removed rows.
    ///
    /// # Errors
    /// Where the store fails. Some of them are removed then.
    pub async fn sweep_forgotten(
        &self,
        company: &CompanyId,
        now: Timestamp,
    ) -> Result<u64, StoreError> {
        let until = now.checked_sub(KEPT).unwrap_or(Timestamp::MIN);
        let prefix = store::company_key(company, b"");
        let mut rows = store::scan_all(&*self.store, Table::ForgottenSources, &prefix);
        let (mut old, mut count) = (Vec::new(), 0);
        while let Some((key, row)) = rows.next_row::<Forgotten>("forgotten source").await? {
            if row.at < until {
                count += 1;
                old.push(Change::always(Table::ForgottenSources, key, None));
            }
            self.write_many(&mut old, AT_ONCE).await?;
        }
        self.write_many(&mut old, 1).await?;
        Ok(count)
    }
}
