//! A temporary host for one build, with the admission, operations and sandbox of a serving host. It
//! measures each call.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::Deserialize;
use serde_json::{Value, json};

use crate::answer::{self, Answer};
use crate::texts::escape;
use crate::{Backend, CliError, Result, process, user_files};
use memhost_conformance::Network;
use memhost_core::plugins::Plugins;
use memhost_core::{Audit, Caller, CreateBinding, Page, Service, ServiceOptions, UpdateBinding};
use memhost_http::api::JobView;
use memhost_sandbox::{Component, Inspection, Meter, Metered, Sandbox, SandboxOptions};
use memhost_types::{
    BindingKey, BindingLimits, BindingPolicy, CompanyId, Grants, JobStatus, JsonObject, ListPage,
    Operation, OperationId, OperationPage, PermissionRequest, TextId, VersionChoice,
};

/// How long to wait for the jobs of a capture.
const JOBS_END_WITHIN: Duration = Duration::from_secs(120);

/// A build to call, and its settings.
pub(super) struct Setup {
    pub(super) file: PathBuf,
    pub(super) company: CompanyId,
    pub(super) key: BindingKey,
    /// The provider's configuration. `None`: the binding's, or an empty one.
    pub(super) config: Option<JsonObject>,
    /// The limits. `None`: the defaults.
    pub(super) limits: Option<BindingLimits>,
    /// What the build may reach, and so send its data to. `None`: no network and no secrets.
    pub(super) network: Option<Network>,
    /// Whether due jobs and deliveries run.
    pub(super) has_background: bool,
}

impl Setup {
    /// The trial of a file, for the company `dev` and its binding `default`.
    pub(super) fn of(file: &Path) -> Result<Self> {
        Ok(Self {
            file: file.to_owned(),
            company: id("dev")?,
            key: id("default")?,
            config: None,
            limits: None,
            network: None,
            has_background: true,
        })
    }
}

/// The host, with the build bound.
pub(super) struct Trial {
    pub(super) host: Backend,
    pub(super) inspection: Inspection,
    pub(super) company: CompanyId,
    pub(super) key: BindingKey,
    service: Arc<Service>,
    meter: Meter,
}

/// One finished call.
pub(super) struct Called {
    /// The answer, whose type depends on the call, or the error.
    pub(super) answer: Result<Answer<Value>>,
    /// The operation with the guest's log, if there is one.
    pub(super) operation: Answer<Option<Operation>>,
    /// The resources that it used.
    pub(super) took: Metered,
}

impl Trial {
    /// Opens a host on `directory`, which may hold data of another host, and binds the build to
    /// that data.
    pub(super) async fn open(directory: &Path, setup: Setup) -> Result<Self> {
        // In a directory of its own: other plugins of a copied host are not tested.
        let plugins = directory.join("tried");
        let inspection = install(&setup.file, &plugins).await?.inspection().clone();
        let (service, meter) = host(directory, &plugins, setup.has_background).await?;
        check_admitted(&service, &setup.file)?;
        let trial = Self {
            host: Backend::of(Arc::clone(&service)),
            inspection,
            company: setup.company.clone(),
            key: setup.key.clone(),
            service,
            meter,
        };
        trial.bind(setup).await?;
        Ok(trial)
    }

    /// Pins an existing binding to this build; creates the binding if there is none.
    async fn bind(&self, setup: Setup) -> Result<()> {
        let description = &self.inspection.description;
        // Not the built-in provider, which answers where nothing is stored.
        let present = self.service.control().stored_binding(&self.company, &self.key).ok();
        if let Some(binding) = &present
            && binding.provider_key != description.provider_key
        {
            let message = format!(
                "is the provider `{}`, but the directory has data of `{of}`; use another directory \
                 or a build of `{of}`",
                description.provider_key,
                of = binding.provider_key
            );
            return Err(CliError::input(setup.file.display().to_string(), message));
        }
        let bound = present.as_ref().map(|binding| binding.config.clone());
        let config = setup.config.clone().or(bound).unwrap_or_default();
        let asked: Vec<_> =
            description.permissions.iter().map(|request| request.resolved(&config)).collect();
        let network = setup.network.as_ref();
        let reach = granted(network, &self.service, &self.company, &asked).await?;
        let granted = present
            .as_ref()
            .map_or_else(|| Grants::all_of(&asked), |binding| extended(&binding.grants, &asked));
        let grants = Grants { http: reach.http, secrets: reach.secrets, ..granted };
        match present {
            Some(_) => self.pin(setup, grants).await,
            None => self.create(setup, config, grants).await,
        }
    }

