//! The statuses that problems have, each with its name and its description in the OpenAPI document.

use axum::http::StatusCode;

macro_rules! statuses {
    ($($name:ident = $status:ident, $description:literal;)+) => {
        /// A status of a problem.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub enum ProblemStatus {
            $(#[doc = $description] $name),+
        }

        impl ProblemStatus {
            /// All statuses, in the order of their numbers.
            pub const ALL: &'static [Self] = &[$(Self::$name),+];

            /// The status of the HTTP response.
            pub const fn http(self) -> StatusCode {
                match self { $(Self::$name => StatusCode::$status),+ }
            }

            /// The key below `components.responses` of the OpenAPI document.
            pub const fn component(self) -> &'static str {
                match self { $(Self::$name => stringify!($name)),+ }
            }

            /// The meaning of the status, in one sentence.
            pub const fn description(self) -> &'static str {
                match self { $(Self::$name => $description),+ }
            }
        }
    };
}

statuses! {
    BadRequest = BAD_REQUEST, "The request is not valid.";
    Unauthorized = UNAUTHORIZED, "The token is missing or not accepted.";
    PaymentRequired = PAYMENT_REQUIRED, "A budget is used up.";
    Forbidden = FORBIDDEN, "The token does not allow this.";
    NotFound = NOT_FOUND, "The thing does not exist, or nothing can answer.";
    MethodNotAllowed = METHOD_NOT_ALLOWED, "The address does not accept this method.";
    NotAcceptable = NOT_ACCEPTABLE, "No answer has a type that the request accepts.";
    Conflict = CONFLICT, "The present state does not allow this, or the idempotency key was used.";
    Gone = GONE, "The company was erased.";
    PreconditionFailed = PRECONDITION_FAILED, "Somebody changed it meanwhile.";
    ContentTooLarge = PAYLOAD_TOO_LARGE, "The body is larger than 8 MiB.";
    UnsupportedMediaType = UNSUPPORTED_MEDIA_TYPE,
    "The body has a media type that the route does not accept.";
    UnprocessableContent = UNPROCESSABLE_ENTITY, "The provider does not support or accept this.";
    TooManyRequests = TOO_MANY_REQUESTS, "A limit on calls per second or on streams is reached.";
    InternalServerError = INTERNAL_SERVER_ERROR, "The host itself failed.";
    BadGateway = BAD_GATEWAY, "The provider failed.";
    ServiceUnavailable = SERVICE_UNAVAILABLE, "It cannot be done now. Try again later.";
    GatewayTimeout = GATEWAY_TIMEOUT, "The provider did not answer in time.";
    InsufficientStorage = INSUFFICIENT_STORAGE, "A limit on stored data is reached.";
}
