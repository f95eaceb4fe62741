//! Putting a build into a running host, and waiting until it serves.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::answer::Answer;
use crate::args::CompanyArgs;
use crate::output::line;
use crate::plugin::trial::granted;
use crate::session::Session;
use crate::texts::escape;
use crate::{CliError, Result, argument, process, serve};
use memhost_conformance::Network;
use memhost_core::plugins::RefusedPlugin;
use memhost_core::{
    AdmittedPlugin, BindingView, Caller, Page, PluginView, Service, ServiceOptions,
};
use memhost_sandbox::Inspection;
use memhost_server::{self as server, AdminToken, Endpoint, ServerOptions, Surfaces};
use memhost_types::{
    Binding, BindingKey, CompanyId, Digest, Grants, JsonObject, ListPage, ProviderDescription,
    ProviderKey, RejectedVersion, TextId,
};

/// How often the host is asked to scan its plugins directory: it admits a file that has not changed
/// for 200 ms.
const SCANS: u32 = 20;
const BETWEEN_SCANS: Duration = Duration::from_millis(100);

/// The plugins directory that receives builds, and its host.
pub(super) struct Place {
    plugins: PathBuf,
    company: CompanyArgs,
    /// The host that this command runs, unless it uses a running one.
    own: Option<Own>,
    config: JsonObject,
    /// What the build may reach on the host of this command.
    network: Option<Network>,
}

struct Own {
    service: Arc<Service>,
    stop: oneshot::Sender<()>,
    serving: JoinHandle<Result<(), server::ServeError>>,
}

/// A build that the host admitted.
pub(super) struct Swapped {
    /// The provider key.
    pub(super) provider: ProviderKey,
    pub(super) digest: Digest,
    /// The message for the author.
    pub(super) said: String,
    /// Whether the author knows that the host went back to the previous build.
    pub(super) is_rollback_reported: bool,
}

impl Place {
    /// The plugins directory of a running host.
    pub(super) fn of_running(
        plugins: &Path,
        config: &str,
        network: Option<Network>,
        company: &CompanyArgs,
    ) -> Result<Self> {
        if !plugins.is_dir() {
            let message = format!("{} is not a directory", plugins.display());
            return Err(CliError::input("--into", message));
        }
        if network.is_some() {
            let message = "is for the host that this command runs; the host of --into has its own \
                           grants: `memhost binding grant NAME --http ORIGIN`";
            return Err(CliError::input("--allow-network", message));
        }
        let (plugins, company) = (plugins.to_owned(), company.clone());
        let config = argument::object("--config", Some(config))?.unwrap_or_default();
        Ok(Self { plugins, company, own: None, config, network })
    }

    /// A host in this process.
    pub(super) async fn open(
        project: &Path,
        config: &str,
        network: Option<Network>,
        company: &CompanyArgs,
        listen: SocketAddr,
    ) -> Result<Self> {
        let config = argument::object("--config", Some(config))?.unwrap_or_default();
        let data_dir = company.host.data_dir.clone();
        let data_dir = data_dir.unwrap_or_else(|| project.join("target/memhost-dev"));
        let plugins = company.host.plugins_dir.clone().unwrap_or_else(|| data_dir.join("plugins"));
        std::fs::create_dir_all(&plugins)?;
        let mut options = ServiceOptions::new(&data_dir);
        options.plugins_dir = Some(plugins.clone());
        options.sandbox.compiler = process::this_program()?;
        let service = Service::open(options).await.map_err(CliError::host)?;
        let endpoint =
            Endpoint::bind(&listen.into(), Surfaces::All).await.map_err(CliError::host)?;
        let (token, shown) = AdminToken::of_data_dir(&data_dir, true).map_err(CliError::host)?;
        let (url, shown) = (endpoint.address().to_string(), shown.unwrap_or_default());
        let mut company = company.clone();
        let name = company
            .company
            .filter(|company| !company.is_empty())
            .unwrap_or_else(|| "dev".to_owned());
        let made =
            CompanyId::parse(name.as_str()).map_err(|error| CliError::input("--company", error))?;
        service.tenancy().make_company(&Caller::operator(), &made).await.map_err(CliError::host)?;
        company.company = Some(name);
        let for_shell = serve::for_shell(&data_dir, &shown)?;
        line(&format!(
            "this command runs a host, with its data in {}; in another terminal:\n\n  export \
             MEMHOST_URL={url} \
             MEMHOST_TOKEN={for_shell} MEMHOST_COMPANY={}\n  memhost capture 'The gate is \
             green'\n  memhost search gate\n",
            data_dir.display(),
            company.company.as_deref().unwrap_or_default(),
        ))?;
        (company.host.url, company.host.control_url, company.host.token) =
            (Some(url), None, Some(shown));
        (company.host.data_dir, company.host.plugins_dir) = (None, None);
        let (stop, stopped) = oneshot::channel();
        let serving = tokio::spawn(server::run(
            vec![endpoint],
            Arc::clone(&service),
            token,
            ServerOptions::default(),
            async move {
                tokio::select! {
                    _ = stopped => {}
                    () = crate::signals::stop() => {}
                }
            },
        ));
        Ok(Self { plugins, company, own: Some(Own { service, stop, serving }), config, network })
    }

