//! Provenance: what the host knows by itself it stamps; for the rest it notes who asserted it.

use crate::caller::{Caller, Fixed};
use crate::denied::Denied;
use memhost_types::{AgentId, HookContext, HookEvent, SourceKind, SourceRef};

/// The error of a field that a request sets and only the host may set.
const ONLY_THE_HOST: &str = "is set by the host only; leave it out";

impl Caller {
    /// Notes who asserts what a source says. The run is the token's where it has one; another one
    /// is denied.
    ///
    /// # Errors
    /// The field that goes beyond the token, or that only the host sets.
    pub fn stamp_source(&self, source: &mut SourceRef) -> Result<(), Denied> {
        if self.is_host() {
            return Ok(());
        }
        if source.asserted_by.is_some() {
            return Err(Denied::because("source.assertedBy", ONLY_THE_HOST));
        }
        let mut run = source.run_id.clone();
        self.own("source.runId", Fixed::Run, &mut run, |id| Some(id.to_owned()))?;
        if source.kind == SourceKind::Run {
            source.run_id = run;
        }
        let SourceRef {
            issue_id, comment_id, document_key, run_id, activity_id, external_ref, ..
        } = &*source;
        let is_claimed = [issue_id, comment_id, document_key, activity_id, external_ref]
            .into_iter()
            .any(Option::is_some)
            || (run_id.is_some() && self.run().is_none());
        source.asserted_by = is_claimed.then(|| self.principal().to_string());
        Ok(())
    }

    /// The same for the context of a capture: an agent is its actor, in the token's run where it
    /// has one.
    ///
    /// # Errors
    /// The field that goes beyond the token, or that only the host sets.
    pub fn stamp_hook(&self, hook: &mut HookContext) -> Result<(), Denied> {
        if self.is_host() {
            return Ok(());
        }
        if hook.asserted_by.is_some() {
            return Err(Denied::because("hook.assertedBy", ONLY_THE_HOST));
        }
        let (actor, run) = (&mut hook.actor_agent_id, &mut hook.heartbeat_run_id);
        self.stamp_actor(["hook.actorAgentId", "hook.heartbeatRunId"], actor, run)?;
        hook.asserted_by =
            self.asserts(hook.actor_agent_id.as_ref(), hook.heartbeat_run_id.as_deref());
        Ok(())
    }

    /// The same for an event and its source.
    ///
    /// # Errors
    /// As [`Caller::stamp_hook`].
    pub fn stamp_event(&self, event: &mut HookEvent) -> Result<(), Denied> {
        let (actor, run) = (&mut event.actor_agent_id, &mut event.heartbeat_run_id);
        self.stamp_actor(["actorAgentId", "heartbeatRunId"], actor, run)?;
        event.source.as_mut().map_or(Ok(()), |source| self.stamp_source(source))
    }

    /// The context that a stamped event gives to its deliveries.
    pub fn hook_of(&self, event: &HookEvent) -> HookContext {
        let asserted_by =
            self.asserts(event.actor_agent_id.as_ref(), event.heartbeat_run_id.as_deref());
        HookContext { asserted_by, ..event.context() }
    }

