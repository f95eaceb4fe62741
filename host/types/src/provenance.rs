//! Scope, source, hook and payload: who a call is about, and where a memory came from.

use std::fmt;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{AgentId, CompanyId, JsonObject};

/// The subject of a call. `scope` in `wit/types.wit` says which fields partition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Scope {
    /// The company; always the one that the caller acts in.
    pub company_id: CompanyId,
    /// The agent that acts or is meant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<AgentId>,
    /// Who acts, in the scope that a provider sees: there `agent_id` is the partition. The host
    /// sets it for a call; it is not in JSON.
    #[serde(skip)]
    pub actor_agent_id: Option<AgentId>,
    /// The project, as context.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<super::schema::OutsideId>")]
    pub project_id: Option<String>,
    /// The issue, as context.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<super::schema::OutsideId>")]
    pub issue_id: Option<String>,
    /// The heartbeat run, as context.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<super::schema::OutsideId>")]
    pub run_id: Option<String>,
    /// An external or user identity.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<super::schema::OutsideId>")]
    pub subject_id: Option<String>,
    /// For providers that organize memory around sessions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<super::schema::OutsideId>")]
    pub session_key: Option<String>,
    /// For providers that need an explicit partition hint.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<super::schema::OutsideId>")]
    pub namespace: Option<String>,
}

impl Scope {
    /// The scope of a whole company.
    pub fn company(company_id: CompanyId) -> Self {
        Self {
            company_id,
            agent_id: None,
            actor_agent_id: None,
            project_id: None,
            issue_id: None,
            run_id: None,
            subject_id: None,
            session_key: None,
            namespace: None,
        }
    }
}

/// The kind of thing that a memory came from.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs, reason = "the plan's names say it")]
pub enum SourceKind {
    IssueComment,
    IssueDocument,
    Issue,
    Run,
    Activity,
    ManualNote,
    ExternalDocument,
}

impl SourceKind {
    /// Every kind, in the plan's order.
    pub const ALL: [Self; 7] = [
        Self::IssueComment,
        Self::IssueDocument,
        Self::Issue,
        Self::Run,
        Self::Activity,
        Self::ManualNote,
        Self::ExternalDocument,
    ];

    /// The name in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::IssueComment => "issue_comment",
            Self::IssueDocument => "issue_document",
            Self::Issue => "issue",
            Self::Run => "run",
            Self::Activity => "activity",
            Self::ManualNote => "manual_note",
            Self::ExternalDocument => "external_document",
        }
    }
}

impl fmt::Display for SourceKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Where a memory came from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[allow(missing_docs, reason = "the plan's names say it")]
pub struct SourceRef {
    pub kind: SourceKind,
    pub company_id: CompanyId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<super::schema::OutsideId>")]
    pub issue_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<super::schema::OutsideId>")]
    pub comment_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<super::schema::Reference>")]
    pub document_key: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<super::schema::OutsideId>")]
    pub run_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<super::schema::OutsideId>")]
    pub activity_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<super::schema::Reference>")]
    pub external_ref: Option<String>,
    /// The principal that asserts what the host cannot know. Only the host sets it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<super::schema::Reference>", transform = super::schema::read_only)]
    pub asserted_by: Option<String>,
}

impl SourceRef {
    /// A source of this kind with nothing else known of it.
    pub fn new(kind: SourceKind, company_id: CompanyId) -> Self {
        Self {
            kind,
            company_id,
            issue_id: None,
            comment_id: None,
            document_key: None,
            run_id: None,
            activity_id: None,
            external_ref: None,
            asserted_by: None,
        }
    }

    /// Its ids, each with a word for it.
    pub fn ids(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let ids = [
            ("comment", &self.comment_id),
            ("document", &self.document_key),
            ("issue", &self.issue_id),
            ("run", &self.run_id),
            ("activity", &self.activity_id),
            ("from", &self.external_ref),
        ];
        ids.into_iter().filter_map(|(what, id)| Some((what, id.as_deref()?)))
    }

    /// The name of the client that is not the host's own: `claude-code` of `mcp:claude-code/2.1`. A
    /// program that calls itself otherwise as a client of MCP has the name that its hooks give it,
    /// so that an agent has one name.
    pub fn client(&self) -> Option<&str> {
        let named = CLIENTS
            .into_iter()
            .find_map(|way| self.external_ref.as_deref()?.strip_prefix(way)?.strip_prefix(':'));
        let own = named?.split('/').next().filter(|client| !client.is_empty())?;
        Some(PROGRAMS.into_iter().find(|(of_mcp, _)| *of_mcp == own).map_or(own, |(_, name)| name))
    }

    /// Whether it came from such a client, named or not.
    pub fn is_of_client(&self) -> bool {
        let via = self.external_ref.as_deref();
        via.is_some_and(|via| {
            via == "mcp" || CLIENTS.into_iter().any(|way| via.starts_with(&format!("{way}:")))
        })
    }
}

/// The ways by which clients come that name themselves in `externalRef`, before a colon.
const CLIENTS: [&str; 2] = ["mcp", "apropos"];

