//! How large each field of a request may be. A request's `check` calls these before anything of it
//! is kept. The test below tries each field of each request and compares `host/docs/limits.md` with
//! them.

use crate::{
    FieldError, HookContext, JsonObject, Scope, SourcePayload, SourceRef, check_id, limits,
};

pub(crate) type Checked = Result<(), FieldError>;

impl Scope {
    /// Checks the fields that are plain texts to us.
    ///
    /// # Errors
    /// The first field at fault, below `scope`.
    pub fn check(&self) -> Checked {
        check_context_id("scope.projectId", self.project_id.as_deref())?;
        check_context_id("scope.issueId", self.issue_id.as_deref())?;
        check_context_id("scope.runId", self.run_id.as_deref())?;
        check_context_id("scope.subjectId", self.subject_id.as_deref())?;
        check_context_id("scope.sessionKey", self.session_key.as_deref())?;
        check_context_id("scope.namespace", self.namespace.as_deref())
    }

    /// What is kept of the scope of a request that was refused unchecked: the ids that are checked
    /// when they are read.
    #[must_use]
    pub fn only_checked(&self) -> Self {
        Self { agent_id: self.agent_id.clone(), ..Self::company(self.company_id.clone()) }
    }
}

impl SourceRef {
    /// Checks the fields, and that the source belongs to the company of the scope.
    ///
    /// # Errors
    /// The first field at fault, below `source`.
    pub fn check(&self, scope: &Scope) -> Checked {
        if self.company_id != scope.company_id {
            return Err(FieldError::new(
                "source.companyId",
                "is not the scope's company; a source belongs to the company that captures it",
            ));
        }
        check_context_id("source.issueId", self.issue_id.as_deref())?;
        check_context_id("source.commentId", self.comment_id.as_deref())?;
        check_context_id("source.runId", self.run_id.as_deref())?;
        check_context_id("source.activityId", self.activity_id.as_deref())?;
        // A document's key and an external reference may be paths or addresses.
        check_reference("source.documentKey", self.document_key.as_deref())?;
        check_reference("source.externalRef", self.external_ref.as_deref())?;
        // Refused where a caller sets it, and until then not longer than what the host sets.
        check_reference("source.assertedBy", self.asserted_by.as_deref())
    }
}

impl HookContext {
    /// Checks the fields.
    ///
    /// # Errors
    /// The first field at fault, below `hook`.
    pub fn check(&self) -> Checked {
        check_context_id("hook.hookId", Some(&self.hook_id))?;
        check_context_id("hook.hookKind", Some(self.hook_kind.as_str()))?;
        check_context_id("hook.heartbeatRunId", self.heartbeat_run_id.as_deref())?;
        check_reference("hook.assertedBy", self.asserted_by.as_deref())
    }
}

impl SourcePayload {
    /// Checks sizes.
    ///
    /// # Errors
    /// The first field at fault, below `payload`.
    pub fn check(&self) -> Checked {
        if let Some(text) = &self.text {
            check_bytes("payload.text", text, limits::MAX_TEXT_BYTES)?;
        }
        self.check_turns()?;
        if let Some(mime_type) = &self.mime_type {
            // Looked at where it is, so that a long one is not copied.
            check_bytes("payload.mimeType", mime_type, limits::MAX_OUTSIDE_ID_BYTES)?;
            check_context_id("payload.mimeType", Some(&mime_type.replace('/', "-")))?;
        }
        check_json("payload.metadata", self.metadata.as_ref())?;
        check_json("payload.object", self.object.as_ref())
    }

    fn check_turns(&self) -> Checked {
        let (count, most) = (self.turns.len(), limits::MAX_ITEMS);
        if count > most {
            return Err(FieldError::new(
                "payload.turns",
                format!("has {count} elements; at most {most} are allowed"),
            ));
        }
        let mut bytes = 0_usize;
        for (number, turn) in self.turns.iter().enumerate() {
            let field = |name: &str| format!("payload.turns.{number}.{name}");
            let length = turn.role.len();
            if length == 0
                || length > limits::MAX_ROLE_BYTES
                || turn.role.chars().any(char::is_control)
            {
                let most = limits::MAX_ROLE_BYTES;
                return Err(FieldError::new(
                    field("role"),
                    format!("is not 1 to {most} printable bytes"),
                ));
            }
            check_reference(&field("name"), turn.name.as_deref())?;
            bytes = bytes.saturating_add(turn.text.len());
            if bytes > limits::MAX_TEXT_BYTES {
                let most = limits::MAX_TEXT_BYTES;
                return Err(FieldError::new(
                    field("text"),
                    format!("makes the turns longer than {most} bytes together"),
                ));
            }
        }
        Ok(())
    }
}

