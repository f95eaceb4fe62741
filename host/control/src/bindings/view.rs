//! Bindings as they are shown: the build that serves, builds that wait, warnings and usage.

use async_recursion::async_recursion as boxed;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Control;
use memhost_executor::to_json;
use memhost_registry::bindings::{ResolutionStep, Why, configured, ungranted};
use memhost_registry::plugins::{Build as _, Plugin};
use memhost_registry::versions::{
    BreakerState, HealthFound, Serving, WaitingBuild, choose, warnings,
};
use memhost_sandbox::{DirectoryUsage, Instances};
use memhost_tenancy::Page;
use memhost_tenancy::ServiceError;
use memhost_types::{
    AgentId, Binding, BindingKey, CompanyId, Digest, Grants, PermissionRequest,
    ProviderCapabilities, RejectedVersion, RequestedGrants, Target, counted, limits,
};

/// A binding as it is shown.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BindingView {
    /// The binding.
    #[serde(flatten)]
    pub binding: Binding,
    /// Whether it is the company's default.
    pub is_default: bool,
    /// Which agents have it as their override.
    pub agents: Vec<AgentId>,
    /// The build that served last; absent before the first operation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub serving: Option<BuildView>,
    /// What the build that serves, or would serve the first operation, can do beside the operations
    /// that every provider has; absent where no build can serve.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capabilities: Option<ProviderCapabilities>,
    /// Newer builds that ask for more than was granted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waiting: Vec<WaitingView>,
    /// Builds that were tried and do not serve.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rejected_versions: Vec<RejectedVersion>,
    /// Warnings, a sentence each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// The state of its circuit breaker.
    pub breaker: BreakerState,
    /// Why its calls fail: the error of the last one that trapped, timed out or could not reach the
    /// system behind the provider; absent if the last call succeeded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failing: Option<String>,
    /// What its provider last said of the system behind it; absent if it was not asked since the
    /// host started.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub health: Option<HealthFound>,
    /// What it uses of its limits and grants; absent before its first operation since the host
    /// started.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<UsageView>,
}

/// One build as it is shown.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BuildView {
    /// The digest that identifies it.
    pub digest: Digest,
    /// Its version.
    pub version: semver::Version,
}

/// A build that waits for a decision.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WaitingView {
    /// Which.
    #[serde(flatten)]
    pub build: BuildView,
    /// The requests that nobody has decided about.
    pub asks: Vec<PermissionRequest>,
}

/// The usage of a binding's limits and grants.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UsageView {
    /// The most memory that one instance had after a call (limit `memoryBytes`).
    pub memory_bytes: u64,
    /// Bytes in storage (limit `storageBytes`).
    pub storage_bytes: u64,
    /// Keys in storage (limit `storageKeys`).
    pub storage_keys: u64,
    /// Bytes in the directory, at most (limit `directoryBytes`).
    pub directory_bytes: u64,
    /// Files in the directory, at most (limit `directoryFiles`).
    pub directory_files: u64,
    /// Calls in progress (limit `concurrentCalls`).
    pub calls_in_flight: u32,
    /// Calls that wait (limit `queuedCalls`).
    pub calls_waiting: u32,
    /// Requests of the last minute, about (limit `outgoingRequestsPerMinute`).
    pub outgoing_requests_per_minute: u32,
    /// Open connections (limit `outgoingConnections`).
    pub outgoing_connections: u32,
}

/// The requests of a binding's provider beside its grants.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GrantsView {
    /// The grants.
    pub granted: Grants,
    /// The requests of the newest build, and whether somebody has decided about them.
    pub asked: Vec<AskedView>,
    /// Grants and limits that an import requests, until an operator decides about them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requested: Option<RequestedGrants>,
    /// The version that asks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<semver::Version>,
}

/// One thing that is asked for.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AskedView {
    /// The request, its reason, and whether the provider works without it.
    #[serde(flatten)]
    pub request: PermissionRequest,
    /// In words.
    pub summary: String,
    /// Where the address comes from the configuration: how the provider asks for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub configured_by: Option<String>,
    /// Whether somebody has decided about it.
    pub is_reviewed: bool,
}

/// Which binding answers, and why.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ResolvedView {
    /// The one that answers.
    pub binding: BindingView,
    /// The rule that decides.
    pub why: Why,
    /// Every rule with what it says.
    pub steps: Vec<ResolutionStep>,
}

impl Control {
    /// One binding as it is shown; also the built-in one that answers without being stored.
    ///
    /// # Errors
    /// Where there is none of this key.
    #[boxed]
    pub async fn binding(
        &self,
        company: &CompanyId,
        key: &BindingKey,
    ) -> Result<BindingView, ServiceError> {
        self.view_of(&*self.stored_or_implied(company, key).await?).await
    }

    async fn stored_or_implied(
        &self,
        company: &CompanyId,
        key: &BindingKey,
    ) -> Result<Arc<Binding>, ServiceError> {
        match self.bindings.get(company, key) {
            Ok(stored) => Ok(stored),
            Err(error) => {
                let implied = self.operations.implied_default(company, Some(key)).await?;
                Ok(implied.ok_or(error)?)
            }
        }
    }

