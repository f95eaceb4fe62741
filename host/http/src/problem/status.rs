//! The statuses that problems have, each with its name in the OpenAPI document and what it means there.

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

            /// What the status means, in one sentence.
            pub const fn description(self) -> &'static str {
                match self { $(Self::$name => $description),+ }
            }
        }
    };
}

statuses! {
    BadRequest = BAD_REQUEST, "Something in the request will not do.";
    Unauthorized = UNAUTHORIZED, "There is no token, or it is not accepted.";
    PaymentRequired = PAYMENT_REQUIRED, "A budget is used up.";
    Forbidden = FORBIDDEN, "The token does not allow this.";
    NotFound = NOT_FOUND, "There is no such thing, or nothing that could answer.";
    MethodNotAllowed = METHOD_NOT_ALLOWED, "The address does not take this method.";
    NotAcceptable = NOT_ACCEPTABLE, "No answer is of a type that the request accepts.";
    Conflict = CONFLICT, "It cannot be done as things are, or the idempotency key says something else.";
    Gone = GONE, "The company was erased.";
    PreconditionFailed = PRECONDITION_FAILED, "Somebody changed it meanwhile.";
    ContentTooLarge = PAYLOAD_TOO_LARGE, "The body is larger than 8 MiB.";
    UnsupportedMediaType = UNSUPPORTED_MEDIA_TYPE, "The body is not of a type that is read.";
    UnprocessableContent = UNPROCESSABLE_ENTITY, "The provider does not do that, or does not accept it.";
    TooManyRequests = TOO_MANY_REQUESTS, "Too fast.";
    InternalServerError = INTERNAL_SERVER_ERROR, "The host itself failed.";
    BadGateway = BAD_GATEWAY, "The provider failed.";
    ServiceUnavailable = SERVICE_UNAVAILABLE, "Not now.";
    GatewayTimeout = GATEWAY_TIMEOUT, "The provider did not answer in time.";
    InsufficientStorage = INSUFFICIENT_STORAGE, "A limit on stored things is reached.";
}
