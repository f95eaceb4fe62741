//! Which registries a command asks, and whose signatures count.

use std::path::PathBuf;

use clap::Args;

use crate::config::cosign_key;
use crate::{CliError, Result};
use memhost_core::PluginView;
use memhost_core::plugins::{CosignKey, CosignProof, SignatureError, TrustedKey, verify};
use memhost_oci::{OciError, Options};

/// How a registry is reached.
#[derive(Debug, Args)]
pub(super) struct RegistryArgs {
    /// Ask a registry on another machine without TLS.
    #[arg(long, help_heading = "Registry")]
    allow_plain_http: bool,
    /// PEM file with the certificate authorities to trust for a registry, in place of the
    /// well-known ones.
    #[arg(long, value_name = "FILE", help_heading = "Registry")]
    registry_ca: Option<PathBuf>,
}

impl RegistryArgs {
    pub(super) fn options(&self) -> Result<Options> {
        let tls = self.registry_ca.as_deref().map(memhost_agent_hooks::trusting).transpose();
        let tls = tls.map_err(|why| CliError::input("--registry-ca", why))?;
        Ok(Options { allows_plain_http: self.allow_plain_http, tls })
    }
}

/// Whose signatures count.
#[derive(Debug, Args)]
pub(super) struct TrustArgs {
    /// Also trust this minisign public key, for this command; repeatable [default: the keys that
    /// the host trusts].
    #[arg(long, value_name = "KEY", help_heading = "Registry")]
    trusted_key: Vec<TrustedKey>,
    /// Also trust this public key of cosign, such as `cosign.pub`, for this command; repeatable
    /// [default: the keys that the host trusts].
    #[arg(long, value_name = "FILE", help_heading = "Registry")]
    trusted_cosign_key: Vec<PathBuf>,
    /// Take a provider that no trusted key has signed.
    #[arg(long, help_heading = "Registry")]
    allow_unsigned: bool,
    #[command(flatten)]
    pub(super) registry: RegistryArgs,
}

/// Whose signatures count, read.
#[derive(Debug, Clone, Default)]
pub(super) struct Trusted {
    pub(super) keys: Vec<TrustedKey>,
    pub(super) cosign: Vec<CosignKey>,
    pub(super) allows_unsigned: bool,
}

impl TrustArgs {
    /// With the keys that the host trusts.
    pub(super) fn with(&self, host: &PluginView) -> Result<Trusted> {
        let minisign = host.trusted_keys.iter().filter_map(|key| key.parse().ok());
        let cosign = host.trusted_cosign_keys.iter().filter_map(|key| key.parse().ok());
        let given = self.trusted_cosign_key.iter().map(|file| cosign_key(file));
        Ok(Trusted {
            keys: self.trusted_key.iter().cloned().chain(minisign).collect(),
            cosign: given.chain(cosign.map(Ok)).collect::<Result<_>>()?,
            allows_unsigned: self.allow_unsigned,
        })
    }
}

/// Who says that a component is theirs.
#[derive(Debug, Clone)]
pub(super) enum Proof {
    /// A key of minisign, whose signature the host checks, too.
    Minisign { key: TrustedKey, comment: String, signature: String },
    /// A key of cosign, whose signature the host checks, too, if it knows the key.
    Cosign { key: CosignKey, proof: CosignProof },
    /// Nobody whose word counts.
    No,
}

impl Proof {
    /// The key of minisign and that of cosign that it is signed with.
    pub(super) fn keys(&self) -> (Option<String>, Option<String>) {
        match self {
            Self::Minisign { key, .. } => (Some(key.to_string()), None),
            Self::Cosign { key, .. } => (None, Some(key.to_string())),
            Self::No => (None, None),
        }
    }

    pub(super) fn shown(&self) -> String {
        match self {
            Self::Minisign { key, comment, .. } => format!("minisign key {}: {comment}", key.id()),
            Self::Cosign { key, .. } => format!("cosign key {}", key.id()),
            Self::No => "nobody who is trusted".to_owned(),
        }
    }
}

/// What is attached to a manifest.
pub(super) struct Attached {
    pub(super) minisign: Option<String>,
    pub(super) cosign: Vec<CosignProof>,
}

impl Trusted {
    /// Whether a signature that counts is there. One that does not fit what it is for is refused
    /// also where none is needed.
    pub(super) fn check(&self, what: &str, component: &[u8], attached: &Attached) -> Result<Proof> {
        let failed = |why: String| CliError::Failed(format!("{what}: {why}"));
        let mut untrusted = None;
        if let Some(signature) = &attached.minisign {
            match verify(component, signature, &self.keys) {
                Ok(verified) => {
                    return Ok(Proof::Minisign {
                        key: verified.key,
                        comment: verified.trusted_comment,
                        signature: signature.clone(),
                    });
                }
                Err(SignatureError::Untrusted { id }) => untrusted = Some(id),
                Err(error) => return Err(failed(error.to_string())),
            }
        }
        for proof in &attached.cosign {
            if let Ok(key) = proof.verify(component, &self.cosign) {
                return Ok(Proof::Cosign { key, proof: proof.clone() });
            }
        }
        if self.allows_unsigned {
            return Ok(Proof::No);
        }
        let has = match (&untrusted, attached.cosign.is_empty(), self.cosign.is_empty()) {
            (Some(id), _, _) => format!("it is signed with the minisign key {id}"),
            (None, true, _) => "it is not signed".to_owned(),
            (None, false, true) => {
                "it has a signature of cosign, and no key of cosign is trusted".into()
            }
            (None, false, false) => "no trusted key made its signature of cosign".into(),
        };
        Err(failed(format!(
            "{has}, and only what a trusted key has signed is taken; if you know whose key it is, \
             give --trusted-key KEY or --trusted-cosign-key FILE (`memhost plugin trust KEY \
             --config FILE` makes the host trust it, too), or take it unsigned with \
             --allow-unsigned"
        )))
    }
}

/// The exit code follows from the status.
fn refused(error: &OciError) -> CliError {
    let status = match error {
        OciError::Reference { .. } | OciError::Plain { .. } => 400,
        OciError::NotFound { .. } => 404,
        OciError::Denied { .. } | OciError::OtherRealm { .. } | OciError::Credentials { .. } => 403,
        OciError::Unreachable { .. } | OciError::Status { .. } => 503,
        _ => return CliError::Failed(error.to_string()),
    };
    CliError::Problem { status, detail: error.to_string(), operation: None, code: None }
}

/// Asks a registry, which blocks.
pub(super) async fn asked<T: Send + 'static>(
    call: impl FnOnce() -> Result<T, OciError> + Send + 'static,
) -> Result<T> {
    let asked = tokio::task::spawn_blocking(call).await;
    asked.map_err(CliError::runtime)?.map_err(|error| refused(&error))
}