    /// The host, with the company if one is named.
    pub(super) async fn session(&self) -> Result<Session> {
        match self.company.open().await {
            Err(CliError::Input { what, .. }) if what == "--company" => {
                self.company.host.open().await
            }
            session => session,
        }
    }

    /// Copies a component into the plugins directory and lets the host scan it. Answers none if the
    /// host refuses it.
    pub(super) async fn swap(&self, component: &Path) -> Result<Option<Swapped>> {
        let name =
            |error: &dyn std::fmt::Display| CliError::input(component.display().to_string(), error);
        let bytes = std::fs::read(component).map_err(|error| name(&error))?;
        let digest = Digest::of(&bytes);
        let target = self.plugins.join(component.file_name().unwrap_or_default());
        // Under another name first, so that the host never sees a part of the file.
        let mut file =
            tempfile::Builder::new().prefix(".memhost-dev-").tempfile_in(&self.plugins)?;
        std::io::Write::write_all(&mut file, &bytes)?;
        #[cfg(unix)]
        file.as_file().set_permissions(std::os::unix::fs::PermissionsExt::from_mode(0o644))?;
        file.persist(&target).map_err(|error| name(&error.error))?;
        let session = self.session().await?;
        let mut scans = 0;
        while scans < SCANS {
            let plugins: Answer<PluginView> =
                session.host.post("/control/v1/plugins/scan", &json!({})).await?;
            let plugins = plugins.read()?;
            let is_it = |plugin: &&AdmittedPlugin| plugin.inspection.digest == digest;
            if let Some(plugin) = plugins.admitted.iter().find(is_it) {
                return self.serving(&session, &plugin.inspection).await.map(Some);
            }
            let is_its_file = |path: &Path| path.file_name() == target.file_name();
            let refused = plugins.refused.iter().find(|refused| is_its_file(&refused.path));
            if let Some(RefusedPlugin { reason, .. }) = refused {
                line(&format!(
                    "the host refuses the build: {reason}; the previous build keeps serving"
                ))?;
                return Ok(None);
            }
            // Compiling has a limit of its own.
            scans += u32::from(!plugins.admitting.iter().any(|path| is_its_file(path)));
            tokio::time::sleep(BETWEEN_SCANS).await;
        }
        let message = format!(
            "the host does not find {}; give the plugins directory of the running host",
            target.display()
        );
        Err(CliError::input("--into", message))
    }

