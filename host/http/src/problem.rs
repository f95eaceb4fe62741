//! Errors as problem details (RFC 9457). The one place that knows which error has which code; the
//! code has the status.

use std::borrow::Cow;

use axum::extract::rejection::BytesRejection;
use axum::http::header::{CONTENT_TYPE, RETRY_AFTER};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::rate::set_rate;
use memhost_core::{
    AccessError, BackgroundError, BillingError, BindingError, RateState, ReviewError, ServiceError,
};
use memhost_types::{OperationErrorCode, OperationId, STORE_UNAVAILABLE};

mod code;
mod status;

/// The largest body, in bytes. A record of 1 MiB whose every byte is escaped in JSON fits.
pub const MAX_BODY_BYTES: usize = 8 << 20;

pub use code::ProblemCode;
pub use status::ProblemStatus;

/// How long to wait for room on a full disk, in milliseconds: somebody has to make it.
const DISK_FULL_MS: u64 = 10_000;

/// A problem (RFC 9457).
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Problem {
    /// A stable URI for the `code`. The page `/reference#problems` of the host describes each code.
    #[schemars(extend("format" = "uri"))]
    r#type: String,
    /// The status in words.
    title: Cow<'static, str>,
    /// The answer's status.
    #[schemars(range(min = 400, max = 599))]
    status: u16,
    /// What happened, to which thing, and what to do next. For people; it may change.
    detail: String,
    /// The kind of problem, for programs. It is stable.
    code: ProblemCode,
    /// The request's field, parameter or header at fault, such as `records.0.text`.
    #[serde(skip_serializing_if = "Option::is_none")]
    field: Option<String>,
    /// The operation whose record has more.
    #[serde(skip_serializing_if = "Option::is_none")]
    operation_id: Option<OperationId>,
    /// Milliseconds until another try makes sense.
    #[serde(skip_serializing_if = "Option::is_none")]
    retry_after_ms: Option<u64>,
    /// The errors of the provider's configuration.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    errors: Vec<ConfigError>,
    /// How the rate of the binding stands that refused it.
    #[serde(skip)]
    rate: Option<RateState>,
}

/// One thing that is wrong with a configuration.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
struct ConfigError {
    /// Where, as a JSON pointer.
    pointer: String,
    /// The error, and the allowed values.
    message: String,
}

impl Problem {
    /// A problem of a code, which has the status, and what happened in words.
    pub fn new(code: ProblemCode, detail: impl Into<String>) -> Self {
        let status = code.status().http();
        Self {
            r#type: format!("https://memhost.dev/problems/{}", code.name().replace('_', "-")),
            title: status.canonical_reason().unwrap_or("Error").into(),
            status: status.as_u16(),
            detail: detail.into(),
            code,
            field: None,
            operation_id: None,
            retry_after_ms: None,
            errors: Vec::new(),
            rate: None,
        }
    }

    /// The same with how the rate of the binding stands, where that is the problem.
    pub(crate) fn with_rate(self, rate: impl FnOnce() -> Option<RateState>) -> Self {
        let rate = if self.code == ProblemCode::RateLimited { rate() } else { None };
        Self { rate, ..self }
    }

    /// No host can answer at the moment, and nothing was done.
    pub fn unavailable(detail: impl Into<String>) -> Self {
        let retry_after_ms = u64::try_from(STORE_UNAVAILABLE.as_millis()).ok();
        Self { retry_after_ms, ..Self::new(ProblemCode::StoreUnavailable, detail) }
    }

    /// The request has a field, parameter or header that is not accepted.
    pub fn invalid(detail: impl Into<String>) -> Self {
        Self::new(ProblemCode::InvalidRequest, detail)
    }

    /// The body could not be read: it is larger than the route accepts, or it ended early.
    pub fn unreadable(rejection: &BytesRejection) -> Self {
        if rejection.status() == StatusCode::PAYLOAD_TOO_LARGE {
            let detail =
                format!("the body is larger than {MAX_BODY_BYTES} bytes; send it in parts");
            return Self::new(ProblemCode::BodyTooLarge, detail);
        }
        Self::new(ProblemCode::UnreadableBody, rejection.body_text())
    }

    /// The status of the answer.
    pub fn status(&self) -> u16 {
        self.status
    }

    /// What happened, to which thing, and what to do next.
    pub fn detail(&self) -> &str {
        &self.detail
    }

