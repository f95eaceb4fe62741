//! Rules of admission and of `describe`.

use crate::rule::{Rule, provider, rules, world};
use crate::subject::{Candidate, schema_problem};
use crate::verdict::{Verdict, failed, holds, skipped};
use memhost_sandbox::AdmissionError;
use memhost_types::{AskedOrigin, Permission};

pub(super) const RULES: &[Rule] = rules! { None;
    "ADM-01" "The file is a component of this contract"
        "The component exports `paperclip:memory/provider` in a version that this host supports."
        world("memory-provider", "What every provider is built for.")
        => admission.refused_with(is_no_component);
    "ADM-02" "It imports only the contract and WASI"
        "The host offers everything that the component imports."
        world("memory-provider",
            "A component imports only what it uses of it, and what its language's runtime needs of \
             WASI 0.2.")
        => admission.refused_with(|error| {
            matches!(error, AdmissionError::Unlinkable(_) | AdmissionError::TooDemanding { .. })
        });
    "DSC-01" "It describes itself"
        "On a fresh instance without grants, `describe` answers within a second, with a name, a \
         summary and permissions \
         that the contract allows."
        provider("describe", "A component whose `describe` fails is not admitted.")
        => admission.refused_with(|error| {
            matches!(error, AdmissionError::Describe(_))
                || ["name", "summary", "permissions"].iter().any(|field| is_of(error, field))
        });
    "DSC-02" "The provider key is valid"
        "`describe` answers a provider key in the contract's form."
        provider(
            "description.provider-key",
            "Stable across versions: `[a-z0-9._-]`, 1 to 64 bytes, a letter or digit first.",
        )
        => admission.refused_with(|error| is_of(error, "providerKey"));
    "DSC-03" "The version is semantic"
        "`describe` answers a semantic version."
        provider("description.version", "Semantic version of this build, such as `1.4.0`.")
        => admission.refused_with(|error| is_of(error, "version"));
    "DSC-04" "The description is always the same"
        "Three fresh instances give the same answer to `describe`."
        provider("describe", "Pure: the same answer every time, without any grant, in at most 1 s.")
        => component(same_description);
    "DSC-05" "The configuration's schema is a JSON Schema"
        "If there is a schema, it is JSON and valid as JSON Schema 2020-12."
        provider(
            "description.config-schema",
            "JSON Schema (2020-12) of the configuration; none: no configuration.",
        )
        => component(schema).refused_with(|error| is_of(error, "configSchema"));
    "DSC-06" "At least one instance may serve"
        "`describe` answers a `max-concurrency` of 1 or more."
        provider(
            "description.max-concurrency",
            "How many instances may serve one binding at once, from 1.",
        )
        => admission.refused_with(|error| is_of(error, "maxConcurrency"));
    "DSC-07" "Each permission has a reason"
        "Each permission that the provider asks for has a reason."
        provider("permission-request.reason", "For the person who decides, in one sentence.")
        => component(reasons);
    "DSC-08" "The configuration can hold the addresses"
        "Each value of the configuration that an origin refers to is in the schema of the \
         configuration."
        provider("http-permission.origin", "with a JSON Pointer (RFC 6901) to a string of it")
        => component(addresses);
    "DSC-09" "The declarations can be followed"
        "`describe` answers no `max-upsert` and no `max-forget` of 0, and leaves nothing to the \
         host that the host does not \
         know."
        provider(
            "declarations.max-upsert",
            "The most records of one `upsert-records`, from 1; none: 1,000.",
        )
        => admission.refused_with(|error| is_of(error, "declarations"));
};

fn is_no_component(error: &AdmissionError) -> bool {
    matches!(
        error,
        AdmissionError::TooLarge { .. }
            | AdmissionError::NativeCode
            | AdmissionError::CoreModule
            | AdmissionError::NotWasm { .. }
            | AdmissionError::Malformed(_)
            | AdmissionError::NoProvider { .. }
            | AdmissionError::UnknownContract { .. }
    )
}

fn is_of(error: &AdmissionError, wanted: &str) -> bool {
    matches!(error, AdmissionError::Description { field, .. } if *field == wanted)
}

async fn same_description(candidate: &Candidate) -> Verdict {
    let known = candidate.component.description();
    for _ in 0..3 {
        match candidate.component.describe(candidate.service.control().sandbox()).await {
            Ok(again) => holds(again == *known, || {
                let json = |value| serde_json::to_string(value).unwrap_or_default();
                format!("at first {}, then {}", json(known), json(&again))
            })?,
            Err(error) => {
                return failed(format!("it answered at admission, but then failed: {error}"));
            }
        }
    }
    Ok(())
}

async fn schema(candidate: &Candidate) -> Verdict {
    if candidate.component.description().config_schema.is_none() {
        return skipped("it has no configuration");
    }
    match schema_problem(&candidate.service, &candidate.component).await {
        None => Ok(()),
        Some(problem) => failed(problem),
    }
}

async fn addresses(candidate: &Candidate) -> Verdict {
    let description = candidate.component.description();
    let http = description.permissions.iter().filter_map(|request| match &request.permission {
        Permission::Http(http) => Some(&http.origin),
        _ => None,
    });
    let pointers: Vec<&str> = http.flat_map(AskedOrigin::pointers).collect();
    if pointers.is_empty() {
        return skipped("no origin comes from its configuration");
    }
    for pointer in pointers {
        let path = pointer.replace('/', "/properties/");
        let schema = description.config_schema.as_ref();
        holds(schema.is_some_and(|schema| schema.pointer(&path).is_some()), || {
            format!(
                "an origin refers to `{pointer}`, and the schema of the configuration has no such \
                 property"
            )
        })?;
    }
    Ok(())
}

async fn reasons(candidate: &Candidate) -> Verdict {
    let asked = &candidate.component.description().permissions;
    if asked.is_empty() {
        return skipped("it requests no permission");
    }
    let silent = asked.iter().find(|request| request.reason.trim().is_empty());
    holds(silent.is_none(), || match silent {
        Some(request) => format!("{} has no reason", request.permission),
        None => String::new(),
    })
}
