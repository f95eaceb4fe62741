//! Running a host.

mod cluster;
mod listen;
mod memory;
mod opening;
mod token;

use std::io::{IsTerminal, Write};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};

pub(crate) use self::cluster::{database, unusable};
pub(super) use self::listen::check_address;
use self::listen::{addresses, bind, ready, say_listening, until};
pub(super) use self::token::for_shell;
use super::config::{self, HostConfig, HostOptions};
use super::output::line;
use super::{CliError, Result, context, process};
use memhost_core::plugins::TrustedKey;
use memhost_core::{Audit, Service, end_quiet};
use memhost_explorer::LinkTemplate;
use memhost_server::{self as server, Address, AdminToken, Listening, Surfaces};
use memhost_types::{Digest, Origin};

/// The default listen address, reachable only from this machine.
const LISTEN: SocketAddr = SocketAddr::V4(SocketAddrV4::new(Ipv4Addr::LOCALHOST, 7600));

#[derive(Debug, Args)]
pub(super) struct ServeArgs {
    /// Configuration file, TOML, described in host/docs/configuration.md. Flags and environment
    /// variables override it.
    #[arg(long, env = "MEMHOST_CONFIG", value_name = "FILE")]
    config: Option<PathBuf>,
    /// Listen address, ADDRESS:PORT or unix:PATH [default: the configuration file's, or
    /// 127.0.0.1:7600].
    #[arg(long, env = "MEMHOST_LISTEN", value_name = "ADDRESS")]
    listen: Option<Address>,
    /// Separate listen address of the control plane and the explorer; --listen then serves only the
    /// runtime plane [default: one address for everything].
    #[arg(long, env = "MEMHOST_CONTROL_LISTEN", value_name = "ADDRESS")]
    control_listen: Option<Address>,
    /// Listen on an address that other machines reach, without TLS: for a host behind a proxy that
    /// has TLS.
    #[arg(long)]
    allow_plain_http: bool,
    /// Data directory [default: the configuration file's, or `memhost-data`].
    #[arg(long, env = "MEMHOST_DATA_DIR", value_name = "DIR")]
    data_dir: Option<PathBuf>,
    /// PostgreSQL that keeps memory instead of the data directory,
    /// postgres://USER@HOST/DATABASE; several hosts may share it. See host/docs/cluster.md.
    #[arg(long, env = "MEMHOST_STORE", hide_env_values = true, value_name = "URL")]
    store: Option<String>,
    /// With --store: listen address for the other hosts, such as 10.0.0.1:7601.
    #[arg(long, env = "MEMHOST_PEER_LISTEN", value_name = "ADDRESS")]
    peer_listen: Option<SocketAddr>,
    /// With --store: URL at which the other hosts reach this one [default: that of --peer-listen].
    #[arg(long, env = "MEMHOST_PEER_URL", value_name = "URL")]
    peer_url: Option<String>,
    /// With --store: directory of providers' files, on a file system that all hosts share.
    #[arg(long, env = "MEMHOST_SHARED_DIR", value_name = "DIR")]
    shared_dir: Option<PathBuf>,
    /// Key file of the host, the same at all hosts; created if missing [default: `host.key` in the
    /// data directory].
    #[arg(long, value_name = "FILE")]
    host_key_file: Option<PathBuf>,
    /// Plugins directory with `.wasm` files [default: `plugins` in the data directory].
    #[arg(long, value_name = "DIR")]
    plugins_dir: Option<PathBuf>,
    /// Trust plugins signed with this minisign public key; repeatable.
    #[arg(long, value_name = "KEY")]
    trusted_key: Vec<TrustedKey>,
    /// Trust plugins from registries signed with this public key of cosign, such as `cosign.pub`;
    /// repeatable.
    #[arg(long, value_name = "FILE")]
    trusted_cosign_key: Vec<PathBuf>,
    /// Refuse plugins that no trusted key signed.
    #[arg(long)]
    require_signatures: bool,
    /// Accept the build with this digest without a signature; repeatable.
    #[arg(long, value_name = "DIGEST")]
    trusted_digest: Vec<Digest>,
    /// Key file that encrypts secrets; created if missing [default: `vault.key` in the data
    /// directory]. The environment variable MEMHOST_VAULT_KEY overrides it: 64 hex digits or the
    /// base64 of 32 bytes.
    #[arg(long, value_name = "FILE")]
    vault_key_file: Option<PathBuf>,
    /// PEM file of additional certificate authorities for outgoing requests.
    #[arg(long, value_name = "FILE")]
    outgoing_roots: Option<PathBuf>,
    /// OTLP/HTTP endpoint to export traces to, such as http://127.0.0.1:4318.
    #[arg(long, env = "OTEL_EXPORTER_OTLP_ENDPOINT", value_name = "URL")]
    otlp_endpoint: Option<String>,
    /// Whether reads wait until their operation record is on disk; writes always do [default:
    /// durable].
    #[arg(
        long,
        value_parser = PossibleValuesParser::new(["durable", "relaxed"]).map(|name| audit(&name))
    )]
    audit: Option<Audit>,
    /// End the quiet of a data directory that was restored from a backup: deliver what waits, and
    /// let providers reach other systems.
    #[arg(long)]
    end_quiet: bool,
    /// Replace the operator token; the old one stops working.
    #[arg(long)]
    new_token: bool,
    /// Operator token to use instead of a generated one.
    #[arg(
        long,
        env = "MEMHOST_OPERATOR_TOKEN",
        hide_env_values = true,
        conflicts_with = "new_token",
        value_name = "TOKEN"
    )]
    token: Option<String>,
    /// Read the operator token of this start from the first line of standard input.
    #[arg(long, conflicts_with_all = ["new_token", "token"])]
    token_from_stdin: bool,
    /// Stop, as on SIGTERM, when standard input is closed: when the program that started this one
    /// has ended.
    #[arg(long)]
    exit_with_stdin: bool,
    /// Print one line when the host listens, and nothing else, to standard output: JSON with the
    /// addresses, the process and the store.
    #[arg(long, value_parser = ["json"], value_name = "FORMAT")]
    print_address: Option<String>,
    /// Let pages of this origin show the explorer in a frame; repeatable [default: nobody].
    #[arg(long, value_name = "ORIGIN", value_parser = config::page_origin)]
    frame_ancestor: Vec<Origin>,
    /// Web page of an issue, such as https://paperclip.example/issues/{issueId}: the explorer links
    /// sources to it.
    #[arg(long, value_name = "URL", value_parser = LinkTemplate::of_issue)]
    issue_link: Option<LinkTemplate>,
    /// Web page of a run, such as https://paperclip.example/agents/{agentId}/runs/{runId}.
    #[arg(long, value_name = "URL", value_parser = LinkTemplate::of_run)]
    run_link: Option<LinkTemplate>,
}

