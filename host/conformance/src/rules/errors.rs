//! Rules of errors.

use crate::material::text;
use crate::rule::{Rule, rules, types};
use crate::subject::{Subject, variant};
use crate::verdict::{Stop, Verdict, failed, holds, skipped};
use memhost_sandbox::CallError;
use memhost_types::ProviderError;

pub(super) const RULES: &[Rule] = rules! { None;
    "ERR-01" "A refusal names the field as the plan does"
        "The suite tries writes that a provider may refuse. Each `invalid-request` names its field \
         in camelCase with \
         dots."
        types("invalid-request.field",
            "The field at fault, in the plan's camelCase with dots, such as `records.0.metadata`.")
        => binding(fields);
    "ERR-02" "An error has a message"
        "Each error that the suite provokes has a message."
        types("error", "Messages are for people: they say what happened, to which thing, and what \
                        to do next.")
        => binding(messages);
};

/// The errors of requests that a provider may refuse: an id of another partition, a long text, an
/// empty text, many records, an unusual filter.
async fn errors(subject: &Subject) -> Result<Vec<ProviderError>, Stop> {
    let foreign = subject.name("foreign");
    let written = subject
        .upsert(subject.other_agent(), None, vec![subject.write_as(&foreign, &text(0))])
        .await;
    let mut outcomes = vec![written.err()];
    for records in [
        vec![subject.write_as(&foreign, &text(1))],
        vec![subject.write(&text(2).repeat(1_600))],
        vec![subject.write("")],
        (0..100).map(|n| subject.write(&text(n))).collect(),
    ] {
        outcomes.push(subject.upsert(subject.scope(), None, records).await.err());
    }
    let mut question = subject.question(subject.scope(), "");
    outcomes.push(subject.try_ask(&question).await.err());
    question.metadata_filter = serde_json::json!({ "of": { "a": [1] } }).as_object().cloned();
    outcomes.push(subject.try_ask(&question).await.err());
    let mut found = Vec::new();
    for error in outcomes.into_iter().flatten() {
        match error {
            CallError::Provider(error) => found.push(error),
            error => return failed(error.to_string()),
        }
    }
    if found.is_empty() { skipped("it accepts every request that was tried") } else { Ok(found) }
}

fn is_of_the_plan(field: &str) -> bool {
    let part = |part: &str| {
        let is_number = !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        let is_name = part.starts_with(|c: char| c.is_ascii_lowercase())
            && part.chars().all(|c| c.is_ascii_alphanumeric());
        is_number || is_name
    };
    field.split('.').all(part)
}

async fn fields(subject: &Subject) -> Verdict {
    for error in errors(subject).await? {
        if let ProviderError::InvalidRequest { field: Some(field), .. } = &error {
            holds(is_of_the_plan(field), || format!("the field is {field:?}"))?;
        }
    }
    Ok(())
}

async fn messages(subject: &Subject) -> Verdict {
    for error in errors(subject).await? {
        let message = match &error {
            ProviderError::InvalidRequest { message, .. }
            | ProviderError::RateLimited { message, .. }
            | ProviderError::Unavailable { message, .. } => message,
            ProviderError::NotFound(message)
            | ProviderError::Unsupported(message)
            | ProviderError::Unauthorized(message)
            | ProviderError::QuotaExceeded(message)
            | ProviderError::Internal(message) => message,
        };
        holds(!message.trim().is_empty(), || format!("{} without a message", variant(&error)))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_the_plans() {
        assert!(
            is_of_the_plan("records.0.metadata")
                && is_of_the_plan("metadataFilter")
                && is_of_the_plan("lines.12")
        );
        assert!(
            !is_of_the_plan("records[0]")
                && !is_of_the_plan("metadata_filter")
                && !is_of_the_plan("/records/0")
        );
        assert!(!is_of_the_plan("") && !is_of_the_plan("records..text"));
    }
}
