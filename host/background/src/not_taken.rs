//! Events that no binding takes: they are not kept, and an operation says why.

use crate::Background;
use memhost_access::Caller;
use memhost_oplog::OplogError;
use memhost_oplog::operation::Opened;
use memhost_tenancy::ServiceError;
use memhost_types::{
    Binding, ContextBlock, DEFAULT_TOKEN_BUDGET, HookEvent, HookKind, HookReceipt, NotTaken,
    OperationErrorCode, OperationKind, Refusal, SubscribedWhen,
};

/// Bindings that the reason names.
const MOST_NAMED: usize = 5;

impl Background {
    /// The answer to an event that no binding takes. The record of it is a refusal, so many of them
    /// in a minute are one.
    pub(crate) async fn not_taken(
        &self,
        caller: &Caller,
        event: HookEvent,
    ) -> Result<HookReceipt, ServiceError> {
        let is_recall = event.hook_kind == HookKind::PreRunHydrate;
        let kind = if is_recall { OperationKind::Query } else { OperationKind::Capture };
        let reason = self.why_not_taken(&event);
        let mut opened = Opened::begin(&self.oplog, caller, kind, &event.scope).await?;
        opened.set_provenance(event.source.as_ref(), Some(&event.context()));
        let operation_id =
            match opened.refuse(Refusal::new(OperationErrorCode::NoBinding, reason.as_str())).await
            {
                OplogError::Ended { operation_id, .. } => operation_id,
                error => return Err(error.into()),
            };
        self.oplog.metrics.hook_not_taken(&event.hook_kind);
        let context = is_recall.then(|| ContextBlock {
            text: String::new(),
            tokens: 0,
            token_budget: event.token_budget.unwrap_or(DEFAULT_TOKEN_BUDGET),
            included: 0,
            omitted: 0,
            degraded: vec![reason.clone()],
        });
        let not_taken = Some(NotTaken { operation_id, reason });
        Ok(HookReceipt {
            hook_id: event.hook_id,
            is_duplicate: false,
            deliveries: Vec::new(),
            not_taken,
            context,
        })
    }

    fn why_not_taken(&self, event: &HookEvent) -> String {
        let (company, kind) = (&event.scope.company_id, event.hook_kind.as_str());
        let all = self.bindings.list(company);
        if all.is_empty() {
            return format!(
                "the company {company} has no binding that could take `{kind}`; make one with \
                 `memhost binding create`"
            );
        }
        let why = |binding: &Binding| {
            let key = &binding.key;
            match binding.policy.takes(&event.hook_kind) {
                None => format!("`{key}` does not subscribe to it"),
                Some(_) if !binding.enabled => {
                    format!("`{key}` is disabled (`memhost binding update {key} --enabled true`)")
                }
                Some(SubscribedWhen::Active | SubscribedWhen::Always) => {
                    format!("`{key}` takes it only where the scope resolves to it")
                }
            }
        };
        let named: Vec<String> = all.iter().take(MOST_NAMED).map(|binding| why(binding)).collect();
        // Only a binding that does not subscribe needs another policy.
        let unsubscribed =
            all.iter().any(|binding| binding.policy.takes(&event.hook_kind).is_none());
        let advice = if unsubscribed {
            "; `memhost binding update KEY --policy JSON` subscribes one"
        } else {
            ""
        };
        let more = all.len().saturating_sub(MOST_NAMED);
        let more = if more > 0 {
            format!("; and {more} more bindings do not take it")
        } else {
            String::new()
        };
        format!("no binding of the company takes `{kind}`: {}{more}{advice}", named.join("; "))
    }
}
