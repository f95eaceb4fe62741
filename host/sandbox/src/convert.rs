//! From the contract's Rust types to the generated ones, and back for what needs no checking.

use super::contract::{call, provider as wire, types as wit};
use memhost_types::{
    AttributionMode, BillingType, CaptureMode, CaptureRequest, ForgetRequest, Grants, HookContext,
    HookKind, Intent, JsonObject, ListRequest, OperationId, ProviderError, QueryRequest,
    RecordHandle, RecordWrite, Scope, SourceKind, SourceRef, Turn, UpsertRequest, Usage,
    cut_message, limits,
};

/// The usage of the host's own imports, as a guest reads it.
pub(super) fn used(usage: Usage) -> wit::Usage {
    wit::Usage {
        provider: usage.provider,
        biller: usage.biller,
        model: usage.model,
        billing_type: usage.billing_type.map(|billing| match billing {
            BillingType::MeteredApi => wit::BillingType::MeteredApi,
            BillingType::SubscriptionIncluded => wit::BillingType::SubscriptionIncluded,
            BillingType::SubscriptionOverage => wit::BillingType::SubscriptionOverage,
            BillingType::Unknown => wit::BillingType::Unknown,
        }),
        attribution_mode: None,
        input_tokens: usage.input_tokens,
        cached_input_tokens: usage.cached_input_tokens,
        output_tokens: usage.output_tokens,
        embedding_tokens: usage.embedding_tokens,
        cost_microcents: usage.cost.map(|cost| cost.0),
        latency_ms: usage.latency_ms,
        details: None,
    }
}

pub(super) fn capture(id: OperationId, request: &CaptureRequest) -> wire::CaptureRequest {
    let payload = &request.payload;
    wire::CaptureRequest {
        operation_id: id.to_string(),
        scope: scope(&request.scope),
        source: source(&request.source),
        payload: wit::SourcePayload {
            text: payload.text.clone(),
            turns: payload.turns.iter().map(turn).collect(),
            mime_type: payload.mime_type.clone(),
            metadata: json(payload.metadata.as_ref()),
            object: json(payload.object.as_ref()),
        },
        hook: request.hook.as_ref().map(hook),
        mode: match request.mode {
            CaptureMode::CaptureResidue => wire::CaptureMode::CaptureResidue,
            CaptureMode::CaptureRecord => wire::CaptureMode::CaptureRecord,
        },
        metadata: json(request.metadata.as_ref()),
    }
}

fn turn(turn: &Turn) -> wit::Turn {
    wit::Turn {
        role: turn.role.clone(),
        name: turn.name.clone(),
        text: turn.text.clone(),
        at: turn.at.map(|at| at.to_string()),
    }
}

/// A part of an upsert. `operation_id` is the part's own.
pub(super) fn upsert(
    operation_id: String,
    request: &UpsertRequest,
    records: &[RecordWrite],
) -> wire::UpsertRequest {
    wire::UpsertRequest {
        operation_id,
        scope: scope(&request.scope),
        source: request.source.as_ref().map(source),
        records: records.iter().map(record_write).collect(),
    }
}

pub(super) fn record_write(record: &RecordWrite) -> wit::RecordWrite {
    wit::RecordWrite {
        id: record.id.as_ref().map(|id| id.as_str().to_owned()),
        text: record.text.clone(),
        summary: record.summary.clone(),
        metadata: json(record.metadata.as_ref()),
        source: record.source.as_ref().map(source),
        created_at: record.created_at.map(|time| time.to_string()),
        expires_at: record.expires_at.map(|time| time.to_string()),
    }
}

pub(super) fn query(request: &QueryRequest) -> wit::QueryRequest {
    wit::QueryRequest {
        scope: scope(&request.scope),
        query: request.query.clone(),
        top_k: request.top_k.unwrap_or(limits::DEFAULT_TOP_K),
        intent: match request.intent {
            Intent::AgentPreamble => wit::Intent::AgentPreamble,
            Intent::Answer => wit::Intent::Answer,
            Intent::Browse => wit::Intent::Browse,
        },
        metadata_filter: json(request.metadata_filter.as_ref()),
        token_budget: request.token_budget,
    }
}

