//! Figures of the facts about users and of drives: how many have some, how many facts there are,
//! and how many are removed soon. They are computed from the operation log of the last 30 days and
//! from the rows of records.

use std::collections::{HashMap, HashSet};

use jiff::{SignedDuration, Timestamp};
use tokio::sync::Mutex;

use super::facts::FactOwner;
use super::options::PageSpaceOptions;
use memhost_core::{Control, Gauges, MetricSource, ReadingGauges, ServiceError};
use memhost_types::{
    BindingKey, Operation, OperationFilter, OperationKind, Outcome, RecordHandle, RecordRow, is_mcp,
};

/// The days that the figures are about.
const DAYS: SignedDuration = SignedDuration::from_hours(30 * 24);
/// A fact that is removed within this time was not worth keeping.
const SOON: SignedDuration = SignedDuration::from_hours(7 * 24);
/// The most records and operations that are read.
const MOST_READ: usize = 200_000;
/// The most removed facts that are told apart from present ones; older removals count for nothing.
const MOST_GONE: usize = 100_000;
/// For how long figures are answered again: reading the log takes a while.
const KEPT: SignedDuration = SignedDuration::from_mins(1);

/// The figures of users, or of drives.
#[derive(Debug, Clone, Copy, Default)]
struct Figures {
    /// Facts that are there.
    facts: u64,
    /// Owners of one fact or more.
    owners: u64,
    /// Owners that an operation of the binding named in the last 30 days.
    active: u64,
    /// Those of them that have a fact.
    active_owners: u64,
    /// Facts that were added in the last 30 days.
    added: u64,
    /// Those of them that a person removed within 7 days.
    removed_soon: u64,
}

/// All figures.
#[derive(Debug, Clone, Copy, Default)]
struct AllFigures {
    users: Figures,
    drives: Figures,
}

/// A fact that is gone.
struct Gone {
    at: Timestamp,
    is_by_hand: bool,
    /// When it was added and whose it was, as far as that was read.
    added: Option<(Timestamp, Option<FactOwner>)>,
}

/// What was removed, by its handle.
type AllGone = HashMap<RecordHandle, Gone>;

/// The figures of the facts that PageSpace's section is about.
#[derive(Debug)]
pub(crate) struct FactFigures {
    options: PageSpaceOptions,
    /// What was counted last. Whoever counts holds it; others wait for the figures.
    last: Mutex<Option<(Timestamp, AllFigures)>>,
}

impl MetricSource for FactFigures {
    fn gauges<'a>(&'a self, host: &'a Control, now: Timestamp) -> ReadingGauges<'a> {
        Box::pin(async move { Ok(self.figures(host, now).await?.gauges()) })
    }
}

impl FactFigures {
    pub(crate) fn new(options: &PageSpaceOptions) -> Self {
        Self { options: options.clone(), last: Mutex::new(None) }
    }

    /// The figures, at most a minute old.
    async fn figures(&self, host: &Control, now: Timestamp) -> Result<AllFigures, ServiceError> {
        let mut last = self.last.lock().await;
        if let Some((_, figures)) = last.filter(|(at, _)| now.duration_since(*at) < KEPT) {
            return Ok(figures);
        }
        let figures = self.count(host, now).await?;
        *last = Some((now, figures));
        Ok(figures)
    }