    async fn create(&self, setup: Setup, config: JsonObject, grants: Grants) -> Result<()> {
        let request = CreateBinding {
            key: setup.key,
            provider_key: self.inspection.description.provider_key.clone(),
            version: VersionChoice::Pin(self.inspection.digest),
            grants: Some(grants),
            config,
            limits: setup.limits.unwrap_or_default(),
            policy: BindingPolicy::default(),
            default: true,
        };
        let made = self
            .service
            .control()
            .create_binding(&Caller::operator(), &self.company, request)
            .await;
        made.map(drop).map_err(CliError::host)
    }

    async fn pin(&self, setup: Setup, grants: Grants) -> Result<()> {
        let caller = Caller::operator();
        let request = UpdateBinding {
            version: Some(VersionChoice::Pin(self.inspection.digest)),
            config: setup.config,
            limits: setup.limits,
            enabled: Some(true),
            ..UpdateBinding::default()
        };
        let changed =
            self.service.control().update_binding(&caller, &self.company, &self.key, request).await;
        changed.map_err(CliError::host)?;
        // Set again, so that a build that requests more does not wait for a decision.
        let set = self
            .service
            .control()
            .set_grants(&caller, &self.company, &self.key, None, grants)
            .await;
        set.map(drop).map_err(CliError::host)
    }

    /// Migrates the storage to this build first, so that the next call measures only itself.
    pub(super) async fn warm(&self) {
        let body =
            json!({ "scope": { "companyId": self.company }, "bindingKey": self.key, "limit": 1 });
        // An error is ignored: the call that is measured reports it.
        drop(self.host.post::<ListPage>(&self.runtime("list"), &body).await);
    }

    /// Why the host rejected the build for this binding, if it did: then another build answered, or
    /// none.
    async fn rejection(&self) -> Option<CliError> {
        let binding = self.service.control().binding(&self.company, &self.key).await.ok()?;
        let kept = binding
            .rejected_versions
            .into_iter()
            .find(|kept| kept.digest == self.inspection.digest)?;
        Some(CliError::Failed(format!("version {} cannot be used: {}", kept.version, kept.reason)))
    }

    /// Calls a route of the runtime plane.
    pub(super) async fn call(&self, route: &str, body: &Value) -> Result<Called> {
        self.meter.take();
        let answer: Result<Answer<Value>, _> = self.host.post(&self.runtime(route), body).await;
        // Before a job of this call starts.
        let took = self.took();
        let id = match &answer {
            // Every answer of the runtime plane names its operation.
            Ok(answer) => {
                let Operated { operation_id } = answer::read(answer.json())?;
                Some(operation_id.to_string())
            }
            Err(CliError::Problem { operation, .. }) => operation.clone(),
            Err(_) => None,
        };
        let operation = match id {
            Some(id) => self.host.get(&self.path(&format!("operations/{}", escape(&id)))).await?,
            None => Answer::new(Value::Null),
        };
        let answer = self.rejection().await.map_or(answer, Err);
        Ok(Called { answer, operation, took })
    }

