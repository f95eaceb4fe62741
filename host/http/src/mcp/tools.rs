//! The tools: name, arguments, result, description and hints of each, and who gets it.

use std::borrow::Cow;

use rmcp::model::ToolAnnotations;
use serde_json::Value;

use super::added::{AddedTool, McpTools};
use super::batch::messages;
use super::request_scope::ToolNames;
use super::schema::{of_arguments, of_result};
use super::{arguments, results};
use memhost_core::{Abilities, Act, Caller, Service};
use memhost_types::{CompanyId, OperationKind};

/// A tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tool {
    Search,
    Note,
    Correct,
    Forget,
    Browse,
    Jobs,
    /// One that a crate above adds.
    Added(&'static AddedTool),
}

impl Tool {
    /// The tools of the contract, in the order in which they are shown.
    pub(super) const OWN: &'static [Self] =
        &[Self::Search, Self::Note, Self::Correct, Self::Forget, Self::Browse, Self::Jobs];

    /// Every tool, in the order in which they are shown.
    fn all(added: McpTools) -> impl Iterator<Item = Self> {
        Self::OWN.iter().copied().chain(added.0.iter().map(Self::Added))
    }

    /// The name. Every client takes it: it is of letters and underscores only.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Search => "memory_search",
            Self::Note => "memory_note",
            Self::Correct => "memory_correct",
            Self::Forget => "memory_forget",
            Self::Browse => "memory_browse",
            Self::Jobs => "memory_jobs",
            Self::Added(tool) => tool.name,
        }
    }

    /// The name towards a client.
    fn shown(self, names: ToolNames) -> Cow<'static, str> {
        match (names, self.name().strip_prefix("memory_")) {
            (ToolNames::Dotted, Some(verb)) => format!("memory.{verb}").into(),
            _ => self.name().into(),
        }
    }

    /// The tool of a name, with a dot or without one.
    pub(super) fn named(name: &str, added: McpTools) -> Option<Self> {
        Self::all(added).find(|tool| tool.name() == name || tool.shown(ToolNames::Dotted) == name)
    }

    /// The operation that it is.
    pub(super) fn kind(self) -> OperationKind {
        match self {
            Self::Search => OperationKind::Query,
            Self::Note => OperationKind::RecordUpsert,
            Self::Correct => OperationKind::Correct,
            Self::Forget => OperationKind::Forget,
            Self::Browse => OperationKind::Browse,
            Self::Jobs => OperationKind::List,
            Self::Added(tool) => tool.kind,
        }
    }

    /// Whether a binding has the tool at all. The service refuses a tool that the binding has and
    /// its provider does not support, and records that.
    pub(super) fn exists(self, abilities: &Abilities) -> bool {
        match self {
            Self::Added(tool) => (tool.exists)(abilities),
            _ => true,
        }
    }

    fn is_possible(self, abilities: &Abilities) -> bool {
        match self {
            Self::Correct => abilities.capabilities.correction,
            Self::Browse => abilities.capabilities.provider_native_browse,
            Self::Jobs => abilities.capabilities.async_extraction,
            _ => self.exists(abilities),
        }
    }

    /// The tools that a caller may use and that a binding's provider can do.
    pub(super) fn all_for(
        service: &Service,
        caller: &Caller,
        company: &CompanyId,
        abilities: &Abilities,
        added: McpTools,
    ) -> Vec<Self> {
        let may =
            |tool: &Self| service.tenancy().allows(caller, Act::Operate(tool.kind()), company);
        Self::all(added).filter(|tool| tool.is_possible(abilities) && may(tool)).collect()
    }

    fn title(self) -> &'static str {
        match self {
            Self::Search => "Search memory",
            Self::Note => "Note for later",
            Self::Correct => "Correct a record",
            Self::Forget => "Forget records",
            Self::Browse => "Look around in memory",
            Self::Jobs => "See extraction jobs",
            Self::Added(tool) => tool.title,
        }
    }

    fn description(self) -> &'static str {
        match self {
            Self::Search => {
                "Finds records of the company's memory. Use it when the task depends on prior \
                 decisions, people, \
                 projects, or long-running context that is not in the current thread."
            }
            Self::Note => {
                "Writes one record to memory. Use it when a durable fact, preference, or decision \
                 should survive this \
                 run; ordinary session residue is captured by itself."
            }
            Self::Correct => {
                "Puts a record right. Use it when the user explicitly says that prior context is \
                 wrong. Give the id \
                 and either the whole text as it should be or an instruction."
            }
            Self::Forget => {
                "Makes records unreachable, for good. Use it only when somebody asks for that. An \
                 id that names \
                 nothing in your scope is no error: its outcome is `not_found`."
            }
            Self::Browse => {
                "Shows the provider's own tree of what it stores, one level at a time. Use it to \
                 look around when you \
                 do not know what to search for."
            }
            Self::Jobs => {
                "Shows extraction jobs: what was captured and is still being turned into records, \
                 and what failed. Use \
                 it when something that was captured is not found yet."
            }
            Self::Added(tool) => tool.description,
        }
    }

    /// As a client is shown it.
    pub(super) fn describe(self, names: ToolNames) -> rmcp::model::Tool {
        let (input, output) = match self {
            Self::Search => {
                (of_arguments::<arguments::Search>(), of_result::<results::SearchResult>())
            }
            Self::Note => (of_arguments::<arguments::Note>(), of_result::<results::NoteResult>()),
            Self::Correct => {
                (of_arguments::<arguments::Correct>(), of_result::<results::CorrectResult>())
            }
            Self::Forget => {
                (of_arguments::<arguments::Forget>(), of_result::<results::ForgetResult>())
            }
            Self::Browse => {
                (of_arguments::<arguments::Browse>(), of_result::<results::BrowseResult>())
            }
            Self::Jobs => (of_arguments::<arguments::Jobs>(), of_result::<results::JobsResult>()),
            Self::Added(tool) => ((tool.arguments)(), (tool.result)()),
        };
        // Memory is a closed world, also if its provider uses other systems.
        let is_read = !self.kind().is_write();
        let annotations =
            ToolAnnotations::with_title(self.title()).read_only(is_read).open_world(false);
        let annotations = match self.kind() {
            OperationKind::RecordUpsert => annotations.destructive(false).idempotent(false),
            OperationKind::Correct => annotations.destructive(true).idempotent(false),
            OperationKind::Forget => annotations.destructive(true).idempotent(true),
            _ => annotations,
        };
        rmcp::model::Tool::new(self.shown(names), self.description(), input)
            .with_title(self.title())
            .with_raw_output_schema(output)
            .with_annotations(annotations)
    }
}

