//! Tools that crates above add. This crate knows their shape only.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;

use axum::http::Extensions;

use super::call::{Call, ToolAnswer};
use super::error::McpError;
use memhost_core::Abilities;
use memhost_types::{JsonObject, OperationKind};

/// The tools that crates above add. An extension of every request.
#[derive(Debug, Clone, Copy, Default)]
pub struct McpTools(pub &'static [AddedTool]);

impl McpTools {
    /// The tools of a request.
    pub(crate) fn of(extensions: &Extensions) -> Self {
        extensions.get().copied().unwrap_or_default()
    }
}

/// A call of an added tool, until it is answered.
pub type Running<'a> = Pin<Box<dyn Future<Output = Result<ToolAnswer, McpError>> + Send + 'a>>;

/// A tool that a crate above adds.
pub struct AddedTool {
    /// Its name towards models.
    pub name: &'static str,
    /// Its name towards people.
    pub title: &'static str,
    /// When a model should use it.
    pub description: &'static str,
    /// The operation that it is: it decides who may use it, and its hints.
    pub kind: OperationKind,
    /// The schema of its arguments, such as [`of_arguments`](super::of_arguments) makes it.
    pub arguments: fn() -> Arc<JsonObject>,
    /// The schema of its result.
    pub result: fn() -> Arc<JsonObject>,
    /// Whether a binding has it.
    pub exists: fn(&Abilities) -> bool,
    /// A line in the rules of how to use memory.
    pub rule: Option<&'static str>,
    /// What stands behind all rules.
    pub guide: Option<&'static str>,
    /// What it does.
    pub run: for<'a> fn(Call<'a>, Option<JsonObject>) -> Running<'a>,
}

impl fmt::Debug for AddedTool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

/// Tools are told apart by their names.
impl PartialEq for AddedTool {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for AddedTool {}