impl ServeArgs {
    /// The endpoint for traces, if any.
    pub(super) fn otlp_endpoint(&self) -> Result<Option<String>> {
        let config = HostConfig::read("--config", self.config.as_deref())?;
        Ok(self.otlp_endpoint.clone().or(config.otlp_endpoint))
    }
}

fn audit(name: &str) -> Audit {
    if name == "relaxed" { Audit::Relaxed } else { Audit::Durable }
}

pub(super) async fn run(args: ServeArgs) -> Result<()> {
    let config = HostConfig::read("--config", args.config.as_deref())?;
    let data_dir = args
        .data_dir
        .or_else(|| config.data_dir.clone())
        .unwrap_or_else(|| PathBuf::from("memhost-data"));
    let listen = planes(
        args.listen.or_else(|| config.listen.clone()).unwrap_or(Address::Tcp(LISTEN)),
        args.control_listen.or_else(|| config.control_listen.clone()),
    );
    if !(args.allow_plain_http || config.allow_plain_http) {
        listen.iter().try_for_each(|(address, surfaces)| check_address(address, *surfaces))?;
    }
    let place = cluster::Place {
        listen: args.peer_listen.or(config.peer_listen),
        url: args.peer_url.or_else(|| config.peer_url.clone()),
        allows_plain_http: args.allow_plain_http || config.allow_plain_http,
    };
    let HostOptions { service: mut options, server: mut surfaces } = config.options(&data_dir)?;
    // A variable that is set to nothing is not set.
    if let Some(store) = args.store.filter(|store| !store.is_empty()) {
        options.database = Some(database("--store", store)?);
    }
    options.shared_dir = args.shared_dir.or(options.shared_dir);
    options.host_key_file = args.host_key_file.or(options.host_key_file);
    surfaces.frame_ancestors.extend(args.frame_ancestor);
    surfaces.links.issue = args.issue_link.or(surfaces.links.issue);
    surfaces.links.run = args.run_link.or(surfaces.links.run);
    options.plugins_dir = args.plugins_dir.or(options.plugins_dir);
    options.trust.keys.extend(args.trusted_key);
    let cosign_keys = args.trusted_cosign_key.iter().map(|file| config::cosign_key(file));
    options.trust.cosign_keys.extend(cosign_keys.collect::<Result<Vec<_>>>()?);
    options.trust.digests.extend(args.trusted_digest);
    options.trust.requires_signature |= args.require_signatures;
    options.vault_key_file = args.vault_key_file.or(options.vault_key_file);
    options.sandbox.outgoing_roots = args.outgoing_roots.or(options.sandbox.outgoing_roots);
    options.audit = args.audit.unwrap_or(options.audit);
    // Health and what is loaded already are there at once, however long a plugin compiles.
    options.waits_for_plugins = false;
    let files = server::raise_open_files();
    tracing::debug!(files, "the process may open so many files");
    let (flag, token) = match args.token_from_stdin {
        true => ("--token-from-stdin", Some(process::first_line()?)),
        false => ("--token or MEMHOST_OPERATOR_TOKEN", args.token),
    };
    let known = token.map(|token| AdminToken::known(&token)).transpose();
    let known = known.map_err(|error| CliError::input(flag, error))?;
    // From here on: who started this process may end while the store opens.
    let closed = args.exit_with_stdin.then(process::input_closed);
    if args.end_quiet {
        end_quiet(&data_dir).map_err(CliError::host)?;
    }
    if args.print_address.is_none() {
        let text = opening::starting(&data_dir, options.database.is_some());
        drop(writeln!(std::io::stderr(), "{text}"));
    }
    if options.database.is_some() {
        let start = cluster::Start {
            listen,
            token: known,
            makes_token: args.new_token,
            prints_json: args.print_address.is_some(),
            closed,
        };
        return cluster::serve(place, start, options, surfaces).await;
    }
    place.refuse()?;
    let compiles = options.sandbox.compiles_own.clone();
    let endpoints = match bind(listen).await {
        Ok(endpoints) => endpoints,
        // A host that has the address may have the directory, too, and that says more.
        Err(error) => {
            return Err(Service::open(options).await.err().map_or(error, CliError::data_dir));
        }
    };
    let at = addresses(&endpoints);
    let doing = move || opening::doing(*compiles.borrow());
    let listening = Listening::begin(endpoints, surfaces, doing);
    let is_json = args.print_address.is_some();
    let service = opening::open(options, !is_json).await?;
    if service.monitor().is_quiet() {
        tracing::warn!(
            "this host is quiet, because its data directory was restored from a backup: it \
             delivers nothing and asks no other system; start it with --end-quiet to end that"
        );
    }
    let (token, made) = match known {
        Some(token) => (token, None),
        None => AdminToken::of_data_dir(&data_dir, args.new_token).map_err(CliError::host)?,
    };
    // From the first line on that says where the host is, no signal ends it without a word.
    let stopped = crate::signals::stop();
    if let Some(made) = &made {
        token::tell(&data_dir, made, is_json)?;
    }
    if is_json {
        listening.open(&service, &token);
        line(&ready(&at, service.monitor().store_id()))?;
        return serve(listening, service, stopped, closed).await;
    }
    let [first, last] = [at.first(), at.last()].map(|at| at.map(|(at, _)| at.to_string()));
    let (first, last) = (first.unwrap_or_default(), last.unwrap_or_default());
    let (token, explorer) = explorer(token, &last, &service)?;
    // A command that waits for this host looks for its token as soon as it is open.
    let kept = made.map(|made| context::remember(&first, &last, &made)).transpose()?;
    listening.open(&service, &token);
    say_listening(&at)?;
    for said in explorer.into_iter().chain(kept.flatten()) {
        // A program that has read the address may have closed the output by now.
        drop(line(&said));
    }
    serve(listening, service, stopped, closed).await
}

