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
use crate::{CliError, serve};
use memhost_core::{Service, ServiceOptions};
use memhost_server::{self as server, AdminToken, Endpoint, ServerOptions, Surfaces};
use memhost_types::{Digest, Grants, PermissionRequest};

/// A host looks at its plugins directory when it is told to, and once more for a file that it saw being written.
const LOOKS: u32 = 20;
const BETWEEN_LOOKS: Duration = Duration::from_millis(100);

/// Where builds go.
pub(super) struct Place {
    plugins: PathBuf,
    company: CompanyArgs,
    /// The host that is run for it, if none was named.
    own: Option<Own>,
    config: Value,
}

struct Own {
    service: Arc<Service>,
    stop: oneshot::Sender<()>,
    serving: JoinHandle<Result<(), server::ServeError>>,
}

/// What became of a build.
pub(super) struct Swapped {
    /// Whose build it is.
    pub(super) provider: String,
    /// Which.
    pub(super) digest: Digest,
    /// Description.
    pub(super) said: String,
    /// The host has gone back to the build before, and that was said.
    pub(super) is_given_up: bool,
}

impl Place {
    /// The plugins directory that is named, or a host in this process.
    pub(super) async fn open(args: &DevArgs, project: &Path) -> Result<Self, CliError> {
        let config: Value = serde_json::from_str(&args.config)
            .ok()
            .filter(Value::is_object)
            .ok_or_else(|| CliError::input("--config", "is no JSON object"))?;
        if let Some(plugins) = &args.into {
            if !plugins.is_dir() {
                return Err(CliError::input("--into", format!("{} is no directory", plugins.display())));
            }
            return Ok(Self { plugins: plugins.clone(), company: args.company.clone(), own: None, config });
        }
        let data_dir = args.company.host.data_dir.clone();
        let data_dir = data_dir.unwrap_or_else(|| project.join("target/memhost-dev"));
        let plugins = args.company.host.plugins_dir.clone().unwrap_or_else(|| data_dir.join("plugins"));
        std::fs::create_dir_all(&plugins)?;
        let mut options = ServiceOptions::new(&data_dir);
        options.plugins_dir = Some(plugins.clone());
        let service = Service::open(options).await.map_err(CliError::host)?;
        let (token, shown) = AdminToken::of_data_dir(&data_dir, true).map_err(CliError::host)?;
        let endpoint = Endpoint::bind(&args.listen.into(), Surfaces::All).await.map_err(CliError::host)?;
        let (url, shown) = (endpoint.address().to_string(), shown.unwrap_or_default());
        let mut company = args.company.clone();
        company.company =
            Some(company.company.filter(|company| !company.is_empty()).unwrap_or_else(|| "dev".to_owned()));
        line(&format!(
            "a host runs for it, with its data in {}; in another terminal:\n\n  export MEMHOST_URL={url} \
             MEMHOST_TOKEN={shown} MEMHOST_COMPANY={}\n  memhost capture 'The gate is green'\n  memhost search gate\n",
            data_dir.display(),
            company.company.as_deref().unwrap_or_default(),
        ))?;
        (company.host.url, company.host.control_url, company.host.token) = (Some(url), None, Some(shown));
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
        Ok(Self { plugins, company, own: Some(Own { service, stop, serving }), config })
    }

    /// The host, for the company that is named; without one it is about the host.
    pub(super) async fn session(&self) -> Result<Session, CliError> {
        match self.company.open().await {
            Err(CliError::Input { what, .. }) if what == "--company" => self.company.host.open().await,
            session => session,
        }
    }

    /// Copies a component into the plugins directory and has the host look at it. Answers none where it is kept out.
    pub(super) async fn swap(&self, component: &Path) -> Result<Option<Swapped>, CliError> {
        let name = |error: &dyn std::fmt::Display| CliError::input(component.display().to_string(), error);
        let bytes = std::fs::read(component).map_err(|error| name(&error))?;
        let digest = Digest::of(&bytes);
        let target = self.plugins.join(component.file_name().unwrap_or_default());
        // Under another name first: a host must not look at half of it.
        let mut file = tempfile::Builder::new().prefix(".memhost-dev-").tempfile_in(&self.plugins)?;
        std::io::Write::write_all(&mut file, &bytes)?;
        #[cfg(unix)]
        file.as_file().set_permissions(std::os::unix::fs::PermissionsExt::from_mode(0o644))?;
        file.persist(&target).map_err(|error| name(&error.error))?;
        let session = self.session().await?;
        for _ in 0..LOOKS {
            let plugins = session.host.post("/control/v1/plugins/scan", &json!({})).await?;
            let is_it = |plugin: &&Value| text(plugin, "/digest") == digest.to_string();
            if let Some(plugin) = items(&plugins, "admitted").iter().find(is_it) {
                return self.serving(&session, plugin, digest).await.map(Some);
            }
            let is_its_file = |refused: &&Value| Path::new(&text(refused, "/path")).file_name() == target.file_name();
            if let Some(refused) = items(&plugins, "refused").iter().find(is_its_file) {
                line(&format!("the host keeps it out: {}", text(refused, "/reason")))?;
                return Ok(None);
            }
            tokio::time::sleep(BETWEEN_LOOKS).await;
        }
        let message = format!("the host does not see {}; is that its plugins directory?", target.display());
        Err(CliError::input("--into", message))
    }

