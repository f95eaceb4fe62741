//! Short ways to make the contract's values, so that a provider's code shows what matters.

#![allow(clippy::derivable_impls, reason = "the types are generated, so nothing can be derived on them here")]

use crate::types::{
    Capabilities, CaptureResponse, ContextBundle, Continuation, Declarations, Description, Error, ForgetEffect,
    ForgetOutcome, ForgetResponse, GetResponse, HttpPermission, InvalidRequest, ListPage, Permission,
    PermissionRequest, RecordId, RecordWrite, RetryLater, Scope, Score, Snippet, SourceKind, SourcePayload, Turn,
    UpsertResponse, Usage,
};

impl Description {
    /// A description with no configuration, no permissions, no special capabilities and one instance at a time.
    pub fn new(provider_key: &str, version: &str, summary: &str) -> Self {
        Self {
            provider_key: provider_key.to_owned(),
            name: provider_key.to_owned(),
            version: version.to_owned(),
            summary: summary.to_owned(),
            config_schema: None,
            capabilities: Capabilities { provider_managed_extraction: false, async_extraction: false },
            max_concurrency: 1,
            permissions: Vec::new(),
            declarations: Declarations::default(),
        }
    }

    /// Asks for a permission without which the provider cannot work.
    #[must_use]
    pub fn require(mut self, permission: Permission, reason: &str) -> Self {
        self.permissions.push(PermissionRequest { permission, reason: reason.to_owned(), optional: false });
        self
    }

    /// Asks for a permission that the provider can do without.
    #[must_use]
    pub fn prefer(mut self, permission: Permission, reason: &str) -> Self {
        self.permissions.push(PermissionRequest { permission, reason: reason.to_owned(), optional: true });
        self
    }
}

impl Default for Declarations {
    /// It does everything itself and promises everything.
    fn default() -> Self {
        Self { max_upsert: None, max_forget: None, left_to_host: Vec::new(), exceptions: Vec::new() }
    }
}

impl HttpPermission {
    /// Every method at an origin, which may be `{{config:/pointer}}`.
    pub fn to(origin: &str) -> Self {
        Self { origin: origin.to_owned(), methods: Vec::new() }
    }
}

impl Default for SourcePayload {
    /// Nothing.
    fn default() -> Self {
        Self { text: None, turns: Vec::new(), mime_type: None, metadata: None, object: None }
    }
}

impl SourcePayload {
    /// The text, or else the conversation with one paragraph for each turn, such as `user: Where is the key?`. None: there
    /// is only an object.
    pub fn text_or_turns(&self) -> Option<String> {
        let said = |turn: &Turn| match &turn.name {
            Some(name) => format!("{} ({name}): {}", turn.role, turn.text),
            None => format!("{}: {}", turn.role, turn.text),
        };
        let turns = || (!self.turns.is_empty()).then(|| self.turns.iter().map(said).collect::<Vec<_>>().join("\n\n"));
        self.text.clone().or_else(turns)
    }
}

impl SourceKind {
    /// The plan's name, such as `issue_comment`: what a provider stores.
    pub fn name(&self) -> &str {
        match self {
            Self::IssueComment => "issue_comment",
            Self::IssueDocument => "issue_document",
            Self::Issue => "issue",
            Self::Run => "run",
            Self::Activity => "activity",
            Self::ManualNote => "manual_note",
            Self::ExternalDocument => "external_document",
            Self::Other(name) => name,
        }
    }

    /// The kind of this name, also one that was added after this version.
    pub fn of_name(name: &str) -> Self {
        match name {
            "issue_comment" => Self::IssueComment,
            "issue_document" => Self::IssueDocument,
            "issue" => Self::Issue,
            "run" => Self::Run,
            "activity" => Self::Activity,
            "manual_note" => Self::ManualNote,
            "external_document" => Self::ExternalDocument,
            other => Self::Other(other.to_owned()),
        }
    }
}

