//! `save_memory` and `remove_memory`: PageSpace's tools, for agents whose instructions name those.
//! `user` and `drive` choose between the subject and the namespace of the client's configuration.

use rmcp::model::CallToolResult;

use super::arguments::{FactScope, MAX_FACT, RemoveMemory, SaveMemory};
use super::call::{Call, Written, answered};
use super::error::McpError;
use super::request_scope::RequestScope;
use super::results::{RemoveResult, SaveResult};
use super::schema::check_text;
use super::text;
use memhost_types::{ForgetEffect, JsonObject, RecordWrite, Snippet};

/// `save_memory`.
pub(super) async fn save(
    mut call: Call<'_>,
    wanted: SaveMemory,
) -> Result<CallToolResult, McpError> {
    check_text("fact", &wanted.fact, MAX_FACT)?;
    check(&call.request, wanted.scope)?;
    // Before the scope is narrowed: a drive's fact names the user in whose chat it was saved.
    let metadata = Some(metadata(&call.request, wanted.scope));
    narrow(&mut call.request, wanted.scope);
    let record = RecordWrite { text: wanted.fact, metadata, ..RecordWrite::default() };
    let Written { operation_id, record, waits_for_review } = call.write(record, None).await?;
    let answer = SaveResult {
        operation_id,
        fact_id: record.provider_record_id.as_str().to_owned(),
        waits_for_review,
    };
    Ok(answered(text::saved(&answer), &answer))
}

/// The metadata that PageSpace's own routes look for in a fact.
fn metadata(from: &RequestScope, whose: FactScope) -> JsonObject {
    let (kind, name, owner) = match whose {
        FactScope::User => {
            ("user", "userId", from.scope.subject_id.clone().or_else(|| agent(from)))
        }
        FactScope::Drive => ("drive", "driveId", from.scope.namespace.clone()),
    };
    // Who added it: the agent, in a chat of this user. An integration names the person beside the
    // scope.
    let user = from.scope.subject_id.clone().or_else(|| from.caller.person().map(str::to_owned));
    let by = agent(from).or_else(|| user.clone()).filter(|_| whose == FactScope::Drive);
    let source = Some("ai".to_owned());
    let members =
        [("scope", Some(kind.to_owned())), ("source", source), (name, owner), ("createdBy", by)];
    members.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?.into()))).collect()
}

/// `remove_memory`.
pub(super) async fn remove(
    call: Call<'_>,
    wanted: RemoveMemory,
) -> Result<CallToolResult, McpError> {
    // In the whole scope of the client: an absent field of a scope matches everything.
    check(&call.request, wanted.scope)?;
    // A drive's fact is not removed as one of the user: the model named the wrong one.
    let found = call.find("factId", &wanted.fact_id).await?;
    if found.is_some_and(|record| is_drives(&record) != (wanted.scope == FactScope::Drive)) {
        let message =
            format!("is not a fact of the scope `{}`; name the other one", wanted.scope.name());
        return Err(McpError::arguments("scope", message));
    }
    let forgotten = call.forget_all("factId", std::slice::from_ref(&wanted.fact_id)).await?;
    let is_removed =
        forgotten.outcomes.iter().any(|outcome| outcome.effect != ForgetEffect::NotFound);
    let answer =
        RemoveResult { operation_id: forgotten.operation_id, fact_id: wanted.fact_id, is_removed };
    Ok(answered(text::removed(&answer), &answer))
}

/// Whether a fact is a workspace's: by its metadata or, where a note has none, by the scope that it
/// was written in.
fn is_drives(record: &Snippet) -> bool {
    let member =
        |name: &str| record.metadata.as_ref().and_then(|metadata| metadata.get(name)?.as_str());
    match (member("scope"), member("userId"), member("driveId"), &record.scope) {
        (Some(scope), ..) => scope == "drive",
        (None, Some(_), ..) => false,
        (None, None, Some(_), _) => true,
        (None, None, None, Some(scope)) => scope.subject_id.is_none() && scope.namespace.is_some(),
        (None, None, None, None) => false,
    }
}

/// The user's memory is that of the subject, or the agent's own where no subject is named; the
/// workspace's is that of the namespace.
fn narrow(from: &mut RequestScope, whose: FactScope) {
    match whose {
        FactScope::User => {
            from.scope.namespace = None;
            if from.scope.subject_id.is_none() {
                from.scope.subject_id = agent(from);
            }
        }
        FactScope::Drive => from.scope.subject_id = None,
    }
}

/// The agent that the client is, or acts as.
fn agent(from: &RequestScope) -> Option<String> {
    from.caller.agent().or(from.scope.agent_id.as_ref()).map(ToString::to_string)
}

fn check(from: &RequestScope, whose: FactScope) -> Result<(), McpError> {
    if whose == FactScope::Drive && from.scope.namespace.is_none() {
        let message = "is `drive`, and the client's configuration names no workspace (header \
                       `memhost-namespace`); \
                       `user` is there";
        return Err(McpError::arguments("scope", message));
    }
    Ok(())
}