    /// Has every binding of the provider take the build over, and says how they stand.
    async fn serving(&self, session: &Session, plugin: &Value, digest: Digest) -> Result<Swapped, CliError> {
        let provider = text(plugin, "/description/providerKey");
        let build = format!("{provider} {} ({})", text(plugin, "/description/version"), digest.short());
        if session.company.is_empty() {
            let said = format!("{build} is admitted; --company NAME also waits until its bindings are served by it");
            return Ok(Swapped { provider, digest, said, is_given_up: false });
        }
        if self.own.is_some() {
            self.bind(session, plugin, &provider).await?;
        }
        let bindings = session.get("bindings").await?;
        let mut said = Vec::new();
        for binding in items(&bindings, "items").iter().filter(|binding| binding["providerKey"] == *provider) {
            let key = text(binding, "/key");
            // A binding takes a build over with its next call.
            let body = json!({ "scope": { "companyId": session.company }, "bindingKey": key, "limit": 1 });
            let called = session.host.post(&session.runtime("list"), &body).await;
            let now = session.get(&format!("bindings/{}", escape(&key))).await?;
            said.push(match called {
                _ if text(&now, "/serving/digest") == digest.to_string() => format!("serves the binding {key}"),
                Err(error) => format!("does not serve the binding {key}: {error}"),
                Ok(_) => format!("does not serve the binding {key}: {}", why(&now, digest)),
            });
        }
        let said = if said.is_empty() {
            format!("{build} is admitted; `memhost binding create default --provider {provider} --default` binds it")
        } else {
            format!("{build} {}", said.join(" and "))
        };
        Ok(Swapped { provider, digest, said, is_given_up: false })
    }

    /// Why the host went back to the build before, for a binding that it did so for: a call that fails is answered by
    /// that.
    pub(super) async fn gone_back(&self, key: &str, digest: Digest) -> Result<Option<String>, CliError> {
        let session = self.session().await?;
        if session.company.is_empty() || key.is_empty() {
            return Ok(None);
        }
        let binding = session.get(&format!("bindings/{}", escape(key))).await?;
        let kept = items(&binding, "rejectedVersions").iter().find(|kept| text(kept, "/digest") == digest.to_string());
        Ok(kept.map(|kept| format!("the host went back to the build before, for {key}: {}", text(kept, "/reason"))))
    }

    /// Our own host has a binding of it, with everything that it asks for but the network.
    async fn bind(&self, session: &Session, plugin: &Value, provider: &str) -> Result<(), CliError> {
        let asked = plugin["description"]["permissions"].clone();
        let asked: Vec<PermissionRequest> = serde_json::from_value(asked).map_err(CliError::host)?;
        let grants = Grants { http: Vec::new(), secrets: Vec::new(), ..Grants::all_of(&asked) };
        let bindings = session.get("bindings").await?;
        if !items(&bindings, "items").iter().any(|binding| binding["providerKey"] == *provider) {
            let body = json!({
                "key": provider, "providerKey": provider, "config": self.config, "grants": grants, "default": true,
            });
            session.post("bindings", &body).await?;
        }
        Ok(())
    }

    /// Ends the host that was run for it.
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

/// Why a binding is still served by another build.
fn why(binding: &Value, digest: Digest) -> String {
    let is_it = |build: &&Value| text(build, "/digest") == digest.to_string();
    if let Some(kept) = items(binding, "rejectedVersions").iter().find(is_it) {
        return text(kept, "/reason");
    }
    if items(binding, "waiting").iter().any(|build| is_it(&build)) {
        return format!(
            "it asks for more than was granted; `memhost binding grant {}` shows what",
            text(binding, "/key")
        );
    }
    format!("{} does; its version is higher, or the binding is held to it", text(binding, "/serving/version"))
}