    async fn view_of(&self, binding: &Binding) -> Result<BindingView, ServiceError> {
        let state = self.serving.state(binding).await?;
        let builds = self.plugins.builds(&binding.provider_key);
        let choice = choose(binding, &builds, state.as_ref());
        let warm = self.serving.warm(binding.id);
        let usage = match &warm {
            Some(serving) => Some(UsageView::of(serving).await),
            None => None,
        };
        let mut view = BindingView {
            // Everybody outside knows it by one id.
            binding: Binding { id: binding.known_as(), goes_on_as: None, ..binding.clone() },
            is_default: binding.is_implied(),
            agents: Vec::new(),
            warnings: warnings(binding, &builds, state.as_ref(), &choice),
            serving: state
                .as_ref()
                .map(|state| BuildView { digest: state.digest, version: state.version.clone() }),
            capabilities: None,
            waiting: choice.waiting.iter().map(WaitingView::from).collect(),
            rejected_versions: state.map(|state| state.rejected_versions).unwrap_or_default(),
            breaker: warm.as_ref().map_or(BreakerState::Closed, |serving| serving.breaker.state()),
            failing: warm.as_ref().and_then(|serving| serving.breaker.reason()),
            health: warm.as_ref().and_then(|serving| serving.health.lock().clone()),
            usage,
        };
        for name in self.serving.missing_secrets(binding).await {
            view.warnings.push(format!(
                "the secret `{name}` is granted and not set, or not with this key; `memhost secret \
                 create {name}` sets it"
            ));
        }
        let (company, now) = (&binding.company_id, self.clock.now());
        let troubles = self.oplog.recent.troubles(company, &binding.key, now);
        view.warnings.extend(troubles.failing.into_iter().chain(troubles.degraded));
        view.warnings.extend(self.operations.waiting_warning(binding));
        view.warnings.extend(warm.as_ref().and_then(|serving| left_out(&serving.instances)));
        let unwell = view.health.as_ref().and_then(|found| found.error.as_ref());
        view.warnings.extend(
            unwell.map(|error| format!("the provider says that it cannot work: {}", error.message)),
        );
        // That of the build that serves, or would.
        let serves = view
            .serving
            .as_ref()
            .and_then(|serving| builds.iter().find(|build| build.digest() == serving.digest));
        if let Some(build) = serves.or(choice.build.as_ref()) {
            view.warnings.extend(ungranted(binding, build));
            view.capabilities = Some(build.component.description().capabilities);
        }
        for (target, target_key) in self.bindings.targets(&binding.company_id) {
            match target {
                _ if target_key != binding.key => {}
                Target::Company => view.is_default = true,
                Target::Agent(agent) => view.agents.push(agent),
            }
        }
        Ok(view)
    }

    /// The assignments of the company and its agents, the company first.
    pub fn targets(&self, company: &CompanyId) -> Vec<(Target, BindingKey)> {
        self.bindings.targets(company)
    }

    /// A binding as it is stored.
    ///
    /// # Errors
    /// Where there is none of this key.
    pub fn stored_binding(
        &self,
        company: &CompanyId,
        key: &BindingKey,
    ) -> Result<Arc<Binding>, ServiceError> {
        Ok(self.bindings.get(company, key)?)
    }

    /// The keys of the company's bindings, in their order.
    pub fn binding_keys(&self, company: &CompanyId) -> Vec<BindingKey> {
        self.bindings.list(company).iter().map(|binding| binding.key.clone()).collect()
    }

    /// The company's bindings, by key.
    ///
    /// # Errors
    /// None that a caller could cause.
    #[boxed]
    pub async fn bindings(&self, company: &CompanyId) -> Result<Vec<BindingView>, ServiceError> {
        let mut views = Vec::new();
        for binding in self.bindings.list(company) {
            views.push(self.binding(company, &binding.key).await?);
        }
        Ok(views)
    }

    /// One page of the company's bindings, by key; without a limit 1,000. It ends with the binding
    /// that makes it larger than 4 MiB: a configuration may have 256 KiB.
    ///
    /// # Errors
    /// Where the cursor or the limit is not valid.
    #[boxed]
    pub async fn bindings_page(
        &self,
        company: &CompanyId,
        cursor: Option<&str>,
        limit: Option<u32>,
    ) -> Result<Page<BindingView>, ServiceError> {
        let page = self.tenancy.page_of(
            "bindings",
            company,
            &(),
            cursor,
            Some(limit.unwrap_or(limits::MAX_PAGE)),
        )?;
        let (mut views, mut bytes, mut next) = (Vec::new(), 0, None);
        for binding in self.bindings.list(company) {
            let key = binding.key.as_str().as_bytes();
            if page.from().is_some_and(|from| key < from) {
                continue;
            }
            if views.len() == page.limit || bytes >= limits::MAX_PAGE_BYTES {
                next = Some(key.to_vec());
                break;
            }
            let view = self.binding(company, &binding.key).await?;
            bytes += to_json(&view).map_or(0, |json| json.len());
            views.push(view);
        }
        Ok(self.tenancy.sealed(&page, (views, next)))
    }

