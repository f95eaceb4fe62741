//! Putting a build into a running host, and waiting until it serves.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use super::DevArgs;
use crate::args::CompanyArgs;
use crate::output::{escape, line, text};
use crate::page::items;
use crate::session::Session;
use crate::{CliError, argument, compiler, serve};
use memhost_conformance::Network;
use memhost_core::{Caller, Service, ServiceOptions};
use memhost_server::{self as server, AdminToken, Endpoint, ServerOptions, Surfaces};
use memhost_types::{BindingKey, CompanyId, Digest, Grants, JsonObject, PermissionRequest, TextId};

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
    pub(super) provider: String,
    pub(super) digest: Digest,
    /// The message for the author.
    pub(super) said: String,
    /// Whether the author knows that the host went back to the previous build.
    pub(super) is_rollback_reported: bool,
}

impl Place {
    /// The plugins directory that the arguments name, or a host in this process.
    pub(super) async fn open(args: &DevArgs, project: &Path) -> Result<Self, CliError> {
        let config = argument::object("--config", Some(&args.config))?.unwrap_or_default();
        let network = args.network.network()?;
        if let Some(plugins) = &args.into {
            if !plugins.is_dir() {
                return Err(CliError::input(
                    "--into",
                    format!("{} is not a directory", plugins.display()),
                ));
            }
            if network.is_some() {
                let message = "is for the host that this command runs; the host of --into has its \
                               own grants: `memhost \
                               binding grant NAME --http ORIGIN`";
                return Err(CliError::input("--allow-network", message));
            }
            return Ok(Self {
                plugins: plugins.clone(),
                company: args.company.clone(),
                own: None,
                config,
                network,
            });
        }
        let data_dir = args.company.host.data_dir.clone();
        let data_dir = data_dir.unwrap_or_else(|| project.join("target/memhost-dev"));
        let plugins =
            args.company.host.plugins_dir.clone().unwrap_or_else(|| data_dir.join("plugins"));
        std::fs::create_dir_all(&plugins)?;
        let mut options = ServiceOptions::new(&data_dir);
        options.plugins_dir = Some(plugins.clone());
        options.sandbox.compiler = compiler::this_program()?;
        let service = Service::open(options).await.map_err(CliError::host)?;
        let endpoint =
            Endpoint::bind(&args.listen.into(), Surfaces::All).await.map_err(CliError::host)?;
        let (token, shown) = AdminToken::of_data_dir(&data_dir, true).map_err(CliError::host)?;
        let (url, shown) = (endpoint.address().to_string(), shown.unwrap_or_default());
        let mut company = args.company.clone();
        let name = company
            .company
            .filter(|company| !company.is_empty())
            .unwrap_or_else(|| "dev".to_owned());
        let made =
            CompanyId::parse(name.as_str()).map_err(|error| CliError::input("--company", error))?;
        service.make_company(&Caller::operator(), &made).await.map_err(CliError::host)?;
        company.company = Some(name);
        line(&format!(
            "this command runs a host, with its data in {}; in another terminal:\n\n  export \
             MEMHOST_URL={url} \
             MEMHOST_TOKEN={shown} MEMHOST_COMPANY={}\n  memhost capture 'The gate is \
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
                    () = serve::stop() => {}
                }
            },
        ));
        Ok(Self { plugins, company, own: Some(Own { service, stop, serving }), config, network })
    }

    /// The host, with the company if one is named.
    pub(super) async fn session(&self) -> Result<Session, CliError> {
        match self.company.open().await {
            Err(CliError::Input { what, .. }) if what == "--company" => {
                self.company.host.open().await
            }
            session => session,
        }
    }

    /// Copies a component into the plugins directory and lets the host scan it. Answers none if the
    /// host refuses it.
    pub(super) async fn swap(&self, component: &Path) -> Result<Option<Swapped>, CliError> {
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
            let plugins = session.host.post("/control/v1/plugins/scan", &json!({})).await?;
            let is_it = |plugin: &&Value| text(plugin, "/digest") == digest.to_string();
            if let Some(plugin) = items(&plugins, "admitted").iter().find(is_it) {
                return self.serving(&session, plugin, digest).await.map(Some);
            }
            let is_its_file = |refused: &&Value| {
                Path::new(&text(refused, "/path")).file_name() == target.file_name()
            };
            if let Some(refused) = items(&plugins, "refused").iter().find(is_its_file) {
                let reason = text(refused, "/reason");
                line(&format!(
                    "the host refuses the build: {reason}; the previous build keeps serving"
                ))?;
                return Ok(None);
            }
            // Compiling has a limit of its own.
            let is_its_file =
                |path: &Value| Path::new(&text(path, "")).file_name() == target.file_name();
            scans += u32::from(!items(&plugins, "admitting").iter().any(is_its_file));
            tokio::time::sleep(BETWEEN_SCANS).await;
        }
        let message = format!(
            "the host does not find {}; give the plugins directory of the running host",
            target.display()
        );
        Err(CliError::input("--into", message))
    }

    /// Calls every binding of the provider, so that it switches to the build, and says which did.
    async fn serving(
        &self,
        session: &Session,
        plugin: &Value,
        digest: Digest,
    ) -> Result<Swapped, CliError> {
        let provider = text(plugin, "/description/providerKey");
        let build =
            format!("{provider} {} ({})", text(plugin, "/description/version"), digest.short());
        if session.company.is_empty() {
            let said =
                format!("{build} is admitted; add --company NAME to see which bindings it serves");
            return Ok(Swapped { provider, digest, said, is_rollback_reported: false });
        }
        if let Some(own) = &self.own {
            self.bind(own, session, plugin, &provider).await?;
        }
        let bindings = session.get("bindings").await?;
        let mut said = Vec::new();
        for binding in
            items(&bindings, "items").iter().filter(|binding| binding["providerKey"] == *provider)
        {
            let key = text(binding, "/key");
            // A binding switches to another build at its next call.
            let body =
                json!({ "scope": { "companyId": session.company }, "bindingKey": key, "limit": 1 });
            let called = session.host.post(&session.runtime("list"), &body).await;
            let now = session.get(&format!("bindings/{}", escape(&key))).await?;
            said.push(match called {
                _ if text(&now, "/serving/digest") == digest.to_string() => {
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
        key: &str,
        digest: Digest,
    ) -> Result<Option<String>, CliError> {
        let session = self.session().await?;
        if session.company.is_empty() || key.is_empty() {
            return Ok(None);
        }
        let binding = session.get(&format!("bindings/{}", escape(key))).await?;
        let kept = items(&binding, "rejectedVersions")
            .iter()
            .find(|kept| text(kept, "/digest") == digest.to_string());
        Ok(kept.map(|kept| {
            format!("the host went back to the previous build for {key}: {}", text(kept, "/reason"))
        }))
    }

    /// Creates a binding on the host of this command, with everything that the provider requests;
    /// the network only if the author allowed it.
    async fn bind(
        &self,
        own: &Own,
        session: &Session,
        plugin: &Value,
        provider: &str,
    ) -> Result<(), CliError> {
        let asked = plugin["description"]["permissions"].clone();
        let asked: Vec<PermissionRequest> =
            serde_json::from_value(asked).map_err(CliError::host)?;
        let asked: Vec<_> = asked.iter().map(|request| request.resolved(&self.config)).collect();
        let company = CompanyId::parse(&session.company).map_err(CliError::host)?;
        let grants = match &self.network {
            Some(network) => {
                network
                    .set_secrets(&own.service, &company, &asked)
                    .await
                    .map_err(CliError::host)?;
                network.grants(&asked)
            }
            None => Grants { http: Vec::new(), secrets: Vec::new(), ..Grants::all_of(&asked) },
        };
        let bindings = session.get("bindings").await?;
        let found =
            items(&bindings, "items").iter().find(|binding| binding["providerKey"] == *provider);
        if let Some(binding) = found {
            // From an earlier run, which may have had other flags.
            let before: Grants =
                serde_json::from_value(binding["grants"].clone()).map_err(CliError::host)?;
            let now = Grants { http: grants.http, secrets: grants.secrets, ..before };
            let key = BindingKey::parse(&text(binding, "/key")).map_err(CliError::host)?;
            let set = own.service.set_grants(&Caller::operator(), &company, &key, None, now).await;
            set.map_err(CliError::host)?;
        } else {
            let body = json!({
                "key": provider, "providerKey": provider, "config": self.config, "grants": grants, "default": true,
            });
            session.post("bindings", &body).await?;
        }
        Ok(())
    }

    /// Stops the host that this command runs.
    pub(super) async fn end(self) -> Result<(), CliError> {
        let Some(Own { service, stop, serving }) = self.own else { return Ok(()) };
        let _ = stop.send(());
        match serving.await {
            Ok(ended) => ended.map_err(CliError::host)?,
            Err(error) => return Err(CliError::host(error)),
        }
        service.flush().await.map_err(CliError::host)
    }
}

/// Why another build still serves a binding.
fn why(binding: &Value, digest: Digest) -> String {
    let is_it = |build: &&Value| text(build, "/digest") == digest.to_string();
    if let Some(kept) = items(binding, "rejectedVersions").iter().find(is_it) {
        return text(kept, "/reason");
    }
    if items(binding, "waiting").iter().any(|build| is_it(&build)) {
        return format!(
            "it requests more than was granted; see `memhost binding grant {}`",
            text(binding, "/key")
        );
    }
    format!(
        "{} does; its version is higher, or the binding is pinned to it",
        text(binding, "/serving/version")
    )
}