/// The programs whose client of MCP has another name than the program.
const PROGRAMS: [(&str, &str); 2] =
    [("codex-mcp-client", "codex"), ("gemini-cli-mcp-client", "gemini-cli")];

/// What triggered an automatic call. Kinds beyond the plan's five are carried by name, so that one
/// can be added without a change of the host.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(from = "String", into = "String")]
#[schemars(transform = super::schema::hook_kind)]
#[allow(missing_docs, reason = "the plan's names say it")]
pub enum HookKind {
    PreRunHydrate,
    PostRunCapture,
    IssueCommentCapture,
    IssueDocumentCapture,
    ManualCapture,
    Other(String),
}

impl HookKind {
    /// The name in JSON.
    pub fn as_str(&self) -> &str {
        match self {
            Self::PreRunHydrate => "pre_run_hydrate",
            Self::PostRunCapture => "post_run_capture",
            Self::IssueCommentCapture => "issue_comment_capture",
            Self::IssueDocumentCapture => "issue_document_capture",
            Self::ManualCapture => "manual_capture",
            Self::Other(name) => name,
        }
    }
}

impl From<String> for HookKind {
    fn from(name: String) -> Self {
        match name.as_str() {
            "pre_run_hydrate" => Self::PreRunHydrate,
            "post_run_capture" => Self::PostRunCapture,
            "issue_comment_capture" => Self::IssueCommentCapture,
            "issue_document_capture" => Self::IssueDocumentCapture,
            "manual_capture" => Self::ManualCapture,
            _ => Self::Other(name),
        }
    }
}

impl From<HookKind> for String {
    fn from(kind: HookKind) -> Self {
        kind.as_str().to_owned()
    }
}

/// The delivery that a call belongs to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct HookContext {
    /// The kind of hook.
    #[schemars(with = "super::schema::OutsideId")]
    pub hook_kind: HookKind,
    /// The same for every delivery of one event.
    #[schemars(with = "super::schema::OutsideId")]
    pub hook_id: String,
    /// When it happened.
    pub triggered_at: Timestamp,
    /// The agent whose action triggered it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub actor_agent_id: Option<AgentId>,
    /// The run that it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<super::schema::OutsideId>")]
    pub heartbeat_run_id: Option<String>,
    /// Who says whose action and which run it was, where the host does not know it by itself. Only
    /// the host sets it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<super::schema::Reference>", transform = super::schema::read_only)]
    pub asserted_by: Option<String>,
}

/// One turn of a conversation.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Turn {
    /// `user`, `assistant`, `system`, `tool`, or another word; at most 64 bytes.
    #[schemars(length(min = 1, max = 64))]
    pub role: String,
    /// The speaker, such as a person's or a tool's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<super::schema::Reference>")]
    pub name: Option<String>,
    /// The words of the turn.
    #[schemars(length(max = super::limits::MAX_TEXT_BYTES))]
    pub text: String,
    /// When.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<Timestamp>,
}

/// The captured thing itself: a text, a structured object, a conversation, or several of them.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SourcePayload {
    /// At most 1 MiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = super::limits::MAX_TEXT_BYTES))]
    pub text: Option<String>,
    /// A conversation, in the order in which it was said: at most 1,000 turns and together 1 MiB of
    /// text. A `text` beside it says the same in one text.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = super::limits::MAX_ITEMS))]
    pub turns: Vec<Turn>,
    /// The type of the text, such as `text/markdown`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(transform = super::schema::media_type)]
    pub mime_type: Option<String>,
    /// Free-form; at most 256 KiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(transform = super::schema::free_json)]
    pub metadata: Option<JsonObject>,
    /// The structured Paperclip object; at most 256 KiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(transform = super::schema::free_json)]
    pub object: Option<JsonObject>,
}

impl SourcePayload {
    /// The text, or else the conversation with one paragraph for each turn. None: there is only an
    /// object.
    pub fn text_or_turns(&self) -> Option<String> {
        let turns = || {
            let said = self.turns.iter().map(|turn| format!("{}: {}", turn.role, turn.text));
            (!self.turns.is_empty()).then(|| said.collect::<Vec<_>>().join("\n\n"))
        };
        self.text.clone().or_else(turns)
    }

    /// Bytes of its texts.
    pub fn text_bytes(&self) -> usize {
        self.text.as_ref().map_or(0, String::len)
            + self.turns.iter().map(|turn| turn.text.len()).sum::<usize>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_has_the_name_of_its_program() {
        for (via, name) in [
            ("mcp:claude-code/2.1", Some("claude-code")),
            ("mcp:codex-mcp-client/0.171.0", Some("codex")),
            ("mcp:gemini-cli-mcp-client/0.9", Some("gemini-cli")),
            ("mcp:codex-mcp-client-of-mine/1", Some("codex-mcp-client-of-mine")),
            ("apropos:codex", Some("codex")),
            ("mcp", None),
            ("mcp:", None),
            ("claude:session:s", None),
        ] {
            let company = "acme".parse().unwrap();
            let source = SourceRef {
                external_ref: Some(via.to_owned()),
                ..SourceRef::new(SourceKind::ManualNote, company)
            };
            assert_eq!(source.client(), name, "{via}");
        }
    }
}