    /// Waits for the jobs of a capture; answers the operations that ran them, oldest first.
    pub(super) async fn jobs(&self) -> Result<(Vec<Answer<Operation>>, Metered)> {
        let until = Instant::now() + JOBS_END_WITHIN;
        loop {
            let jobs: Answer<Page<JobView>> = self.host.get(&self.path("jobs?limit=100")).await?;
            let goes_on =
                |view: &JobView| matches!(view.job.status, JobStatus::Queued | JobStatus::Running);
            if !jobs.read()?.items.iter().any(goes_on) || Instant::now() > until {
                break;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        let path = self.path("operations?kind=extraction&limit=100");
        let worked: Answer<OperationPage> = self.host.get(&path).await?;
        let mut worked = worked.items();
        worked.reverse();
        Ok((worked, self.took()))
    }

    /// The resources that all calls since the last measurement used.
    fn took(&self) -> Metered {
        self.meter.take().into_iter().fold(Metered::default(), |sum, call| Metered {
            instructions: sum.instructions + call.instructions,
            memory_bytes: sum.memory_bytes.max(call.memory_bytes),
            provider_us: sum.provider_us + call.provider_us,
        })
    }

    /// A path of the company's runtime plane.
    pub(super) fn runtime(&self, rest: &str) -> String {
        format!("/runtime/v1/companies/{}/{rest}", escape(self.company.as_str()))
    }

    /// A path of the company's control plane.
    fn path(&self, rest: &str) -> String {
        format!("/control/v1/companies/{}/{rest}", escape(self.company.as_str()))
    }

    /// Shuts the host down, and waits until all data is on disk.
    pub(super) async fn end(self) -> Result<()> {
        self.service.background().shutdown(Duration::from_secs(10)).await;
        self.service.control().flush().await.map_err(CliError::host)
    }
}

/// What every answer of the runtime plane has.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Operated {
    operation_id: OperationId,
}

/// The component in a file.
pub(super) async fn inspect(file: &Path) -> Result<Component> {
    let options =
        SandboxOptions { compiler: process::this_program()?, ..SandboxOptions::default() };
    let sandbox = Sandbox::new(options).map_err(CliError::host)?;
    let inspected = Plugins::inspect(&sandbox, file).await;
    inspected.map_err(|error| CliError::input(file.display().to_string(), error))
}

/// Copies a component into a plugins directory.
pub(crate) async fn install(file: &Path, plugins: &Path) -> Result<Component> {
    let component = inspect(file).await?;
    std::fs::create_dir_all(plugins)?;
    std::fs::copy(file, plugins.join("plugin.wasm"))
        .map_err(|error| CliError::file(file, &error))?;
    Ok(component)
}

/// Fails if the host refused the only file of its plugins directory.
pub(crate) fn check_admitted(service: &Service, file: &Path) -> Result<()> {
    let refused = service.control().plugins().refused.into_iter().next();
    refused
        .map_or(Ok(()), |refused| Err(CliError::input(file.display().to_string(), refused.reason)))
}

async fn host(
    directory: &Path,
    plugins: &Path,
    has_background: bool,
) -> Result<(Arc<Service>, Meter)> {
    let meter = Meter::default();
    let mut options = ServiceOptions::new(directory.join("data"));
    options.plugins_dir = Some(plugins.to_owned());
    options.compiled_dir = user_files::compiled_dir();
    options.audit = Audit::Relaxed;
    options.has_background = has_background;
    options.sandbox.meter = Some(meter.clone());
    options.sandbox.compiler = process::this_program()?;
    Ok((Service::open(options).await.map_err(CliError::host)?, meter))
}

/// A host on a copied directory. It starts no background work, and has only the builds that the
/// directory keeps.
pub(super) async fn without_background(directory: &Path) -> Result<Arc<Service>> {
    let plugins = directory.join("tried");
    std::fs::create_dir_all(&plugins)?;
    Ok(host(directory, &plugins, false).await?.0)
}

/// What a build gets of what it requests, after its secrets are set: everything, and the network
/// and secrets only where the author allows them.
pub(super) async fn granted(
    network: Option<&Network>,
    service: &Service,
    company: &CompanyId,
    asked: &[PermissionRequest],
) -> Result<Grants> {
    let Some(network) = network else {
        return Ok(Grants { http: Vec::new(), secrets: Vec::new(), ..Grants::all_of(asked) });
    };
    network.set_secrets(service, company, asked).await.map_err(CliError::host)?;
    Ok(network.grants(asked))
}

/// The grants of a binding, and what a newer build requests except network access and secrets.
fn extended(granted: &Grants, asked: &[PermissionRequest]) -> Grants {
    let asked = Grants::all_of(asked);
    Grants {
        storage_bytes: granted.storage_bytes.max(asked.storage_bytes),
        directory_bytes: granted.directory_bytes.max(asked.directory_bytes),
        embeddings: granted.embeddings || asked.embeddings,
        clock: granted.clock || asked.clock,
        ..granted.clone()
    }
}

/// Reads an id.
pub(super) fn id<T: TextId>(text: &str) -> Result<T> {
    T::parse(text).map_err(|error| CliError::input(text, error))
}

/// The resources of a call as JSON.
pub(super) fn took(took: Metered) -> Value {
    json!({
        "instructions": took.instructions, "memoryBytes": took.memory_bytes,
        "providerUs": took.provider_us,
    })
}
