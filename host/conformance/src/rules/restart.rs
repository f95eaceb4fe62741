//! Rules of restarts and of several instances.

use super::query::has;
use crate::material::text;
use crate::rule::{Rule, provider, rules};
use crate::subject::Subject;
use crate::verdict::{Verdict, holds, skipped};
use memhost_types::{CaptureMode, Exception};

const MEMORY: &str = "the host makes an instance when it needs one and drops it when it likes, so \
                      memory is a cache and nothing else";

pub(super) const RULES: &[Rule] = rules! { None;
    "RST-01" "Records outlive their instance"
        "A fresh instance gets, lists and finds what another instance wrote before."
        provider("provider", MEMORY)
        => binding(outlives);
    "RST-02" "Instances see each other's writes"
        "If `max-concurrency` is more than 1: an instance that has already answered finds what \
         another instance wrote \
         since, and no longer finds what the other forgot."
        provider(
            "description.max-concurrency",
            "Say 1 when instances would not see each other's writes.",
        )
        => binding(side_by_side).unless(Exception::ReadAfterWrite);
    "RST-03" "A repeated event is recognized after a restart"
        "The suite delivers a capture again, with the same `operation-id`, to a fresh instance. \
         The list has as many records \
         as before."
        provider("capture", "a hook delivery is repeated, with the same `operation-id`.")
        => binding(repeated).unless(Exception::IdempotentCaptures);
};

async fn outlives(subject: &Subject) -> Verdict {
    let handle = subject.put(subject.scope(), &text(0)).await?;
    let fresh = subject.beside().await?;
    fresh.got(&handle).await?;
    holds(has(&fresh.list(subject.scope()).await?, &handle), || {
        "the list does not have it".to_owned()
    })?;
    holds(has(&fresh.query(subject.scope(), &text(0)).await?, &handle), || {
        "a query does not return it".to_owned()
    })
}

async fn side_by_side(subject: &Subject) -> Verdict {
    if subject.description.max_concurrency == 1 {
        return skipped("`max-concurrency` is 1");
    }
    let other = subject.beside().await?;
    let first = subject.put(subject.scope(), &text(0)).await?;
    holds(has(&other.query(subject.scope(), &text(0)).await?, &first), || {
        "a query does not return the first record".to_owned()
    })?;
    let second = subject.put(subject.scope(), &text(1)).await?;
    holds(has(&other.query(subject.scope(), &text(1)).await?, &second), || {
        "an instance that has answered before does not find a later record of another instance"
            .to_owned()
    })?;
    subject.forget(subject.scope(), std::slice::from_ref(&first)).await?;
    holds(!has(&other.query(subject.scope(), &text(0)).await?, &first), || {
        "an instance that has answered before still finds a record that another instance forgot"
            .to_owned()
    })
}

async fn repeated(subject: &Subject) -> Verdict {
    let mut request = subject.capture_of(&text(2), CaptureMode::CaptureRecord);
    request.hook = Some(subject.hook("2026-01-02T03:04:05Z")?);
    let id = subject.operation();
    subject.capture(id, &request).await?;
    let before = subject.list(subject.scope()).await?.len();
    let fresh = subject.beside().await?;
    fresh.capture(id, &request).await?;
    let after = fresh.list(subject.scope()).await?.len();
    holds(before == after, || format!("{before} records before, {after} after"))
}