impl AddedTool {
    /// As a client is shown it.
    pub fn described(&'static self) -> Value {
        serde_json::to_value(Tool::Added(self).describe(ToolNames::default())).unwrap_or_default()
    }
}

/// Whether the body of a request to `/mcp` calls a tool that writes.
pub(crate) fn is_write(body: &[u8], tools: McpTools) -> bool {
    let writes = |message| called(message, tools).is_some_and(|tool| tool.kind().is_write());
    messages(body).iter().any(writes)
}

/// Whether the body of a request to `/mcp` reads memory and does nothing else.
pub(super) fn is_read(body: &[u8], tools: McpTools) -> bool {
    let Ok(message) = serde_json::from_slice::<Value>(body) else { return false };
    message["method"] == "resources/read"
        || called(&message, tools).is_some_and(|tool| !tool.kind().is_write())
}

/// The tool that a message calls.
fn called(message: &Value, tools: McpTools) -> Option<Tool> {
    let name = message.pointer("/params/name").and_then(Value::as_str).unwrap_or_default();
    Tool::named(name, tools).filter(|_| message["method"] == "tools/call")
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONE: McpTools = McpTools(&[]);

    #[test]
    fn the_tools_are_described_as_they_were() {
        let all: Vec<_> = Tool::OWN.iter().map(|tool| tool.describe(ToolNames::Plain)).collect();
        insta::assert_json_snapshot!(all);
    }

    #[test]
    fn every_schema_is_closed_and_every_argument_is_explained() {
        for tool in Tool::OWN {
            let described = tool.describe(ToolNames::Plain);
            let dotted = tool.describe(ToolNames::Dotted).name;
            assert_eq!(dotted.replace('.', "_"), described.name);
            for name in [&dotted, &described.name] {
                assert_eq!(Tool::named(name, NONE), Some(*tool));
            }
            // What models and SDKs take as the name of a function.
            assert!(
                (1..=64).contains(&described.name.len())
                    && described
                        .name
                        .bytes()
                        .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_'),
                "{tool:?}"
            );
            assert_eq!(described.input_schema["additionalProperties"], false, "{tool:?}");
            assert_eq!(described.output_schema.unwrap()["type"], "object", "{tool:?}");
            for (name, schema) in described.input_schema["properties"].as_object().unwrap() {
                assert!(
                    schema["description"].as_str().is_some_and(|text| text.len() > 8),
                    "{tool:?} {name}"
                );
                // Nothing that a scope is made of is an argument.
                assert!(!name.ends_with("Id"), "{tool:?} {name}");
            }
        }
    }

    #[test]
    fn messages_that_only_read_are_told_from_others() {
        let tool =
            |name: &str| format!(r#"{{"method":"tools/call","params":{{"name":"{name}"}}}}"#);
        for reads in [
            tool("memory.search"),
            tool("memory_browse"),
            r#"{"method":"resources/read"}"#.to_owned(),
        ] {
            assert!(
                is_read(reads.as_bytes(), NONE) && !is_write(reads.as_bytes(), NONE),
                "{reads}"
            );
        }
        for other in [
            tool("memory.note"),
            tool("none"),
            r#"{"method":"tools/list"}"#.to_owned(),
            "[]".to_owned(),
        ] {
            assert!(!is_read(other.as_bytes(), NONE), "{other}");
        }
        assert!(is_write(tool("memory.note").as_bytes(), NONE));
    }
}
