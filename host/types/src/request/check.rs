//! The checks of a request that need nothing but the request itself.

use super::{
    BrowseRequest, CaptureRequest, CorrectRequest, ExportRequest, ForgetRequest, GetRequest,
    HookContext, ImportRequest, ListRequest, QueryRequest, RecordFilter, RecordWrite, Scope,
    UpsertRequest,
};
use crate::bounds::{Checked, check_bytes, check_count, check_cursor, check_json, check_page};
use crate::{FieldError, SourceSelector, limits};

impl CaptureRequest {
    /// Checks sizes and that everything is of the scope's company.
    ///
    /// # Errors
    /// The first field at fault.
    pub fn check(&self) -> Checked {
        self.scope.check()?;
        self.source.check(&self.scope)?;
        let payload = &self.payload;
        match (&payload.text, &payload.object, payload.turns.as_slice()) {
            (None, None, []) => {
                let message =
                    "has neither `text` nor `turns` nor `object`; give at least one of them";
                return Err(FieldError::new("payload", message));
            }
            (Some(text), None, []) if text.trim().is_empty() => {
                return Err(FieldError::new("payload.text", "is empty; give a text"));
            }
            (None, None, turns) if turns.iter().all(|turn| turn.text.trim().is_empty()) => {
                return Err(FieldError::new(
                    "payload.turns",
                    "say nothing; give at least one text",
                ));
            }
            _ => {}
        }
        payload.check()?;
        check_json("metadata", self.metadata.as_ref())?;
        if self.replaces_source && SourceSelector::of(&self.source).is_none() {
            let message = "is set, and the source names nothing that could be replaced; give it a \
                           commentId, documentKey, \
                           issueId, runId or externalRef";
            return Err(FieldError::new("replacesSource", message));
        }
        self.hook.as_ref().map_or(Ok(()), HookContext::check)
    }
}

