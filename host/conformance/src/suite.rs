//! The host of a check, in a temporary directory, with the provider and a binding for each rule.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::network::Network;
use super::report::{Finding, Outcome, Report};
use super::rule::{Rule, Run};
use super::selection::Selection;
use super::subject::{Candidate, Subject, schema_problem};
use super::verdict::{Stop, Verdict};
use super::{CheckError, rules};
use memhost_core::plugins::{LOCAL_MARKDOWN_KEY, PluginError, Plugins};
use memhost_core::{Audit, Caller, CreateBinding, Service, ServiceError, ServiceOptions};
use memhost_sandbox::{AdmissionError, Compiler, Component};
use memhost_types::{
    BindingKey, BindingLimits, BindingPolicy, CompanyId, Grants, JsonObject, Permission,
    PermissionRequest, TextId, VersionChoice,
};

/// The provider to check.
#[derive(Debug, Clone)]
pub enum Source {
    /// A component.
    File(PathBuf),
    /// The built-in provider.
    Builtin,
}

/// The settings of the provider under check.
#[derive(Debug, Clone, Default)]
pub struct CheckOptions {
    /// Its configuration.
    pub config: JsonObject,
    /// The metadata of every record of the check, for providers that need some.
    pub metadata: JsonObject,
    /// The requested origins that it may reach. `None`: no network.
    pub network: Option<Network>,
    /// Requested permissions to refuse, by the name of their kind: `storage`, `directory`,
    /// `embeddings`, `clock`.
    pub deny: Vec<String>,
}

/// A host with the provider under check.
pub struct Suite {
    admitted: Result<Component, AdmissionError>,
    service: Arc<Service>,
    company: CompanyId,
    /// Makes the ids of this check unique: a provider may store records in a remote system.
    run: String,
    bindings: AtomicU64,
    /// Declared after the service, which has files in it open until it is dropped.
    directory: Scratch,
}

struct Scratch(PathBuf);

