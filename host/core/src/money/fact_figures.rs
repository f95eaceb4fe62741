//! Figures of the facts about users and of drives: how many have some, how many facts there are,
//! and how many are removed soon. They are computed from the operation log of the last 30 days and
//! from the rows of records.

use async_recursion::async_recursion as boxed;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};

use crate::Service;
use crate::access::{FactOwners, Owner};
use crate::error::ServiceError;
use memhost_store::{self as store, Table};
use memhost_types::{
    BindingKey, Operation, OperationFilter, OperationKind, Outcome, RecordHandle, RecordRow,
};

/// Rows and operations that are read for the figures at most, the newest ones.
const MOST_READ: usize = 200_000;
/// The days that the figures are about.
const DAYS: SignedDuration = SignedDuration::from_hours(30 * 24);
/// A fact that is removed within this time was not worth keeping.
const SOON: SignedDuration = SignedDuration::from_hours(7 * 24);
/// The most removed facts that are told apart from present ones; older removals count for nothing.
const MOST_GONE: usize = 100_000;
/// For how long figures are answered again: reading the log takes a while.
const KEPT: SignedDuration = SignedDuration::from_mins(1);

/// The figures of users, or of drives.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Figures {
    /// Facts that are there.
    pub(crate) facts: u64,
    /// Owners of one fact or more.
    pub(crate) owners: u64,
    /// Owners that an operation of the binding named in the last 30 days.
    pub(crate) active: u64,
    /// Those of them that have a fact.
    pub(crate) active_owners: u64,
    /// Facts that were added in the last 30 days.
    pub(crate) added: u64,
    /// Those of them that a person removed within 7 days.
    pub(crate) removed_soon: u64,
}

/// All figures.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct FactFigures {
    pub(crate) users: Figures,
    pub(crate) drives: Figures,
}

/// Whose facts are counted, and what was counted last.
#[derive(Default)]
pub(crate) struct Counted {
    pub(crate) owners: Option<FactOwners>,
    last: Option<(Timestamp, FactFigures)>,
    /// Whoever counts holds it; others wait for the figures.
    turn: Arc<tokio::sync::Mutex<()>>,
}

/// A fact that is gone.
struct Gone {
    at: Timestamp,
    is_by_hand: bool,
    /// When it was added and whose it was, as far as that was read.
    added: Option<(Timestamp, Option<Owner>)>,
}

impl Service {
    /// From here on the metrics have figures of a company's facts.
    pub fn count_facts(&self, owners: FactOwners) {
        *self.recorder.facts.lock() = Counted { owners: Some(owners), ..Counted::default() };
    }

    /// The figures, at most a minute old; none where no company has facts.
    #[boxed]
    pub(crate) async fn fact_figures(&self) -> Result<Option<FactFigures>, ServiceError> {
        let turn = Arc::clone(&self.recorder.facts.lock().turn);
        let _turn = turn.lock().await;
        let now = self.clock.now();
        let owners = {
            let counted = self.recorder.facts.lock();
            if let Some((_, figures)) =
                counted.last.filter(|(at, _)| now.duration_since(*at) < KEPT)
            {
                return Ok(Some(figures));
            }
            counted.owners.clone()
        };
        let Some(owners) = owners else { return Ok(None) };
        let figures = self.count(&owners, now).await?;
        self.recorder.facts.lock().last = Some((now, figures));
        Ok(Some(figures))
    }

    async fn count(
        &self,
        owners: &FactOwners,
        now: Timestamp,
    ) -> Result<FactFigures, ServiceError> {
        let since = now.checked_sub(DAYS).unwrap_or(Timestamp::UNIX_EPOCH);
        let Ok(resolved) = self.bindings.resolve(&owners.company, None, owners.binding.as_ref())
        else {
            return Ok(FactFigures::default());
        };
        let binding = resolved.binding;
        let mut figures = FactFigures::default();
        let mut having: HashSet<Owner> = HashSet::new();
        let prefix = store::company_key(&owners.company, binding.id.0.as_bytes());
        let mut rows = store::scan_all(&*self.store, Table::Records, &prefix);
        for _ in 0..MOST_READ {
            let Some((_, row)) = rows.next_row::<RecordRow>("record row").await? else { break };
            let Some(owner) = owners.owner(&row.scope) else { continue };
            let of = figures.of(&owner);
            of.facts += 1;
            of.added += u64::from(row.created_at >= since);
            if having.insert(owner.clone()) {
                figures.of(&owner).owners += 1;
            }
        }
        let (active, gone) = self.recent(owners, &binding.key, since).await?;
        for owner in active {
            figures.of(&owner).active += 1;
            figures.of(&owner).active_owners += u64::from(having.contains(&owner));
        }
        for Gone { at, is_by_hand, added } in gone.into_values() {
            let Some((added, Some(owner))) = added else { continue };
            figures.of(&owner).added += 1;
            let is_soon = at.duration_since(added) <= SOON;
            figures.of(&owner).removed_soon += u64::from(is_by_hand && is_soon);
        }
        Ok(figures)
    }

    /// Whom the operations since a time name, and the facts that they removed. Newest first: the
    /// removal of a fact is read before its writing.
    async fn recent(
        &self,
        owners: &FactOwners,
        binding: &BindingKey,
        since: Timestamp,
    ) -> Result<(HashSet<Owner>, HashMap<RecordHandle, Gone>), ServiceError> {
        let (mut active, mut gone) = (HashSet::new(), HashMap::new());
        let filter = OperationFilter { since: Some(since), ..OperationFilter::default() };
        let mut operations = store::scan_operations(&*self.store, &owners.company, &filter);
        for _ in 0..MOST_READ {
            let Some(operation) = operations.next().await? else { break };
            if operation.outcome != Outcome::Succeeded
                || operation.binding_key.as_ref() != Some(binding)
            {
                continue;
            }
            active.extend(owners.named(&operation.scope));
            match operation.kind {
                OperationKind::Forget => {
                    let is_by_hand = is_by_hand(&operation);
                    for handle in &operation.records {
                        if gone.len() >= MOST_GONE {
                            break;
                        }
                        let new = Gone { at: operation.started_at, is_by_hand, added: None };
                        gone.entry(handle.clone()).or_insert(new);
                    }
                }
                OperationKind::Capture | OperationKind::RecordUpsert => {
                    for handle in &operation.records {
                        if let Some(gone) = gone.get_mut(handle) {
                            gone.added =
                                Some((operation.started_at, owners.owner(&operation.scope)));
                        }
                    }
                }
                _ => {}
            }
        }
        Ok((active, gone))
    }
}

impl FactFigures {
    fn of(&mut self, owner: &Owner) -> &mut Figures {
        match owner {
            Owner::User(_) => &mut self.users,
            Owner::Drive(_) => &mut self.drives,
        }
    }
}

/// Whether a person did it: no agent, and no program that speaks MCP.
fn is_by_hand(operation: &Operation) -> bool {
    let via = operation
        .source
        .as_ref()
        .and_then(|source| source.external_ref.as_deref())
        .unwrap_or_default();
    operation.principal.agent().is_none() && via != "mcp" && !via.starts_with("mcp:")
}
