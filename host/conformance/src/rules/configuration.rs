//! Configurations, and permissions that are not granted.

use crate::rule::{Rule, provider, rules};
use crate::subject::Candidate;
use crate::subject::Subject;
use crate::verdict::{Stop, Verdict, failed, holds, skipped};
use memhost_sandbox::{InstanceSetup, Instances};
use memhost_types::BindingLimits;

pub(super) const WITHOUT_OPTIONAL: &str = "PRM-01";
/// No provider has a field of this name.
const STRANGE_FIELD: &str = "memhost-check";

pub(super) const RULES: &[Rule] = rules! { None;
    "CFG-01" "The answer about a configuration is always the same"
        "The suite calls `validate-config` three times with the configuration of the check, and \
         three times with an \
         unknown field added. The answers are the same each time."
        provider(
            "validate-config", "Whether `config` (an object) is acceptable. Pure, like `describe`.",
        )
        => component(same_errors);
    "CFG-02" "An error points at the value"
        "Errors about a configuration with an unknown field, or with a text in place of a field's \
         value, have a JSON \
         Pointer and a message."
        provider(
            "config-error.pointer",
            "JSON Pointer (RFC 6901) to the value at fault; empty for the whole.",
        )
        => component(pointers);
    WITHOUT_OPTIONAL "It works without optional permissions"
        "Without the permissions that it calls optional, a write and a query get an answer, which \
         may be an error that \
         says why. The provider does not crash."
        provider("permission-request.optional", "Whether the provider also works without it.")
        => binding(without_optional).thorough();
};

type ConfigErrors = Vec<(String, String)>;

async fn errors(candidate: &Candidate, config: &serde_json::Value) -> Result<ConfigErrors, Stop> {
    let setup = InstanceSetup::without_grants(BindingLimits::default());
    let instances =
        Instances::new(candidate.service.control().sandbox(), &candidate.component, setup);
    let answer = instances.validate_config(config.to_string()).await;
    answer.map_err(|failure| Stop::Failed(format!("`validate-config`: {}", failure.error)))
}

fn with_field(candidate: &Candidate, name: &str, value: serde_json::Value) -> serde_json::Value {
    let mut config = candidate.config.clone();
    config.insert(name.to_owned(), value);
    config.into()
}

async fn same_errors(candidate: &Candidate) -> Verdict {
    let given = serde_json::Value::Object(candidate.config.clone());
    for config in [given, with_field(candidate, STRANGE_FIELD, true.into())] {
        let first = errors(candidate, &config).await?;
        for _ in 0..2 {
            let again = errors(candidate, &config).await?;
            holds(first == again, || {
                format!("for {config} the errors were {first:?}, then {again:?}")
            })?;
        }
    }
    Ok(())
}

async fn pointers(candidate: &Candidate) -> Verdict {
    let schema = candidate.component.description().config_schema.as_ref();
    let fields = schema.and_then(|schema| schema.get("properties")?.as_object());
    let known = fields.into_iter().flat_map(|fields| fields.keys().map(String::as_str));
    let mut found = 0;
    for field in known.chain([STRANGE_FIELD]) {
        let config = with_field(candidate, field, "\u{0}neither this nor that".into());
        for (pointer, message) in errors(candidate, &config).await? {
            found += 1;
            let escapes_well = pointer.split('~').skip(1).all(|rest| rest.starts_with(['0', '1']));
            holds((pointer.is_empty() || pointer.starts_with('/')) && escapes_well, || {
                format!("the error for `{field}` points at {pointer:?}")
            })?;
            holds(!message.trim().is_empty(), || {
                format!("the error for `{field}` has no message")
            })?;
        }
    }
    if found == 0 { skipped("it accepts every configuration that was tried") } else { Ok(()) }
}

async fn without_optional(subject: &Subject) -> Verdict {
    if !subject.description.permissions.iter().any(|request| request.optional) {
        return skipped("it requests no optional permission");
    }
    let written =
        subject.upsert(subject.scope(), None, vec![subject.write("Granted or not")]).await.err();
    let asked = subject.try_ask(&subject.question(subject.scope(), "granted")).await.err();
    // An error variant is an answer; a crash or a limit is not.
    match [written, asked].into_iter().flatten().find(|error| !error.is_providers_answer()) {
        Some(error) => failed(error.to_string()),
        None => Ok(()),
    }
}
