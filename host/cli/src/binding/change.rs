//! Changing a binding.

use clap::Args;
use serde_json::{Value, json};

use super::{SeenArgs, one};
use crate::CliError;
use crate::args::CompanyArgs;
use crate::argument::{object, versions, without_nulls};
use crate::output::escape;

/// What an update does with members that are left out.
pub(super) const WHOLE: &str = "--config, --limits and --policy each replace the whole object. Members of limits and \
                                policy that are left out are reset to their defaults.";

#[derive(Debug, Args)]
pub(crate) struct UpdateArgs {
    /// Binding key.
    key: String,
    #[command(flatten)]
    company: CompanyArgs,
    /// Provider versions: a range such as '^1.2', or the digest of one build.
    #[arg(long, value_name = "RANGE|DIGEST", value_parser = versions)]
    versions: Option<String>,
    /// Provider configuration, a JSON object.
    #[arg(long, value_name = "JSON")]
    config: Option<String>,
    /// Limits as a JSON object, such as '{"callTimeoutMs":5000}'; missing members are set to their defaults.
    #[arg(long, value_name = "JSON")]
    limits: Option<String>,
    /// Policy as a JSON object with hooks, review, pii, onBudget, retention, mcp, attribution and sharing, such as
    /// '{"pii":"redact"}'; missing members are set to their defaults.
    #[arg(long, value_name = "JSON")]
    policy: Option<String>,
    /// Whether the binding accepts operations.
    #[arg(long, value_name = "BOOL")]
    enabled: Option<bool>,
    #[command(flatten)]
    seen: SeenArgs,
}

/// A version range or a digest, in the host's format.
pub(super) fn version(text: &str) -> Value {
    if text.starts_with("sha256:") { json!({ "pin": text }) } else { json!({ "follow": text }) }
}

pub(super) async fn update(args: UpdateArgs) -> Result<(), CliError> {
    let body = without_nulls(json!({
        "config": object("--config", args.config.as_deref())?,
        "limits": object("--limits", args.limits.as_deref())?,
        "policy": object("--policy", args.policy.as_deref())?,
        "version": args.versions.as_deref().map(version),
        "enabled": args.enabled,
        "revision": args.seen.revision,
    }));
    let session = args.company.open().await?;
    let path = session.path(&format!("bindings/{}", escape(&args.key)));
    let answer = session.host.patch(&path, &body).await?;
    session.show(&answer, "", one)
}
