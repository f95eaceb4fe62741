//! Errors as problem details (RFC 9457). The one place that knows which error is which status.

use axum::http::header::{CONTENT_TYPE, RETRY_AFTER};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use schemars::{JsonSchema, Schema};
use serde::Serialize;

use memhost_core::ServiceError;
use memhost_core::access::AccessError;
use memhost_core::bindings::BindingError;
use memhost_core::money::LedgerError;
use memhost_core::review::ReviewError;
use memhost_core::work::hooks::HookError;
use memhost_core::work::jobs::JobError;
use memhost_types::{OperationErrorCode, OperationId};

mod codes;

pub use codes::{CODES, Code};

/// A problem. `type` is an identifier that stays the same for a kind of problem.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Problem {
    /// A URI that stays the same for a kind of problem and tells the same as `code`. The host's page `/reference#problems`
    /// says of each what it means and what to do.
    #[schemars(extend("format" = "uri"))]
    r#type: String,
    /// The status in words.
    title: &'static str,
    /// The answer's status.
    #[schemars(range(min = 400, max = 599))]
    status: u16,
    /// What happened, to which thing, and what to do next. For people; it may change.
    detail: String,
    /// What a client switches on.
    #[schemars(transform = known_codes)]
    code: &'static str,
    /// The request's field, parameter or header at fault, such as `records.0.text`.
    #[serde(skip_serializing_if = "Option::is_none")]
    field: Option<String>,
    /// The operation whose record has more.
    #[serde(skip_serializing_if = "Option::is_none")]
    operation_id: Option<OperationId>,
    /// Milliseconds until another try makes sense.
    #[serde(skip_serializing_if = "Option::is_none")]
    retry_after_ms: Option<u64>,
    /// What a provider does not accept in its configuration.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    errors: Vec<Complaint>,
}

/// One thing that is wrong with a configuration.
#[derive(Debug, Clone, Serialize, JsonSchema)]
struct Complaint {
    /// Where, as a JSON pointer.
    pointer: String,
    /// What, and what is allowed.
    message: String,
}

fn known_codes(schema: &mut Schema) {
    let names: Vec<&str> = CODES.iter().map(|code| code.name).collect();
    schema.ensure_object().insert("enum".to_owned(), names.into());
}

impl Problem {
    /// A problem with a status and a code.
    pub fn new(status: StatusCode, code: &'static str, detail: impl Into<String>) -> Self {
        Self {
            r#type: format!("https://memhost.dev/problems/{}", code.replace('_', "-")),
            title: status.canonical_reason().unwrap_or("Error"),
            status: status.as_u16(),
            detail: detail.into(),
            code,
            field: None,
            operation_id: None,
            retry_after_ms: None,
            errors: Vec::new(),
        }
    }

    /// The status of the answer.
    pub fn status(&self) -> u16 {
        self.status
    }

    /// What happened, to which thing, and what to do next.
    pub fn detail(&self) -> &str {
        &self.detail
    }

    /// The request's field at fault.
    pub fn at(mut self, field: impl Into<String>) -> Self {
        self.field = Some(field.into());
        self
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let body = serde_json::to_vec(&self).unwrap_or_default();
        let mut response = (status, body).into_response();
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        // Whole seconds, never less than what was asked for.
        let retry = self.retry_after_ms.map(|ms| ms.div_ceil(1_000));
        let waits = matches!(status, StatusCode::SERVICE_UNAVAILABLE | StatusCode::TOO_MANY_REQUESTS);
        let retry = retry.or(waits.then_some(1));
        if let Some(seconds) = retry {
            headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
        }
        response
    }
}

