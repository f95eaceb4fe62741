//! What goes wrong over MCP, and who is told how: a model by the result of its tool, a client by an
//! error of the protocol.

use rmcp::ErrorData;
use rmcp::model::{CallToolResult, ContentBlock};
use serde_json::{Value, json};

use crate::problem::ProblemCode;
use memhost_core::ServiceError;
use memhost_types::OperationErrorCode;
use memhost_types::foreign::one_line;

/// The code where the client's configuration names a company that the host does not have.
const UNKNOWN_COMPANY: &str = ProblemCode::UnknownCompany.name();

/// The text before an operation's id in a refusal.
const OPERATION: &str = " (operation ";

/// Whether the text of a tool's refusal says which operation it was.
pub(crate) fn names_operation(text: &str) -> bool {
    text.contains(OPERATION)
}

/// Why a request failed.
#[derive(Debug, thiserror::Error)]
pub enum McpError {
    /// The token layer is missing: a fault of the host.
    #[error("the request has no caller")]
    NoCaller,
    /// The token is for more than one company, and none was named.
    #[error(
        "this token is not one company's: name the company in the header `memhost-company-id` of \
         the client's \
         configuration, or with --company of `memhost mcp`"
    )]
    NoCompany,
    /// A header of the configuration is not valid.
    #[error("the header `{name}` of the client's configuration: {message}")]
    Header {
        /// Which.
        name: &'static str,
        /// Why.
        message: String,
    },
    /// The tool does not exist, or not for this caller.
    #[error("there is no tool `{0}` here; `tools/list` has those that exist")]
    NoTool(String),
    /// The prompt does not exist.
    #[error("there is no prompt `{0}` here; `prompts/list` has those that exist")]
    NoPrompt(String),
    /// The record does not exist.
    #[error("there is no record {0} in this scope; `memory_search` finds those that exist")]
    NoRecord(String),
    /// A tool's arguments are not valid.
    #[error("{field}{}{message}", if field.is_empty() { "" } else { ": " })]
    Arguments {
        /// Which; empty for all of them.
        field: String,
        /// Why, and what is valid.
        message: String,
    },
    /// The service refused or failed.
    #[error(transparent)]
    Service(#[from] ServiceError),
}

impl McpError {
    /// An argument is not valid: which, and why.
    pub fn arguments(field: impl Into<String>, message: impl Into<String>) -> Self {
        Self::Arguments { field: field.into(), message: message.into() }
    }

    /// A stable name of the failure.
    fn code(&self) -> &'static str {
        match self {
            Self::Service(ServiceError::Operation { error, .. }) => error.code.as_str(),
            Self::Service(ServiceError::Denied(_)) => OperationErrorCode::Forbidden.as_str(),
            Self::Service(ServiceError::UnknownCompany { .. }) => UNKNOWN_COMPANY,
            Self::Service(ServiceError::Field(_)) | Self::Arguments { .. } => {
                OperationErrorCode::InvalidRequest.as_str()
            }
            Self::Service(error) if error.is_disk_full() => OperationErrorCode::DiskFull.as_str(),
            Self::Service(error) if error.is_erased() => OperationErrorCode::CompanyErased.as_str(),
            Self::Service(error) if error.is_company_full() => {
                OperationErrorCode::QuotaExceeded.as_str()
            }
            Self::Service(error) if error.is_store_unavailable() => {
                OperationErrorCode::StoreUnavailable.as_str()
            }
            Self::Service(_) | Self::NoCaller => OperationErrorCode::Host.as_str(),
            Self::NoCompany | Self::Header { .. } => "configuration",
            Self::NoTool(_) | Self::NoPrompt(_) | Self::NoRecord(_) => {
                OperationErrorCode::NotFound.as_str()
            }
        }
    }

    /// Advice for a model about the failure.
    fn advice(&self) -> &'static str {
        use OperationErrorCode as Code;
        match self {
            Self::Arguments { .. } => "Correct the arguments and call again.",
            Self::NoCompany
            | Self::Header { .. }
            | Self::Service(ServiceError::UnknownCompany { .. }) => {
                "Whoever configured this client has to correct that."
            }
            Self::Service(ServiceError::Operation { error, .. }) => match error.code {
                Code::InvalidRequest => "Correct the arguments and call again.",
                Code::NotFound => {
                    "Search again: ids of other scopes and of forgotten records name nothing."
                }
                Code::QuotaExceeded => {
                    "There is no room for more: remove what is not needed any more (memory_forget, \
                     or remove_memory), then \
                     call again."
                }
                Code::RateLimited
                | Code::Busy
                | Code::CircuitOpen
                | Code::ProviderLoading
                | Code::StoreUnavailable => "Wait a moment before you call again.",
                Code::Forbidden | Code::Unsupported | Code::NoBinding | Code::BindingDisabled => {
                    "Calling again will not help: go on without it."
                }
                _ => "Memory is not to be had now: go on with the task without it, and say so.",
            },
            _ => "Memory is not to be had now: go on with the task without it, and say so.",
        }
    }

    /// For a model: what happened, what to do, and where it is recorded.
    pub(super) fn into_result(self) -> CallToolResult {
        // A provider's message is in it: that must not look like another line of the host.
        let mut text = one_line(&format!("{}: {self}", self.code()));
        if !text.ends_with(['.', '!', '?']) {
            text.push('.');
        }
        if let Self::Service(ServiceError::Operation { operation_id, error, .. }) = &self {
            if let Some(wait) = error.retry_after_ms {
                text.push_str(&format!(" It may go in {wait} ms."));
            }
            text.push_str(&format!("{OPERATION}{operation_id})"));
        }
        CallToolResult::error(vec![ContentBlock::text(format!("{text} {}", self.advice()))])
    }
}

impl From<McpError> for ErrorData {
    fn from(error: McpError) -> Self {
        let mut data = json!({ "code": error.code() });
        if let McpError::Service(ServiceError::Operation { operation_id, .. }) = &error {
            data["operationId"] = Value::String(operation_id.to_string());
        }
        let message = one_line(&error.to_string());
        match &error {
            McpError::NoRecord(_) => Self::resource_not_found(message, Some(data)),
            McpError::NoTool(_) | McpError::NoPrompt(_) | McpError::Arguments { .. } => {
                Self::invalid_params(message, Some(data))
            }
            McpError::NoCompany | McpError::Header { .. } => {
                Self::invalid_request(message, Some(data))
            }
            McpError::Service(ServiceError::Operation { error: cause, .. }) => match cause.code {
                OperationErrorCode::InvalidRequest => Self::invalid_params(message, Some(data)),
                OperationErrorCode::Forbidden => Self::invalid_request(message, Some(data)),
                _ => Self::internal_error(message, Some(data)),
            },
            McpError::Service(ServiceError::Denied(_) | ServiceError::UnknownCompany { .. }) => {
                Self::invalid_request(message, Some(data))
            }
            McpError::Service(_) | McpError::NoCaller => Self::internal_error(message, Some(data)),
        }
    }
}