    /// The kind of problem.
    pub fn code(&self) -> ProblemCode {
        self.code
    }

    /// The request's field, parameter or header at fault.
    pub fn field(&self) -> Option<&str> {
        self.field.as_deref()
    }

    /// The operation whose record has more.
    pub fn operation_id(&self) -> Option<OperationId> {
        self.operation_id
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
        let waits =
            matches!(status, StatusCode::SERVICE_UNAVAILABLE | StatusCode::TOO_MANY_REQUESTS);
        let retry = retry.or(waits.then_some(1));
        if let Some(seconds) = retry {
            headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
        }
        if let Some(rate) = self.rate {
            set_rate(headers, rate);
        }
        response
    }
}

macro_rules! codes_of_operations {
    ($($code:ident),+) => {
        impl From<OperationErrorCode> for ProblemCode {
            fn from(code: OperationErrorCode) -> Self {
                match code { $(OperationErrorCode::$code => Self::$code),+ }
            }
        }
    };
}

codes_of_operations! {
    InvalidRequest, NotFound, Unsupported, Unauthorized, RateLimited, Unavailable, QuotaExceeded,
    Internal, NoBinding,
    Forbidden, CompanyErased, Outdated, BudgetExceeded, ReviewRequired, BindingDisabled,
    ProviderMissing, ProviderLoading, Busy, CircuitOpen, TimedOut, Trapped,
    LimitExceeded, BadAnswer, Interrupted, DiskFull, StoreUnavailable, Host
}

/// The code of an error of the control plane.
fn code_of(error: &ServiceError) -> ProblemCode {
    use ProblemCode as Code;
    if error.is_disk_full() {
        return Code::DiskFull;
    }
    if error.is_company_full() {
        return Code::QuotaExceeded;
    }
    if error.is_erased() {
        return Code::CompanyErased;
    }
    if error.is_store_unavailable() {
        return Code::StoreUnavailable;
    }
    match error {
        ServiceError::Operation { error, .. } => error.code.into(),
        ServiceError::Field(_)
        | ServiceError::Access(AccessError::Field(_))
        | ServiceError::Billing(BillingError::Field(_)) => Code::InvalidRequest,
        ServiceError::Config { .. } => Code::InvalidConfig,
        ServiceError::NoProvider { .. } => Code::NoProvider,
        ServiceError::NoVersion { .. } => Code::NoVersion,
        ServiceError::ProviderLoading { .. } => Code::ProviderLoading,
        ServiceError::NoOperation { .. } => Code::NoOperation,
        ServiceError::NoSecret { .. } => Code::NoSecret,
        ServiceError::TooManyStreams { .. } => Code::TooManyStreams,
        ServiceError::UnknownCompany { .. } => Code::UnknownCompany,
        ServiceError::Erased { .. } => Code::CompanyErased,
        ServiceError::NotForgotten { .. } | ServiceError::CannotForget { .. } => Code::NotForgotten,
        ServiceError::NotExported { error, .. } => code_of(error),
        ServiceError::Importing { .. } => Code::Importing,
        ServiceError::Denied(_) | ServiceError::Access(AccessError::Beyond(_)) => Code::Forbidden,
        ServiceError::Call(_) => Code::ProviderFailed,
        ServiceError::Binding(binding) => match binding {
            BindingError::Stale { .. } => Code::StaleRevision,
            BindingError::Exists { .. } => Code::BindingExists,
            BindingError::Conflict { .. } | BindingError::Changed { .. } => Code::Conflict,
            BindingError::NotFound { .. } | BindingError::NoDefault { .. } => Code::NoBinding,
            BindingError::Store(_) => Code::Host,
        },
        ServiceError::Access(AccessError::NotFound { .. }) => Code::NoToken,
        ServiceError::Access(AccessError::Revoked { .. }) => Code::TokenRevoked,
        ServiceError::Work(BackgroundError::NoDelivery { .. }) => Code::NoDelivery,
        ServiceError::Work(BackgroundError::DeliveryStatus { .. }) => Code::DeliveryStatus,
        ServiceError::Work(BackgroundError::NoJob { .. }) => Code::NoJob,
        ServiceError::Work(BackgroundError::JobStatus { .. }) => Code::JobStatus,
        ServiceError::Review(ReviewError::NotFound { .. }) => Code::NoReview,
        ServiceError::Review(ReviewError::Decided { .. }) => Code::AlreadyDecided,
        ServiceError::Billing(BillingError::NoBudget { .. }) => Code::NoBudget,
        ServiceError::Host(_)
        | ServiceError::DiskFull(_)
        | ServiceError::CompanyFull(_)
        | ServiceError::Vault(_)
        | ServiceError::Unrecorded { .. }
        | ServiceError::Audit(_)
        | ServiceError::Store(_)
        | ServiceError::Access(AccessError::NoRandomness(_) | AccessError::Store(_))
        | ServiceError::Work(BackgroundError::Store(_))
        | ServiceError::Review(ReviewError::Store(_))
        | ServiceError::Billing(BillingError::Store(_)) => Code::Host,
    }
}

