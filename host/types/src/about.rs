//! What something is about: the agent, the project, the issues and the runs that its scope, its
//! source and its hook name. Filters, sums, cost events and the index all ask here.

use super::{AgentId, HookContext, Scope, SourceRef};

/// What something is about, by its scope, else its source, else the hook that triggered it. The
/// plan allows a request to name its issue or its run in any of them.
#[derive(Clone, Copy, Default)]
pub struct About<'a> {
    /// Its scope.
    pub scope: Option<&'a Scope>,
    /// Where it came from.
    pub source: Option<&'a SourceRef>,
    /// The agent whose action triggered it.
    pub hook_agent: Option<&'a AgentId>,
    /// The run of the hook that triggered it.
    pub hook_run: Option<&'a str>,
}

impl<'a> About<'a> {
    /// What has this scope, this source and this hook.
    pub fn of(
        scope: &'a Scope,
        source: Option<&'a SourceRef>,
        hook: Option<&'a HookContext>,
    ) -> Self {
        Self {
            scope: Some(scope),
            source,
            hook_agent: hook.and_then(|hook| hook.actor_agent_id.as_ref()),
            hook_run: hook.and_then(|hook| hook.heartbeat_run_id.as_deref()),
        }
    }

    /// The agent that is meant, else the one that acts, else the one whose action triggered it.
    pub fn agent(self) -> Option<&'a AgentId> {
        let of_scope = |scope: &'a Scope| scope.agent_id.as_ref().or(scope.actor_agent_id.as_ref());
        self.scope.and_then(of_scope).or(self.hook_agent)
    }

    /// The project. Only a scope names one.
    pub fn project(self) -> Option<&'a str> {
        self.scope?.project_id.as_deref()
    }

    /// The issue that it counts for.
    pub fn issue(self) -> Option<&'a str> {
        self.issues().next()
    }

    /// Each issue that it is found by: a source may name another one than the scope.
    pub fn issues(self) -> impl Iterator<Item = &'a str> {
        let all = [
            self.scope.and_then(|scope| scope.issue_id.as_deref()),
            self.source.and_then(|source| source.issue_id.as_deref()),
        ];
        each_once(all)
    }

    /// The run that it counts for.
    pub fn run(self) -> Option<&'a str> {
        self.runs().next()
    }

    /// Each run that it is found by.
    pub fn runs(self) -> impl Iterator<Item = &'a str> {
        let all = [
            self.scope.and_then(|scope| scope.run_id.as_deref()),
            self.source.and_then(|source| source.run_id.as_deref()),
            self.hook_run,
        ];
        each_once(all)
    }

    /// Whether it is about this agent, project, issue and run, where they are wanted.
    pub(crate) fn is(self, wanted: Wanted<'_>) -> bool {
        let Wanted { agent, project, issue, run } = wanted;
        agent.is_none_or(|wanted| self.agent().is_some_and(|agent| agent.as_str() == wanted))
            && project.is_none_or(|wanted| self.project() == Some(wanted))
            && issue.is_none_or(|wanted| self.issues().any(|issue| issue == wanted))
            && run.is_none_or(|wanted| self.runs().any(|run| run == wanted))
    }
}

/// What a filter wants something to be about.
#[derive(Clone, Copy, Default)]
pub(crate) struct Wanted<'a> {
    pub(crate) agent: Option<&'a str>,
    pub(crate) project: Option<&'a str>,
    pub(crate) issue: Option<&'a str>,
    pub(crate) run: Option<&'a str>,
}

fn each_once<const N: usize>(all: [Option<&str>; N]) -> impl Iterator<Item = &str> {
    (0..N).filter_map(move |place| all[place].filter(|id| !all[..place].contains(&Some(id))))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_scope_comes_before_the_source_and_the_source_before_the_hook() {
        let scope: Scope =
            serde_json::from_value(json!({"companyId": "acme", "issueId": "i1"})).unwrap();
        let source: SourceRef = serde_json::from_value(json!({
            "kind": "run", "companyId": "acme", "issueId": "i2", "runId": "r2"
        }))
        .unwrap();
        let hook: HookContext = serde_json::from_value(json!({
            "hookKind": "post_run_capture", "hookId": "h", "triggeredAt": "2026-11-20T00:00:00Z",
            "actorAgentId": "ada", "heartbeatRunId": "r3"
        }))
        .unwrap();
        let about = About::of(&scope, Some(&source), Some(&hook));
        assert_eq!((about.issue(), about.run()), (Some("i1"), Some("r2")));
        assert_eq!(about.issues().collect::<Vec<_>>(), ["i1", "i2"]);
        assert_eq!(about.runs().collect::<Vec<_>>(), ["r2", "r3"]);
        assert_eq!(about.agent().map(AgentId::as_str), Some("ada"));
        let again = About { scope: None, ..about };
        assert_eq!(again.issues().collect::<Vec<_>>(), ["i2"]);
        let company = Scope::company(scope.company_id.clone());
        let of_hook = About::of(&company, None, Some(&hook));
        assert_eq!((of_hook.run(), of_hook.issue(), of_hook.project()), (Some("r3"), None, None));
        assert!(about.is(Wanted { issue: Some("i2"), run: Some("r3"), ..Wanted::default() }));
        assert!(!about.is(Wanted { project: Some("p"), ..Wanted::default() }));
    }
}
