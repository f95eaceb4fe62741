//! The work of each tool: one call of `core`.

use rmcp::model::{CallToolResult, ContentBlock};
use serde::Serialize;
use serde_json::Value;

use super::arguments::{
    self, CHARS, DEFAULT_CHARS, MAX_IDS, MAX_NODES, MAX_QUERY, MAX_SUMMARY, MAX_TEXT, MAX_TOP_K,
};
use super::error::McpError;
use super::request_scope::RequestScope;
use super::results::{
    BrowseResult, CorrectResult, ForgetResult, FoundRecord, JobState, JobsResult, NoteResult,
    RecordRef, SearchResult, shown_lines,
};
use super::schema::{check_range, check_text};
use super::{text, uri};
use memhost_core::{Abilities, Service};
use memhost_executor::off_executor;
use memhost_types::{
    BrowseRequest, CorrectRequest, CorrectionPatch, ForgetRequest, ForgetResponse, GetRequest,
    Intent, JobFilter, ProviderKey, QueryRequest, RecordHandle, RecordId, RecordWrite, Snippet,
    TextId, UpsertRequest, Visibility,
};

/// A call of a tool, with its caller, its scope and what the binding of that scope can do.
pub struct Call<'a> {
    pub(super) service: &'a Service,
    /// The caller and the scope.
    pub request: RequestScope,
    pub(super) abilities: Abilities,
}

/// What a tool answers.
pub struct ToolAnswer(pub(super) CallToolResult);

impl ToolAnswer {
    /// An answer as text, for models that are shown nothing else, and as data.
    pub fn new(text: String, answer: &impl Serialize) -> Self {
        let mut result = CallToolResult::success(vec![ContentBlock::text(text)]);
        result.structured_content = Some(serde_json::to_value(answer).unwrap_or(Value::Null));
        Self(result)
    }
}

/// One record that was written.
pub struct Written {
    /// Where the write is recorded.
    pub operation_id: String,
    /// The record.
    pub record: RecordHandle,
    /// Whether a person must approve it first.
    pub waits_for_review: bool,
}

impl Written {
    /// The sentence for a model about a record that a person must approve first.
    pub fn note(&self) -> &'static str {
        if self.waits_for_review { text::WAITS } else { "" }
    }
}

