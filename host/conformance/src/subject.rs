//! The binding of one rule with its own scope, and short forms of the calls to it.
//!
//! Calls go to instances and not through the operation runner: rules need operation ids that come
//! twice, fresh instances, and jobs that nobody runs, all of which the runner prevents.

mod calls;
mod optional;
mod pending;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde_json::Value;

use crate::verdict::{Stop, failed, skipped};
use memhost_core::{Caller, CreateBinding, Service, ServiceError, Workbench};
use memhost_sandbox::{CallError, Component, Instances, OptionalInterface};
use memhost_types::{
    AgentId, BindingKey, CaptureMode, CaptureRequest, CompanyId, Exception, HookContext, HookKind,
    JsonObject, OperationId, ProviderDescription, ProviderError, RecordHandle, RecordId,
    RecordWrite, Scope, SourceKind, SourcePayload, SourceRef, TextId,
};

/// How long a provider may take to show what was written, where it declares that it needs time.
const SETTLE: Duration = Duration::from_secs(1);

/// An admitted component without a binding.
pub(crate) struct Candidate {
    pub(crate) service: Arc<Service>,
    pub(crate) component: Component,
    pub(crate) config: JsonObject,
}

/// Why the provider's schema of its configuration cannot be used, if it has one and it cannot.
pub(crate) async fn schema_problem(service: &Service, component: &Component) -> Option<String> {
    let schema = component.description().config_schema.as_ref()?;
    let (sandbox, config) = (service.control().sandbox(), Value::Object(JsonObject::new()));
    sandbox.config_errors(schema, &config).await.err().map(|error| error.to_string())
}

/// The binding of one rule. Its scope is of that rule only, too: a provider may store all scopes in
/// one remote system.
pub(super) struct Subject {
    pub(super) service: Arc<Service>,
    pub(super) company: CompanyId,
    pub(super) key: BindingKey,
    pub(super) description: Arc<ProviderDescription>,
    pub(super) interfaces: Arc<BTreeSet<OptionalInterface>>,
    /// The metadata of every record of the check, for providers that need some.
    pub(super) metadata: Arc<JsonObject>,
    /// Makes the ids of this rule unique.
    pub(super) tag: String,
    pub(super) numbers: Arc<AtomicU64>,
    pub(super) bench: Workbench,
}

impl Subject {
    pub(super) fn instances(&self) -> &Instances {
        self.bench.instances()
    }

    /// The same binding on new instances, as after a restart or next to the first ones.
    pub(super) async fn beside(&self) -> Result<Self, Stop> {
        let bench = self.service.control().workbench(&self.company, &self.key).await;
        let bench = bench.map_err(|error| Stop::Skipped(format!("no second instance: {error}")))?;
        Ok(self.on(self.key.clone(), bench))
    }

    /// A new binding of the same build with the same configuration and grants. Its scopes are those
    /// of this one, so that transferred records are found where they were.
    pub(super) async fn empty(&self) -> Result<Self, Stop> {
        let none =
            |error: ServiceError| Stop::Skipped(format!("no second binding can be made: {error}"));
        let own =
            self.service.control().binding(&self.company, &self.key).await.map_err(none)?.binding;
        let key = format!("{}-{}", self.key, self.numbers.fetch_add(1, Ordering::Relaxed));
        let key =
            BindingKey::parse(&key).map_err(|error| none(ServiceError::Host(error.problem)))?;
        let request = CreateBinding {
            key: key.clone(),
            provider_key: own.provider_key,
            version: own.version,
            config: own.config,
            grants: Some(own.grants),
            limits: own.limits,
            policy: own.policy,
            default: false,
        };
        self.service
            .control()
            .create_binding(&Caller::operator(), &self.company, request)
            .await
            .map_err(none)?;
        let bench = self.service.control().workbench(&self.company, &key).await.map_err(none)?;
        Ok(self.on(key, bench))
    }

    fn on(&self, key: BindingKey, bench: Workbench) -> Self {
        Self {
            service: Arc::clone(&self.service),
            company: self.company.clone(),
            key,
            description: Arc::clone(&self.description),
            interfaces: Arc::clone(&self.interfaces),
            metadata: Arc::clone(&self.metadata),
            tag: self.tag.clone(),
            numbers: Arc::clone(&self.numbers),
            bench,
        }
    }

    /// A unique id for an operation.
    pub(super) fn operation(&self) -> OperationId {
        let ms = u64::try_from(self.service.control().now().as_millisecond()).unwrap_or_default();
        OperationId::new(ms, self.numbers.fetch_add(1, Ordering::Relaxed), 0)
    }

    /// An id that only this rule uses.
    pub(super) fn name(&self, what: &str) -> String {
        format!("{what}-{}", self.tag)
    }