impl From<ServiceError> for Problem {
    fn from(error: ServiceError) -> Self {
        let mut problem = Self::new(code_of(&error), error.to_string());
        if problem.code == ProblemCode::DiskFull {
            problem.retry_after_ms = Some(DISK_FULL_MS);
        }
        if problem.code == ProblemCode::StoreUnavailable {
            problem.retry_after_ms = u64::try_from(STORE_UNAVAILABLE.as_millis()).ok();
        }
        match error {
            ServiceError::Operation { operation_id, error, .. } => Self {
                field: error.field,
                operation_id: Some(operation_id),
                retry_after_ms: error.retry_after_ms.or(problem.retry_after_ms),
                ..problem
            },
            ServiceError::Field(field)
            | ServiceError::Access(AccessError::Field(field))
            | ServiceError::Billing(BillingError::Field(field)) => problem.at(field.field),
            ServiceError::Config { errors } => {
                let errors = errors
                    .into_iter()
                    .map(|(pointer, message)| ConfigError { pointer, message })
                    .collect();
                Self { errors, ..problem.at("config") }
            }
            ServiceError::NoProvider { .. } | ServiceError::ProviderLoading { .. } => {
                problem.at("providerKey")
            }
            ServiceError::NoVersion { .. } => problem.at("version"),
            ServiceError::NotExported { error, .. } => match *error {
                ServiceError::Operation { operation_id, error, .. } => Self {
                    operation_id: Some(operation_id),
                    retry_after_ms: error.retry_after_ms,
                    ..problem
                },
                _ => problem,
            },
            ServiceError::Denied(denied) => {
                Self { field: denied.field.map(str::to_owned), ..problem }
            }
            ServiceError::Unrecorded { operation_id, .. } => {
                Self { operation_id: Some(operation_id), ..problem }
            }
            _ => problem,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_operations_code_has_the_same_name_in_a_problem() {
        for code in OperationErrorCode::ALL {
            assert_eq!(ProblemCode::from(*code).name(), code.as_str());
        }
        assert_eq!(
            ProblemCode::from(OperationErrorCode::InvalidRequest).status(),
            ProblemStatus::BadRequest
        );
        assert_eq!(
            ProblemCode::from(OperationErrorCode::TimedOut).status(),
            ProblemStatus::GatewayTimeout
        );
        assert_eq!(
            ProblemCode::from(OperationErrorCode::Trapped).status(),
            ProblemStatus::BadGateway
        );
    }

    #[test]
    fn names_are_unique_and_statuses_are_errors() {
        let mut names: Vec<&str> = ProblemCode::ALL.iter().map(|code| code.name()).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), ProblemCode::ALL.len());
        for status in ProblemStatus::ALL {
            let http = status.http();
            assert!(http.is_client_error() || http.is_server_error(), "{status:?}");
            assert!(
                ProblemCode::ALL.iter().any(|code| code.status() == *status),
                "{status:?} has no code"
            );
        }
    }

    #[test]
    fn retry_after_is_in_whole_seconds() {
        let problem = Problem {
            retry_after_ms: Some(1_200),
            ..Problem::new(ProblemCode::RateLimited, "slow down")
        };
        let response = problem.into_response();
        assert_eq!(response.headers()[RETRY_AFTER], "2");
        assert_eq!(response.headers()[CONTENT_TYPE], "application/problem+json");
        for code in [ProblemCode::RateLimited, ProblemCode::Busy] {
            let response = Problem::new(code, "the wait is unknown").into_response();
            assert_eq!(response.headers()[RETRY_AFTER], "1", "{code:?}");
        }
    }
}