impl Drop for Scratch {
    fn drop(&mut self) {
        // Files that stay in a temporary directory do no harm.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

impl Suite {
    /// Opens a host that admits the provider. A provider that is not admitted has broken a rule.
    /// `compiled_dir` is that of [`ServiceOptions`]: with one, a component is compiled only once. A
    /// component that is not trusted needs a compiler with limits.
    ///
    /// # Errors
    /// Where the file cannot be read or the host does not open.
    pub async fn open(
        source: &Source,
        compiled_dir: Option<PathBuf>,
        compiler: Compiler,
    ) -> Result<Self, CheckError> {
        let run = uuid::Uuid::new_v4().simple().to_string()[..12].to_owned();
        let directory = Scratch(std::env::temp_dir().join(format!("memhost-check-{run}")));
        let plugins = directory.0.join("plugins");
        let mut options = ServiceOptions::new(directory.0.join("data"));
        options.audit = Audit::Relaxed;
        options.zero_config = false;
        options.plugins_dir = Some(plugins.clone());
        options.compiled_dir = compiled_dir;
        options.sandbox.compiler = compiler;
        let file = |path: &Path, error: std::io::Error| CheckError::File {
            path: path.display().to_string(),
            message: error.to_string(),
        };
        std::fs::create_dir_all(&plugins).map_err(|error| file(&plugins, error))?;
        if let Source::File(path) = source {
            std::fs::copy(path, plugins.join("provider.wasm"))
                .map_err(|error| file(path, error))?;
        }
        let service = Service::open(options).await?;
        let admitted = match source {
            Source::Builtin => builtin(&service)?,
            Source::File(_) => admitted(&service, &plugins.join("provider.wasm")).await?,
        };
        let company =
            CompanyId::parse("check").map_err(|error| CheckError::KeptOut(error.problem))?;
        Ok(Self { admitted, service, company, run, bindings: AtomicU64::new(0), directory })
    }

    /// Tests the rules, one after the other.
    ///
    /// # Errors
    /// Where a rule is not known, or the provider does not accept the configuration.
    pub async fn check(
        &self,
        options: &CheckOptions,
        selection: &Selection,
    ) -> Result<Report, CheckError> {
        let started = Instant::now();
        let selected = selection.rules()?;
        if let Ok(component) = &self.admitted {
            self.prepare(component, options, &selected).await?;
        }
        let mut findings = Vec::with_capacity(selected.len());
        for rule in selected {
            let began = Instant::now();
            let outcome = match self.run(rule, options).await {
                Ok(()) => Outcome::Passed,
                Err(Stop::Failed(saw)) => Outcome::Failed { saw },
                Err(Stop::Skipped(why)) => Outcome::Skipped { why },
            };
            findings.push(Finding { rule: *rule, outcome, took: began.elapsed() });
        }
        let inspection = self.admitted.as_ref().ok().map(Component::inspection);
        Ok(Report::new(inspection, selection, findings, started.elapsed()))
    }

    /// Shuts the host down and removes its directory.
    pub async fn close(self) {
        self.service.background().shutdown(Duration::from_secs(2)).await;
        // Work in the background may just have begun; the store's last flush needs the directory.
        let until = Instant::now() + Duration::from_secs(1);
        while Arc::strong_count(&self.service) > 1 && Instant::now() < until {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        drop(self.service);
        drop(self.directory);
    }

    /// An invalid configuration or secret is the caller's mistake, not a broken rule.
    async fn prepare(
        &self,
        component: &Component,
        options: &CheckOptions,
        selected: &[&Rule],
    ) -> Result<(), CheckError> {
        if !selected.iter().any(|rule| matches!(rule.run, Run::Binding(_)))
            || schema_problem(&self.service, component).await.is_some()
        {
            return Ok(());
        }
        if let Some(network) = &options.network {
            let set =
                network.set_secrets(&self.service, &self.company, &asked(component, options)).await;
            set.map_err(Box::new)?;
        }
        self.bind(component, options, true).await.map_err(Box::new)?;
        Ok(())
    }

    async fn run(&self, rule: &Rule, options: &CheckOptions) -> Verdict {
        let component = match &self.admitted {
            Ok(component) => component,
            Err(error) if (rule.refusal)(error) => return Err(Stop::Failed(error.to_string())),
            Err(error) => {
                return Err(Stop::Skipped(format!("the component is not admitted: {error}")));
            }
        };
        if let Some(interface) = rule.interface.filter(|interface| !component.exports(*interface)) {
            return Err(Stop::Skipped(format!(
                "the component does not export `{}`",
                interface.name()
            )));
        }
        let declared = &component.description().declarations;
        if let Some(exception) = rule.unless.filter(|exception| declared.excepts(*exception)) {
            return Err(Stop::Skipped(format!("it declares `{exception}`: {}", exception.about())));
        }
        if let Some(work) = rule.left.iter().find(|work| declared.leaves(**work)) {
            return Err(Stop::Skipped(format!("it declares `{work}`: the host {}", work.about())));
        }
        match rule.run {
            Run::Admission => Ok(()),
            Run::Component(trial) => {
                let (service, component) = (Arc::clone(&self.service), component.clone());
                trial(&Candidate { service, component, config: options.config.clone() }).await
            }
            Run::Binding(trial) => trial(&self.subject(component, rule, options).await?).await,
        }
    }

    async fn subject(
        &self,
        component: &Component,
        rule: &Rule,
        options: &CheckOptions,
    ) -> Result<Subject, Stop> {
        let none = |error: ServiceError| Stop::Skipped(format!("no binding can be made: {error}"));
        let key = self
            .bind(component, options, rule.id != rules::WITHOUT_OPTIONAL)
            .await
            .map_err(none)?;
        let bench = self.service.control().workbench(&self.company, &key).await.map_err(none)?;
        Ok(Subject {
            service: Arc::clone(&self.service),
            company: self.company.clone(),
            tag: format!("{}-{key}", self.run),
            key,
            description: Arc::new(component.description().clone()),
            interfaces: Arc::new(
                component.inspection().interfaces.iter().copied().collect::<BTreeSet<_>>(),
            ),
            metadata: Arc::new(options.metadata.clone()),
            numbers: Arc::new(AtomicU64::new(1)),
            bench,
        })
    }

    async fn bind(
        &self,
        component: &Component,
        options: &CheckOptions,
        with_optional: bool,
    ) -> Result<BindingKey, ServiceError> {
        let number = self.bindings.fetch_add(1, Ordering::Relaxed);
        let host = |error: memhost_types::IdError| ServiceError::Host(error.problem);
        let key = BindingKey::parse(&format!("b{number}")).map_err(host)?;
        let description = component.description();
        let is_given = |request: &&PermissionRequest| {
            (with_optional || !request.optional)
                && match &request.permission {
                    Permission::Http(_) | Permission::Secret(_) => options.network.is_some(),
                    permission => !options.deny.iter().any(|kind| kind == kind_of(permission)),
                }
        };
        let given: Vec<PermissionRequest> =
            asked(component, options).into_iter().filter(|one| is_given(&one)).collect();
        let grants = options
            .network
            .as_ref()
            .map_or_else(|| Grants::all_of(&given), |network| network.grants(&given));
        let request = CreateBinding {
            key: key.clone(),
            provider_key: description.provider_key.clone(),
            version: VersionChoice::Pin(component.inspection().digest),
            config: options.config.clone(),
            grants: Some(grants),
            limits: BindingLimits::default(),
            policy: BindingPolicy::default(),
            default: false,
        };
        self.service.control().create_binding(&Caller::operator(), &self.company, request).await?;
        Ok(key)
    }
}

/// The component's requests with the configuration of the check.
fn asked(component: &Component, options: &CheckOptions) -> Vec<PermissionRequest> {
    component
        .description()
        .permissions
        .iter()
        .map(|request| request.resolved(&options.config))
        .collect()
}

fn kind_of(permission: &Permission) -> &'static str {
    match permission {
        Permission::Storage(_) => "storage",
        Permission::Directory(_) => "directory",
        Permission::Embeddings => "embeddings",
        Permission::Http(_) => "http",
        Permission::Secret(_) => "secret",
        Permission::Clock => "clock",
        Permission::Other(_) => "other",
    }
}

fn builtin(service: &Service) -> Result<Result<Component, AdmissionError>, CheckError> {
    let plugins = service.control().plugins().admitted.into_iter();
    let mut own = plugins
        .filter(|plugin| plugin.inspection.description.provider_key.as_str() == LOCAL_MARKDOWN_KEY);
    let component = own.find_map(|plugin| service.control().component(plugin.inspection.digest));
    component
        .map(Ok)
        .ok_or_else(|| CheckError::KeptOut("the built-in provider is not there".to_owned()))
}

/// The admitted component, or why admission refused the file.
async fn admitted(
    service: &Service,
    file: &Path,
) -> Result<Result<Component, AdmissionError>, CheckError> {
    let plugins = service.control().plugins();
    let Some(refused) = plugins.refused.first() else {
        let of_file = |component: &Component| {
            component.description().provider_key.as_str() != LOCAL_MARKDOWN_KEY
        };
        let mut all = plugins
            .admitted
            .iter()
            .filter_map(|plugin| service.control().component(plugin.inspection.digest));
        return all
            .find(of_file)
            .map(Ok)
            .ok_or_else(|| CheckError::KeptOut("the host has not seen it".to_owned()));
    };
    // The list of refused files has only a text; inspecting again returns the error.
    match Plugins::inspect(service.control().sandbox(), file).await {
        Err(PluginError::Admission(error)) => Ok(Err(error)),
        _ => Err(CheckError::KeptOut(refused.reason.clone())),
    }
}
