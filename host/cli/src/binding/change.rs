//! Changing a binding.

use clap::Args;
use serde_json::{Value, json};

use super::{SeenArgs, json_argument, one};
use crate::CliError;
use crate::args::CompanyArgs;
use crate::output::escape;

#[derive(Debug, Args)]
pub(crate) struct UpdateArgs {
    /// The binding's key.
    key: String,
    #[command(flatten)]
    company: CompanyArgs,
    /// Which versions of its provider: a range such as '^1.2', or the digest of one build.
    #[arg(long, value_name = "RANGE|DIGEST")]
    versions: Option<String>,
    /// The provider's configuration, a JSON object.
    #[arg(long, value_name = "JSON")]
    config: Option<String>,
    /// What the provider may use, such as '{"callTimeoutMs":5000}'; what is left out is the default.
    #[arg(long, value_name = "JSON")]
    limits: Option<String>,
    /// What it does with what passes, such as '{"pii":"redact"}': hooks, review, pii, onBudget, retention; what is left
    /// out is the default.
    #[arg(long, value_name = "JSON")]
    policy: Option<String>,
    /// Whether it takes operations.
    #[arg(long, value_name = "BOOL")]
    enabled: Option<bool>,
    #[command(flatten)]
    seen: SeenArgs,
}

/// A range or a digest, as the host takes it.
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
