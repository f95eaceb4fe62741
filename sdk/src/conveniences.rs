//! Short ways to make the contract's values, so that a provider's code shows what matters.

#![allow(
    clippy::derivable_impls,
    reason = "the types are generated, so nothing can be derived on them here"
)]

use crate::types::{
    Capabilities, CaptureResponse, ContextBundle, Continuation, Declarations, Description, Error,
    Exception, Extent, ForgetEffect, ForgetOutcome, ForgetResponse, ForgetScopeResponse,
    GetResponse, HttpPermission, InvalidRequest, ListPage, Permission, PermissionRequest,
    ProfileResponse, RecordId, RecordWrite, RetryLater, Scope, Score, Snippet, SourceKind,
    SourcePayload, Turn, UpsertResponse, Usage,
};

impl Description {
    /// A description with no configuration, no permissions, no special capabilities and one
    /// instance at a time.
    pub fn new(provider_key: &str, version: &str, summary: &str) -> Self {
        Self {
            provider_key: provider_key.to_owned(),
            name: provider_key.to_owned(),
            version: version.to_owned(),
            summary: summary.to_owned(),
            config_schema: None,
            capabilities: Capabilities {
                provider_managed_extraction: false,
                async_extraction: false,
            },
            max_concurrency: 1,
            permissions: Vec::new(),
            declarations: Declarations::default(),
        }
    }

    /// Asks for a permission without which the provider cannot work.
    #[must_use]
    pub fn require(mut self, permission: Permission, reason: &str) -> Self {
        self.permissions.push(PermissionRequest {
            permission,
            reason: reason.to_owned(),
            optional: false,
        });
        self
    }

    /// Asks for a permission that the provider can do without.
    #[must_use]
    pub fn prefer(mut self, permission: Permission, reason: &str) -> Self {
        self.permissions.push(PermissionRequest {
            permission,
            reason: reason.to_owned(),
            optional: true,
        });
        self
    }

    /// Its configuration has the schema of this type, see [`schema`](crate::schema).
    #[cfg(feature = "schema")]
    #[must_use]
    pub fn configured_by<C: schemars::JsonSchema>(self) -> Self {
        Self { config_schema: Some(crate::schema::of::<C>()), ..self }
    }

    /// Something behind the provider extracts records of captures, in jobs.
    #[must_use]
    pub fn extracts(self) -> Self {
        let capabilities =
            Capabilities { provider_managed_extraction: true, async_extraction: true };
        Self { capabilities, ..self }
    }

    /// This number of calls can run at the same time, each in an instance of its own.
    #[must_use]
    pub fn concurrent(self, max_concurrency: u32) -> Self {
        Self { max_concurrency, ..self }
    }

    /// The most records of one upsert, and of one forget; `None` where there is no such limit. The
    /// host divides longer requests.
    #[must_use]
    pub fn at_most(
        mut self,
        upsert: impl Into<Option<u32>>,
        forget: impl Into<Option<u32>>,
    ) -> Self {
        (self.declarations.max_upsert, self.declarations.max_forget) =
            (upsert.into(), forget.into());
        self
    }

    /// Promises of the contract that it cannot keep.
    #[must_use]
    pub fn without<const N: usize>(mut self, promises: [Exception; N]) -> Self {
        self.declarations.exceptions.extend(promises);
        self
    }
}

impl Score {
    /// A similarity that is comparable between queries, brought into 0 to 1; no score for what is
    /// no number.
    pub fn similarity(score: f64) -> Self {
        if score.is_finite() { Self::Similarity(score.clamp(0.0, 1.0)) } else { Self::None }
    }

    /// A score that says no more than which hit of a query is better, brought into 0 to 1; no score
    /// for what is no number.
    pub fn rank(score: f64) -> Self {
        if score.is_finite() { Self::Rank(score.clamp(0.0, 1.0)) } else { Self::None }
    }
}

impl ForgetEffect {
    /// [`ForgetEffect::HistoryKept`] where something that the record said stays, and otherwise
    /// [`ForgetEffect::Hard`].
    pub fn hard_unless(stays: bool) -> Self {
        if stays { Self::HistoryKept } else { Self::Hard }
    }
}

impl ProfileResponse {
    /// A list of these lines, of as many of the first ones as have so many bytes; no summary
    /// without a line.
    pub fn of_lines(lines: impl IntoIterator<Item = String>, most_bytes: usize) -> Self {
        let mut summary = String::new();
        for line in lines {
            if summary.len() + line.len() > most_bytes {
                break;
            }
            summary.push_str(&format!("- {line}\n"));
        }
        Self { summary: (!summary.is_empty()).then_some(summary), usage: Vec::new() }
    }
}

impl From<Extent> for ForgetScopeResponse {
    fn from(extent: Extent) -> Self {
        Self { extent, count: None, usage: Vec::new() }
    }
}

impl Default for Declarations {
    /// It does everything itself and promises everything.
    fn default() -> Self {
        Self {
            max_upsert: None,
            max_forget: None,
            left_to_host: Vec::new(),
            exceptions: Vec::new(),
        }
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
    /// The text, or else the conversation with one paragraph for each turn, such as `user: Where is
    /// the key?`. None: there is only an object.
    pub fn text_or_turns(&self) -> Option<String> {
        let said = |turn: &Turn| match &turn.name {
            Some(name) => format!("{} ({name}): {}", turn.role, turn.text),
            None => format!("{}: {}", turn.role, turn.text),
        };
        let turns = || {
            (!self.turns.is_empty())
                .then(|| self.turns.iter().map(said).collect::<Vec<_>>().join("\n\n"))
        };
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
        Self::InvalidRequest(InvalidRequest {
            field: Some(field.to_owned()),
            message: message.into(),
        })
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_description_is_put_together() {
        let about = Description::new("a", "1", "b").extracts().concurrent(8).at_most(None, 4);
        let about =
            about.without([Exception::ReadAfterWrite]).without([Exception::AllOrNoneUpserts]);
        assert!(
            about.capabilities.async_extraction && about.capabilities.provider_managed_extraction
        );
        assert_eq!((about.max_concurrency, about.declarations.exceptions.len()), (8, 2));
        assert_eq!((about.declarations.max_upsert, about.declarations.max_forget), (None, Some(4)));
    }

    #[test]
    fn scores_are_within_their_range() {
        assert_eq!(
            (Score::similarity(1.5), Score::rank(-1.0)),
            (Score::Similarity(1.0), Score::Rank(0.0))
        );
        assert_eq!(
            (Score::similarity(f64::NAN), Score::rank(f64::INFINITY)),
            (Score::None, Score::None)
        );
    }

    #[test]
    fn a_profile_has_as_many_lines_as_fit() {
        let of = |most| ProfileResponse::of_lines(["one", "two"].map(str::to_owned), most).summary;
        assert_eq!(
            (of(20).as_deref(), of(8).as_deref(), of(2)),
            (Some("- one\n- two\n"), Some("- one\n"), None)
        );
    }
}
