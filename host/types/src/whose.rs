//! Whose a record is: what the host knows of each record, who may be answered it, and how records
//! are filtered by that.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::about::{About, Wanted};
use super::bounds::{Checked, check_bytes, check_context_id, check_reference};
use super::{
    AgentId, BindingId, CompanyId, HookKind, OperationId, Principal, RecordHandle, Replacement,
    Scope, Snippet, SourceKind, SourceRef, Visibility, limits,
};

/// What the host knows of a record: where it is, where it came from, and whose it is. Every field
/// has a limit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RecordRow {
    /// The company.
    pub company_id: CompanyId,
    /// The binding whose provider holds it.
    pub binding_id: BindingId,
    /// The record.
    pub handle: RecordHandle,
    /// The scope that it was written in.
    pub scope: Scope,
    /// Where it came from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<SourceRef>,
    /// The kind of hook that triggered the write.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<super::schema::OutsideId>")]
    pub hook_kind: Option<HookKind>,
    /// The agent whose action triggered the write.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hook_agent_id: Option<AgentId>,
    /// The run of the hook that triggered the write.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<super::schema::OutsideId>")]
    pub hook_run_id: Option<String>,
    /// Its last writer, such as `agent:ada`.
    pub written_by: Principal,
    /// Who made it, where its writer names somebody, as a system in front does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_by: Option<String>,
    /// The operation that wrote it last.
    pub operation_id: OperationId,
    /// When it was first written.
    pub created_at: Timestamp,
    /// From then on it is in no answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
    /// Its readers.
    #[serde(default)]
    pub visibility: Visibility,
    /// When the event happened that its material is of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub happened_at: Option<Timestamp>,
    /// The records that it replaced, or will replace once a person has approved it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replaces: Option<Replacement>,
    /// The last corrector, such as `agent:ada`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub corrected_by: Option<Principal>,
    /// The client of that correction, such as `mcp:claude-code/2.1`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub corrected_via: Option<String>,
}

impl RecordRow {
    /// Whether it is for less than the company.
    pub fn is_private(&self) -> bool {
        self.visibility != Visibility::Company
    }

    /// Whether it is for an agent only.
    pub fn is_agents(&self) -> bool {
        self.visibility == Visibility::Agent
    }

    /// The same without the agent or the person of this id, who wrote or corrected the record or
    /// whom its scope names as the agent. `None`: it names no such one.
    #[must_use]
    pub fn without(&self, id: &str) -> Option<Self> {
        let mut row = self.clone();
        let is_named = |agent: &mut AgentId| agent.as_str() == id;
        row.created_by.take_if(|by| by == id);
        row.hook_agent_id.take_if(is_named);
        row.scope.agent_id.take_if(is_named);
        row.scope.actor_agent_id.take_if(is_named);
        let replaced = row.replaces.as_mut().map(|replaces| &mut replaces.principal);
        for by in [Some(&mut row.written_by), row.corrected_by.as_mut(), replaced] {
            by.into_iter().for_each(|by| *by = by.without(id).unwrap_or_else(|| by.clone()));
        }
        let asserted = row.source.as_mut().and_then(|source| source.asserted_by.as_mut());
        asserted.into_iter().for_each(|by| {
            let named = by.parse().ok().and_then(|by: Principal| by.without(id));
            *by = named.map_or_else(|| by.clone(), |by| by.to_string());
        });
        (row != *self).then_some(row)
    }
}

/// Which records to answer. Every field that is set must match. The host compares them with what it
/// knows of a record, and with what the provider says of one that the host knows nothing of.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct RecordFilter {
    /// The kind of thing that it came from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source_kind: Option<SourceKind>,
    /// The issue of its scope or its source.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<super::schema::OutsideId>")]
    pub issue_id: Option<String>,
    /// The comment of its source.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<super::schema::OutsideId>")]
    pub comment_id: Option<String>,
    /// The document of its source.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<super::schema::Reference>")]
    pub document_key: Option<String>,
    /// The run of its scope, its source or its hook.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<super::schema::OutsideId>")]
    pub run_id: Option<String>,
    /// The project of its scope.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<super::schema::OutsideId>")]
    pub project_id: Option<String>,
    /// The agent of its scope or of its hook: the one that it was made by or for, and
    /// not one that corrected it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<AgentId>,
    /// The subject of its scope.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<super::schema::OutsideId>")]
    pub subject_id: Option<String>,
    /// Made at this moment or later. A record of an event counts as made when the event happened.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
    /// Made before this moment.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
    /// In its text or its summary, in any spelling: case and accents do not count. At most 16 KiB.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = super::limits::MAX_QUERY_BYTES))]
    pub text: Option<String>,
}

impl RecordFilter {
    /// Whether nothing is set.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Checks the length of each field.
    ///
    /// # Errors
    /// The first field at fault, below `filter`.
    pub fn check(&self) -> Checked {
        check_context_id("filter.issueId", self.issue_id.as_deref())?;
        check_context_id("filter.commentId", self.comment_id.as_deref())?;
        check_reference("filter.documentKey", self.document_key.as_deref())?;
        check_context_id("filter.runId", self.run_id.as_deref())?;
        check_context_id("filter.projectId", self.project_id.as_deref())?;
        check_context_id("filter.subjectId", self.subject_id.as_deref())?;
        self.text
            .as_ref()
            .map_or(Ok(()), |text| check_bytes("filter.text", text, limits::MAX_QUERY_BYTES))
    }

