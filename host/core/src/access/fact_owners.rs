//! Whose a fact is: of the user or the drive that a scope names, or of the agent that reads and
//! writes.

use serde::{Deserialize, Serialize};

use super::{Denied, is_mcp};
use crate::Service;
use memhost_types::{
    AgentId, Binding, BindingKey, CompanyId, JsonObject, Principal, RecordId, RecordRow, Refusal,
    Scope,
};

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
    /// Removes the id of the drive from a scope.
    pub clear_drive: fn(&mut Scope),
    /// Removes what a provider could take for another drive.
    pub clear_others: fn(&mut Scope),
    /// Whether an agent may name users other than itself: their facts are then read and written for
    /// it.
    pub agents_name_users: bool,
    /// Which shared facts agents and members may change.
    pub agents_change: DriveFacts,
}

/// Shared facts that whoever is no administrator may correct and remove: those of a drive, and of
/// the company.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DriveFacts {
    /// None.
    None,
    /// Those that a model saved: not those that an administrator added or corrected.
    #[default]
    SavedByAi,
    /// All.
    All,
}

impl DriveFacts {
    fn allows(self, row: &RecordRow) -> bool {
        let (by, via) = match &row.corrected_by {
            Some(by) => (by, row.corrected_via.as_deref()),
            None => (
                &row.written_by,
                row.source.as_ref().and_then(|source| source.external_ref.as_deref()),
            ),
        };
        let is_by_ai = || is_mcp(via) || by.is_confined();
        self == Self::All || (self == Self::SavedByAi && is_by_ai())
    }
}

/// The facts of drives and of the company that an agent or a member may not change.
#[derive(Debug, Clone)]
pub(crate) struct KeptFacts(FactOwners);

impl KeptFacts {
    pub(crate) fn has(&self, row: &RecordRow) -> bool {
        let is_shared = match self.0.owner(&row.scope) {
            Some(Owner::User(_)) => false,
            Some(Owner::Drive(_)) => true,
            // Where no binding is named, other systems' records name nobody, too.
            None => self.0.binding.is_some(),
        };
        is_shared && !self.0.agents_change.allows(row)
    }

    fn denied(&self, what: &str, act: &str) -> Denied {
        Denied::whole(format!(
            "{what}; only an administrator, or the owner of the drive, may {act}: an integration \
             says so with \
             x-memhost-act-as-role: company_administrator, and `agents_change_drive_facts` in \
             `[integrations.pagespace]` allows it to all"
        ))
    }
}

/// A user, or a drive.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Owner {
    User(String),
    Drive(String),
}

impl FactOwners {
    /// Who owns a fact that was written in a scope: its drive, else its user, else the agent, which
    /// counts as a user. A write that names both is bound to the drive only if it says that it is
    /// the drive's.
    pub(crate) fn owner(&self, scope: &Scope) -> Option<Owner> {
        let agent = || scope.agent_id.as_ref().map(|agent| Owner::User(agent.to_string()));
        self.drive_of(scope).or_else(|| self.user_of(scope)).or_else(agent)
    }

    fn user_of(&self, scope: &Scope) -> Option<Owner> {
        (self.user)(scope).map(|user| Owner::User(user.to_owned()))
    }

    fn drive_of(&self, scope: &Scope) -> Option<Owner> {
        (self.drive)(scope).map(|drive| Owner::Drive(drive.to_owned()))
    }

    /// Whether a binding has the facts.
    fn is_at(&self, binding: &Binding) -> bool {
        self.company == binding.company_id
            && self.binding.as_ref().is_none_or(|key| *key == binding.key)
    }

    /// Whether a binding has users' facts that are their owners' only.
    fn keeps(&self, binding: &Binding) -> bool {
        self.is_at(binding) && !self.agents_name_users
    }

    /// The user and the drive that an operation names, or its agent.
    pub(crate) fn named(&self, scope: &Scope) -> impl Iterator<Item = Owner> {
        let (user, drive) = (self.user_of(scope), self.drive_of(scope));
        let agent = if user.is_none() && drive.is_none() { self.owner(scope) } else { None };
        [user, drive, agent].into_iter().flatten()
    }
}

impl Service {
    /// Refuses an agent that names a user other than itself where users' facts are their owners'
    /// only.
    pub(crate) fn check_user(
        &self,
        principal: &Principal,
        scope: &Scope,
        binding: &Binding,
    ) -> Result<(), Denied> {
        let counted = self.recorder.facts.lock();
        let Some(owners) = counted.owners.as_ref().filter(|owners| owners.keeps(binding)) else {
            return Ok(());
        };
        match ((owners.user)(scope), principal.agent().map(AgentId::as_str)) {
            (Some(user), Some(agent)) if user != agent => Err(Denied::because(
                owners.user_field,
                "is another user, whose facts are that user's only; use an integration's token \
                 that acts for the user, \
                 or set `agents_name_users` in `[integrations.pagespace]`",
            )),
            _ => Ok(()),
        }
    }

