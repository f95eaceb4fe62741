//! Changing a binding.

use std::collections::BTreeSet;

use clap::Args;
use serde_json::{Value, json};

use super::{SeenArgs, one};
use crate::CliError;
use crate::args::CompanyArgs;
use crate::argument::{object, versions, without_nulls};
use crate::output::escape;

/// What an update does with members that are left out.
pub(super) const WHOLE: &str = "--limits and --policy are merged: members that are left out stay, \
                                and null resets one to \
                                its default. --config replaces the whole object.";

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
    /// Limits as a JSON object, such as '{"callTimeoutMs":5000}'.
    #[arg(long, value_name = "JSON")]
    limits: Option<String>,
    /// Policy as a JSON object with hooks, review, pii, onBudget, retention, mcp, attribution and
    /// sharing, such as '{"pii":"redact"}'.
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
    let shown = format!("bindings/{}", escape(&args.key));
    let before = session.get(&shown).await?;
    let answer = session.host.patch(&session.path(&shown), &body).await?;
    session.show(&answer, "", |answer| format!("{}{}", one(answer), difference(&before, answer)))
}

/// What an update has changed, a line for each value.
fn difference(before: &Value, after: &Value) -> String {
    let mut lines = String::new();
    for part in ["version", "enabled", "config", "limits", "policy"] {
        differ(part, &before[part], &after[part], &mut lines);
    }
    lines
}

fn differ(name: &str, before: &Value, after: &Value, lines: &mut String) {
    match (before, after) {
        (before, after) if before == after => {}
        (Value::Object(old), Value::Object(new)) => {
            let names: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
            for member in names {
                differ(
                    &format!("{name}.{member}"),
                    &before[member.as_str()],
                    &after[member.as_str()],
                    lines,
                );
            }
        }
        (before, after) => lines.push_str(&format!("\n{name}: {before} → {after}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_has_changed_is_printed() {
        let before = json!({"revision": 1, "policy": {"pii": "allow", "mcp": {"aliases": false}}, "enabled": true});
        let after = json!({"revision": 2, "policy": {"pii": "redact", "mcp": {"aliases": true}}, "enabled": true});
        let lines = difference(&before, &after);
        assert_eq!(lines, "\npolicy.mcp.aliases: false → true\npolicy.pii: \"allow\" → \"redact\"");
    }
}
