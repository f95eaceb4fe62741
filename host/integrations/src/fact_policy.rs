//! Whose a fact is, and who may do what with it: the policy of PageSpace's binding. The owner is
//! the user or the drive that a scope names, or the agent that reads and writes.

use super::facts::{DRIVE, FactOwner, USER};
use super::options::{ChangeableFacts, PageSpaceOptions, ScopeField};
use super::owned::{CREATED_BY, OWNERS};
use memhost_core::{Access, Denied, WritePolicy};
use memhost_types::limits::MAX_OUTSIDE_ID_BYTES;
use memhost_types::{JsonObject, Principal, RecordRow, Scope, is_mcp};

impl ChangeableFacts {
    fn has(self, row: &RecordRow) -> bool {
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

impl PageSpaceOptions {
    /// Who owns a fact that was written in a scope: its drive, else its user, else the agent, which
    /// counts as a user. A write that names both is bound to the drive only if it says that it is
    /// the drive's.
    pub(crate) fn owner(&self, scope: &Scope) -> Option<FactOwner> {
        let agent = || scope.agent_id.as_ref().map(|agent| FactOwner::User(agent.to_string()));
        self.drive_of(scope).or_else(|| self.user_of(scope)).or_else(agent)
    }

    /// The user and the drive that a scope names, or its agent.
    pub(crate) fn named(&self, scope: &Scope) -> impl Iterator<Item = FactOwner> {
        let (user, drive) = (self.user_of(scope), self.drive_of(scope));
        let agent = if user.is_none() && drive.is_none() { self.owner(scope) } else { None };
        [user, drive, agent].into_iter().flatten()
    }

    fn user_of(&self, scope: &Scope) -> Option<FactOwner> {
        self.user.get(scope).map(|user| FactOwner::User(user.to_owned()))
    }

    fn drive_of(&self, scope: &Scope) -> Option<FactOwner> {
        self.drive.get(scope).map(|drive| FactOwner::Drive(drive.to_owned()))
    }

    /// Puts into a fact's metadata whose it is by the scope that it was written in, whatever they
    /// say: the provider goes by the scope, too, so a preamble and the lists have the same facts.
    pub(super) fn tell_owner(&self, scope: &Scope, metadata: &mut Option<JsonObject>) {
        let (user, drive) = (self.user.get(scope), self.drive.get(scope));
        let is_drives = user.is_none() || metadata.as_ref().is_some_and(says_drive);
        let is_apart = scope.project_id.is_none() && scope.namespace.is_none();
        let agent = scope.agent_id.as_ref().filter(|_| is_apart).map(|agent| agent.as_str());
        let owner = drive.filter(|_| is_drives).map(|drive| (DRIVE, drive));
        let owner = owner.or_else(|| Some((USER, user.or(agent)?)));
        if owner.is_none() && self.binding.is_none() {
            // Other systems' records name nobody, too.
            return;
        }
        if let Some(metadata) = metadata {
            OWNERS.iter().for_each(|name| drop(metadata.remove(*name)));
        }
        if let Some((name, owner)) = owner {
            metadata.get_or_insert_default().insert(name.to_owned(), owner.into());
        }
    }

    /// Leaves user and drive in a scope, and no other workspace: its facts would be in no list.
    /// Only at a binding that is named, because others have records of other systems.
    fn clear_others(&self, scope: &mut Scope) {
        let other = match self.drive {
            ScopeField::Namespace => ScopeField::ProjectId,
            ScopeField::ProjectId => ScopeField::Namespace,
            _ => return,
        };
        if self.binding.is_some() && self.user != other {
            other.clear(scope);
        }
    }

    /// Makes an agent the user of a scope that names none, where users' facts are their owners'
    /// only. A scope without a user sees and removes the facts of all.
    fn confine_user(&self, principal: &Principal, scope: &mut Scope) {
        if self.agents_name_users || self.user.get(scope).is_some() {
            return;
        }
        if let Some(agent) = principal.agent() {
            self.user.set(scope, agent.as_str());
        }
    }

    /// The scope that a write of facts is bound to: a user's fact follows the user everywhere, so
    /// it is bound to no drive. A drive's is bound to no user, so it stays when the user is
    /// forgotten. What an agent writes for nobody is the agent's own.
    fn bind_write(&self, principal: &Principal, scope: &mut Scope, metadata: &[&JsonObject]) {
        match (self.user.get(scope).is_some(), self.drive.get(scope).is_some()) {
            (true, true) => match metadata.iter().any(|metadata| says_drive(metadata)) {
                true => self.user.clear(scope),
                false => self.drive.clear(scope),
            },
            (false, false) => {
                if let Some(agent) = principal.agent().or(scope.agent_id.as_ref()).cloned() {
                    self.user.set(scope, agent.as_str());
                }
            }
            _ => {}
        }
    }

    /// Whether a fact belongs to more than one user.
    fn is_shared(&self, scope: &Scope) -> bool {
        match self.owner(scope) {
            Some(FactOwner::User(_)) => false,
            Some(FactOwner::Drive(_) | FactOwner::Company) => true,
            // Where no binding is named, other systems' records name nobody, too.
            None => self.binding.is_some(),
        }
    }
}

impl WritePolicy for PageSpaceOptions {
    /// Refuses an agent that names a user other than itself where users' facts are their owners'
    /// only.
    fn check(&self, principal: &Principal, scope: &Scope) -> Result<(), Denied> {
        match (self.user.get(scope), principal.agent()) {
            (Some(user), Some(agent)) if !self.agents_name_users && user != agent.as_str() => {
                Err(Denied::because(
                    self.user.name(),
                    "is another user, whose facts are that user's only; use an integration's \
                     token that acts for the user, or set `agents_name_users` in \
                     `[integrations.pagespace]`",
                ))
            }
            _ => Ok(()),
        }
    }

    fn narrow(&self, principal: &Principal, access: &Access<'_>, scope: &mut Scope) {
        if !matches!(access, Access::Change { is_exact: true }) {
            self.clear_others(scope);
        }
        match access {
            Access::Read | Access::Change { .. } => self.confine_user(principal, scope),
            Access::Add { metadata } => self.bind_write(principal, scope, metadata),
            Access::Other => {}
        }
    }

    /// Says in a drive's fact that a model made it, where an agent or a member writes it: the
    /// provider's own rules for facts that were added by hand go by that. Who made it, only the row
    /// has: there it can be cleared.
    fn stamp(
        &self,
        principal: &Principal,
        scope: &Scope,
        metadata: &mut Option<JsonObject>,
    ) -> Option<String> {
        let is_drives = self.drive.get(scope).is_some();
        let said = match metadata {
            Some(metadata) if is_drives || self.binding.is_some() => metadata.remove(CREATED_BY),
            _ => None,
        };
        if principal.is_confined() {
            if is_drives {
                metadata.get_or_insert_default().insert("source".to_owned(), "ai".into());
            }
            // The host knows who it is.
            return None;
        }
        said.as_ref()?.as_str().filter(|by| by.len() <= MAX_OUTSIDE_ID_BYTES).map(str::to_owned)
    }

    fn leaver<'a>(&self, forgotten: &'a Scope) -> Option<&'a str> {
        let user = self.user.get(forgotten)?;
        let mut rest = forgotten.clone();
        self.user.clear(&mut rest);
        // An agent that asks is named beside itself.
        rest.agent_id.take_if(|agent| agent.as_str() == user);
        rest.is_company().then_some(user)
    }