impl Call<'_> {
    pub(super) async fn search(
        self,
        wanted: arguments::Search,
    ) -> Result<CallToolResult, McpError> {
        check_text("query", &wanted.query, MAX_QUERY)?;
        check_range("topK", wanted.top_k.unwrap_or(1), 1, MAX_TOP_K)?;
        let most = wanted.max_chars.unwrap_or(DEFAULT_CHARS);
        check_range("maxChars", most, CHARS.0, CHARS.1)?;
        let request = QueryRequest {
            binding_key: self.request.binding,
            scope: self.request.scope,
            query: wanted.query,
            top_k: wanted.top_k,
            intent: Intent::Answer,
            metadata_filter: wanted.metadata_filter,
            token_budget: None,
            filter: None,
        };
        let answer = self.service.operations().query(&self.request.caller, request).await?;
        let bytes = answer.snippets.iter().map(Snippet::weight).sum();
        Ok(off_executor(bytes, || {
            let records =
                answer.snippets.into_iter().map(|snippet| FoundRecord::of(snippet, most as usize));
            let answer = SearchResult {
                operation_id: answer.operation_id.to_string(),
                records: records.collect(),
                profile_summary: answer.profile_summary.as_deref().map(shown_lines),
            };
            answered(text::searched(&answer, most), &answer)
        }))
    }

    pub(super) async fn note(self, wanted: arguments::Note) -> Result<CallToolResult, McpError> {
        check_text("text", &wanted.text, MAX_TEXT)?;
        if let Some(summary) = &wanted.summary {
            check_text("summary", summary, MAX_SUMMARY)?;
        }
        let mut metadata = wanted.metadata;
        if !wanted.cited_records.is_empty() {
            let cited = self.handles("citedRecords", &wanted.cited_records)?;
            let cited = serde_json::to_value(cited).unwrap_or_default();
            metadata.get_or_insert_default().insert("citedRecords".to_owned(), cited);
        }
        let record = RecordWrite {
            text: wanted.text,
            summary: wanted.summary,
            metadata,
            ..RecordWrite::default()
        };
        let Written { operation_id, record, waits_for_review } =
            self.write(record, wanted.visibility).await?;
        let answer = NoteResult { operation_id, record: RecordRef::of(&record), waits_for_review };
        Ok(answered(text::noted(&answer), &answer))
    }

    /// Writes one record as it is.
    ///
    /// # Errors
    /// If `core` refuses it or fails.
    pub async fn write(
        self,
        record: RecordWrite,
        visibility: Option<Visibility>,
    ) -> Result<Written, McpError> {
        let request = UpsertRequest {
            source: Some(self.request.source()),
            binding_key: self.request.binding,
            scope: self.request.scope,
            records: vec![record],
            visibility,
        };
        let answer = self.service.operations().upsert(&self.request.caller, request).await?;
        let operation_id = answer.operation_id.to_string();
        // The host has checked that the answer has one handle for each record.
        let record = answer
            .records
            .into_iter()
            .next()
            .ok_or_else(|| McpError::NoRecord(operation_id.clone()))?;
        Ok(Written { operation_id, record, waits_for_review: !answer.in_review.is_empty() })
    }

    pub(super) async fn correct(
        self,
        wanted: arguments::Correct,
    ) -> Result<CallToolResult, McpError> {
        let handle = self.handle("id", &wanted.id)?;
        let patch = match (wanted.text, wanted.instruction) {
            (Some(text), None) => {
                check_text("text", &text, MAX_TEXT)?;
                let record = RecordWrite {
                    text,
                    summary: wanted.summary,
                    metadata: wanted.metadata,
                    ..RecordWrite::default()
                };
                CorrectionPatch { instruction: None, record: Some(record) }
            }
            (None, Some(instruction)) if wanted.summary.is_none() && wanted.metadata.is_none() => {
                check_text("instruction", &instruction, MAX_QUERY)?;
                CorrectionPatch { instruction: Some(instruction), record: None }
            }
            (None, Some(_)) => {
                return Err(McpError::arguments(
                    "instruction",
                    "cannot be sent with `summary` or `metadata`; describe the change in words",
                ));
            }
            _ => {
                return Err(McpError::arguments(
                    "",
                    "give exactly one of `text` and `instruction`",
                ));
            }
        };
        let request = CorrectRequest {
            binding_key: self.request.binding,
            scope: self.request.scope,
            handle,
            patch,
        };
        let answer = CorrectResult::from(
            self.service.operations().correct(&self.request.caller, request).await?,
        );
        Ok(answered(text::corrected(&answer), &answer))
    }

    pub(super) async fn forget(
        self,
        wanted: arguments::Forget,
    ) -> Result<CallToolResult, McpError> {
        let answer = ForgetResult::from(self.forget_all("ids", &wanted.ids).await?);
        Ok(answered(text::forgotten(&answer), &answer))
    }

    /// A record by its id, if this scope sees it.
    ///
    /// # Errors
    /// If the argument `field` is no id, or `core` refuses the call or fails.
    pub async fn find(&self, field: &str, id: &str) -> Result<Option<Snippet>, McpError> {
        let handle = self.handle(field, id)?;
        let (binding_key, scope) = (self.request.binding.clone(), self.request.scope.clone());
        let request = GetRequest { binding_key, scope, handle };
        Ok(self.service.operations().get(&self.request.caller, request).await?.record)
    }

    /// Forgets records by their ids.
    ///
    /// # Errors
    /// If the argument `field` has no ids, or `core` refuses the call or fails.
    pub async fn forget_all(self, field: &str, ids: &[String]) -> Result<ForgetResponse, McpError> {
        if ids.is_empty() {
            return Err(McpError::arguments(field, "is empty; name at least one record"));
        }
        let handles = self.handles(field, ids)?;
        let request =
            ForgetRequest { binding_key: self.request.binding, scope: self.request.scope, handles };
        Ok(self.service.operations().forget(&self.request.caller, request).await?)
    }

    pub(super) async fn browse(
        self,
        wanted: arguments::Browse,
    ) -> Result<CallToolResult, McpError> {
        check_range("limit", wanted.limit.unwrap_or(1), 1, MAX_NODES)?;
        let request = BrowseRequest {
            binding_key: self.request.binding,
            scope: self.request.scope,
            path: wanted.path,
            cursor: wanted.cursor,
            limit: wanted.limit,
        };
        let answer = BrowseResult::from(
            self.service.operations().browse(&self.request.caller, request).await?,
        );
        Ok(answered(text::browsed(&answer), &answer))
    }

    pub(super) async fn jobs(self, wanted: arguments::Jobs) -> Result<CallToolResult, McpError> {
        check_range("limit", wanted.limit.unwrap_or(1), 1, MAX_NODES)?;
        let (caller, company) = (&self.request.caller, &self.request.scope.company_id);
        let filter = JobFilter { status: wanted.status, ..JobFilter::default() };
        let page = self
            .service
            .control()
            .jobs_for(caller, company, &filter, wanted.cursor.as_deref(), wanted.limit)
            .await?;
        let jobs = page.items.iter().map(JobState::from).collect();
        let answer = JobsResult { jobs, next_cursor: page.next_cursor };
        Ok(answered(text::jobs(&answer), &answer))
    }

    fn handles(&self, field: &str, ids: &[String]) -> Result<Vec<RecordHandle>, McpError> {
        if ids.len() > MAX_IDS {
            let message = format!("has {} elements; at most {MAX_IDS} are allowed", ids.len());
            return Err(McpError::arguments(field, message));
        }
        ids.iter()
            .enumerate()
            .map(|(index, id)| self.handle(&format!("{field}.{index}"), id))
            .collect()
    }

    /// The record of an id, or of an address that a model took for one. Whose record it may be is
    /// for the service to say.
    fn handle(&self, field: &str, id: &str) -> Result<RecordHandle, McpError> {
        if let Some(handle) = uri::parse(id) {
            return Ok(handle);
        }
        let wrong = |error: &dyn std::fmt::Display| McpError::arguments(field, error.to_string());
        let provider_key = match &self.abilities.provider_key {
            Some(key) => key.clone(),
            // The service will say that no binding answers.
            None => ProviderKey::parse("none").map_err(|error| wrong(&error))?,
        };
        let provider_record_id = RecordId::parse(id).map_err(|error| wrong(&error))?;
        Ok(RecordHandle { provider_key, provider_record_id })
    }
}

/// A result as text and as data.
fn answered(text: String, answer: &impl Serialize) -> CallToolResult {
    ToolAnswer::new(text, answer).0
}