pub(crate) fn check_context_id(field: &str, id: Option<&str>) -> Checked {
    match id {
        None => Ok(()),
        Some(id) => check_id(field, id),
    }
}

pub(crate) fn check_reference(field: &str, reference: Option<&str>) -> Checked {
    match reference {
        Some(text) if text.is_empty() || text.len() > limits::MAX_RECORD_ID_BYTES => {
            Err(FieldError::new(
                field,
                format!(
                    "is {} bytes long; 1 to {} are allowed",
                    text.len(),
                    limits::MAX_RECORD_ID_BYTES
                ),
            ))
        }
        Some(text) if text.chars().any(char::is_control) => {
            Err(FieldError::new(field, "holds a control character; use printable characters only"))
        }
        _ => Ok(()),
    }
}

pub(crate) fn check_bytes(field: &str, text: &str, max: usize) -> Checked {
    if text.len() > max {
        return Err(FieldError::new(
            field,
            format!("is {} bytes long; at most {max} are allowed", text.len()),
        ));
    }
    Ok(())
}

/// Cursors are sealed by the host and never longer.
pub(crate) fn check_cursor(cursor: Option<&String>) -> Checked {
    cursor.map_or(Ok(()), |cursor| check_bytes("cursor", cursor, limits::MAX_CURSOR_BYTES))
}

pub(crate) fn check_count(field: &str, count: usize) -> Checked {
    if count == 0 || count > limits::MAX_ITEMS {
        return Err(FieldError::new(
            field,
            format!("has {count} elements; 1 to {} are allowed", limits::MAX_ITEMS),
        ));
    }
    Ok(())
}

pub(crate) fn check_page(field: &str, size: Option<u32>) -> Checked {
    match size {
        Some(size) if size == 0 || size > limits::MAX_PAGE => {
            Err(FieldError::new(field, format!("is {size}; 1 to {} are allowed", limits::MAX_PAGE)))
        }
        _ => Ok(()),
    }
}

/// Checks free-form JSON: at most 256 KiB in its compact form, and 64 levels.
///
/// # Errors
/// If it is larger or deeper.
pub fn check_json(field: &str, object: Option<&JsonObject>) -> Checked {
    check_json_of(field, object, limits::MAX_JSON_BYTES)
}

/// Free-form JSON of at most `max` bytes in its compact form, and 64 levels.
pub(crate) fn check_json_of(field: &str, object: Option<&JsonObject>, max: usize) -> Checked {
    let Some(object) = object else { return Ok(()) };
    if object.values().any(|value| is_deeper(value, limits::MAX_JSON_DEPTH - 1)) {
        return Err(FieldError::new(
            field,
            format!("is nested deeper than {} levels", limits::MAX_JSON_DEPTH),
        ));
    }
    if serde_json::to_writer(Room(max), object).is_err() {
        return Err(FieldError::new(field, format!("is larger than {max} bytes as JSON")));
    }
    Ok(())
}

/// Whether there are more than so many levels below a value, itself included if it has members.
/// Goes no deeper.
fn is_deeper(value: &serde_json::Value, levels: usize) -> bool {
    let below = |value: &serde_json::Value| levels == 0 || is_deeper(value, levels - 1);
    match value {
        serde_json::Value::Array(items) => levels == 0 || items.iter().any(below),
        serde_json::Value::Object(members) => levels == 0 || members.values().any(below),
        _ => false,
    }
}

/// Counts what is written, keeps nothing, and fails where there is too much.
struct Room(usize);

impl std::io::Write for Room {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0 = self.0.checked_sub(bytes.len()).ok_or(std::io::ErrorKind::FileTooLarge)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests;
