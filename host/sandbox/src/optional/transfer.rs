//! The interface `transfer`: all records of a binding out and in, as JSON Lines.

use crate::answer::Answer;
use crate::contract::transfer as wire;
use crate::convert;
use crate::error::Failure;
use crate::instances::{Instances, call};
use crate::normalize::{Checked, bad, text_size};
use memhost_types::{OperationId, Scope, limits};

/// The answer of `export-records`.
#[derive(Debug)]
pub struct ChunkAnswer {
    /// Whole lines, each a JSON value with a line feed after it.
    pub lines: String,
    /// The provider's own cursor.
    pub next: Option<String>,
}

/// The answer of `import-records`.
#[derive(Debug, Clone, Copy)]
pub struct ImportAnswer {
    /// Lines that made or changed a record.
    pub imported: u32,
    /// Lines whose record was there already.
    pub unchanged: u32,
}

impl Instances {
    /// One part of everything that the binding holds. `cursor` is the provider's own.
    ///
    /// # Errors
    /// As [`CallError`](crate::CallError) says; the same for the call below.
    pub async fn export(
        &self, scope: &Scope, cursor: Option<&str>,
    ) -> Result<Answer<ChunkAnswer>, Failure> {
        let scope = convert::scope(scope);
        call!(self, wire.call_export_records(&scope, cursor), |_, answer| exported(answer)).await
    }

    /// Imports whole lines of an export, all of them or none.
    ///
    /// # Errors
    /// As [`Instances::export`].
    pub async fn import(
        &self, id: OperationId, scope: &Scope, lines: &str,
    ) -> Result<Answer<ImportAnswer>, Failure> {
        let (operation_id, scope) = (id.to_string(), convert::scope(scope));
        let request = wire::ImportRequest { operation_id, scope, lines: lines.to_owned() };
        call!(
            self, wire.call_import_records(&request), |_, answer| imported(
                answer, lines.lines().count(),
            ),
        ).await
    }
}

fn exported(answer: wire::Chunk) -> Checked<ChunkAnswer> {
    text_size("lines", &answer.lines, limits::MAX_TRANSFER_BYTES)?;
    if !answer.lines.is_empty() && !answer.lines.ends_with('\n') {
        return bad("its last line is not ended by a line feed");
    }
    for (number, line) in answer.lines.lines().enumerate() {
        if let Err(error) = serde_json::from_str::<serde::de::IgnoredAny>(line) {
            return bad(format!("line {} of a chunk is not JSON: {error}", number + 1));
        }
    }
    if let Some(cursor) = &answer.next_cursor {
        text_size("nextCursor", cursor, limits::MAX_PROVIDER_CURSOR_BYTES)?;
    }
    Ok(ChunkAnswer { lines: answer.lines, next: answer.next_cursor })
}

fn imported(answer: wire::ImportReport, lines: usize) -> Checked<ImportAnswer> {
    let (imported, unchanged) = (answer.imported, answer.unchanged);
    if imported as usize + unchanged as usize > lines {
        return bad(
            format!("it says that it imported {imported} and knew {unchanged} of {lines} lines")
        );
    }
    Ok(ImportAnswer { imported, unchanged })
}
