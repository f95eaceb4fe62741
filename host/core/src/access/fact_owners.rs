//! Whose a fact is: of the user or the drive that a scope names, or of the agent that reads and writes.

use super::denied::Denied;
use crate::Service;
use memhost_types::{Binding, BindingKey, CompanyId, JsonObject, Scope};

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
    /// Whether an agent may name users other than itself: their facts are then read and written for it.
    pub agents_name_users: bool,
}

/// A user, or a drive.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Owner {
    User(String),
    Drive(String),
}

impl FactOwners {
    /// Who owns a fact that was written in a scope: its user, else its drive, else the agent, which counts as a user.
    pub(crate) fn owner(&self, scope: &Scope) -> Option<Owner> {
        let user = (self.user)(scope).map(|user| Owner::User(user.to_owned()));
        let drive = || (self.drive)(scope).map(|drive| Owner::Drive(drive.to_owned()));
        let agent = || scope.agent_id.as_ref().map(|agent| Owner::User(agent.to_string()));
        user.or_else(drive).or_else(agent)
    }

    /// Whether a binding has the facts.
    fn is_at(&self, binding: &Binding) -> bool {
        self.company == binding.company_id && self.binding.as_ref().is_none_or(|key| *key == binding.key)
    }

    /// Whether a binding has users' facts that are their owners' only.
    fn keeps(&self, binding: &Binding) -> bool {
        self.is_at(binding) && !self.agents_name_users
    }

    /// The user and the drive that an operation names.
    pub(crate) fn named(&self, scope: &Scope) -> impl Iterator<Item = Owner> {
        let drive = (self.drive)(scope).map(|drive| Owner::Drive(drive.to_owned()));
        let owner = self.owner(scope).filter(|owner| Some(owner) != drive.as_ref());
        [owner, drive].into_iter().flatten()
    }
}

impl Service {
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

    /// Leaves user and drive in a scope, and no other workspace: its facts would be in no list. Only at a binding that is
    /// named, because others have records of other systems.
    pub(crate) fn keep_to_owners(&self, scope: &mut Scope, binding: &Binding) {
        let counted = self.recorder.facts.lock();
        if let Some(owners) = counted.owners.as_ref().filter(|owners| owners.binding.is_some() && owners.is_at(binding))
        {
            (owners.clear_others)(scope);
        }
    }

    /// The scope that a write of facts is bound to: a user's fact follows the user everywhere, so it is bound to no drive,
    /// and what an agent writes for nobody is the agent's own. `is_drives`: what is written says that it is a drive's.
    pub(crate) fn bind_write(&self, principal: &str, scope: &mut Scope, binding: &Binding, is_drives: bool) {
        let counted = self.recorder.facts.lock();
        let Some(owners) = counted.owners.as_ref().filter(|owners| owners.is_at(binding)) else { return };
        match ((owners.user)(scope).is_some(), (owners.drive)(scope).is_some()) {
            (true, true) if !is_drives => (owners.clear_drive)(scope),
            (false, false) => {
                let agent = agent_of(principal).map(str::to_owned);
                if let Some(agent) = agent.or_else(|| scope.agent_id.as_ref().map(ToString::to_string)) {
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
    member("scope").map_or_else(|| member("driveId").is_some() && member("userId").is_none(), |scope| scope == "drive")
}

/// The agent that asks. An integration that acts for an agent is that agent; one that acts for a person is confined to the
/// person.
fn agent_of(principal: &str) -> Option<&str> {
    principal.strip_prefix("agent:").or_else(|| Some(principal.split_once(" as agent:")?.1))
}
