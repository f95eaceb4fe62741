//! Figures of the facts about users and of drives: how many have some, how many facts there are, and how many are removed
//! soon. They are computed from the operation log of the last 30 days and from the rows of records.

use async_recursion::async_recursion as boxed;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};

use crate::Service;
use crate::access::Denied;
use crate::error::ServiceError;
use crate::money::evaluation::MOST_READ;
use memhost_store::{self as store, Table};
use memhost_types::{
    Binding, BindingKey, CompanyId, Operation, OperationFilter, OperationKind, Outcome, RecordHandle, RecordRow, Scope,
};

/// The days that the figures are about.
const DAYS: SignedDuration = SignedDuration::from_hours(30 * 24);
/// A fact that is removed within this time was not worth keeping.
const SOON: SignedDuration = SignedDuration::from_hours(7 * 24);
/// The most removed facts that are told apart from present ones; older removals count for nothing.
const MOST_GONE: usize = 100_000;
/// For how long figures are answered again: reading the log takes a while.
const KEPT: SignedDuration = SignedDuration::from_mins(1);

/// Whose facts are counted.
#[derive(Debug, Clone)]
pub struct FactOwners {
    /// The company.
    pub company: CompanyId,
    /// The binding that has the facts. Where absent, the company's default.
    pub binding: Option<BindingKey>,
    /// The field of a scope that names a user, such as `scope.subjectId`, and the id in it.
    pub user_field: &'static str,
    /// The id of the user in a scope.
    pub user: fn(&Scope) -> Option<&str>,
    /// Sets the id of the user in a scope.
    pub set_user: fn(&mut Scope, &str),
    /// The id of the drive in a scope.
    pub drive: fn(&Scope) -> Option<&str>,
    /// Whether an agent may name users other than itself: their facts are then read and written for it.
    pub agents_name_users: bool,
}

/// A user, or a drive.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Owner {
    User(String),
    Drive(String),
}

impl FactOwners {
    /// Who owns a fact that was written in a scope: its user, else its drive, else the agent, which counts as a user.
    fn owner(&self, scope: &Scope) -> Option<Owner> {
        let user = (self.user)(scope).map(|user| Owner::User(user.to_owned()));
        let drive = || (self.drive)(scope).map(|drive| Owner::Drive(drive.to_owned()));
        let agent = || scope.agent_id.as_ref().map(|agent| Owner::User(agent.to_string()));
        user.or_else(drive).or_else(agent)
    }

    /// Whether a binding has users' facts that are their owners' only.
    fn keeps(&self, binding: &Binding) -> bool {
        let is_theirs =
            self.company == binding.company_id && self.binding.as_ref().is_none_or(|key| *key == binding.key);
        is_theirs && !self.agents_name_users
    }

    /// The user and the drive that an operation names.
    fn named(&self, scope: &Scope) -> impl Iterator<Item = Owner> {
        let drive = (self.drive)(scope).map(|drive| Owner::Drive(drive.to_owned()));
        let owner = self.owner(scope).filter(|owner| Some(owner) != drive.as_ref());
        [owner, drive].into_iter().flatten()
    }
}

/// The figures of users, or of drives.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Figures {
    /// Facts that are there.
    pub(crate) facts: u64,
    /// Owners of one fact or more.
    pub(crate) owners: u64,
    /// Owners that an operation of the last 30 days named.
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
    owners: Option<FactOwners>,
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

    /// Refuses an agent that names a user other than itself where users' facts are their owners' only.
    pub(crate) fn check_user(&self, principal: &str, scope: &Scope, binding: &Binding) -> Result<(), Denied> {
        let counted = self.recorder.facts.lock();
        let Some(owners) = counted.owners.as_ref().filter(|owners| owners.keeps(binding)) else { return Ok(()) };
        match ((owners.user)(scope), agent_of(principal)) {
            (Some(user), Some(agent)) if user != agent => Err(Denied::because(
                owners.user_field,
                "is another user, whose facts are that user's only; use an integration's token that acts for the user, \
                 or set `agents_name_users` in `[integrations.pagespace]`",
            )),
            _ => Ok(()),
        }
    }

    /// Makes an agent the user of a scope that names none, where users' facts are their owners' only. A scope without a user
    /// sees and removes the facts of all.
    pub(crate) fn confine_user(&self, principal: &str, scope: &mut Scope, binding: &Binding) {
        let counted = self.recorder.facts.lock();
        let owners = counted.owners.as_ref().filter(|owners| owners.keeps(binding) && (owners.user)(scope).is_none());
        if let (Some(owners), Some(agent)) = (owners, agent_of(principal)) {
            (owners.set_user)(scope, agent);
        }
    }

    /// The figures, at most a minute old; none where no company has facts.
    #[boxed]
    pub(crate) async fn fact_figures(&self) -> Result<Option<FactFigures>, ServiceError> {
        let turn = Arc::clone(&self.recorder.facts.lock().turn);
        let _turn = turn.lock().await;
        let now = self.clock.now();
        let owners = {
            let counted = self.recorder.facts.lock();
            if let Some((_, figures)) = counted.last.filter(|(at, _)| now.duration_since(*at) < KEPT) {
                return Ok(Some(figures));
            }
            counted.owners.clone()
        };
        let Some(owners) = owners else { return Ok(None) };
        let figures = self.count(&owners, now).await?;
        self.recorder.facts.lock().last = Some((now, figures));
        Ok(Some(figures))
    }

    async fn count(&self, owners: &FactOwners, now: Timestamp) -> Result<FactFigures, ServiceError> {
        let since = now.checked_sub(DAYS).unwrap_or(Timestamp::UNIX_EPOCH);
        let Ok(resolved) = self.bindings.resolve(&owners.company, None, owners.binding.as_ref()) else {
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

    /// Whom the operations since a time name, and the facts that they removed. Newest first: the removal of a fact is read
    /// before its writing.
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
            if operation.outcome != Outcome::Succeeded {
                continue;
            }
            active.extend(owners.named(&operation.scope));
            if operation.binding_key.as_ref() != Some(binding) {
                continue;
            }
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
                            gone.added = Some((operation.started_at, owners.owner(&operation.scope)));
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

/// The agent that asks. An integration that acts for an agent is that agent; one that acts for a person is confined to the
/// person.
fn agent_of(principal: &str) -> Option<&str> {
    principal.strip_prefix("agent:").or_else(|| Some(principal.split_once(" as agent:")?.1))
}

/// Whether a person did it: no agent, and no program that speaks MCP.
fn is_by_hand(operation: &Operation) -> bool {
    let via = operation.source.as_ref().and_then(|source| source.external_ref.as_deref()).unwrap_or_default();
    !operation.principal.contains("agent:") && via != "mcp" && !via.starts_with("mcp:")
}
