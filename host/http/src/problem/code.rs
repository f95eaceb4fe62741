//! Every code of a problem, in one table: its name, its status, its description and what to do. A
//! client switches on codes.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::status::ProblemStatus;

macro_rules! codes {
    ($($code:ident = $name:literal, $status:ident, $description:literal, $advice:literal;)+) => {
        /// A code of a problem.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum ProblemCode {
            $(#[doc = $description] $code),+
        }

        impl ProblemCode {
            /// All codes, in the order of their statuses.
            pub const ALL: &'static [Self] = &[$(Self::$code),+];

            /// The name in a problem's `code` and, with dashes, at the end of its `type`.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$code => $name),+ }
            }

            /// The status that a problem of this code has.
            pub const fn status(self) -> ProblemStatus {
                match self { $(Self::$code => ProblemStatus::$status),+ }
            }

            /// The problem, in one sentence.
            pub const fn description(self) -> &'static str {
                match self { $(Self::$code => $description),+ }
            }

            /// The next step for a person.
            pub const fn advice(self) -> &'static str {
                match self { $(Self::$code => $advice),+ }
            }
        }
    };
}

codes! {
    InvalidRequest = "invalid_request", BadRequest,
        "A field, parameter or header is not valid.",
        "See `field` and `detail`.";
    UnreadableBody = "unreadable_body", BadRequest, "The body ended early or could not be read.",
    "Send it again.";
    Unauthenticated = "unauthenticated", Unauthorized,
        "The token is missing or not accepted.",
        "Send a valid token as `authorization: Bearer …`.";
    BudgetExceeded = "budget_exceeded", PaymentRequired,
        "A budget is used up.",
        "Wait until its period ends, or raise its limit.";
    Forbidden = "forbidden", Forbidden,
        "The token does not allow this, whether or not the thing exists.",
        "Ask an administrator for a token that does.";
    ForgedForm = "forged_form", Forbidden,
        "A form of the explorer belongs to another session or came from another site.",
        "Reload the page and send the form from there.";
    OriginNotAllowed = "origin_not_allowed", Forbidden,
        "A page of another site sent the request.",
        "Send it from a program, or from a page of an origin that the host allows.";
    NoRoute = "no_route", NotFound, "The address does not exist.", "Look it up in this document.";
    NotFound = "not_found", NotFound,
        "The provider has no such record in this scope.",
        "Look for it with `list` or `query`.";
    UnknownCompany = "unknown_company", NotFound,
        "The host does not have this company.",
        "See the list of companies, or make it first.";
    NoBinding = "no_binding", NotFound,
        "No binding answers for this company, agent or key.",
        "Create one, or name another.";
    NoProvider = "no_provider", NotFound, "No provider with this key is loaded.",
    "See the list of plugins.";
    NoVersion = "no_version", NotFound,
        "The binding allows no build of the provider that is loaded.",
        "Widen its version range, or put a build that it allows into the plugins directory.";
    NoOperation = "no_operation", NotFound,
        "No operation has this id.",
        "It may be older than the retention of operations.";
    NoSecret = "no_secret", NotFound, "No secret has this name.", "See the list of secrets.";
    NoToken = "no_token", NotFound, "No token has this id.", "See the list of tokens.";
    NoHost = "no_host", NotFound, "No host that runs has this id.", "See the list of hosts.";
    NoDelivery = "no_delivery", NotFound, "No delivery has this id.", "See the list of deliveries.";
    NoJob = "no_job", NotFound, "No job has this id.", "See the list of jobs.";
    NoReview = "no_review", NotFound, "No item of the review queue has this id.",
    "See the list of reviews.";
    NoBudget = "no_budget", NotFound, "This budget does not exist.", "See the list of budgets.";
    NoTombstone = "no_tombstone", NotFound, "This company was not erased on this host.",
    "Nothing needs to be done.";
    MethodNotAllowed = "method_not_allowed", MethodNotAllowed,
        "The address does not accept this method.",
        "The header `allow` names the methods that it accepts.";
    NotAcceptable = "not_acceptable", NotAcceptable,
        "No answer has a type that the request accepts.",
        "`detail` names the types to accept.";
    BindingDisabled = "binding_disabled", Conflict, "The binding is disabled.",
    "Enable it, or use another.";
    ReviewRequired = "review_required", Conflict,
        "A person must approve it first.",
        "Decide about it in the review queue.";
    Outdated = "outdated", Conflict,
        "Its source or scope was forgotten later, or something newer took its place.",
        "Nothing needs to be done.";
    BindingExists = "binding_exists", Conflict,
        "A binding of this company has this key already.",
        "Choose another key, or change that binding.";
    Conflict = "conflict", Conflict,
        "Somebody else changed the same thing at the same time.",
        "Read it again and repeat the change.";
    TokenRevoked = "token_revoked", Conflict, "The token is revoked.", "Create another one.";
    DeliveryStatus = "delivery_status", Conflict,
        "The delivery's status does not allow this.",
        "See its status.";
    JobStatus = "job_status", Conflict, "The job's status does not allow this.", "See its status.";
    AlreadyDecided = "already_decided", Conflict, "It was decided otherwise already.",
    "Nothing needs to be done.";
    NotForgotten = "not_forgotten", Conflict,
        "A provider has not confirmed that it has forgotten everything of the company.",
        "Send it again when the provider answers, or name its binding in `abandon`.";
    IdempotencyKeyReused = "idempotency_key_reused", Conflict,
        "The idempotency key was used for another request.",
        "Make a new key for each request.";
    IdempotencyUnknown = "idempotency_unknown", Conflict,
        "The host ended during the request with this key, so its effect is unknown.",
        "Look for its effect. If that is missing, send the request again with a new key.";
    CompanyErased = "company_erased", Gone, "The company was erased.", "Nothing can be done in it.";
    StaleRevision = "stale_revision", PreconditionFailed,
        "The binding has another revision than `if-match` names.",
        "Read it again and repeat the change.";
    BodyTooLarge = "body_too_large", ContentTooLarge, "The body is larger than 8 MiB.",
    "Send it in parts.";
    UnsupportedMediaType = "unsupported_media_type", UnsupportedMediaType,
        "The body has another media type than the route accepts.",
        "`detail` names the `content-type` to send.";
    InvalidConfig = "invalid_config", UnprocessableContent,
        "The provider does not accept its configuration.",
        "See `errors`.";
    Unsupported = "unsupported", UnprocessableContent,
        "The provider does not support this.",
        "Use a binding whose provider does.";
    RateLimited = "rate_limited", TooManyRequests,
        "The limit on calls per second is reached.",
        "Wait as long as `retry-after` says.";
    TooManyStreams = "too_many_streams", TooManyRequests,
        "The token follows as many streams of events as it may.",
        "End one of them first.";
    Host = "host", InternalServerError, "The host itself failed.",
    "See its log, and run `memhost doctor`.";
    Unauthorized = "unauthorized", BadGateway,
        "The system behind the provider refused the provider's credentials.",
        "Set the secret that it uses again.";
    Internal = "internal", BadGateway,
        "The provider failed.",
        "See the operation's log, and report it to the provider's author.";
    ProviderFailed = "provider_failed", BadGateway, "The provider failed.",
    "Report it to the provider's author.";
    Trapped = "trapped", BadGateway,
        "The provider crashed.",
        "See the operation's log, and report it to the provider's author.";
    LimitExceeded = "limit_exceeded", BadGateway,
        "The provider used more than its limits allow.",
        "Raise the limit that `detail` names, or ask for less.";
    BadAnswer = "bad_answer", BadGateway,
        "The provider's answer breaks the contract.",
        "Report it to the provider's author.";
    Unavailable = "unavailable", ServiceUnavailable,
        "The provider cannot answer now.",
        "Wait as long as `retry-after` says.";
    Busy = "busy", ServiceUnavailable,
        "Too many calls of this binding are in progress or queued.",
        "Wait as long as `retry-after` says.";
    CircuitOpen = "circuit_open", ServiceUnavailable,
        "The provider failed several times in a row, or its credentials were refused, and it gets \
         no calls for a while.",
        "Wait as long as `retry-after` says, or reset the binding.";
    ProviderMissing = "provider_missing", ServiceUnavailable,
        "The binding's provider is not loaded.",
        "Put it into the plugins directory.";
    DiskFull = "disk_full", ServiceUnavailable,
        "The host's disk is almost full: it refuses new data first, then everything but deletions.",
        "Free disk space, or forget or erase something. `detail` says how much is free.";
    StoreUnavailable = "store_unavailable", ServiceUnavailable,
        "The store of the host cannot be reached now, or another host serves the company by now.",
        "Wait as long as `retry-after` says.";
    Starting = "starting", ServiceUnavailable, "The host is still starting.",
    "Wait as long as `retry-after` says; `detail` says what it does.";
    ProviderLoading = "provider_loading", ServiceUnavailable,
        "The host is still compiling plugins, and the binding's provider may be among them.",
        "Wait as long as `retry-after` says.";
    Interrupted = "interrupted", ServiceUnavailable, "The host ended during the call.",
    "Send it again.";
    Importing = "importing", ServiceUnavailable, "The company is being imported or restored.",
    "Wait until that ends.";
    TooManyConnections = "too_many_connections", ServiceUnavailable,
        "The host has as many connections as it may have.",
        "Wait as long as `retry-after` says.";
    TooManyBodies = "too_many_bodies", ServiceUnavailable,
        "The bodies of all requests in progress, or the answers that are being sent, have as many \
         bytes as they may have.",
        "Wait as long as `retry-after` says.";
    TimedOut = "timed_out", GatewayTimeout,
        "The provider did not answer in time.",
        "Ask for less, or raise `callTimeoutMs`.";
    QuotaExceeded = "quota_exceeded", InsufficientStorage,
        "A limit on stored data is reached: of the binding, or of what the host keeps of the \
         company.",
        "Forget something, or raise the quota that `detail` names.";
}

impl Serialize for ProblemCode {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl<'de> Deserialize<'de> for ProblemCode {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = Cow::<'de, str>::deserialize(deserializer)?;
        let known = Self::ALL.iter().copied().find(|code| code.name() == name);
        known.ok_or_else(|| D::Error::custom(format!("`{name}` is no code of a problem")))
    }
}

impl JsonSchema for ProblemCode {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "ProblemCode".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let names: Vec<&str> = Self::ALL.iter().map(|code| code.name()).collect();
        json_schema!({ "type": "string", "enum": names })
    }
}