    fn stamp_actor(
        &self,
        fields: [&'static str; 2],
        actor: &mut Option<AgentId>,
        run: &mut Option<String>,
    ) -> Result<(), Denied> {
        self.own(fields[0], Fixed::Agent, actor, |id| id.parse().ok())?;
        self.own(fields[1], Fixed::Run, run, |id| Some(id.to_owned()))
    }

    fn asserts(&self, actor: Option<&AgentId>, run: Option<&str>) -> Option<String> {
        let is_claimed =
            (actor.is_some() && self.agent().is_none()) || (run.is_some() && self.run().is_none());
        is_claimed.then(|| self.principal().to_string())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::testing::{ada, as_agent, as_person, caller, company};
    use memhost_types::Role;

    fn source(kind: SourceKind) -> SourceRef {
        SourceRef::new(kind, company("acme"))
    }

    fn comment() -> SourceRef {
        SourceRef { comment_id: Some("c1".to_owned()), ..source(SourceKind::IssueComment) }
    }

    fn hook() -> HookContext {
        let hook = json!({"hookKind": "manual_capture", "hookId": "h1",
            "triggeredAt": "2026-01-01T00:00:00Z"});
        serde_json::from_value(hook).unwrap()
    }

    fn event() -> HookEvent {
        let event = json!({"hookKind": "manual_capture", "hookId": "h1",
            "triggeredAt": "2026-01-01T00:00:00Z", "scope": {"companyId": "acme"}});
        serde_json::from_value(event).unwrap()
    }

    #[test]
    fn what_a_caller_says_of_a_source_is_the_callers_word() {
        for (who, by) in [
            (caller(Role::CompanyAdministrator), "company_administrator:t"),
            (ada(None, None), "agent:ada"),
            (as_agent("bob"), "integration:t as agent:bob"),
            (as_person("u1", None), "integration:t as person:u1, agent"),
        ] {
            let mut source = comment();
            who.stamp_source(&mut source).unwrap();
            assert_eq!(source.asserted_by.as_deref(), Some(by));
        }
    }

    #[test]
    fn a_source_that_claims_nothing_is_nobodys_word() {
        let mut source = source(SourceKind::ManualNote);
        caller(Role::CompanyAdministrator).stamp_source(&mut source).unwrap();
        assert_eq!(source.asserted_by, None);
    }

    #[test]
    fn the_host_says_in_whose_word_it_repeats_something() {
        let mut said = SourceRef { asserted_by: Some("agent:ada".to_owned()), ..comment() };
        for host in [Caller::worker(), Caller::system()] {
            host.stamp_source(&mut said).unwrap();
            assert_eq!(said.asserted_by.as_deref(), Some("agent:ada"));
        }
        let denied = Caller::operator().stamp_source(&mut said).unwrap_err();
        assert_eq!(denied.field, Some("source.assertedBy"));
        let mut hook = HookContext { asserted_by: Some("agent:ada".to_owned()), ..hook() };
        Caller::worker().stamp_hook(&mut hook).unwrap();
        let denied = ada(None, None).stamp_hook(&mut hook).unwrap_err();
        assert_eq!(denied.field, Some("hook.assertedBy"));
    }

    #[test]
    fn the_run_of_a_source_is_the_tokens_own() {
        let in_run = ada(Some("r1"), None);
        let mut run = source(SourceKind::Run);
        in_run.stamp_source(&mut run).unwrap();
        // The host knows it: it is nobody's word.
        assert_eq!((run.run_id.as_deref(), run.asserted_by), (Some("r1"), None));
        let mut comment = comment();
        in_run.stamp_source(&mut comment).unwrap();
        assert_eq!(comment.run_id, None, "only a source that is a run is one");
        let mut other = SourceRef { run_id: Some("r2".to_owned()), ..source(SourceKind::Run) };
        assert_eq!(in_run.stamp_source(&mut other).unwrap_err().field, Some("source.runId"));
    }

    #[test]
    fn a_run_that_no_token_fixes_is_the_callers_word() {
        let mut run = SourceRef { run_id: Some("r1".to_owned()), ..source(SourceKind::Run) };
        ada(None, None).stamp_source(&mut run).unwrap();
        assert_eq!(run.asserted_by.as_deref(), Some("agent:ada"));
    }

    #[test]
    fn an_agent_is_the_actor_of_its_hooks() {
        let mut own = hook();
        ada(Some("r1"), None).stamp_hook(&mut own).unwrap();
        assert_eq!(own.actor_agent_id, Some("ada".parse().unwrap()));
        assert_eq!((own.heartbeat_run_id.as_deref(), own.asserted_by), (Some("r1"), None));
        let mut others = HookContext { actor_agent_id: Some("bob".parse().unwrap()), ..hook() };
        let denied = ada(None, None).stamp_hook(&mut others).unwrap_err();
        assert_eq!(denied.field, Some("hook.actorAgentId"));
        // Whoever is no agent says whose action it was.
        caller(Role::Integration).stamp_hook(&mut others).unwrap();
        assert_eq!(others.asserted_by.as_deref(), Some("integration:t"));
    }

    #[test]
    fn an_event_gives_its_deliveries_who_asserts_it() {
        let mut own = event();
        ada(None, None).stamp_event(&mut own).unwrap();
        assert_eq!(own.actor_agent_id, Some("ada".parse().unwrap()));
        assert_eq!(ada(None, None).hook_of(&own).asserted_by, None);
        let mut others = HookEvent { actor_agent_id: Some("bob".parse().unwrap()), ..event() };
        let denied = ada(None, None).stamp_event(&mut others).unwrap_err();
        assert_eq!(denied.field, Some("actorAgentId"));
        let gateway = caller(Role::Integration);
        gateway.stamp_event(&mut others).unwrap();
        assert_eq!(gateway.hook_of(&others).asserted_by.as_deref(), Some("integration:t"));
    }

    #[test]
    fn the_source_of_an_event_is_checked_as_any_other() {
        let mut event = HookEvent { source: Some(comment()), ..event() };
        ada(None, None).stamp_event(&mut event).unwrap();
        let asserted_by = event.source.as_ref().and_then(|source| source.asserted_by.as_deref());
        assert_eq!(asserted_by, Some("agent:ada"));
        let again = ada(None, None).stamp_event(&mut event);
        assert_eq!(again.unwrap_err().field, Some("source.assertedBy"));
    }
}