/// A part of a forget. `operation_id` is the part's own.
pub(super) fn forget(
    operation_id: String,
    request: &ForgetRequest,
    handles: &[RecordHandle],
) -> wire::ForgetRequest {
    wire::ForgetRequest {
        operation_id,
        scope: scope(&request.scope),
        ids: handles.iter().map(|handle| handle.provider_record_id.as_str().to_owned()).collect(),
    }
}

pub(super) fn list(request: &ListRequest, cursor: Option<String>) -> wire::ListRequest {
    wire::ListRequest {
        scope: scope(&request.scope),
        cursor,
        limit: request.limit.unwrap_or(limits::DEFAULT_LIMIT),
        metadata_filter: json(request.metadata_filter.as_ref()),
    }
}

pub(super) fn scope(scope: &Scope) -> wit::Scope {
    wit::Scope {
        company_id: scope.company_id.as_str().to_owned(),
        agent_id: scope.agent_id.as_ref().map(|id| id.as_str().to_owned()),
        actor_agent_id: scope.actor_agent_id.as_ref().map(|id| id.as_str().to_owned()),
        project_id: scope.project_id.clone(),
        issue_id: scope.issue_id.clone(),
        run_id: scope.run_id.clone(),
        subject_id: scope.subject_id.clone(),
        session_key: scope.session_key.clone(),
        namespace: scope.namespace.clone(),
    }
}

fn source(source: &SourceRef) -> wit::SourceRef {
    wit::SourceRef {
        kind: match source.kind {
            SourceKind::IssueComment => wit::SourceKind::IssueComment,
            SourceKind::IssueDocument => wit::SourceKind::IssueDocument,
            SourceKind::Issue => wit::SourceKind::Issue,
            SourceKind::Run => wit::SourceKind::Run,
            SourceKind::Activity => wit::SourceKind::Activity,
            SourceKind::ManualNote => wit::SourceKind::ManualNote,
            SourceKind::ExternalDocument => wit::SourceKind::ExternalDocument,
        },
        company_id: source.company_id.as_str().to_owned(),
        issue_id: source.issue_id.clone(),
        comment_id: source.comment_id.clone(),
        document_key: source.document_key.clone(),
        run_id: source.run_id.clone(),
        activity_id: source.activity_id.clone(),
        external_ref: source.external_ref.clone(),
    }
}

/// None: a kind that this host does not know.
pub(super) fn source_kind(kind: &wit::SourceKind) -> Option<SourceKind> {
    Some(match kind {
        wit::SourceKind::IssueComment => SourceKind::IssueComment,
        wit::SourceKind::IssueDocument => SourceKind::IssueDocument,
        wit::SourceKind::Issue => SourceKind::Issue,
        wit::SourceKind::Run => SourceKind::Run,
        wit::SourceKind::Activity => SourceKind::Activity,
        wit::SourceKind::ManualNote => SourceKind::ManualNote,
        wit::SourceKind::ExternalDocument => SourceKind::ExternalDocument,
        wit::SourceKind::Other(_) => return None,
    })
}

fn hook(hook: &HookContext) -> wit::HookContext {
    wit::HookContext {
        hook_kind: match &hook.hook_kind {
            HookKind::PreRunHydrate => wit::HookKind::PreRunHydrate,
            HookKind::PostRunCapture => wit::HookKind::PostRunCapture,
            HookKind::IssueCommentCapture => wit::HookKind::IssueCommentCapture,
            HookKind::IssueDocumentCapture => wit::HookKind::IssueDocumentCapture,
            HookKind::ManualCapture => wit::HookKind::ManualCapture,
            HookKind::Other(name) => wit::HookKind::Other(name.clone()),
        },
        triggered_at: hook.triggered_at.to_string(),
        actor_agent_id: hook.actor_agent_id.as_ref().map(|id| id.as_str().to_owned()),
        heartbeat_run_id: hook.heartbeat_run_id.clone(),
    }
}

pub(super) fn hook_kind(kind: wit::HookKind) -> HookKind {
    match kind {
        wit::HookKind::PreRunHydrate => HookKind::PreRunHydrate,
        wit::HookKind::PostRunCapture => HookKind::PostRunCapture,
        wit::HookKind::IssueCommentCapture => HookKind::IssueCommentCapture,
        wit::HookKind::IssueDocumentCapture => HookKind::IssueDocumentCapture,
        wit::HookKind::ManualCapture => HookKind::ManualCapture,
        wit::HookKind::Other(name) => HookKind::Other(name),
    }
}

