//! `save_memory` and `remove_memory`: the tools of a page space, for agents whose instructions name those. `user` and
//! `drive` choose between what the client's configuration names; neither can name anything else.

use rmcp::model::CallToolResult;

use super::arguments::{MAX_FACT, RemoveMemory, SaveMemory, Whose};
use super::asking::Asking;
use super::call::{Call, answered};
use super::error::McpError;
use super::results::{Effect, Removed, Saved};
use super::schema::check_text;
use super::text;
use memhost_types::{JsonObject, RecordWrite};

/// `save_memory`.
pub(super) async fn save(mut call: Call<'_>, wanted: SaveMemory) -> Result<CallToolResult, McpError> {
    check_text("fact", &wanted.fact, MAX_FACT)?;
    narrow(&mut call.asking, wanted.scope)?;
    let metadata = Some(metadata(&call.asking, wanted.scope));
    let record = RecordWrite { id: None, text: wanted.fact, summary: None, metadata };
    let (operation_id, record) = call.write(record).await?;
    let answer = Saved { operation_id, fact_id: record.provider_record_id.as_str().to_owned() };
    Ok(answered(text::saved(&answer), &answer))
}

/// What the page space's own routes look for in a fact: without it a person would not see there what a model has saved.
fn metadata(asking: &Asking, whose: Whose) -> JsonObject {
    let agent = || asking.caller.agent().or(asking.scope.agent_id.as_ref()).map(ToString::to_string);
    let (kind, name, owner) = match whose {
        Whose::User => ("user", "userId", asking.scope.subject_id.clone().or_else(agent)),
        Whose::Drive => ("drive", "driveId", asking.scope.namespace.clone()),
    };
    let members = [("scope", Some(kind.to_owned())), ("source", Some("ai".to_owned())), (name, owner)];
    members.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?.into()))).collect()
}

/// `remove_memory`.
pub(super) async fn remove(call: Call<'_>, wanted: RemoveMemory) -> Result<CallToolResult, McpError> {
    // In the whole scope of the client: a field that is left out of a scope is one that fits everything.
    check(&call.asking, wanted.scope)?;
    let forgotten = call.forget_all("factId", std::slice::from_ref(&wanted.fact_id)).await?;
    let is_removed = forgotten.outcomes.iter().any(|outcome| outcome.effect != Effect::NotFound);
    let answer = Removed { operation_id: forgotten.operation_id, fact_id: wanted.fact_id, is_removed };
    Ok(answered(text::removed(&answer), &answer))
}

/// The user's memory is that of the subject, or the agent's own where no subject is named; the workspace's is that of the
/// namespace.
fn narrow(asking: &mut Asking, whose: Whose) -> Result<(), McpError> {
    check(asking, whose)?;
    match whose {
        Whose::User => asking.scope.namespace = None,
        Whose::Drive => asking.scope.subject_id = None,
    }
    Ok(())
}

fn check(asking: &Asking, whose: Whose) -> Result<(), McpError> {
    if whose == Whose::Drive && asking.scope.namespace.is_none() {
        let message = "is `drive`, and the client's configuration names no workspace (header `memhost-namespace`); \
                       `user` is there";
        return Err(McpError::arguments("scope", message));
    }
    Ok(())
}