    /// What a binding's provider asks for, and what it was granted.
    ///
    /// # Errors
    /// Where there is none of this key.
    #[boxed]
    pub async fn grants(
        &self,
        company: &CompanyId,
        key: &BindingKey,
    ) -> Result<GrantsView, ServiceError> {
        let binding = self.stored_or_implied(company, key).await?;
        let builds = self.plugins.builds(&binding.provider_key);
        let newest = builds.iter().find(|build| build.is_allowed_by(&binding.version));
        let described = newest
            .map(|build| build.component.description().permissions.as_slice())
            .unwrap_or_default();
        let requests = newest.map(|build| build.requests(&binding.config)).unwrap_or_default();
        let unreviewed = memhost_types::unreviewed(&binding.reviewed, &requests);
        let view = |(request, described): (&PermissionRequest, &PermissionRequest)| AskedView {
            summary: request.permission.to_string(),
            configured_by: configured(described).map(ToString::to_string),
            is_reviewed: !unreviewed.contains(&request),
            request: request.clone(),
        };
        Ok(GrantsView {
            granted: binding.grants.clone(),
            requested: binding.requested.clone(),
            asked: requests.iter().zip(described).map(view).collect(),
            version: newest.map(|build| build.version().clone()),
        })
    }

    /// Which binding would answer, and why.
    ///
    /// # Errors
    /// Where none would.
    #[boxed]
    pub async fn resolve_binding(
        &self,
        company: &CompanyId,
        agent: Option<&AgentId>,
        named: Option<&BindingKey>,
    ) -> Result<ResolvedView, ServiceError> {
        let mut steps = self.bindings.explain(company, agent, named);
        let (binding, why) = match self.bindings.resolve(company, agent, named) {
            Ok(resolution) => (resolution.binding, resolution.why),
            Err(error) => {
                let implied = self.operations.implied_default(company, named).await?;
                let implied = implied.ok_or(error)?;
                if let Some(last) = steps.last_mut() {
                    (last.decides, last.binding_key) = (named.is_none(), Some(implied.key.clone()));
                    last.says = format!(
                        "nobody has decided it, so the built-in provider answers as `{}`; the \
                         first write makes that binding",
                        implied.key
                    );
                }
                let why = if named.is_some() { Why::ExplicitKey } else { Why::CompanyDefault };
                (implied, why)
            }
        };
        Ok(ResolvedView { binding: self.view_of(&binding).await?, why, steps })
    }
}

impl BindingView {
    /// The troubles of the binding, a sentence each: those that hinder its calls come first.
    pub fn troubles(&self) -> impl Iterator<Item = String> {
        let why = self.failing.as_ref().map(|why| format!(": {why}")).unwrap_or_default();
        let breaker = match self.breaker {
            BreakerState::Closed => None,
            BreakerState::Open { .. } => {
                Some(format!("its circuit is open, because the provider keeps failing{why}"))
            }
            BreakerState::HalfOpen => {
                Some(format!("its circuit is half open, and the provider is being tried{why}"))
            }
        };
        let rejected = self
            .rejected_versions
            .iter()
            .map(|kept| format!("version {} was rejected", kept.version));
        let waiting = self
            .waiting
            .iter()
            .map(|kept| format!("version {} waits for a grant", kept.build.version));
        breaker.into_iter().chain(self.warnings.iter().cloned()).chain(rejected).chain(waiting)
    }
}

/// A warning where the host could not show something that the provider answered.
fn left_out(instances: &Instances) -> Option<String> {
    let left_out = instances.left_out();
    (left_out.count > 0).then(|| {
        let what = counted(left_out.count, "thing was", "things were");
        format!(
            "{what} left out of answers because of how the provider gave them; the last: {}",
            left_out.last
        )
    })
}

impl From<&WaitingBuild<Plugin>> for WaitingView {
    fn from(WaitingBuild { build, asks }: &WaitingBuild<Plugin>) -> Self {
        Self {
            build: BuildView { digest: build.digest(), version: build.version().clone() },
            asks: asks.clone(),
        }
    }
}

impl UsageView {
    async fn of(serving: &Serving) -> Self {
        let directory = match &serving.quota {
            Some(quota) => quota.usage().await,
            None => DirectoryUsage::default(),
        };
        let storage = serving.storage.as_ref().map(|storage| storage.used()).unwrap_or_default();
        let egress = serving.egress.as_ref();
        Self {
            memory_bytes: serving.instances.memory_bytes(),
            storage_bytes: storage.bytes,
            storage_keys: storage.keys,
            directory_bytes: directory.bytes,
            directory_files: directory.files,
            calls_in_flight: serving.instances.in_flight(),
            calls_waiting: serving.instances.waiting(),
            outgoing_requests_per_minute: egress.map_or(0, |egress| egress.requests_of_minute()),
            outgoing_connections: egress.map_or(0, |egress| egress.in_flight()),
        }
    }
}
