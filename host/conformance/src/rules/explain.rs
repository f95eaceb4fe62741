//! Rules of `explain`.

use super::query::several;
use crate::rule::{Rule, optional, rules};
use crate::subject::Subject;
use crate::verdict::{Verdict, holds, skipped};
use memhost_sandbox::OptionalInterface;

pub(super) const RULES: &[Rule] = rules! { Some(OptionalInterface::Explain);
    "XPL-01" "An explanation covers the query's hits"
        "`explain-query` has the records that `query` returns for the same request, in the same \
         order."
        optional("explanation.hits", "In the order of the query's result.")
        => binding(same_hits);
    "XPL-02" "Contributions are finite"
        "Each hit has at most 100 contributions, and all of them are finite."
        optional("hit-trace.contributions", "At most 100, each value finite.")
        => binding(numbers);
    "XPL-03" "Explaining changes nothing"
        "After three explanations the list is unchanged."
        optional("explain-query", "Runs the query again and explains its result. No effect.")
        => binding(no_effect);
};

async fn same_hits(subject: &Subject) -> Verdict {
    let (words, _) = several(subject, 4).await?;
    let question = subject.question(subject.scope(), &words);
    let found: Vec<_> =
        subject.ask(&question).await?.into_iter().map(|snippet| snippet.handle).collect();
    if found.is_empty() {
        return skipped("the query finds nothing to explain");
    }
    let told: Vec<_> =
        subject.explain(&question).await?.hits.into_iter().map(|hit| hit.handle).collect();
    let ids = |handles: &[memhost_types::RecordHandle]| {
        handles
            .iter()
            .map(|handle| handle.provider_record_id.to_string())
            .collect::<Vec<_>>()
            .join(", ")
    };
    holds(told == found, || {
        format!("the query returns {}, the explanation has {}", ids(&found), ids(&told))
    })
}

async fn numbers(subject: &Subject) -> Verdict {
    let (words, _) = several(subject, 3).await?;
    // The host has refused other values already.
    let hits = subject.explain(&subject.question(subject.scope(), &words)).await?.hits;
    if hits.is_empty() { skipped("there is no hit to explain") } else { Ok(()) }
}

async fn no_effect(subject: &Subject) -> Verdict {
    let (words, _) = several(subject, 2).await?;
    let before = subject.list(subject.scope()).await?.len();
    for _ in 0..3 {
        subject.explain(&subject.question(subject.scope(), &words)).await?;
    }
    let after = subject.list(subject.scope()).await?.len();
    holds(before == after, || format!("{before} records before, {after} after"))
}