    /// Whether a record matches, without its text.
    pub fn matches(&self, row: Option<&RecordRow>, snippet: &Snippet) -> bool {
        fn same(wanted: Option<&String>, found: Option<&String>) -> bool {
            wanted.is_none_or(|wanted| found == Some(wanted))
        }
        let said = snippet.source.as_ref().or(snippet.claimed_source.as_deref());
        let source = row.map_or(said, |row| row.source.as_ref());
        let scope = row.map(|row| &row.scope).or(snippet.scope.as_ref());
        let told = row.and_then(|row| row.happened_at);
        let made = told.or(snippet.created_at).or_else(|| row.map(|row| row.created_at));
        let of_source = |field: fn(&SourceRef) -> Option<&String>| source.and_then(field);
        let about = About {
            scope,
            source,
            hook_agent: row.and_then(|row| row.hook_agent_id.as_ref()),
            hook_run: row.and_then(|row| row.hook_run_id.as_deref()),
        };
        let wanted = Wanted {
            agent: self.agent_id.as_ref().map(AgentId::as_str),
            project: self.project_id.as_deref(),
            issue: self.issue_id.as_deref(),
            run: self.run_id.as_deref(),
        };
        self.source_kind.is_none_or(|wanted| source.is_some_and(|source| source.kind == wanted))
            && about.is(wanted)
            && same(self.comment_id.as_ref(), of_source(|source| source.comment_id.as_ref()))
            && same(self.document_key.as_ref(), of_source(|source| source.document_key.as_ref()))
            && same(self.subject_id.as_ref(), scope.and_then(|scope| scope.subject_id.as_ref()))
            && self.since.is_none_or(|since| made.is_some_and(|made| made >= since))
            && self.until.is_none_or(|until| made.is_some_and(|made| made < until))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn snippet(scope: Option<&Scope>) -> Snippet {
        serde_json::from_value(serde_json::json!({
            "handle": {"providerKey": "p", "providerRecordId": "r"},
            "text": "x",
            "scope": scope,
            "createdAt": "2026-01-02T00:00:00Z",
        }))
        .unwrap()
    }

    #[test]
    fn what_is_not_known_matches_no_filter() {
        let unknown = snippet(None);
        assert!(RecordFilter::default().matches(None, &unknown));
        let none = RecordFilter { issue_id: Some("NONE".to_owned()), ..RecordFilter::default() };
        assert!(!none.matches(None, &unknown));
        let mut scope = Scope::company("acme".parse().unwrap());
        scope.issue_id = Some("i1".to_owned());
        assert!(!none.matches(None, &snippet(Some(&scope))));
        let one = RecordFilter { issue_id: Some("i1".to_owned()), ..RecordFilter::default() };
        assert!(one.matches(None, &snippet(Some(&scope))));
    }

    #[test]
    fn the_run_of_the_source_or_the_hook_finds_a_record() {
        let row: RecordRow = serde_json::from_value(serde_json::json!({
            "companyId": "acme", "bindingId": uuid::Uuid::nil(),
            "handle": {"providerKey": "p", "providerRecordId": "r"},
            "scope": {"companyId": "acme"},
            "source": {"kind": "run", "companyId": "acme", "runId": "r1", "issueId": "i1"},
            "hookAgentId": "ada", "hookRunId": "r2", "writtenBy": "operator",
            "operationId": uuid::Uuid::nil(), "createdAt": "2026-01-02T00:00:00Z",
        }))
        .unwrap();
        let finds = |filter: serde_json::Value| {
            let filter: RecordFilter = serde_json::from_value(filter).unwrap();
            filter.matches(Some(&row), &snippet(None))
        };
        for found in ["r1", "r2"] {
            assert!(finds(serde_json::json!({"runId": found, "issueId": "i1"})));
        }
        assert!(finds(serde_json::json!({"agentId": "ada"})));
        assert!(!finds(serde_json::json!({"runId": "r3"})));
    }

    #[test]
    fn a_record_of_an_event_is_as_old_as_the_event() {
        let row: RecordRow = serde_json::from_value(serde_json::json!({
            "companyId": "acme", "bindingId": uuid::Uuid::nil(),
            "handle": {"providerKey": "p", "providerRecordId": "r"},
            "scope": {"companyId": "acme"}, "writtenBy": "operator",
            "operationId": uuid::Uuid::nil(), "createdAt": "2026-01-02T00:00:00Z",
            "happenedAt": "2025-01-02T00:00:00Z",
        }))
        .unwrap();
        let until =
            RecordFilter { until: "2026-01-01T00:00:00Z".parse().ok(), ..RecordFilter::default() };
        assert!(until.matches(Some(&row), &snippet(None)));
        assert!(!until.matches(None, &snippet(None)));
    }

    #[test]
    fn a_day_begins_with_its_first_moment_and_ends_before_the_next() {
        let at = |text: &str| Some(text.parse().unwrap());
        let (day, next) = (at("2026-01-02T00:00:00Z"), at("2026-01-03T00:00:00Z"));
        let fits = |since, until| {
            RecordFilter { since, until, ..RecordFilter::default() }.matches(None, &snippet(None))
        };
        assert!(fits(day, next) && fits(None, next) && fits(day, None));
        assert!(!fits(next, None) && !fits(None, day));
    }
}
