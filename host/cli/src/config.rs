//! The configuration file of a host, TOML. Flags override environment variables, these override the
//! file, and the file overrides the defaults. An unknown key is an error, because a misspelt limit
//! would have no effect.

use std::fmt::Display;
use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer};

use super::error::STORE_FAILED;
use super::{CliError, Result, argument, process, user_files};
use memhost_core::plugins::{CosignKey, Trust, TrustedKey};
use memhost_core::{Audit, ServiceOptions};
use memhost_embeddings::{EmbeddingsOptions, EndpointOptions};
use memhost_explorer::{LinkTemplate, SourceLinks};
use memhost_integrations::IntegrationOptions;
use memhost_sandbox::{CompileLimits, Compiler};
use memhost_server::{Address, ConnectionOptions, ServerOptions};
use memhost_types::{Digest, Host, Origin, OriginError};

/// The content of the file. Relative paths start from its directory.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct HostConfig {
    pub(super) listen: Option<Address>,
    /// The address of the control plane, if it has its own.
    pub(super) control_listen: Option<Address>,
    pub(super) data_dir: Option<PathBuf>,
    /// The database that keeps memory.
    store: Option<String>,
    /// Where the other hosts on the database reach this one.
    pub(super) peer_listen: Option<SocketAddr>,
    pub(super) peer_url: Option<String>,
    shared_dir: Option<PathBuf>,
    host_key_file: Option<PathBuf>,
    plugins_dir: Option<PathBuf>,
    trusted_keys: Vec<String>,
    /// Public keys of cosign, as PEM.
    trusted_cosign_keys: Vec<String>,
    trusted_digests: Vec<Digest>,
    require_signatures: bool,
    vault_key_file: Option<PathBuf>,
    outgoing_roots: Option<PathBuf>,
    audit: Option<Audit>,
    instances: Option<u32>,
    #[serde(deserialize_with = "size")]
    max_memory_bytes: Option<u64>,
    compile_seconds: Option<u64>,
    compile_cpu_seconds: Option<u64>,
    #[serde(deserialize_with = "size")]
    compile_memory_bytes: Option<u64>,
    #[serde(deserialize_with = "size")]
    store_cache_bytes: Option<u64>,
    store_max_batch: Option<usize>,
    #[serde(deserialize_with = "size")]
    store_reserve_bytes: Option<u64>,
    #[serde(deserialize_with = "size")]
    company_max_bytes: Option<u64>,
    metrics_company_label: bool,
    integrations: IntegrationOptions,
    issue_link: Option<String>,
    run_link: Option<String>,
    /// Whose pages may show the explorer in a frame.
    frame_ancestors: Vec<Origin>,
    /// The collector of traces.
    pub(super) otlp_endpoint: Option<String>,
    embeddings: EmbeddingsConfig,
    connections: ConnectionOptions,
    /// Whether other machines may reach the host without TLS.
    pub(super) allow_plain_http: bool,
}

/// A number of bytes, or a text with a unit, as flags take it.
fn size<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u64>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged, expecting = "must be a number of bytes, or a size such as \"256MiB\"")]
    enum Size {
        Bytes(u64),
        Text(String),
    }
    match Size::deserialize(from)? {
        Size::Bytes(bytes) => Ok(Some(bytes)),
        Size::Text(text) => argument::bytes(&text).map(Some).map_err(D::Error::custom),
    }
}

/// The source of vectors; the installed model by default.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct EmbeddingsConfig {
    off: bool,
    endpoint: Option<EndpointOptions>,
}

/// The options from a configuration file.
pub(super) struct HostOptions {
    pub(super) service: ServiceOptions,
    pub(super) server: ServerOptions,
}

impl HostConfig {
    /// Reads the file, if the argument of this name gives one.
    pub(super) fn read(argument: &str, path: Option<&Path>) -> Result<Self> {
        let Some(path) = path else { return Ok(Self::default()) };
        let wrong =
            |message: String| CliError::input(argument, format!("{}: {message}", path.display()));
        let text = std::fs::read_to_string(path).map_err(|error| {
            wrong(format!("cannot be read: {error}; give another file or omit the flag"))
        })?;
        let mut config = parse(&text).map_err(wrong)?;
        let base = path.parent().unwrap_or(Path::new(""));
        let paths = [
            &mut config.data_dir,
            &mut config.plugins_dir,
            &mut config.shared_dir,
            &mut config.host_key_file,
            &mut config.vault_key_file,
            &mut config.outgoing_roots,
        ];
        for path in paths.into_iter().flatten() {
            *path = base.join(&*path);
        }
        Ok(config)
    }