impl UpsertRequest {
    /// Checks sizes, counts and that everything is of the scope's company.
    ///
    /// # Errors
    /// The first field at fault.
    pub fn check(&self) -> Checked {
        self.scope.check()?;
        if let Some(source) = &self.source {
            source.check(&self.scope)?;
        }
        check_count("records", self.records.len())?;
        for (index, record) in self.records.iter().enumerate() {
            check_record(&format!("records.{index}"), record, &self.scope)?;
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
        self.scope.check()?;
        check_bytes("query", &self.query, limits::MAX_QUERY_BYTES)?;
        check_page("topK", self.top_k)?;
        if let Some(budget) =
            self.token_budget.filter(|budget| !(1..=limits::MAX_TOKEN_BUDGET).contains(budget))
        {
            let message = format!("is {budget}; 1 to {} are allowed", limits::MAX_TOKEN_BUDGET);
            return Err(FieldError::new("tokenBudget", message));
        }
        check_filter(self.filter.as_ref())?;
        check_json("metadataFilter", self.metadata_filter.as_ref())
    }
}

impl ListRequest {
    /// Checks sizes and ranges. Whether the cursor is good needs the host's key.
    ///
    /// # Errors
    /// The first field at fault.
    pub fn check(&self) -> Checked {
        self.scope.check()?;
        check_cursor(self.cursor.as_ref())?;
        check_page("limit", self.limit)?;
        check_filter(self.filter.as_ref())?;
        check_json("metadataFilter", self.metadata_filter.as_ref())
    }
}

impl BrowseRequest {
    /// Checks sizes and ranges. Whether the cursor is good needs the host's key.
    ///
    /// # Errors
    /// The first field at fault.
    pub fn check(&self) -> Checked {
        self.scope.check()?;
        check_bytes("path", &self.path, limits::MAX_NODE_PATH_BYTES)?;
        check_cursor(self.cursor.as_ref())?;
        check_page("limit", self.limit)
    }
}

impl ExportRequest {
    /// Checks the scope. Whether the cursor is good needs the host's key.
    ///
    /// # Errors
    /// The first field at fault.
    pub fn check(&self) -> Checked {
        self.scope.check()?;
        check_cursor(self.cursor.as_ref())
    }
}

impl ImportRequest {
    /// Checks the scope, the size, and that each line is JSON.
    ///
    /// # Errors
    /// The first field at fault: `lines.N` for the line of that number, from 0.
    pub fn check(&self) -> Checked {
        self.scope.check()?;
        check_bytes("lines", &self.lines, limits::MAX_TRANSFER_BYTES)?;
        for (number, line) in self.lines.lines().enumerate() {
            if let Err(error) = serde_json::from_str::<serde::de::IgnoredAny>(line) {
                return Err(FieldError::new(
                    format!("lines.{number}"),
                    format!("is not valid JSON: {error}"),
                ));
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
        self.scope.check()
    }
}

impl ForgetRequest {
    /// Checks the scope and the count.
    ///
    /// # Errors
    /// The first field at fault.
    pub fn check(&self) -> Checked {
        self.scope.check()?;
        check_count("handles", self.handles.len())
    }
}

impl CorrectRequest {
    /// Checks the scope and that the patch is one of the two kinds.
    ///
    /// # Errors
    /// The first field at fault.
    pub fn check(&self) -> Checked {
        self.scope.check()?;
        match (&self.patch.instruction, &self.patch.record) {
            (Some(instruction), None) => {
                check_bytes("patch.instruction", instruction, limits::MAX_QUERY_BYTES)
            }
            (None, Some(record)) => check_record("patch.record", record, &self.scope),
            _ => Err(FieldError::new("patch", "needs exactly one of `instruction` and `record`")),
        }
    }
}

fn check_filter(filter: Option<&RecordFilter>) -> Checked {
    filter.map_or(Ok(()), RecordFilter::check)
}

fn check_record(field: &str, record: &RecordWrite, scope: &Scope) -> Checked {
    if let Some(source) = &record.source {
        source
            .check(scope)
            .map_err(|error| FieldError::new(format!("{field}.{}", error.field), error.message))?;
    }
    let within =
        |error: FieldError| FieldError::new(format!("{field}.{}", error.field), error.message);
    record.check_sizes().map_err(within)
}

impl RecordWrite {
    /// Checks that there is a text, and the sizes of text, summary and metadata.
    ///
    /// # Errors
    /// The first field at fault.
    pub fn check_sizes(&self) -> Checked {
        if self.text.trim().is_empty() {
            return Err(FieldError::new("text", "is empty; give a text"));
        }
        check_bytes("text", &self.text, limits::MAX_TEXT_BYTES)?;
        if let Some(summary) = &self.summary {
            check_bytes("summary", summary, limits::MAX_SUMMARY_BYTES)?;
        }
        check_json("metadata", self.metadata.as_ref())
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
        let request =
            query(r#"{"bindingKey":"default","scope":{"companyId":"c"},"query":"q"}"#).unwrap();
        assert_eq!((request.top_k, request.intent), (None, Intent::Answer));
        assert!(request.check().is_ok());
    }

    #[test]
    fn an_unknown_field_and_a_wrong_type_are_errors() {
        let error =
            query(r#"{"scope":{"companyId":"c","team":"x"},"query":"q"}"#).unwrap_err().to_string();
        assert!(error.contains("unknown field `team`"), "{error}");
        assert!(query(r#"{"scope":{"companyId":"c"},"query":"q","topK":-1}"#).is_err());
        assert!(query(r#"{"scope":{"companyId":"c"},"query":"q","topK":"3"}"#).is_err());
    }

    #[test]
    fn ranges_and_ids_are_checked_with_the_fields_name() {
        let field = |text: &str| query(text).unwrap().check().unwrap_err().field;
        assert_eq!(field(r#"{"scope":{"companyId":"c"},"query":"q","topK":0}"#), "topK");
        assert_eq!(field(r#"{"scope":{"companyId":"c"},"query":"q","topK":1001}"#), "topK");
        assert_eq!(
            field(r#"{"scope":{"companyId":"c","runId":"../x"},"query":"q"}"#),
            "scope.runId"
        );
        assert_eq!(
            field(&format!(r#"{{"scope":{{"companyId":"c"}},"query":"{}"}}"#, "q".repeat(20_000))),
            "query"
        );
    }

    #[test]
    fn json_that_is_too_deep_or_too_large_is_refused() {
        let deep = format!("{}1{}", r#"{"a":"#.repeat(70), "}".repeat(70));
        let text =
            format!(r#"{{"scope":{{"companyId":"c"}},"query":"q","metadataFilter":{deep}}}"#);
        assert_eq!(query(&text).unwrap().check().unwrap_err().field, "metadataFilter");
        let large = format!(r#"{{"a":"{}"}}"#, "x".repeat(limits::MAX_JSON_BYTES));
        let text =
            format!(r#"{{"scope":{{"companyId":"c"}},"query":"q","metadataFilter":{large}}}"#);
        assert_eq!(query(&text).unwrap().check().unwrap_err().field, "metadataFilter");
    }

    #[test]
    fn a_source_of_another_company_is_refused() {
        let request: CaptureRequest = serde_json::from_str(
            r#"{"scope":{"companyId":"a"},"source":{"kind":"run","companyId":"b"},
                "payload":{"text":"t"}}"#,
        )
        .unwrap();
        assert_eq!(request.check().unwrap_err().field, "source.companyId");
    }
}