    fn may_change_all(&self, principal: &Principal) -> bool {
        !principal.is_confined() || self.agents_change_drive_facts == ChangeableFacts::All
    }

    /// Refuses to change shared facts for who may not change these.
    fn may_change(&self, principal: &Principal, row: &RecordRow) -> Result<(), Denied> {
        let changeable = self.agents_change_drive_facts;
        if self.may_change_all(principal) || !self.is_shared(&row.scope) || changeable.has(row) {
            return Ok(());
        }
        let by_hand = match changeable {
            ChangeableFacts::None => "",
            _ => " that was added by hand",
        };
        let record = &row.handle.provider_record_id;
        Err(denied(&format!("`{record}` is a shared fact{by_hand}"), "correct or remove it"))
    }

    /// Refuses to forget a drive as a whole for who may not change all of its facts.
    fn may_clear(&self, principal: &Principal, scope: &Scope) -> Result<(), Denied> {
        match self.drive.get(scope) {
            Some(_) if !self.may_change_all(principal) => {
                Err(denied("the scope is a drive's", "forget all of its facts"))
            }
            _ => Ok(()),
        }
    }
}

fn denied(what: &str, act: &str) -> Denied {
    Denied::whole(format!(
        "{what}; only an administrator, or the owner of the drive, may {act}: an integration says \
         so with x-memhost-act-as-role: company_administrator, and `agents_change_drive_facts` in \
         `[integrations.pagespace]` allows it to all"
    ))
}

