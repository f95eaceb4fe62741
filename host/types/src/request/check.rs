//! The checks of a request that need nothing but the request itself.

use super::{
    BrowseRequest, CaptureRequest, CorrectRequest, ExportRequest, ForgetRequest, GetRequest, ImportRequest, JsonObject,
    ListRequest, QueryRequest, RecordWrite, UpsertRequest,
};
use crate::{FieldError, Scope, SourceRef, check_id, limits};

type Checked = Result<(), FieldError>;

impl CaptureRequest {
    /// Checks sizes and that everything is of the scope's company.
    ///
    /// # Errors
    /// The first field at fault.
    pub fn check(&self) -> Checked {
        check_scope(&self.scope)?;
        check_source(&self.scope, &self.source)?;
        let payload = &self.payload;
        if payload.text.is_none() && payload.object.is_none() {
            return Err(FieldError::new("payload", "has neither `text` nor `object`; give at least one of them"));
        }
        if let Some(text) = &payload.text {
            check_bytes("payload.text", text, limits::MAX_TEXT_BYTES)?;
        }
        if let Some(mime_type) = &payload.mime_type {
            check_context_id("payload.mimeType", Some(&mime_type.replace('/', "-")))?;
        }
        check_json("payload.metadata", payload.metadata.as_ref())?;
        check_json("payload.object", payload.object.as_ref())?;
        check_json("metadata", self.metadata.as_ref())?;
        if let Some(hook) = &self.hook {
            check_context_id("hook.hookId", Some(&hook.hook_id))?;
            check_context_id("hook.hookKind", Some(hook.hook_kind.as_str()))?;
            check_context_id("hook.heartbeatRunId", hook.heartbeat_run_id.as_deref())?;
        }
        Ok(())
    }
}

impl UpsertRequest {
    /// Checks sizes, counts and that everything is of the scope's company.
    ///
    /// # Errors
    /// The first field at fault.
    pub fn check(&self) -> Checked {
        check_scope(&self.scope)?;
        if let Some(source) = &self.source {
            check_source(&self.scope, source)?;
        }
        check_count("records", self.records.len())?;
        for (index, record) in self.records.iter().enumerate() {
            check_record(&format!("records.{index}"), record)?;
        }
        Ok(())
    }
}

impl QueryRequest {
    /// Checks sizes and ranges.
    ///
    /// # Errors
    /// The first field at fault.
    pub fn check(&self) -> Checked {
        check_scope(&self.scope)?;
        check_bytes("query", &self.query, limits::MAX_QUERY_BYTES)?;
        check_page("topK", self.top_k)?;
        check_json("metadataFilter", self.metadata_filter.as_ref())
    }
}

impl ListRequest {
    /// Checks sizes and ranges. Whether the cursor is good needs the host's key.
    ///
    /// # Errors
    /// The first field at fault.
    pub fn check(&self) -> Checked {
        check_scope(&self.scope)?;
        check_page("limit", self.limit)?;
        check_json("metadataFilter", self.metadata_filter.as_ref())
    }
}

impl BrowseRequest {
    /// Checks sizes and ranges. Whether the cursor is good needs the host's key.
    ///
    /// # Errors
    /// The first field at fault.
    pub fn check(&self) -> Checked {
        check_scope(&self.scope)?;
        check_bytes("path", &self.path, limits::MAX_NODE_PATH_BYTES)?;
        check_page("limit", self.limit)
    }
}

impl ExportRequest {
    /// Checks the scope. Whether the cursor is good needs the host's key.
    ///
    /// # Errors
    /// The first field at fault.
    pub fn check(&self) -> Checked {
        check_scope(&self.scope)
    }
}

impl ImportRequest {
    /// Checks the scope, the size, and that each line is JSON.
    ///
    /// # Errors
    /// The first field at fault: `lines.N` for the line of that number, from 0.
    pub fn check(&self) -> Checked {
        check_scope(&self.scope)?;
        check_bytes("lines", &self.lines, limits::MAX_TRANSFER_BYTES)?;
        for (number, line) in self.lines.lines().enumerate() {
            if let Err(error) = serde_json::from_str::<serde::de::IgnoredAny>(line) {
                return Err(FieldError::new(format!("lines.{number}"), format!("is no JSON: {error}")));
            }
        }
        Ok(())
    }
}

