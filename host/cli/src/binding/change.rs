//! Changing a binding.

use clap::Args;
use serde_json::{Value, json};

use super::{SeenArgs, json_argument, one};
use crate::CliError;
use crate::args::CompanyArgs;
use crate::output::escape;

#[derive(Debug, Args)]
pub(crate) struct UpdateArgs {
    /// Binding key.
    key: String,
    #[command(flatten)]
    company: CompanyArgs,
    /// Provider versions: a range such as '^1.2', or the digest of one build.
    #[arg(long, value_name = "RANGE|DIGEST")]
    versions: Option<String>,
    /// Provider configuration, a JSON object.
    #[arg(long, value_name = "JSON")]
    config: Option<String>,
    /// Limits as a JSON object, such as '{"callTimeoutMs":5000}'; missing members keep their defaults.
    #[arg(long, value_name = "JSON")]
    limits: Option<String>,
    /// Policy as a JSON object with hooks, review, pii, onBudget and retention, such as '{"pii":"redact"}'; missing
    /// members keep their defaults.
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
    let mut body = json!({});
    let given = [
        ("config", "--config", &args.config),
        ("limits", "--limits", &args.limits),
        ("policy", "--policy", &args.policy),
    ];
    for (name, argument, given) in given {
        if let Some(given) = given {
            body[name] = json_argument(argument, given)?;
        }
    }
    if let Some(given) = &args.versions {
        body["version"] = version(given);
    }
    if let Some(enabled) = args.enabled {
        body["enabled"] = enabled.into();
    }
    if let Some(revision) = args.seen.revision {
        body["revision"] = revision.into();
    }
    let session = args.company.open().await?;
    let path = session.path(&format!("bindings/{}", escape(&args.key)));
    let answer = session.host.patch(&path, &body).await?;
    session.show(&answer, "", one)
}