/// Serves until a signal comes, or standard input is closed where that matters.
async fn serve(
    listening: Listening,
    service: Arc<Service>,
    stopped: impl Future<Output = ()> + Send + 'static,
    closed: Option<impl Future<Output = ()> + Send + 'static>,
) -> Result<()> {
    tokio::select! {
        served = listening.until(service, until(stopped, closed)) => served.map_err(CliError::host),
        never = memory::give_back_when_idle() => never,
    }
}

/// Where the explorer is, and on a terminal a link that signs in once: elsewhere it would be in a
/// log. `None`: a browser does not reach this address.
pub(super) fn explorer(
    token: AdminToken,
    address: &str,
    service: &Service,
) -> Result<(AdminToken, Option<String>)> {
    if !address.starts_with("http") {
        return Ok((token, None));
    }
    let at = format!("the explorer is at {address}/");
    if !std::io::stdout().is_terminal() {
        return Ok((token, Some(at)));
    }
    let (token, code) = token.with_link(service.control().now()).map_err(CliError::host)?;
    let link = format!("{address}/sign-in?link={code}");
    Ok((token, Some(format!("{at}\nsign in there once, within ten minutes:\n  {link}"))))
}

/// The listen addresses with their planes.
fn planes(listen: Address, control: Option<Address>) -> Vec<(Address, Surfaces)> {
    match control {
        None => vec![(listen, Surfaces::All)],
        Some(control) => vec![(listen, Surfaces::Runtime), (control, Surfaces::Control)],
    }
}