pub(super) fn billing_type(kind: &wit::BillingType) -> BillingType {
    match kind {
        wit::BillingType::MeteredApi => BillingType::MeteredApi,
        wit::BillingType::SubscriptionIncluded => BillingType::SubscriptionIncluded,
        wit::BillingType::SubscriptionOverage => BillingType::SubscriptionOverage,
        wit::BillingType::Unknown | wit::BillingType::Other(_) => BillingType::Unknown,
    }
}

/// None: a mode that this host does not know.
pub(super) fn attribution_mode(mode: &wit::AttributionMode) -> Option<AttributionMode> {
    Some(match mode {
        wit::AttributionMode::BilledDirectly => AttributionMode::BilledDirectly,
        wit::AttributionMode::IncludedInRun => AttributionMode::IncludedInRun,
        wit::AttributionMode::ExternalInvoice => AttributionMode::ExternalInvoice,
        wit::AttributionMode::Untracked => AttributionMode::Untracked,
        wit::AttributionMode::Other(_) => return None,
    })
}

/// The grants, as a guest reads them.
pub(super) fn grants(grants: &Grants) -> Vec<call::Grant> {
    let sizes = [
        (grants.storage_bytes, call::Grant::Storage as fn(u64) -> _),
        (grants.directory_bytes, call::Grant::Directory),
    ];
    let sizes = sizes.into_iter().filter(|(bytes, _)| *bytes > 0).map(|(bytes, of)| of(bytes));
    let flags = [(grants.embeddings, call::Grant::Embeddings), (grants.clock, call::Grant::Clock)];
    let flags = flags.into_iter().filter(|(is, _)| *is).map(|(_, grant)| grant);
    let http = grants.http.iter().map(|http| {
        call::Grant::Http(call::HttpGrant {
            origin: http.origin.to_string(),
            methods: http.methods.clone(),
        })
    });
    let secrets = grants.secrets.iter().cloned().map(call::Grant::Secret);
    sizes.chain(flags).chain(http).chain(secrets).collect()
}

/// How long a caller is told to wait at most, in milliseconds. A server behind a provider says
/// anything.
const MOST_WAIT_MS: u64 = 24 * 60 * 60 * 1_000;

fn within_a_day(wait: Option<u64>) -> Option<u64> {
    wait.map(|ms| ms.min(MOST_WAIT_MS))
}

pub(super) fn error(error: wit::Error) -> ProviderError {
    match error {
        wit::Error::InvalidRequest(error) => ProviderError::InvalidRequest {
            field: error.field.map(cut_message),
            message: cut_message(error.message),
        },
        wit::Error::NotFound(message) => ProviderError::NotFound(cut_message(message)),
        wit::Error::Unsupported(message) => ProviderError::Unsupported(cut_message(message)),
        wit::Error::Unauthorized(message) => ProviderError::Unauthorized(cut_message(message)),
        wit::Error::RateLimited(later) => ProviderError::RateLimited {
            message: cut_message(later.message),
            retry_after_ms: within_a_day(later.retry_after_ms),
        },
        wit::Error::Unavailable(later) => ProviderError::Unavailable {
            message: cut_message(later.message),
            retry_after_ms: within_a_day(later.retry_after_ms),
        },
        wit::Error::QuotaExceeded(message) => ProviderError::QuotaExceeded(cut_message(message)),
        wit::Error::Internal(message) => ProviderError::Internal(cut_message(message)),
    }
}

fn json(object: Option<&JsonObject>) -> Option<String> {
    // A map that was parsed from JSON always becomes JSON again.
    object.map(|object| serde_json::to_string(object).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_is_told_to_wait_longer_than_a_day() {
        for (said, told) in
            [(None, None), (Some(5), Some(5)), (Some(315_360_000_000), Some(86_400_000))]
        {
            let later = || wit::RetryLater { message: "later".to_owned(), retry_after_ms: said };
            for answer in [wit::Error::RateLimited(later()), wit::Error::Unavailable(later())] {
                let (ProviderError::RateLimited { retry_after_ms, .. }
                | ProviderError::Unavailable { retry_after_ms, .. }) = error(answer)
                else {
                    panic!("another error")
                };
                assert_eq!(retry_after_ms, told);
            }
        }
    }
}
