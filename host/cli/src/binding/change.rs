//! Changing a binding.

use clap::Args;
use serde_json::json;

use super::shown::one;
use crate::Result;
use crate::answer::Answer;
use crate::args::{CompanyArgs, SeenArgs};
use crate::argument::{nothing_to_change, object, versions, without_nulls};
use crate::difference::differences;
use crate::texts::escape;
use memhost_core::BindingView;
use memhost_types::{Binding, JsonObject, VersionChoice};

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
    #[arg(
        long, value_name = "RANGE|DIGEST", value_parser = versions,
        id = "version|version.follow|version.pin"
    )]
    versions: Option<VersionChoice>,
    /// Provider configuration, a JSON object, or @FILE.
    #[arg(long, value_name = "JSON")]
    config: Option<String>,
    /// Limits as a JSON object, such as '{"callTimeoutMs":5000}'.
    #[arg(long, value_name = "JSON")]
    limits: Option<String>,
    /// Policy as a JSON object with hooks, review, pii, onBudget, retention, mcp, attribution,
    /// sharing and protectAdministrators, such as '{"pii":"redact"}'.
    #[arg(long, value_name = "JSON")]
    policy: Option<String>,
    /// Whether only administrators and operators may change or forget what one of them wrote: the
    /// policy's protectAdministrators.
    #[arg(long, value_name = "BOOL", id = "policy.protectAdministrators")]
    protect_administrators: Option<bool>,
    /// Whether the binding accepts operations.
    #[arg(long, value_name = "BOOL")]
    enabled: Option<bool>,
    #[command(flatten)]
    seen: SeenArgs,
}

/// The policy of a request: the JSON, with the setting that has a flag of its own.
pub(super) fn policy(
    json: Option<&str>,
    protect_administrators: Option<bool>,
) -> Result<Option<JsonObject>> {
    let mut policy = object("--policy", json)?;
    if let Some(protects) = protect_administrators {
        let policy = policy.get_or_insert_default();
        policy.insert("protectAdministrators".to_owned(), protects.into());
    }
    Ok(policy)
}

pub(super) async fn update(args: UpdateArgs) -> Result<()> {
    let body = without_nulls(json!({
        "config": object("--config", args.config.as_deref())?,
        "limits": object("--limits", args.limits.as_deref())?,
        "policy": policy(args.policy.as_deref(), args.protect_administrators)?,
        "version": args.versions,
        "enabled": args.enabled,
        "revision": args.seen.revision,
    }));
    if body.as_object().is_some_and(|body| body.keys().all(|field| field == "revision")) {
        return Err(nothing_to_change(
            "--config, --limits, --policy, --protect-administrators, --versions and --enabled",
        ));
    }
    let session = args.company.open().await?;
    let shown = format!("bindings/{}", escape(&args.key));
    let before: Answer<BindingView> = session.get(&shown).await?;
    let answer = session.host.patch(&session.path(&shown), &body).await?;
    let before = before.read()?.binding;
    let human =
        |after: &BindingView| format!("{}{}", one(after), difference(&before, &after.binding));
    session.show(&answer, human)
}

/// What an update has changed of what it can change, a line for each value.
fn difference(before: &Binding, after: &Binding) -> String {
    let parts = |Binding { version, enabled, config, limits, policy, .. }: &Binding| {
        json!({
            "version": version, "enabled": enabled, "config": config, "limits": limits,
            "policy": policy,
        })
    };
    let (before, after, mut found) = (parts(before), parts(after), Vec::new());
    differences("", &before, &after, &mut found);
    found.iter().map(|(path, before, after)| format!("\n{path}: {before} → {after}")).collect()
}

#[cfg(test)]
mod tests {
    use memhost_types::{BindingLimits, Grants};

    use super::*;

    #[test]
    fn only_what_has_changed_is_printed() {
        let before: Binding = serde_json::from_value(json!({
            "id": "0199f0a0-0000-7000-8000-000000000000", "companyId": "acme", "key": "notes",
            "providerKey": "local-markdown", "config": {}, "enabled": true, "revision": 1,
            "grants": Grants::default(), "limits": BindingLimits::default(),
            "createdAt": "2026-11-01T00:00:00Z", "updatedAt": "2026-11-01T00:00:00Z",
        }))
        .unwrap();
        let mut policy = json!(before.policy);
        (policy["pii"], policy["mcp"]["aliases"]) = ("redact".into(), true.into());
        let policy = serde_json::from_value(policy).unwrap();
        let after = Binding { revision: 2, policy, ..before.clone() };
        let lines = difference(&before, &after);
        assert_eq!(lines, "\npolicy.mcp.aliases: false → true\npolicy.pii: \"allow\" → \"redact\"");
    }
}
