//! Rules of `health`.

use crate::material::text;
use crate::rule::{Rule, optional, rules};
use crate::subject::Subject;
use crate::verdict::{Verdict, failed, holds};
use memhost_sandbox::{CallError, OptionalInterface};
use memhost_types::ProviderError;

pub(super) const RULES: &[Rule] = rules! { Some(OptionalInterface::Health);
    "HLT-01" "It says how the system behind it is"
        "`check-health` answers a sentence, `unauthorized` or `unavailable`."
        optional("health.check-health",
            "Errors: `unauthorized` if the credentials are refused, `unavailable` if the system \
             cannot be reached")
        => binding(says);
    "HLT-02" "Asking changes nothing"
        "After three calls of `check-health` the same records are listed."
        optional("health.check-health", "May use the network, and changes nothing.")
        => binding(no_effect);
};

async fn says(subject: &Subject) -> Verdict {
    match subject.instances().check_health().await.map_err(|failure| failure.error) {
        Ok(answer) => holds(!answer.value.trim().is_empty(), || "the sentence is empty".to_owned()),
        Err(CallError::Provider(
            ProviderError::Unauthorized(_) | ProviderError::Unavailable { .. },
        )) => Ok(()),
        Err(error) => failed(format!("`check-health`: {error}")),
    }
}

async fn no_effect(subject: &Subject) -> Verdict {
    subject.put(subject.scope(), &text(0)).await?;
    let before = subject.list(subject.company_scope()).await?.len();
    for _ in 0..3 {
        // How it is does not matter here.
        drop(subject.instances().check_health().await);
    }
    let after = subject.list(subject.company_scope()).await?.len();
    holds(before == after, || format!("{before} records before, {after} after"))
}