    /// Agent, project and subject are set: some providers refuse a scope without them.
    pub(super) fn scope(&self) -> Scope {
        Scope {
            agent_id: AgentId::parse(&self.name("agent")).ok(),
            project_id: Some(self.name("project")),
            subject_id: Some(self.name("subject")),
            ..Scope::company(self.company.clone())
        }
    }

    /// The scope of the whole company: what is of any agent, subject and namespace.
    pub(super) fn company_scope(&self) -> Scope {
        Scope::company(self.company.clone())
    }

    /// Waits after a write until it is seen, where the provider declares that this takes time.
    pub(super) async fn settle(&self) {
        if self.description.declarations.excepts(Exception::ReadAfterWrite) {
            tokio::time::sleep(SETTLE).await;
        }
    }

    /// The same scope as another agent has it.
    pub(super) fn other_agent(&self) -> Scope {
        Scope { agent_id: AgentId::parse(&self.name("stranger")).ok(), ..self.scope() }
    }

    pub(super) fn write(&self, text: &str) -> RecordWrite {
        let metadata = (!self.metadata.is_empty()).then(|| (*self.metadata).clone());
        RecordWrite { text: text.to_owned(), metadata, ..RecordWrite::default() }
    }

    /// A record with an id that the host chose.
    pub(super) fn write_as(&self, id: &str, text: &str) -> RecordWrite {
        RecordWrite { id: RecordId::parse(id).ok(), ..self.write(text) }
    }

    /// The metadata of every record, with one more member.
    pub(super) fn metadata_with(&self, name: &str, value: &str) -> Option<JsonObject> {
        let mut metadata = (*self.metadata).clone();
        metadata.insert(name.to_owned(), value.into());
        Some(metadata)
    }

    pub(super) fn source(&self) -> SourceRef {
        SourceRef {
            issue_id: Some(self.name("issue")),
            comment_id: Some(self.name("comment")),
            external_ref: Some(format!("https://example.com/{}", self.tag)),
            ..SourceRef::new(SourceKind::IssueComment, self.company.clone())
        }
    }

    pub(super) fn hook(&self, at: &str) -> Result<HookContext, Stop> {
        let triggered_at =
            at.parse().map_err(|error| Stop::Skipped(format!("no time: {error}")))?;
        Ok(HookContext {
            hook_kind: HookKind::ManualCapture,
            hook_id: self.name("hook"),
            triggered_at,
            actor_agent_id: None,
            heartbeat_run_id: None,
            asserted_by: None,
        })
    }

    pub(super) fn capture_of(&self, text: &str, mode: CaptureMode) -> CaptureRequest {
        CaptureRequest {
            binding_key: None,
            scope: self.scope(),
            source: self.source(),
            payload: SourcePayload { text: Some(text.to_owned()), ..SourcePayload::default() },
            hook: None,
            mode,
            metadata: (!self.metadata.is_empty()).then(|| (*self.metadata).clone()),
            visibility: None,
            replaces_source: false,
        }
    }

    /// The handle that the host makes of a provider's record id.
    pub(super) fn handle(&self, id: &str) -> Result<RecordHandle, Stop> {
        let id = RecordId::parse(id)
            .map_err(|error| Stop::Skipped(format!("`{id}` {}", error.problem)))?;
        Ok(RecordHandle {
            provider_key: self.description.provider_key.clone(),
            provider_record_id: id,
        })
    }
}

/// The answer, or why there is none: a provider that declares a call unsupported or unavailable
/// breaks no rule.
pub(super) fn answered<T>(what: &str, called: Result<T, CallError>) -> Result<T, Stop> {
    let error = match called {
        Ok(answer) => return Ok(answer),
        Err(error) => error,
    };
    let word = match &error {
        CallError::Provider(ProviderError::Unsupported(_)) => "unsupported",
        CallError::Provider(ProviderError::QuotaExceeded(_)) => "quota-exceeded",
        CallError::Provider(ProviderError::RateLimited { .. }) => "rate-limited",
        CallError::Provider(ProviderError::Unavailable { .. }) => "unavailable",
        CallError::Provider(ProviderError::Unauthorized(_)) => "unauthorized",
        CallError::Provider(error) => {
            return failed(format!("`{what}` answers {}: {error}", variant(error)));
        }
        error => return failed(format!("`{what}`: {error}")),
    };
    skipped(format!("`{what}` answers {word}: {error}"))
}

/// The contract's name of an error.
pub(super) fn variant(error: &ProviderError) -> &'static str {
    match error {
        ProviderError::InvalidRequest { .. } => "invalid-request",
        ProviderError::NotFound(_) => "not-found",
        ProviderError::Unsupported(_) => "unsupported",
        ProviderError::Unauthorized(_) => "unauthorized",
        ProviderError::RateLimited { .. } => "rate-limited",
        ProviderError::Unavailable { .. } => "unavailable",
        ProviderError::QuotaExceeded(_) => "quota-exceeded",
        ProviderError::Internal(_) => "internal",
    }
}