fn status(code: OperationErrorCode) -> StatusCode {
    use OperationErrorCode as Code;
    match code {
        Code::InvalidRequest => StatusCode::BAD_REQUEST,
        Code::NotFound | Code::NoBinding => StatusCode::NOT_FOUND,
        Code::BindingDisabled | Code::ReviewRequired => StatusCode::CONFLICT,
        Code::Forbidden => StatusCode::FORBIDDEN,
        Code::CompanyErased => StatusCode::GONE,
        Code::BudgetExceeded => StatusCode::PAYMENT_REQUIRED,
        Code::Unsupported => StatusCode::UNPROCESSABLE_ENTITY,
        Code::RateLimited => StatusCode::TOO_MANY_REQUESTS,
        Code::QuotaExceeded => StatusCode::INSUFFICIENT_STORAGE,
        Code::Unavailable | Code::Busy | Code::ProviderMissing | Code::Interrupted => StatusCode::SERVICE_UNAVAILABLE,
        Code::TimedOut => StatusCode::GATEWAY_TIMEOUT,
        // Not the caller's credentials: the provider's, at the system behind it.
        Code::Unauthorized | Code::Internal | Code::Trapped | Code::LimitExceeded | Code::BadAnswer => {
            StatusCode::BAD_GATEWAY
        }
        Code::Host => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

impl From<ServiceError> for Problem {
    fn from(error: ServiceError) -> Self {
        let detail = error.to_string();
        match error {
            ServiceError::Operation { operation_id, error, .. } => Self {
                field: error.field,
                operation_id: Some(operation_id),
                retry_after_ms: error.retry_after_ms,
                ..Self::new(status(error.code), error.code.as_str(), detail)
            },
            ServiceError::Field(field) => Self::new(StatusCode::BAD_REQUEST, "invalid_request", detail).at(field.field),
            ServiceError::Config { errors } => Self {
                errors: errors.into_iter().map(|(pointer, message)| Complaint { pointer, message }).collect(),
                ..Self::new(StatusCode::UNPROCESSABLE_ENTITY, "invalid_config", detail)
            },
            ServiceError::NoProvider { .. } => Self::new(StatusCode::NOT_FOUND, "no_provider", detail),
            ServiceError::NoVersion { .. } => Self::new(StatusCode::NOT_FOUND, "no_version", detail),
            ServiceError::Host(_) => Self::new(StatusCode::INTERNAL_SERVER_ERROR, "host", detail),
            ServiceError::NoOperation { .. } => Self::new(StatusCode::NOT_FOUND, "no_operation", detail),
            ServiceError::Erased { .. } => Self::new(StatusCode::GONE, "company_erased", detail),
            ServiceError::Importing { .. } => Self::new(StatusCode::SERVICE_UNAVAILABLE, "importing", detail),
            ServiceError::NoSecret { .. } => Self::new(StatusCode::NOT_FOUND, "no_secret", detail),
            ServiceError::Vault(_) => Self::new(StatusCode::INTERNAL_SERVER_ERROR, "host", detail),
            ServiceError::Binding(binding) => match binding {
                BindingError::Stale { .. } => Self::new(StatusCode::PRECONDITION_FAILED, "stale_revision", detail),
                BindingError::Exists { .. } => Self::new(StatusCode::CONFLICT, "binding_exists", detail),
                BindingError::Conflict { .. } | BindingError::Changed { .. } => {
                    Self::new(StatusCode::CONFLICT, "conflict", detail)
                }
                BindingError::NotFound { .. } | BindingError::NoDefault { .. } => {
                    Self::new(StatusCode::NOT_FOUND, "no_binding", detail)
                }
                BindingError::Store(_) => Self::new(StatusCode::INTERNAL_SERVER_ERROR, "host", detail),
            },
            ServiceError::Denied(denied) => {
                let problem = Self::new(StatusCode::FORBIDDEN, "forbidden", detail);
                Self { field: denied.field.map(str::to_owned), ..problem }
            }
            ServiceError::Access(access) => match access {
                AccessError::Field(field) => {
                    Self::new(StatusCode::BAD_REQUEST, "invalid_request", detail).at(field.field)
                }
                AccessError::NotFound { .. } => Self::new(StatusCode::NOT_FOUND, "no_token", detail),
                AccessError::Revoked { .. } => Self::new(StatusCode::CONFLICT, "token_revoked", detail),
                AccessError::NoRandomness(_) | AccessError::Store(_) => {
                    Self::new(StatusCode::INTERNAL_SERVER_ERROR, "host", detail)
                }
            },
            ServiceError::Hook(hook) => match hook {
                HookError::NotFound { .. } => Self::new(StatusCode::NOT_FOUND, "no_delivery", detail),
                HookError::Status { .. } => Self::new(StatusCode::CONFLICT, "delivery_status", detail),
                HookError::Store(_) => Self::new(StatusCode::INTERNAL_SERVER_ERROR, "host", detail),
            },
            ServiceError::Job(job) => match job {
                JobError::NotFound { .. } => Self::new(StatusCode::NOT_FOUND, "no_job", detail),
                JobError::Status { .. } => Self::new(StatusCode::CONFLICT, "job_status", detail),
                JobError::Store(_) => Self::new(StatusCode::INTERNAL_SERVER_ERROR, "host", detail),
            },
            ServiceError::Review(review) => match review {
                ReviewError::NotFound { .. } => Self::new(StatusCode::NOT_FOUND, "no_review", detail),
                ReviewError::Decided { .. } => Self::new(StatusCode::CONFLICT, "already_decided", detail),
                ReviewError::Store(_) => Self::new(StatusCode::INTERNAL_SERVER_ERROR, "host", detail),
            },
            ServiceError::Ledger(ledger) => match ledger {
                LedgerError::Field(field) => {
                    Self::new(StatusCode::BAD_REQUEST, "invalid_request", detail).at(field.field)
                }
                LedgerError::NoBudget => Self::new(StatusCode::NOT_FOUND, "no_budget", detail),
                LedgerError::Store(_) => Self::new(StatusCode::INTERNAL_SERVER_ERROR, "host", detail),
            },
            ServiceError::Call(_) => Self::new(StatusCode::BAD_GATEWAY, "provider_failed", detail),
            ServiceError::Unrecorded { operation_id, .. } => Self {
                operation_id: Some(operation_id),
                ..Self::new(StatusCode::INTERNAL_SERVER_ERROR, "host", detail)
            },
            ServiceError::Audit(_) | ServiceError::Store(_) => {
                Self::new(StatusCode::INTERNAL_SERVER_ERROR, "host", detail)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_has_a_status_and_errors_are_errors() {
        for code in OperationErrorCode::ALL {
            let status = status(*code);
            assert!(status.is_client_error() || status.is_server_error(), "{code}: {status}");
        }
        assert_eq!(status(OperationErrorCode::InvalidRequest), StatusCode::BAD_REQUEST);
        assert_eq!(status(OperationErrorCode::TimedOut), StatusCode::GATEWAY_TIMEOUT);
        assert_eq!(status(OperationErrorCode::Trapped), StatusCode::BAD_GATEWAY);
    }

    #[test]
    fn every_code_of_an_operation_is_listed_with_its_status() {
        for code in OperationErrorCode::ALL {
            let known = CODES.iter().find(|known| known.name == code.as_str());
            assert_eq!(known.map(|known| known.status), Some(status(*code).as_u16()), "{code}");
        }
        let mut names: Vec<&str> = CODES.iter().map(|code| code.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), CODES.len(), "a code is listed once");
    }

    #[test]
    fn waiting_is_told_in_whole_seconds() {
        let problem = Problem {
            retry_after_ms: Some(1_200),
            ..Problem::new(StatusCode::TOO_MANY_REQUESTS, "rate_limited", "slow down")
        };
        let response = problem.into_response();
        assert_eq!(response.headers()[RETRY_AFTER], "2");
        assert_eq!(response.headers()[CONTENT_TYPE], "application/problem+json");
        for status in [StatusCode::TOO_MANY_REQUESTS, StatusCode::SERVICE_UNAVAILABLE] {
            let response = Problem::new(status, "busy", "nobody knows how long").into_response();
            assert_eq!(response.headers()[RETRY_AFTER], "1", "{status}");
        }
    }
}
