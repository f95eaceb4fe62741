//! Every code of a problem, in one table: its name, its status, what it means and what to do. A client switches on codes.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Serialize, Serializer};

use super::status::ProblemStatus;

macro_rules! codes {
    ($($code:ident = $name:literal, $status:ident, $meaning:literal, $advice:literal;)+) => {
        /// A code of a problem.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum ProblemCode {
            $(#[doc = $meaning] $code),+
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

            /// What happened.
            pub const fn meaning(self) -> &'static str {
                match self { $(Self::$code => $meaning),+ }
            }

            /// What to do about it.
            pub const fn advice(self) -> &'static str {
                match self { $(Self::$code => $advice),+ }
            }
        }
    };
}

codes! {
    InvalidRequest = "invalid_request", BadRequest,
        "A field, parameter or header will not do.",
        "`field` and `detail` say which and what is allowed.";
    UnreadableBody = "unreadable_body", BadRequest, "The body ended early or could not be read.", "Send it again.";
    Unauthenticated = "unauthenticated", Unauthorized,
        "There is no token, or it is not accepted.",
        "Send a token that is valid as `authorization: Bearer …`.";
    BudgetExceeded = "budget_exceeded", PaymentRequired,
        "A budget is used up.",
        "Wait until its period ends, or have its limit raised.";
    Forbidden = "forbidden", Forbidden,
        "The token does not allow this, whether or not the thing exists.",
        "Ask whoever gave you the token for one that does.";
    ForgedForm = "forged_form", Forbidden,
        "A form of the explorer is not of this session, or came from another site.",
        "Open the page again and send the form from there.";
    OriginNotAllowed = "origin_not_allowed", Forbidden,
        "A page of another site asked.",
        "Ask from a program, or from a page of an origin that the host allows.";
    NoRoute = "no_route", NotFound, "There is nothing at this address.", "Look the address up in this document.";
    NotFound = "not_found", NotFound,
        "The provider has no such record in this scope.",
        "Look at what `list` or `query` answers.";
    NoBinding = "no_binding", NotFound,
        "No binding answers for this company, agent or key.",
        "Make one, or name another.";
    NoProvider = "no_provider", NotFound, "No provider of this key is loaded.", "Look at the list of plugins.";
    NoVersion = "no_version", NotFound,
        "No build of the provider is one that the binding allows.",
        "Widen its range, or put such a build into the plugins directory.";
    NoOperation = "no_operation", NotFound, "There is no operation of this id.", "It may be older than what is kept.";
    NoSecret = "no_secret", NotFound, "There is no secret of this name.", "Look at the list of secrets.";
    NoToken = "no_token", NotFound, "There is no token of this id.", "Look at the list of tokens.";
    NoDelivery = "no_delivery", NotFound, "There is no delivery of this id.", "Look at the list of deliveries.";
    NoJob = "no_job", NotFound, "There is no job of this id.", "Look at the list of jobs.";
    NoReview = "no_review", NotFound, "Nothing of this id waits for a person.", "Look at the list of reviews.";
    NoBudget = "no_budget", NotFound, "There is no such budget.", "Look at the list of budgets.";
    NoTombstone = "no_tombstone", NotFound, "This company was not erased here.", "Nothing is to be done.";
    MethodNotAllowed = "method_not_allowed", MethodNotAllowed,
        "The address does not take this method.",
        "`allow` names those that it takes.";
    NotAcceptable = "not_acceptable", NotAcceptable,
        "No answer is of a type that the request accepts.",
        "`detail` names the types to accept.";
    BindingDisabled = "binding_disabled", Conflict, "The binding takes no operations.", "Enable it, or use another.";
    ReviewRequired = "review_required", Conflict,
        "A person must look at it first.",
        "Have somebody decide about it in the review queue.";
    BindingExists = "binding_exists", Conflict,
        "The key is taken in this company.",
        "Choose another key, or change that binding.";
    Conflict = "conflict", Conflict,
        "Somebody else changed the same thing just now.",
        "Look at it again and repeat the change.";
    TokenRevoked = "token_revoked", Conflict, "The token was taken back.", "Make another one.";
    DeliveryStatus = "delivery_status", Conflict,
        "The delivery is not where this could be done with it.",
        "Look at its status.";
    JobStatus = "job_status", Conflict, "The job is not where this could be done with it.", "Look at its status.";
    AlreadyDecided = "already_decided", Conflict, "Somebody has decided about it already.", "Nothing is to be done.";
    IdempotencyKeyReused = "idempotency_key_reused", Conflict,
        "The idempotency key was used for another request.",
        "Make a new key for each request.";
    IdempotencyUnknown = "idempotency_unknown", Conflict,
        "Whether the request of this key was done is not known: the host ended while it was at work.",
        "Look for what it should have done; send it under a new key if that is missing.";
    CompanyErased = "company_erased", Gone, "The company was erased.", "Nothing can be done in it.";
    StaleRevision = "stale_revision", PreconditionFailed,
        "The binding has another revision than the one in `if-match`.",
        "Look at it again and repeat the change.";
    BodyTooLarge = "body_too_large", ContentTooLarge, "The body is larger than 8 MiB.", "Send it in parts.";
    UnsupportedMediaType = "unsupported_media_type", UnsupportedMediaType,
        "The body is not JSON.",
        "Send JSON with `content-type: application/json`.";
    InvalidConfig = "invalid_config", UnprocessableContent,
        "The provider does not accept its configuration.",
        "`errors` says where and why.";
    Unsupported = "unsupported", UnprocessableContent,
        "The provider does not do that.",
        "Use a binding whose provider does.";
    RateLimited = "rate_limited", TooManyRequests, "Too many calls.", "Wait as long as `retry-after` says.";
    Host = "host", InternalServerError, "The host itself failed.", "Look at its log, and run `memhost doctor`.";
    Unauthorized = "unauthorized", BadGateway,
        "The system behind the provider refused the provider's credentials.",
        "Set the secret anew that it uses.";
    Internal = "internal", BadGateway,
        "The provider failed.",
        "Look at the operation's log; tell whoever made the provider.";
    ProviderFailed = "provider_failed", BadGateway, "The provider failed.", "Tell whoever made the provider.";
    Trapped = "trapped", BadGateway,
        "The provider crashed.",
        "Look at the operation's log; tell whoever made the provider.";
    LimitExceeded = "limit_exceeded", BadGateway,
        "The provider used more than its limits allow.",
        "Raise the limit that `detail` names, or ask for less.";
    BadAnswer = "bad_answer", BadGateway,
        "The provider's answer breaks the contract.",
        "Tell whoever made the provider.";
    Unavailable = "unavailable", ServiceUnavailable,
        "The provider cannot answer now.",
        "Wait as long as `retry-after` says.";
    Busy = "busy", ServiceUnavailable,
        "Too many calls are at work or waiting at this binding.",
        "Wait as long as `retry-after` says.";
    ProviderMissing = "provider_missing", ServiceUnavailable,
        "The binding's provider is not loaded.",
        "Put it back into the plugins directory.";
    Interrupted = "interrupted", ServiceUnavailable, "The host ended during the call.", "Send it again.";
    Importing = "importing", ServiceUnavailable, "The company is being taken in.", "Wait until that has ended.";
    TimedOut = "timed_out", GatewayTimeout,
        "The provider did not answer in time.",
        "Ask for less, or raise `callTimeoutMs`.";
    QuotaExceeded = "quota_exceeded", InsufficientStorage,
        "A limit on stored things is reached.",
        "Forget something, or raise the quota that `detail` names.";
}

impl Serialize for ProblemCode {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
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
