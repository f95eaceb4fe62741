//! Every code that a problem can have: its status, what it means, and what to do. What a client switches on.

/// A code of a problem.
pub struct Code {
    /// Its name, in a problem's `code` and, with dashes, at the end of its `type`.
    pub name: &'static str,
    /// The status that it comes with.
    pub status: u16,
    /// What happened.
    pub means: &'static str,
    /// What to do about it.
    pub advice: &'static str,
}

const fn code(name: &'static str, status: u16, means: &'static str, advice: &'static str) -> Code {
    Code { name, status, means, advice }
}

/// All of them, by status.
pub const CODES: &[Code] = &[
    code(
        "invalid_request",
        400,
        "A field, parameter or header will not do.",
        "`field` and `detail` say which and what is allowed.",
    ),
    code("unreadable_body", 400, "The body ended early or could not be read.", "Send it again."),
    code(
        "unauthenticated",
        401,
        "There is no token, or it is not accepted.",
        "Send a token that is valid as `authorization: Bearer …`.",
    ),
    code("budget_exceeded", 402, "A budget is used up.", "Wait until its period ends, or have its limit raised."),
    code(
        "forbidden",
        403,
        "The token does not allow this, whether or not the thing exists.",
        "Ask whoever gave you the token for one that does.",
    ),
    code(
        "forged_form",
        403,
        "A form of the explorer is not of this session, or came from another site.",
        "Open the page again and send the form from there.",
    ),
    code(
        "origin_not_allowed",
        403,
        "A page of another site asked.",
        "Ask from a program, or from a page of an origin that the host allows.",
    ),
    code("no_route", 404, "There is nothing at this address.", "Look the address up in this document."),
    code("not_found", 404, "The provider has no such record in this scope.", "Look at what `list` or `query` answers."),
    code("no_binding", 404, "No binding answers for this company, agent or key.", "Make one, or name another."),
    code("no_provider", 404, "No provider of this key is loaded.", "Look at the list of plugins."),
    code(
        "no_version",
        404,
        "No build of the provider is one that the binding allows.",
        "Widen its range, or put such a build into the plugins directory.",
    ),
    code("no_operation", 404, "There is no operation of this id.", "It may be older than what is kept."),
    code("no_secret", 404, "There is no secret of this name.", "Look at the list of secrets."),
    code("no_token", 404, "There is no token of this id.", "Look at the list of tokens."),
    code("no_delivery", 404, "There is no delivery of this id.", "Look at the list of deliveries."),
    code("no_job", 404, "There is no job of this id.", "Look at the list of jobs."),
    code("no_review", 404, "Nothing of this id waits for a person.", "Look at the list of reviews."),
    code("no_budget", 404, "There is no such budget.", "Look at the list of budgets."),
    code("no_tombstone", 404, "This company was not erased here.", "Nothing is to be done."),
    code("method_not_allowed", 405, "The address does not take this method.", "`allow` names those that it takes."),
    code(
        "not_acceptable",
        406,
        "No answer is of a type that the request accepts.",
        "`detail` names the types to accept.",
    ),
    code("binding_disabled", 409, "The binding takes no operations.", "Enable it, or use another."),
    code(
        "review_required",
        409,
        "A person must look at it first.",
        "Have somebody decide about it in the review queue.",
    ),
    code("binding_exists", 409, "The key is taken in this company.", "Choose another key, or change that binding."),
    code("conflict", 409, "Somebody else changed the same thing just now.", "Look at it again and repeat the change."),
    code("token_revoked", 409, "The token was taken back.", "Make another one."),
    code("delivery_status", 409, "The delivery is not where this could be done with it.", "Look at its status."),
    code("job_status", 409, "The job is not where this could be done with it.", "Look at its status."),
    code("already_decided", 409, "Somebody has decided about it already.", "Nothing is to be done."),
    code(
        "idempotency_key_reused",
        409,
        "The idempotency key was used for another request.",
        "Make a new key for each request.",
    ),
    code(
        "idempotency_unknown",
        409,
        "Whether the request of this key was done is not known: the host ended while it was at work.",
        "Look for what it should have done; send it under a new key if that is missing.",
    ),
    code("company_erased", 410, "The company was erased.", "Nothing can be done in it."),
    code(
        "stale_revision",
        412,
        "The binding has another revision than the one in `if-match`.",
        "Look at it again and repeat the change.",
    ),
    code("body_too_large", 413, "The body is larger than 8 MiB.", "Send it in parts."),
    code("unsupported_media_type", 415, "The body is not JSON.", "Send JSON with `content-type: application/json`."),
    code("invalid_config", 422, "The provider does not accept its configuration.", "`errors` says where and why."),
    code("unsupported", 422, "The provider does not do that.", "Use a binding whose provider does."),
    code("rate_limited", 429, "Too many calls.", "Wait as long as `retry-after` says."),
    code("host", 500, "The host itself failed.", "Look at its log, and run `memhost doctor`."),
    code(
        "unauthorized",
        502,
        "The system behind the provider refused the provider's credentials.",
        "Set the secret anew that it uses.",
    ),
    code("internal", 502, "The provider failed.", "Look at the operation's log; tell whoever made the provider."),
    code("provider_failed", 502, "The provider failed.", "Tell whoever made the provider."),
    code("trapped", 502, "The provider crashed.", "Look at the operation's log; tell whoever made the provider."),
    code(
        "limit_exceeded",
        502,
        "The provider used more than its limits allow.",
        "Raise the limit that `detail` names, or ask for less.",
    ),
    code("bad_answer", 502, "The provider's answer breaks the contract.", "Tell whoever made the provider."),
    code("unavailable", 503, "The provider cannot answer now.", "Wait as long as `retry-after` says."),
    code("busy", 503, "Too many calls are at work or waiting at this binding.", "Wait as long as `retry-after` says."),
    code("provider_missing", 503, "The binding's provider is not loaded.", "Put it back into the plugins directory."),
    code("interrupted", 503, "The host ended during the call.", "Send it again."),
    code("importing", 503, "The company is being taken in.", "Wait until that has ended."),
    code("timed_out", 504, "The provider did not answer in time.", "Ask for less, or raise `callTimeoutMs`."),
    code(
        "quota_exceeded",
        507,
        "A limit on stored things is reached.",
        "Forget something, or raise the quota that `detail` names.",
    ),
];