/// Whether metadata say that a fact is a drive's.
fn says_drive(metadata: &JsonObject) -> bool {
    let member = |name: &str| metadata.get(name)?.as_str();
    member("scope").map_or_else(
        || member("driveId").is_some() && member("userId").is_none(),
        |scope| scope == "drive",
    )
}

#[cfg(test)]
mod tests {
    #![allow(clippy::needless_pass_by_value, reason = "a literal reads better without a `&`")]

    use super::*;
    use serde_json::json;

    fn policy(more: serde_json::Value) -> PageSpaceOptions {
        let mut options = json!({"company": "acme", "binding": "facts"});
        options.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        serde_json::from_value(options).unwrap()
    }

    fn scope(fields: serde_json::Value) -> Scope {
        let mut scope = json!({"companyId": "acme"});
        scope.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        serde_json::from_value(scope).unwrap()
    }

    fn who(text: &str) -> Principal {
        text.parse().unwrap()
    }

    fn row(of: Scope, by: &str) -> RecordRow {
        serde_json::from_value(json!({
            "companyId": "acme", "bindingId": uuid::Uuid::nil(), "scope": of, "writtenBy": by,
            "handle": {"providerKey": "p", "providerRecordId": "r1"},
            "operationId": uuid::Uuid::nil(), "createdAt": "2026-01-01T00:00:00Z",
        }))
        .unwrap()
    }

    #[test]
    fn an_agent_names_no_other_user() {
        let of_bob = scope(json!({"subjectId": "bob"}));
        let denied = policy(json!({})).check(&who("agent:ada"), &of_bob).unwrap_err();
        assert_eq!(denied.field, Some("scope.subjectId"));
        assert!(denied.to_string().contains("[integrations.pagespace]"), "{denied}");
        for (options, asks) in [
            (json!({}), "agent:bob"),
            (json!({}), "integration:gw as person:ada, agent"),
            (json!({"agents_name_users": true}), "agent:ada"),
        ] {
            policy(options).check(&who(asks), &of_bob).unwrap();
        }
    }

