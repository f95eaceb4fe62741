//! Running a host.

use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::config::{HostConfig, HostOptions};
use super::output::line;
use super::{CliError, profile};
use memhost_core::plugins::TrustedKey;
use memhost_core::{Audit, Service};
use memhost_server::{self as server, Address, AdminToken, Endpoint, Surfaces};
use memhost_types::Digest;

/// Where a host listens unless told otherwise: nobody outside of the machine reaches it.
const LISTEN: SocketAddr = SocketAddr::V4(SocketAddrV4::new(Ipv4Addr::LOCALHOST, 7600));

#[derive(Debug, Args)]
pub(super) struct ServeArgs {
    /// The configuration file, TOML; the README lists its keys. Flags and environment variables go before it.
    #[arg(long, env = "MEMHOST_CONFIG", value_name = "FILE")]
    config: Option<PathBuf>,
    /// Where to listen, an address and a port or unix:PATH; 127.0.0.1:7600 where neither this nor the configuration file
    /// says.
    #[arg(long, env = "MEMHOST_LISTEN", value_name = "ADDRESS")]
    listen: Option<Address>,
    /// Where the control plane and the explorer listen; the other address has the runtime plane only then. Absent:
    /// everything is at one address.
    #[arg(long, env = "MEMHOST_CONTROL_LISTEN", value_name = "ADDRESS")]
    control_listen: Option<Address>,
    /// Where everything is kept; `memhost-data` where neither this nor the configuration file says.
    #[arg(long, env = "MEMHOST_DATA_DIR", value_name = "DIR")]
    data_dir: Option<PathBuf>,
    /// Where providers are taken from, `.wasm` files; `plugins` in the data directory where absent.
    #[arg(long, value_name = "DIR")]
    plugins_dir: Option<PathBuf>,
    /// Whose signed plugins are believed, a minisign public key; may be given again.
    #[arg(long, value_name = "KEY")]
    trusted_key: Vec<TrustedKey>,
    /// Keep plugins out that no trusted key has signed.
    #[arg(long)]
    require_signatures: bool,
    /// A build that is let in without a signature; may be given again.
    #[arg(long, value_name = "DIGEST")]
    trusted_digest: Vec<Digest>,
    /// The file of the key that secrets are encrypted with; made where it is missing. `vault.key` in the data directory
    /// where absent. The environment variable MEMHOST_VAULT_KEY goes before it: 64 hex digits or the base64 of 32 bytes.
    #[arg(long, value_name = "FILE")]
    vault_key_file: Option<PathBuf>,
    /// A PEM file of certificate authorities that outgoing requests believe beside the well-known ones.
    #[arg(long, value_name = "FILE")]
    outgoing_roots: Option<PathBuf>,
    /// A collector that traces are sent to, OTLP over HTTP, such as http://127.0.0.1:4318.
    #[arg(long, env = "OTEL_EXPORTER_OTLP_ENDPOINT", value_name = "URL")]
    otlp_endpoint: Option<String>,
    /// Whether the answer to a read waits until its record is on disk. Writes always wait. The default is durable.
    #[arg(long, value_enum)]
    audit: Option<AuditArg>,
    /// Make another operator's token; the one before is good for nothing then.
    #[arg(long)]
    new_token: bool,
    /// The operator's token, instead of one that is made.
    #[arg(long, env = "MEMHOST_TOKEN", hide_env_values = true, conflicts_with = "new_token", value_name = "TOKEN")]
    token: Option<String>,
}

impl ServeArgs {
    /// Where traces go, if anywhere.
    pub(super) fn otlp_endpoint(&self) -> Result<Option<String>, CliError> {
        let config = HostConfig::read("--config", self.config.as_deref())?;
        Ok(self.otlp_endpoint.clone().or(config.otlp_endpoint))
    }
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum AuditArg {
    Durable,
    Relaxed,
}

pub(super) async fn run(args: ServeArgs) -> Result<(), CliError> {
    let config = HostConfig::read("--config", args.config.as_deref())?;
    let data_dir = args.data_dir.or_else(|| config.data_dir.clone()).unwrap_or_else(|| PathBuf::from("memhost-data"));
    let listen = planes(
        args.listen.or_else(|| config.listen.clone()).unwrap_or(Address::Tcp(LISTEN)),
        args.control_listen.or_else(|| config.control_listen.clone()),
    );
    let HostOptions { service: mut options, server: surfaces } = config.options(&data_dir)?;
    options.plugins_dir = args.plugins_dir.or(options.plugins_dir);
    options.trust.keys.extend(args.trusted_key);
    options.trust.digests.extend(args.trusted_digest);
    options.trust.requires_signature |= args.require_signatures;
    options.vault_key_file = args.vault_key_file.or(options.vault_key_file);
    options.sandbox.outgoing_roots = args.outgoing_roots.or(options.sandbox.outgoing_roots);
    options.audit = match args.audit {
        Some(AuditArg::Durable) => Audit::Durable,
        Some(AuditArg::Relaxed) => Audit::Relaxed,
        None => options.audit,
    };
    let service = Service::open(options).await.map_err(CliError::host)?;
    let (token, made) = match args.token {
        Some(token) => (AdminToken::known(&token).map_err(CliError::host)?, None),
        None => AdminToken::of_data_dir(&data_dir, args.new_token).map_err(CliError::host)?,
    };
    if let Some(made) = &made {
        line(&format!("the operator's token, shown this once:\n  {made}"))?;
    }
    let mut endpoints = Vec::new();
    for (address, surfaces) in listen {
        let endpoint = Endpoint::bind(&address, surfaces).await.map_err(CliError::host)?;
        let what = match surfaces {
            Surfaces::All => "",
            Surfaces::Runtime => " (runtime plane)",
            Surfaces::Control => " (control plane)",
        };
        line(&format!("memhost listens on {}{what}", endpoint.address()))?;
        endpoints.push(endpoint);
    }
    if let (Some(made), Some(first), Some(last)) = (&made, endpoints.first(), endpoints.last()) {
        profile::remember(&first.address().to_string(), &last.address().to_string(), made)?;
    }
    server::run(endpoints, service, token, surfaces, stop()).await.map_err(CliError::host)
}

/// What is to be found where.
fn planes(listen: Address, control: Option<Address>) -> Vec<(Address, Surfaces)> {
    match control {
        None => vec![(listen, Surfaces::All)],
        Some(control) => vec![(listen, Surfaces::Runtime), (control, Surfaces::Control)],
    }
}

/// Resolves when the process is asked to end.
pub(super) async fn stop() {
    let interrupt = tokio::signal::ctrl_c();
    match tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate()) {
        Ok(mut terminate) => {
            tokio::select! {
                _ = interrupt => {}
                _ = terminate.recv() => {}
            }
        }
        Err(_) => drop(interrupt.await),
    }
}