    /// The shared facts that somebody may not change at a binding; none where all may be changed.
    pub(crate) fn kept_facts(&self, principal: &Principal, binding: &Binding) -> Option<KeptFacts> {
        if !principal.is_confined() {
            return None;
        }
        let counted = self.recorder.facts.lock();
        let owners = counted.owners.as_ref().filter(|owners| owners.is_at(binding))?;
        (owners.agents_change != DriveFacts::All).then(|| KeptFacts(owners.clone()))
    }

    /// Refuses to change shared facts for who may not change these.
    pub(crate) async fn check_drive_facts(
        &self,
        principal: &Principal,
        binding: &Binding,
        records: impl Iterator<Item = &RecordId>,
    ) -> Result<(), Refusal> {
        let Some(kept) = self.kept_facts(principal, binding) else { return Ok(()) };
        for record in records {
            if self.records.row(binding, record).await?.is_some_and(|row| kept.has(&row)) {
                let by_hand = if kept.0.agents_change == DriveFacts::None {
                    ""
                } else {
                    " that was added by hand"
                };
                let denied = kept.denied(
                    &format!("`{record}` is a shared fact{by_hand}"),
                    "correct or remove it",
                );
                return Err((&denied).into());
            }
        }
        Ok(())
    }

    /// Refuses to forget a drive as a whole for who may not change all of its facts.
    pub(crate) fn check_drive(
        &self,
        principal: &Principal,
        scope: &Scope,
        binding: &Binding,
    ) -> Result<(), Denied> {
        match self.kept_facts(principal, binding) {
            Some(kept) if (kept.0.drive)(scope).is_some() => {
                Err(kept.denied("the scope is a drive's", "forget all of its facts"))
            }
            _ => Ok(()),
        }
    }

    /// Says in a drive's fact that a model made it, where an agent or a member writes it: the
    /// provider's own rules for facts that were added by hand go by that.
    pub(crate) fn tell_source<'a>(
        &self,
        principal: &Principal,
        scope: &Scope,
        binding: &Binding,
        facts: impl Iterator<Item = &'a mut Option<JsonObject>>,
    ) {
        let is_drives =
            |owners: &FactOwners| owners.is_at(binding) && (owners.drive)(scope).is_some();
        if principal.is_confined()
            && self.recorder.facts.lock().owners.as_ref().is_some_and(is_drives)
        {
            facts.for_each(|metadata| {
                drop(metadata.get_or_insert_default().insert("source".to_owned(), "ai".into()));
            });
        }
    }

    /// Makes an agent the user of a scope that names none, where users' facts are their owners'
    /// only. A scope without a user sees and removes the facts of all.
    pub(crate) fn confine_user(&self, principal: &Principal, scope: &mut Scope, binding: &Binding) {
        let counted = self.recorder.facts.lock();
        let owners = counted
            .owners
            .as_ref()
            .filter(|owners| owners.keeps(binding) && (owners.user)(scope).is_none());
        if let (Some(owners), Some(agent)) = (owners, principal.agent().map(AgentId::as_str)) {
            (owners.set_user)(scope, agent);
        }
    }

    /// Leaves user and drive in a scope, and no other workspace: its facts would be in no list.
    /// Only at a binding that is named, because others have records of other systems.
    pub(crate) fn keep_to_owners(&self, scope: &mut Scope, binding: &Binding) {
        let counted = self.recorder.facts.lock();
        if let Some(owners) = counted
            .owners
            .as_ref()
            .filter(|owners| owners.binding.is_some() && owners.is_at(binding))
        {
            (owners.clear_others)(scope);
        }
    }

    /// The scope that a write of facts is bound to: a user's fact follows the user everywhere, so
    /// it is bound to no drive, and what an agent writes for nobody is the agent's own.
    /// `is_drives`: what is written says that it is a drive's.
    pub(crate) fn bind_write(
        &self,
        principal: &Principal,
        scope: &mut Scope,
        binding: &Binding,
        is_drives: bool,
    ) {
        let counted = self.recorder.facts.lock();
        let Some(owners) = counted.owners.as_ref().filter(|owners| owners.is_at(binding)) else {
            return;
        };
        match ((owners.user)(scope).is_some(), (owners.drive)(scope).is_some()) {
            (true, true) if !is_drives => (owners.clear_drive)(scope),
            (false, false) => {
                let agent = principal.agent().map(AgentId::as_str).map(str::to_owned);
                if let Some(agent) =
                    agent.or_else(|| scope.agent_id.as_ref().map(ToString::to_string))
                {
                    (owners.set_user)(scope, &agent);
                }
            }
            _ => {}
        }
    }
}

/// Whether metadata say that a fact is a drive's.
pub(crate) fn says_drive(metadata: Option<&JsonObject>) -> bool {
    let member = |name: &str| metadata.and_then(|metadata| metadata.get(name)?.as_str());
    member("scope").map_or_else(
        || member("driveId").is_some() && member("userId").is_none(),
        |scope| scope == "drive",
    )
}