impl GetRequest {
    /// Checks the scope.
    ///
    /// # Errors
    /// The first field at fault.
    pub fn check(&self) -> Checked {
        check_scope(&self.scope)
    }
}

impl ForgetRequest {
    /// Checks the scope and the count.
    ///
    /// # Errors
    /// The first field at fault.
    pub fn check(&self) -> Checked {
        check_scope(&self.scope)?;
        check_count("handles", self.handles.len())
    }
}

impl CorrectRequest {
    /// Checks the scope and that the patch is one of the two kinds.
    ///
    /// # Errors
    /// The first field at fault.
    pub fn check(&self) -> Checked {
        check_scope(&self.scope)?;
        match (&self.patch.instruction, &self.patch.record) {
            (Some(instruction), None) => check_bytes("patch.instruction", instruction, limits::MAX_QUERY_BYTES),
            (None, Some(record)) => check_record("patch.record", record),
            _ => Err(FieldError::new("patch", "needs exactly one of `instruction` and `record`")),
        }
    }
}

fn check_record(field: &str, record: &RecordWrite) -> Checked {
    check_bytes(&format!("{field}.text"), &record.text, limits::MAX_TEXT_BYTES)?;
    if let Some(summary) = &record.summary {
        check_bytes(&format!("{field}.summary"), summary, limits::MAX_SUMMARY_BYTES)?;
    }
    check_json(&format!("{field}.metadata"), record.metadata.as_ref())
}

fn check_scope(scope: &Scope) -> Checked {
    check_context_id("scope.projectId", scope.project_id.as_deref())?;
    check_context_id("scope.issueId", scope.issue_id.as_deref())?;
    check_context_id("scope.runId", scope.run_id.as_deref())?;
    check_context_id("scope.subjectId", scope.subject_id.as_deref())?;
    check_context_id("scope.sessionKey", scope.session_key.as_deref())?;
    check_context_id("scope.namespace", scope.namespace.as_deref())
}

fn check_source(scope: &Scope, source: &SourceRef) -> Checked {
    if source.company_id != scope.company_id {
        return Err(FieldError::new(
            "source.companyId",
            "is not the scope's company; a source belongs to the company that captures it",
        ));
    }
    check_context_id("source.issueId", source.issue_id.as_deref())?;
    check_context_id("source.commentId", source.comment_id.as_deref())?;
    check_context_id("source.runId", source.run_id.as_deref())?;
    check_context_id("source.activityId", source.activity_id.as_deref())?;
    // A document's key and an external reference may be paths or addresses.
    check_reference("source.documentKey", source.document_key.as_deref())?;
    check_reference("source.externalRef", source.external_ref.as_deref())
}

fn check_context_id(field: &str, id: Option<&str>) -> Checked {
    match id {
        None => Ok(()),
        Some(id) => check_id(field, id),
    }
}

fn check_reference(field: &str, reference: Option<&str>) -> Checked {
    match reference {
        Some(text) if text.is_empty() || text.len() > limits::MAX_RECORD_ID_BYTES => Err(FieldError::new(
            field,
            format!("is {} bytes long; 1 to {} are allowed", text.len(), limits::MAX_RECORD_ID_BYTES),
        )),
        Some(text) if text.chars().any(char::is_control) => {
            Err(FieldError::new(field, "holds a control character; use printable characters only"))
        }
        _ => Ok(()),
    }
}

fn check_bytes(field: &str, text: &str, max: usize) -> Checked {
    if text.len() > max {
        return Err(FieldError::new(field, format!("is {} bytes long; at most {max} are allowed", text.len())));
    }
    Ok(())
}

fn check_count(field: &str, count: usize) -> Checked {
    if count == 0 || count > limits::MAX_ITEMS {
        return Err(FieldError::new(field, format!("has {count} elements; 1 to {} are allowed", limits::MAX_ITEMS)));
    }
    Ok(())
}