    #[test]
    fn a_scope_is_narrowed_to_its_user_or_its_drive() {
        let narrowed = |access: Access<'_>, fields: serde_json::Value| {
            let mut scope = scope(fields);
            policy(json!({})).narrow(&who("agent:ada"), &access, &mut scope);
            (scope.subject_id, scope.namespace, scope.project_id)
        };
        let text = |id: &str| Some(id.to_owned());
        let project = || json!({"projectId": "p"});
        assert_eq!(narrowed(Access::Read, project()), (text("ada"), None, None));
        let exact = Access::Change { is_exact: true };
        assert_eq!(narrowed(exact, project()), (text("ada"), None, text("p")));
        assert_eq!(narrowed(Access::Other, project()), (None, None, None));
        let both = || json!({"subjectId": "u", "namespace": "d"});
        let add = |metadata| Access::Add { metadata };
        assert_eq!(narrowed(add(vec![]), both()), (text("u"), None, None));
        let says = json!({"scope": "drive"});
        let says = add(vec![says.as_object().unwrap()]);
        assert_eq!(narrowed(says, both()), (None, text("d"), None));
        assert_eq!(narrowed(add(vec![]), json!({})), (text("ada"), None, None));
    }

    #[test]
    fn a_shared_fact_that_was_added_by_hand_stays() {
        let of_drive = || scope(json!({"namespace": "d"}));
        let (by_hand, by_ai) =
            (row(of_drive(), "company_administrator:x"), row(of_drive(), "agent:ada"));
        let may = |options: serde_json::Value, asks: &str, row: &RecordRow| {
            policy(options).may_change(&who(asks), row).is_ok()
        };
        assert!(!may(json!({}), "agent:ada", &by_hand));
        assert!(may(json!({}), "agent:ada", &by_ai));
        assert!(may(json!({}), "operator", &by_hand));
        let (none, all) = (
            json!({"agents_change_drive_facts": "none"}),
            json!({"agents_change_drive_facts": "all"}),
        );
        assert!(!may(none, "agent:ada", &by_ai) && may(all, "agent:ada", &by_hand));
        let of_company = row(scope(json!({})), "operator");
        assert!(!may(json!({}), "agent:ada", &of_company), "the company's is shared, too");
        assert!(may(json!({}), "agent:ada", &row(scope(json!({"subjectId": "u"})), "operator")));
        assert!(policy(json!({})).may_clear(&who("agent:ada"), &of_drive()).is_err());
        assert!(policy(json!({})).may_clear(&who("operator"), &of_drive()).is_ok());
    }

    #[test]
    fn a_model_wrote_what_an_agent_writes_in_a_drive() {
        let stamped = |asks: &str, fields: serde_json::Value| {
            let mut metadata = None;
            policy(json!({})).stamp(&who(asks), &scope(fields), &mut metadata);
            metadata.map(serde_json::Value::from)
        };
        let of_drive = || json!({"namespace": "d"});
        assert_eq!(stamped("agent:ada", of_drive()), Some(json!({"source": "ai"})));
        assert_eq!(stamped("operator", of_drive()), None);
        assert_eq!(stamped("agent:ada", json!({"subjectId": "u"})), None);
    }

    #[test]
    fn who_made_a_shared_fact_is_no_part_of_its_metadata() {
        let stamped = |asks: &str, fields: serde_json::Value| {
            let mut metadata = json!({"createdBy": "u1", "more": 1}).as_object().cloned();
            let by = policy(json!({})).stamp(&who(asks), &scope(fields), &mut metadata);
            (by, metadata.unwrap().contains_key("createdBy"))
        };
        let of_drive = || json!({"namespace": "d"});
        assert_eq!(stamped("operator", of_drive()), (Some("u1".to_owned()), false));
        assert_eq!(stamped("agent:ada", of_drive()), (None, false), "the host knows who it is");
        assert_eq!(stamped("operator", json!({})), (Some("u1".to_owned()), false));
    }

    #[test]
    fn a_user_leaves_with_the_whole_scope_of_the_user() {
        for (fields, leaver) in [
            (json!({"subjectId": "u"}), Some("u")),
            (json!({"subjectId": "u", "agentId": "u"}), Some("u")),
            (json!({"subjectId": "u", "agentId": "other"}), None),
            (json!({"subjectId": "u", "runId": "r"}), None),
            (json!({"namespace": "d"}), None),
        ] {
            assert_eq!(policy(json!({})).leaver(&scope(fields.clone())), leaver, "{fields}");
        }
    }

    #[test]
    fn the_scope_says_whose_a_fact_is_whatever_its_metadata_say() {
        let told = |options: serde_json::Value, fields: serde_json::Value, says| {
            let options: PageSpaceOptions = serde_json::from_value(options).unwrap();
            let mut metadata = serde_json::Value::as_object(&says).cloned();
            options.tell_owner(&scope(fields), &mut metadata);
            serde_json::Value::from(metadata.unwrap_or_default())
        };
        let (named, open) =
            (json!({"company": "acme", "binding": "f"}), json!({"company": "acme"}));
        let (user, drive) = (json!({"subjectId": "u"}), json!({"namespace": "d"}));
        let claims = || json!({"userId": "v", "driveId": "e", "projectId": "p"});
        for options in [&named, &open] {
            let of_user = told(options.clone(), user.clone(), claims());
            assert_eq!(of_user, json!({"userId": "u"}));
            let of_drive = told(options.clone(), drive.clone(), claims());
            assert_eq!(of_drive, json!({"driveId": "d"}));
        }
        assert_eq!(told(named, json!({}), claims()), json!({}), "the company's");
        assert_eq!(told(open, json!({}), claims()), claims(), "or another system's");
    }
}