    async fn count(&self, host: &Control, now: Timestamp) -> Result<AllFigures, ServiceError> {
        let since = now.checked_sub(DAYS).unwrap_or(Timestamp::UNIX_EPOCH);
        let (company, binding) = (&self.options.company, self.options.binding.as_ref());
        let mut figures = AllFigures::default();
        let mut having: HashSet<FactOwner> = HashSet::new();
        let mut count = |row: RecordRow| {
            let Some(owner) = self.options.owner(&row.scope) else { return };
            let of = figures.of(&owner);
            of.facts += 1;
            of.added += u64::from(row.created_at >= since);
            of.owners += u64::from(having.insert(owner));
        };
        let Some(binding) = host.each_row(company, binding, MOST_READ, &mut count).await? else {
            return Ok(figures);
        };
        let (active, gone) = self.recent(host, &binding, since).await?;
        for owner in active {
            let of = figures.of(&owner);
            of.active += 1;
            of.active_owners += u64::from(having.contains(&owner));
        }
        for Gone { at, is_by_hand, added } in gone.into_values() {
            let Some((added, Some(owner))) = added else { continue };
            let of = figures.of(&owner);
            of.added += 1;
            let is_soon = at.duration_since(added) <= SOON;
            of.removed_soon += u64::from(is_by_hand && is_soon);
        }
        Ok(figures)
    }

    /// Whom the operations since a time name, and the facts that they removed. Newest first: the
    /// removal of a fact is read before its writing.
    async fn recent(
        &self,
        host: &Control,
        binding: &BindingKey,
        since: Timestamp,
    ) -> Result<(HashSet<FactOwner>, AllGone), ServiceError> {
        let (mut active, mut gone) = (HashSet::new(), AllGone::new());
        let mut note = |operation: Operation| {
            if operation.outcome != Outcome::Succeeded
                || operation.binding_key.as_ref() != Some(binding)
            {
                return;
            }
            active.extend(self.options.named(&operation.scope));
            match operation.kind {
                OperationKind::Forget => {
                    let (at, is_by_hand) = (operation.started_at, is_by_hand(&operation));
                    for handle in operation.records {
                        if gone.len() >= MOST_GONE {
                            break;
                        }
                        gone.entry(handle).or_insert(Gone { at, is_by_hand, added: None });
                    }
                }
                OperationKind::Capture | OperationKind::RecordUpsert => {
                    let (at, owner) = (operation.started_at, self.options.owner(&operation.scope));
                    for handle in &operation.records {
                        if let Some(gone) = gone.get_mut(handle) {
                            gone.added = Some((at, owner.clone()));
                        }
                    }
                }
                _ => {}
            }
        };
        let filter = OperationFilter { since: Some(since), ..OperationFilter::default() };
        host.each_operation(&self.options.company, &filter, MOST_READ, &mut note).await?;
        Ok((active, gone))
    }
}

impl AllFigures {
    fn of(&mut self, owner: &FactOwner) -> &mut Figures {
        match owner {
            FactOwner::User(_) => &mut self.users,
            FactOwner::Drive(_) | FactOwner::Company => &mut self.drives,
        }
    }

    /// An average or a share is for who reads the figures: of two gauges here.
    fn gauges(&self) -> Vec<Gauges> {
        type Of = fn(&Figures) -> u64;
        let all: [(&str, &str, Of); 6] = [
            ("facts", "Facts that are there", |of| of.facts),
            ("fact_owners", "Users and drives that have a fact", |of| of.owners),
            ("facts_active", "Users and drives that operations of the last 30 days named", |of| {
                of.active
            }),
            ("facts_active_owners", "Those of the active ones that have a fact", |of| {
                of.active_owners
            }),
            ("facts_added", "Facts that were added in the last 30 days", |of| of.added),
            (
                "facts_removed_soon",
                "Those of the added ones that a person removed within 7 days",
                |of| of.removed_soon,
            ),
        ];
        let gauges = all.into_iter().map(|(name, help, of)| {
            let values = vec![("user", of(&self.users)), ("drive", of(&self.drives))];
            Gauges { name, help, label: "owner", values }
        });
        gauges.collect()
    }
}

/// Whether a person did it: no agent, and no program that speaks MCP.
fn is_by_hand(operation: &Operation) -> bool {
    let source = operation.source.as_ref();
    let via = source.and_then(|source| source.external_ref.as_deref());
    operation.principal.agent().is_none() && !is_mcp(via)
}