fn check_page(field: &str, size: Option<u32>) -> Checked {
    match size {
        Some(size) if size == 0 || size > limits::MAX_PAGE => {
            Err(FieldError::new(field, format!("is {size}; 1 to {} are allowed", limits::MAX_PAGE)))
        }
        _ => Ok(()),
    }
}

fn check_json(field: &str, object: Option<&JsonObject>) -> Checked {
    let Some(object) = object else { return Ok(()) };
    if object.values().any(|value| depth(value) >= limits::MAX_JSON_DEPTH) {
        return Err(FieldError::new(field, format!("is nested deeper than {} levels", limits::MAX_JSON_DEPTH)));
    }
    let bytes = serde_json::to_string(object).map_or(usize::MAX, |text| text.len());
    if bytes > limits::MAX_JSON_BYTES {
        return Err(FieldError::new(field, format!("is larger than {} bytes as JSON", limits::MAX_JSON_BYTES)));
    }
    Ok(())
}

// Recursion is bounded by serde_json's own limit of 128 levels when the request was read.
fn depth(value: &serde_json::Value) -> usize {
    match value {
        serde_json::Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        serde_json::Value::Object(members) => 1 + members.values().map(depth).max().unwrap_or(0),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Intent;

    fn query(text: &str) -> Result<QueryRequest, serde_json::Error> {
        serde_json::from_str(text)
    }

    #[test]
    fn the_plans_shape_is_read_and_the_rest_has_defaults() {
        let request = query(r#"{"bindingKey":"default","scope":{"companyId":"c"},"query":"q"}"#).unwrap();
        assert_eq!((request.top_k, request.intent), (None, Intent::Answer));
        assert!(request.check().is_ok());
    }

    #[test]
    fn an_unknown_field_and_a_wrong_type_are_errors() {
        let error = query(r#"{"scope":{"companyId":"c","team":"x"},"query":"q"}"#).unwrap_err().to_string();
        assert!(error.contains("unknown field `team`"), "{error}");
        assert!(query(r#"{"scope":{"companyId":"c"},"query":"q","topK":-1}"#).is_err());
        assert!(query(r#"{"scope":{"companyId":"c"},"query":"q","topK":"3"}"#).is_err());
    }

    #[test]
    fn ranges_and_ids_are_checked_with_the_fields_name() {
        let field = |text: &str| query(text).unwrap().check().unwrap_err().field;
        assert_eq!(field(r#"{"scope":{"companyId":"c"},"query":"q","topK":0}"#), "topK");
        assert_eq!(field(r#"{"scope":{"companyId":"c"},"query":"q","topK":1001}"#), "topK");
        assert_eq!(field(r#"{"scope":{"companyId":"c","runId":"../x"},"query":"q"}"#), "scope.runId");
        assert_eq!(field(&format!(r#"{{"scope":{{"companyId":"c"}},"query":"{}"}}"#, "q".repeat(20_000))), "query");
    }

    #[test]
    fn json_that_is_too_deep_or_too_large_is_refused() {
        let deep = format!("{}1{}", r#"{"a":"#.repeat(70), "}".repeat(70));
        let text = format!(r#"{{"scope":{{"companyId":"c"}},"query":"q","metadataFilter":{deep}}}"#);
        assert_eq!(query(&text).unwrap().check().unwrap_err().field, "metadataFilter");
        let large = format!(r#"{{"a":"{}"}}"#, "x".repeat(limits::MAX_JSON_BYTES));
        let text = format!(r#"{{"scope":{{"companyId":"c"}},"query":"q","metadataFilter":{large}}}"#);
        assert_eq!(query(&text).unwrap().check().unwrap_err().field, "metadataFilter");
    }

    #[test]
    fn a_source_of_another_company_is_refused() {
        let request: CaptureRequest = serde_json::from_str(
            r#"{"scope":{"companyId":"a"},"source":{"kind":"run","companyId":"b"},"payload":{"text":"t"}}"#,
        )
        .unwrap();
        assert_eq!(request.check().unwrap_err().field, "source.companyId");
    }
}
