//! Provenance: what the host knows by itself it stamps; for the rest it notes who asserted it.

use crate::access::caller::{Caller, Fixed};
use crate::access::denied::Denied;
use memhost_types::{AgentId, HookContext, HookEvent, SourceKind, SourceRef};

/// What is wrong with a field that a request sets and the host sets itself.
const ONLY_THE_HOST: &str = "is set by the host only; leave it out";

impl Caller {
    /// Notes who asserts what a source says. The run is the token's where it has one; another one
    /// is denied.
    ///
    /// # Errors
    /// The field that goes beyond the token, or that only the host sets.
    pub(crate) fn stamp_source(&self, source: &mut SourceRef) -> Result<(), Denied> {
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
    pub(crate) fn stamp_hook(&self, hook: &mut HookContext) -> Result<(), Denied> {
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
    pub(crate) fn stamp_event(&self, event: &mut HookEvent) -> Result<(), Denied> {
        let (actor, run) = (&mut event.actor_agent_id, &mut event.heartbeat_run_id);
        self.stamp_actor(["actorAgentId", "heartbeatRunId"], actor, run)?;
        event.source.as_mut().map_or(Ok(()), |source| self.stamp_source(source))
    }

    /// The context that a stamped event gives to its deliveries.
    pub(crate) fn hook_of(&self, event: &HookEvent) -> HookContext {
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