    /// Calls every binding of the provider, so that it switches to the build, and says which did.
    async fn serving(&self, session: &Session, inspection: &Inspection) -> Result<Swapped> {
        let (description, digest) = (&inspection.description, inspection.digest);
        let provider = description.provider_key.clone();
        let build = format!("{provider} {} ({})", description.version, digest.short());
        if session.company.is_empty() {
            let said =
                format!("{build} is admitted; add --company NAME to see which bindings it serves");
            return Ok(Swapped { provider, digest, said, is_rollback_reported: false });
        }
        if let Some(own) = &self.own {
            self.bind(own, session, description).await?;
        }
        let mut said = Vec::new();
        for view in bindings_of(session, &provider).await? {
            let key = view.binding.key;
            // A binding switches to another build at its next call.
            let body =
                json!({ "scope": { "companyId": session.company }, "bindingKey": key, "limit": 1 });
            let called = session.host.post::<ListPage>(&session.runtime("list"), &body).await;
            let now = binding(session, &key).await?;
            said.push(match called {
                _ if now.serving.as_ref().is_some_and(|build| build.digest == digest) => {
                    format!("serves the binding {key}")
                }
                Err(error) => format!("does not serve the binding {key}: {error}"),
                Ok(_) => format!("does not serve the binding {key}: {}", why(&now, digest)),
            });
        }
        let said = if said.is_empty() {
            format!(
                "{build} is admitted; `memhost binding create default --provider {provider} \
                 --default` binds it"
            )
        } else {
            format!("{build} {}", said.join(" and "))
        };
        Ok(Swapped { provider, digest, said, is_rollback_reported: false })
    }

    /// Why the host went back to the previous build for this binding, if it did.
    pub(super) async fn rollback(
        &self,
        key: &BindingKey,
        digest: Digest,
    ) -> Result<Option<String>> {
        let session = self.session().await?;
        if session.company.is_empty() {
            return Ok(None);
        }
        let rejected = binding(&session, key).await?.rejected_versions;
        let rejected = rejected.into_iter().find(|rejected| rejected.digest == digest);
        Ok(rejected.map(|RejectedVersion { reason, .. }| {
            format!("the host went back to the previous build for {key}: {reason}")
        }))
    }

    /// Creates a binding on the host of this command, with everything that the provider requests;
    /// the network only if the author allowed it.
    async fn bind(
        &self,
        own: &Own,
        session: &Session,
        description: &ProviderDescription,
    ) -> Result<()> {
        let provider = &description.provider_key;
        let asked = description.permissions.iter();
        let asked: Vec<_> = asked.map(|request| request.resolved(&self.config)).collect();
        let company = CompanyId::parse(&session.company).map_err(CliError::host)?;
        let grants = granted(self.network.as_ref(), &own.service, &company, &asked).await?;
        if let Some(view) = bindings_of(session, provider).await?.into_iter().next() {
            // From an earlier run, which may have had other flags.
            let Binding { key, grants: before, .. } = view.binding;
            let now = Grants { http: grants.http, secrets: grants.secrets, ..before };
            let set = own
                .service
                .control()
                .set_grants(&Caller::operator(), &company, &key, None, now)
                .await;
            set.map_err(CliError::host)?;
        } else {
            let body = json!({
                "key": provider, "providerKey": provider, "config": self.config,
                "grants": grants, "default": true,
            });
            session.post::<BindingView>("bindings", &body).await?;
        }
        Ok(())
    }

    /// Stops the host that this command runs.
    pub(super) async fn end(self) -> Result<()> {
        let Some(Own { service, stop, serving }) = self.own else { return Ok(()) };
        let _ = stop.send(());
        match serving.await {
            Ok(ended) => ended.map_err(CliError::host)?,
            Err(error) => return Err(CliError::host(error)),
        }
        service.control().flush().await.map_err(CliError::host)
    }
}

/// The bindings that a provider serves.
async fn bindings_of(session: &Session, provider: &ProviderKey) -> Result<Vec<BindingView>> {
    let all: Answer<Page<BindingView>> = session.get("bindings").await?;
    let all = all.read()?.items.into_iter();
    Ok(all.filter(|view| view.binding.provider_key == *provider).collect())
}

async fn binding(session: &Session, key: &BindingKey) -> Result<BindingView> {
    session.get(&format!("bindings/{}", escape(key.as_str()))).await?.read()
}

/// Why another build still serves a binding.
fn why(view: &BindingView, digest: Digest) -> String {
    if let Some(rejected) = view.rejected_versions.iter().find(|build| build.digest == digest) {
        return rejected.reason.clone();
    }
    if view.waiting.iter().any(|waiting| waiting.build.digest == digest) {
        return format!(
            "it requests more than was granted; see `memhost binding grant {}`",
            view.binding.key
        );
    }
    let version = view.serving.as_ref().map(|build| build.version.to_string());
    format!(
        "{} does; its version is higher, or the binding is pinned to it",
        version.unwrap_or_default()
    )
}
