//! `save_memory` and `remove_memory`: PageSpace's tools, for agents whose instructions name those.
//! `user` and `drive` choose between the subject and the namespace of the client's configuration.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::facts::MAX_FACT_CHARS;
use memhost_http::mcp::{
    AddedTool, Call, McpError, McpTools, RequestScope, ToolAnswer, check_text, of_arguments,
    of_result, read,
};
use memhost_types::foreign::name;
use memhost_types::{ForgetEffect, JsonObject, OperationKind, RecordWrite, Snippet};

/// The tools. A binding has them if its policy says `mcp.aliases`.
pub const TOOLS: McpTools = McpTools(&[
    AddedTool {
        name: "save_memory",
        title: "Save a memory",
        description: "Saves one fact, at most 200 characters: a preference, a decision, a term, or \
                      what is being worked on. Keep it short and specific; leave out what is \
                      trivial or temporary.",
        kind: OperationKind::RecordUpsert,
        arguments: of_arguments::<SaveMemory>,
        result: of_result::<SaveResult>,
        exists: |abilities| abilities.mcp.aliases,
        rule: Some(
            "- `save_memory` and `remove_memory` are `memory_note` and `memory_forget` under other \
             names, for one short fact each.",
        ),
        guide: Some(GUIDE),
        run: |call, arguments| Box::pin(async move { save(call, read(arguments)?).await }),
    },
    AddedTool {
        name: "remove_memory",
        title: "Remove a memory",
        description: "Removes one fact from memory, for good, by its id.",
        kind: OperationKind::Forget,
        arguments: of_arguments::<RemoveMemory>,
        result: of_result::<RemoveResult>,
        exists: |abilities| abilities.mcp.aliases,
        rule: None,
        guide: None,
        run: |call, arguments| Box::pin(async move { remove(call, read(arguments)?).await }),
    },
]);

/// PageSpace's own words. The list at the end is of what is not to be saved.
const GUIDE: &str = "\nWhat to save with `save_memory`:\n\
     You can remember important information using the `save_memory` tool.\n\
     Save a memory when you learn:\n\
     - User preferences (communication style, technical background)\n\
     - Project decisions (architecture choices, rejected alternatives)\n\
     - Terminology (project-specific terms and their meanings)\n\
     - Context (current focus, ongoing work)\n\
     Keep facts:\n\
     - Short (under 20 words)\n\
     - Specific (not vague)\n\
     - Actionable (helps future conversations)\n\
     Don't save:\n\
     - Trivial information\n\
     - Things already in the page tree\n\
     - Temporary context (one-off questions)";

/// Whose memory the tools use, of those that the client's configuration names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum FactScope {
    /// The user's.
    User,
    /// The workspace's.
    Drive,
}

impl FactScope {
    /// As the argument has it.
    const fn name(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Drive => "drive",
        }
    }
}

/// The arguments of `save_memory`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct SaveMemory {
    /// `user` for what is about the user, `drive` for what is about this workspace.
    scope: FactScope,
    /// One fact, short and specific.
    #[schemars(length(min = 1, max = MAX_FACT_CHARS))]
    fact: String,
}

/// The answer to `save_memory`.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct SaveResult {
    /// Where the write is recorded.
    operation_id: String,
    /// The id that `remove_memory` takes.
    fact_id: String,
    /// Whether a person must approve it first: until then nobody finds it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    waits_for_review: bool,
}

/// The arguments of `remove_memory`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct RemoveMemory {
    /// Where the fact was saved.
    scope: FactScope,
    /// The fact, as `save_memory` or a search gave its id.
    #[schemars(length(min = 1, max = 2_048))]
    fact_id: String,
}

/// The answer to `remove_memory`.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct RemoveResult {
    /// Where it is recorded.
    operation_id: String,
    /// The fact.
    fact_id: String,
    /// False: there was no such fact.
    is_removed: bool,
}

async fn save(mut call: Call<'_>, wanted: SaveMemory) -> Result<ToolAnswer, McpError> {
    check_text("fact", &wanted.fact, MAX_FACT_CHARS)?;
    check(&call.request, wanted.scope)?;
    // Before the scope is narrowed: a drive's fact names the user in whose chat it was saved.
    let metadata = Some(metadata(&call.request, wanted.scope));
    narrow(&mut call.request, wanted.scope);
    let record = RecordWrite { text: wanted.fact, metadata, ..RecordWrite::default() };
    let written = call.write(record, None).await?;
    let fact_id = written.record.provider_record_id.as_str().to_owned();
    let text = format!("Saved as [{}].{}", name(&fact_id), written.note());
    let waits_for_review = written.waits_for_review;
    let answer = SaveResult { operation_id: written.operation_id, fact_id, waits_for_review };
    Ok(ToolAnswer::new(text, &answer))
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

async fn remove(call: Call<'_>, wanted: RemoveMemory) -> Result<ToolAnswer, McpError> {
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
    let (operation_id, id) = (forgotten.operation_id.to_string(), wanted.fact_id);
    let text = match is_removed {
        true => format!("Removed [{}].", name(&id)),
        false => format!("There is no fact [{}]: nothing was removed.", name(&id)),
    };
    Ok(ToolAnswer::new(text, &RemoveResult { operation_id, fact_id: id, is_removed }))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tools_are_described_as_they_were() {
        let all: Vec<_> = TOOLS.0.iter().map(AddedTool::described).collect();
        insta::assert_json_snapshot!(all);
    }

    #[test]
    fn every_schema_is_closed_and_every_argument_is_explained() {
        for tool in TOOLS.0 {
            let described = tool.described();
            let schema = &described["inputSchema"];
            assert_eq!(schema["additionalProperties"], false, "{tool:?}");
            assert_eq!(described["outputSchema"]["type"], "object", "{tool:?}");
            for (name, schema) in schema["properties"].as_object().unwrap() {
                let is_explained =
                    schema["description"].as_str().is_some_and(|text| text.len() > 8);
                assert!(is_explained, "{tool:?} {name}");
                // Nothing that a scope is made of is an argument.
                assert!(!name.ends_with("Id") || name == "factId", "{tool:?} {name}");
            }
        }
    }

    #[test]
    fn the_guide_ends_with_what_is_not_to_be_saved() {
        assert!(GUIDE.starts_with("\nWhat to save"), "a blank line is before it");
        assert!(GUIDE.ends_with("- Temporary context (one-off questions)"));
    }
}