    /// The options of a host on `data_dir`.
    pub(super) fn options(self, data_dir: &Path) -> Result<HostOptions> {
        let mut options = ServiceOptions::new(data_dir);
        options.compiled_dir = user_files::named_compiled_dir();
        options.sandbox.compiler = self.compiler()?;
        let keys = self.trusted_keys.iter().enumerate().map(|(index, key)| {
            key.parse::<TrustedKey>()
                .map_err(|error| CliError::input(format!("trusted_keys.{index}"), error))
        });
        let cosign_keys = self.trusted_cosign_keys.iter().enumerate().map(|(index, key)| {
            key.parse::<CosignKey>()
                .map_err(|error| CliError::input(format!("trusted_cosign_keys.{index}"), error))
        });
        options.trust = Trust {
            keys: keys.collect::<Result<_, _>>()?,
            cosign_keys: cosign_keys.collect::<Result<_, _>>()?,
            requires_signature: self.require_signatures,
            digests: self.trusted_digests,
        };
        options.database = self.store;
        options.shared_dir = self.shared_dir;
        options.host_key_file = self.host_key_file;
        options.plugins_dir = self.plugins_dir;
        options.vault_key_file = self.vault_key_file;
        options.audit = self.audit.unwrap_or_default();
        options.metrics_company_label = self.metrics_company_label;
        options.embeddings = self.embeddings.options()?;
        let links = SourceLinks {
            issue: link("issue_link", self.issue_link, LinkTemplate::of_issue)?,
            run: link("run_link", self.run_link, LinkTemplate::of_run)?,
        };
        in_ranges(&self.connections)?;
        let sandbox = &mut options.sandbox;
        set("instances", self.instances, &mut sandbox.instances, 8..=100_000)?;
        let memory = &mut sandbox.max_memory_bytes;
        set("max_memory_bytes", self.max_memory_bytes, memory, 16 << 20..=4 << 30)?;
        sandbox.outgoing_roots = self.outgoing_roots;
        let store = &mut options.store;
        let cache = &mut store.cache_bytes;
        set("store_cache_bytes", self.store_cache_bytes, cache, 1 << 20..=1 << 40)?;
        set("store_max_batch", self.store_max_batch, &mut store.max_batch, 1..=65_536)?;
        let reserve = &mut store.reserve_bytes;
        set("store_reserve_bytes", self.store_reserve_bytes, reserve, 0..=1 << 40)?;
        set("company_max_bytes", self.company_max_bytes, &mut store.company_bytes, 0..=1 << 50)?;
        // The database does not survive a write that fails: whoever started this process starts it
        // again.
        options.store.on_fatal = Some(Arc::new(|error| {
            eprintln!("error: {error}");
            std::process::exit(i32::from(STORE_FAILED));
        }));
        Ok(HostOptions {
            service: options,
            server: ServerOptions {
                integrations: self.integrations,
                links,
                frame_ancestors: page_origins(self.frame_ancestors)?,
                connections: self.connections,
            },
        })
    }
}

/// The origin of pages that may show the explorer: whoever may frame it can lead clicks, so each is
/// named.
pub(super) fn page_origin(text: &str) -> Result<Origin, String> {
    let origin: Origin = text.parse().map_err(|error: OriginError| error.to_string())?;
    match origin.host() {
        Host::Wildcard(_) => {
            Err(format!("`{origin}` stands for many origins; name each one whose pages you trust"))
        }
        Host::Domain(_) | Host::Ip(_) => Ok(origin),
    }
}

fn page_origins(all: Vec<Origin>) -> Result<Vec<Origin>> {
    let checked = all.into_iter().enumerate().map(|(index, origin)| {
        page_origin(&origin.to_string())
            .map_err(|error| CliError::input(format!("frame_ancestors.{index}"), error))
    });
    checked.collect()
}

impl HostConfig {
    fn compiler(&self) -> Result<Compiler> {
        let mut limits = CompileLimits::default();
        let mut seconds = limits.time.as_secs();
        set("compile_seconds", self.compile_seconds, &mut seconds, 1..=3_600)?;
        limits.time = Duration::from_secs(seconds);
        let cpu = &mut limits.cpu_seconds;
        set("compile_cpu_seconds", self.compile_cpu_seconds, cpu, 1..=86_400)?;
        let memory = &mut limits.memory_bytes;
        set("compile_memory_bytes", self.compile_memory_bytes, memory, 256 << 20..=64 << 30)?;
        process::within(limits)
    }
}