impl Error {
    /// The request is wrong at `field`, the plan's camelCase name with dots.
    pub fn invalid(field: &str, message: impl Into<String>) -> Self {
        Self::InvalidRequest(InvalidRequest { field: Some(field.to_owned()), message: message.into() })
    }

    /// This provider does not do that.
    pub fn unsupported(message: impl Into<String>) -> Self {
        Self::Unsupported(message.into())
    }

    /// Something failed that the caller cannot correct.
    pub fn internal(message: impl Into<String>) -> Self {
        Self::Internal(message.into())
    }

    /// The provider cannot do it at present.
    pub fn unavailable(message: impl Into<String>, retry_after_ms: Option<u64>) -> Self {
        Self::Unavailable(RetryLater { message: message.into(), retry_after_ms })
    }
}

impl From<std::io::Error> for Error {
    fn from(error: std::io::Error) -> Self {
        use std::io::ErrorKind;
        match error.kind() {
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge => {
                Self::QuotaExceeded(format!("no space left in the binding's directory: {error}"))
            }
            _ => Self::internal(format!("file access failed: {error}")),
        }
    }
}

impl Snippet {
    /// A snippet with an id and a text, and nothing else known of it.
    pub fn new(id: impl Into<RecordId>, text: impl Into<String>) -> Self {
        Self {
            id: id.into(),
            text: text.into(),
            score: Score::None,
            summary: None,
            source: None,
            metadata: None,
            created_at: None,
            updated_at: None,
            expires_at: None,
            scope: None,
        }
    }
}

impl Scope {
    /// The scope of a whole company.
    pub fn company(company_id: &str) -> Self {
        Self {
            company_id: company_id.to_owned(),
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

impl Default for RecordWrite {
    /// A new record without a text.
    fn default() -> Self {
        Self {
            id: None,
            text: String::new(),
            summary: None,
            metadata: None,
            source: None,
            created_at: None,
            expires_at: None,
        }
    }
}

impl Usage {
    /// Usage of a service, and nothing else known of it.
    pub fn of(provider: &str) -> Self {
        Self {
            provider: provider.to_owned(),
            biller: None,
            model: None,
            billing_type: None,
            attribution_mode: None,
            input_tokens: None,
            cached_input_tokens: None,
            output_tokens: None,
            embedding_tokens: None,
            cost_microcents: None,
            latency_ms: None,
            details: None,
        }
    }
}

impl Default for CaptureResponse {
    fn default() -> Self {
        Self { records: Vec::new(), jobs: Vec::new(), usage: Vec::new() }
    }
}

impl From<Vec<RecordId>> for CaptureResponse {
    fn from(records: Vec<RecordId>) -> Self {
        Self { records, ..Self::default() }
    }
}

impl From<Vec<RecordId>> for UpsertResponse {
    fn from(records: Vec<RecordId>) -> Self {
        Self { records, usage: Vec::new() }
    }
}

impl From<Vec<Snippet>> for ContextBundle {
    fn from(snippets: Vec<Snippet>) -> Self {
        Self { snippets, profile_summary: None, usage: Vec::new() }
    }
}

impl Default for ListPage {
    fn default() -> Self {
        Self { items: Vec::new(), continuation: Continuation::End, usage: Vec::new() }
    }
}

impl Default for GetResponse {
    fn default() -> Self {
        Self { snippet: None, usage: Vec::new() }
    }
}

impl From<Option<Snippet>> for GetResponse {
    fn from(snippet: Option<Snippet>) -> Self {
        Self { snippet, usage: Vec::new() }
    }
}

impl ForgetResponse {
    /// The same effect for every id.
    pub fn all(ids: Vec<RecordId>, effect: ForgetEffect) -> Self {
        let outcomes = ids.into_iter().map(|id| ForgetOutcome { id, effect }).collect();
        Self { outcomes, usage: Vec::new() }
    }
}