impl EmbeddingsConfig {
    fn options(self) -> Result<EmbeddingsOptions> {
        let Some(mut endpoint) = self.endpoint else {
            return Ok(if self.off {
                EmbeddingsOptions::Off
            } else {
                EmbeddingsOptions::Installed
            });
        };
        if let Some(name) = &endpoint.key_env {
            let missing = |_| {
                format!("the environment variable `{name}` is not set; set it or remove key_env")
            };
            let key = std::env::var(name).map_err(missing);
            endpoint.key =
                Some(key.map_err(|error| CliError::input("embeddings.endpoint.key_env", error))?);
        }
        Ok(if self.off { EmbeddingsOptions::Off } else { EmbeddingsOptions::Endpoint(endpoint) })
    }
}

/// The public key of cosign in a file.
pub(super) fn cosign_key(file: &Path) -> Result<CosignKey> {
    let pem = std::fs::read_to_string(file).map_err(|error| CliError::file(file, &error))?;
    pem.parse().map_err(|error| CliError::input(file.display().to_string(), error))
}

/// Adds a key to those that the file trusts. Answers false if the file has the key already.
pub(super) fn trust(path: &Path, key: &TrustedKey) -> Result<bool> {
    let wrong =
        |message: String| CliError::input("--config", format!("{}: {message}", path.display()));
    let config = parse(&user_files::read(path)?).map_err(wrong)?;
    if config
        .trusted_keys
        .iter()
        .any(|known| known.parse::<TrustedKey>().is_ok_and(|known| known == *key))
    {
        return Ok(false);
    }
    user_files::edit(path, |document| {
        let keys = document
            .entry("trusted_keys")
            .or_insert_with(|| toml_edit::value(toml_edit::Array::new()));
        let keys =
            keys.as_array_mut().ok_or_else(|| wrong("`trusted_keys` is not a list".to_owned()))?;
        keys.push(key.to_string());
        Ok(())
    })?;
    Ok(true)
}

/// The options of a file of this text, or what is wrong with it.
#[cfg(feature = "fuzzing")]
pub fn read_for_fuzzing(text: &str) -> Result<(), String> {
    let config = parse(text)?;
    // A test of the machine, not of the file.
    let config = HostConfig { compile_memory_bytes: None, compile_cpu_seconds: None, ..config };
    config.options(Path::new("data")).map(drop).map_err(|error| error.to_string())
}

fn parse(text: &str) -> Result<HostConfig, String> {
    user_files::parse(text).map_err(|error| with_nearest(&error))
}

/// An error about an unknown key with the nearest known one. The library names the unknown key and
/// then all known ones, each between backticks. The keys of a table are few, and stay listed.
fn with_nearest(error: &str) -> String {
    let of_file = error.split_once(": unknown field `").filter(|(place, _)| !place.contains('.'));
    let Some((_, names)) = of_file else { return error.to_owned() };
    let mut names = names.split('`').step_by(2);
    let unknown = names.next().unwrap_or_default();
    let known: Vec<&str> = names.collect();
    let advice = match argument::did_you_mean(unknown, known.iter().copied()) {
        near if near.is_empty() => format!("; the keys are {}", known.join(", ")),
        near => near,
    };
    format!("unknown key `{unknown}`{advice}")
}

fn link(
    key: &str,
    text: Option<String>,
    read: fn(&str) -> Result<LinkTemplate, String>,
) -> Result<Option<LinkTemplate>> {
    text.map(|text| read(&text)).transpose().map_err(|error| CliError::input(key, error))
}

/// Sets what is given, within its range.
fn set<T: Copy + PartialOrd + Display>(
    key: &str,
    given: Option<T>,
    setting: &mut T,
    range: RangeInclusive<T>,
) -> Result<()> {
    let Some(value) = given else { return Ok(()) };
    *setting = value;
    in_range(key, value, range)
}

fn in_range<T: PartialOrd + Display + Copy>(
    key: &str,
    value: T,
    range: RangeInclusive<T>,
) -> Result<()> {
    if range.contains(&value) {
        return Ok(());
    }
    let (min, max) = range.into_inner();
    Err(CliError::input(key, format!("is {value}; must be {min} to {max}")))
}

/// Checks that the settings of connections are within their ranges.
fn in_ranges(connections: &ConnectionOptions) -> Result<()> {
    in_range("connections.max", connections.max, 16..=1_000_000)?;
    in_range("connections.max_per_address", connections.max_per_address, 1..=1_000_000)?;
    in_range("connections.max_bodies_bytes", connections.max_bodies_bytes, 16 << 20..=1 << 40)?;
    for (key, ms) in [
        ("connections.head_timeout_ms", connections.head_timeout_ms),
        ("connections.body_timeout_ms", connections.body_timeout_ms),
        ("connections.idle_timeout_ms", connections.idle_timeout_ms),
        ("connections.write_timeout_ms", connections.write_timeout_ms),
    ] {
        in_range(key, ms, 10..=3_600_000)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
