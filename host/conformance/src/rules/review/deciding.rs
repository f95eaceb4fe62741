//! The effects of decisions.

use crate::material::{clip, text};
use crate::rules::query::has;
use crate::subject::{Subject, answered, variant};
use crate::verdict::{Stop, Verdict, failed, holds, skipped};
use memhost_sandbox::CallError;
use memhost_types::{Decision, ProviderError, RecordHandle, RecordWrite, Snippet};

/// The number of the text of an edit.
const EDITED: usize = 7;

/// A waiting record with the text of this number.
async fn one(subject: &Subject, n: usize) -> Result<Snippet, Stop> {
    match subject.make_pending(n, 1).await?.into_iter().next() {
        Some(snippet) => Ok(snippet),
        None => skipped("no record waits for review"),
    }
}

fn edit(subject: &Subject, decision: Decision) -> Option<RecordWrite> {
    (decision == Decision::Edit).then(|| subject.write(&text(EDITED)))
}

async fn decided(
    subject: &Subject,
    handle: &RecordHandle,
    decision: Decision,
) -> Result<Option<Snippet>, Stop> {
    let edited = edit(subject, decision);
    answered(
        "decide",
        subject.try_decide(&subject.scope(), handle, decision, edited.as_ref()).await,
    )
}

/// The record that an approval or an edit must answer.
fn some(answer: Option<Snippet>) -> Result<Snippet, Stop> {
    match answer {
        Some(record) => Ok(record),
        None => failed("`decide` answers no record, although nothing was rejected"),
    }
}

async fn waits(subject: &Subject, handle: &RecordHandle) -> Result<bool, Stop> {
    Ok(has(&subject.pending(&subject.scope()).await?, handle))
}

pub(super) async fn approved(subject: &Subject) -> Verdict {
    let handle = one(subject, 0).await?.handle;
    let record = some(decided(subject, &handle, Decision::Approve).await?)?;
    holds(!waits(subject, &handle).await?, || "it still waits".to_owned())?;
    let there = subject.got(&handle).await?.text;
    holds(there == record.text, || {
        format!("`decide` answers {}, `get-record` {}", clip(&record.text), clip(&there))
    })?;
    let found = subject.query(subject.scope(), &record.text).await?;
    holds(has(&found, &handle), || {
        format!("it is not among the {} found for its own words", found.len())
    })
}

pub(super) async fn rejected(subject: &Subject) -> Verdict {
    let waiting = one(subject, 0).await?;
    let handle = waiting.handle;
    let answer = decided(subject, &handle, Decision::Reject).await?;
    holds(answer.is_none(), || "`decide` answers a record".to_owned())?;
    holds(!waits(subject, &handle).await?, || "it still waits".to_owned())?;
    let there = subject.get(subject.scope(), &handle).await?;
    holds(there.is_none(), || "`get-record` returns it".to_owned())?;
    let listed = subject.list(subject.scope()).await?;
    holds(!has(&listed, &handle), || "`list-records` returns it".to_owned())?;
    let found = subject.query(subject.scope(), &waiting.text).await?;
    holds(!has(&found, &handle), || "`query` returns it".to_owned())
}

pub(super) async fn edited(subject: &Subject) -> Verdict {
    let handle = one(subject, 0).await?.handle;
    let record = some(decided(subject, &handle, Decision::Edit).await?)?;
    let there = subject.got(&handle).await?;
    for (who, said) in [("decide", record.text), ("get-record", there.text)] {
        holds(said == text(EDITED), || format!("`{who}` answers {}", clip(&said)))?;
    }
    Ok(())
}

pub(super) async fn id_is_ignored(subject: &Subject) -> Verdict {
    let handle = one(subject, 0).await?.handle;
    let own = subject.name("own");
    let write = subject.write_as(&own, &text(EDITED));
    let answer = subject.try_decide(&subject.scope(), &handle, Decision::Edit, Some(&write)).await;
    // The host has refused an answer with another id already.
    some(answered("decide", answer)?)?;
    let there = subject.get(subject.scope(), &subject.handle(&own)?).await?;
    holds(there.is_none(), || "there is a record under the edit's id".to_owned())
}

pub(super) async fn twice(subject: &Subject) -> Verdict {
    for (n, decision) in
        [Decision::Approve, Decision::Reject, Decision::Edit].into_iter().enumerate()
    {
        let handle = one(subject, n).await?.handle;
        let first = decided(subject, &handle, decision).await?;
        let fresh = subject.beside().await?;
        let again = fresh
            .try_decide(&subject.scope(), &handle, decision, edit(subject, decision).as_ref())
            .await;
        let again = match again {
            Err(CallError::Provider(error)) => {
                return failed(format!(
                    "the second `{decision}` answers {}: {error}",
                    variant(&error)
                ));
            }
            again => answered("decide", again)?,
        };
        let said = |answer: &Option<Snippet>| {
            answer.as_ref().map_or("none".to_owned(), |record| clip(&record.text))
        };
        let (first, again) = (said(&first), said(&again));
        holds(first == again, || format!("`{decision}` answers {first}, then {again}"))?;
    }
    Ok(())
}

pub(super) async fn stands(subject: &Subject) -> Verdict {
    let pairs = [
        (Decision::Approve, Decision::Reject),
        (Decision::Approve, Decision::Edit),
        (Decision::Edit, Decision::Approve),
        (Decision::Reject, Decision::Approve),
        (Decision::Reject, Decision::Edit),
    ];
    for (n, (first, other)) in pairs.into_iter().enumerate() {
        let handle = one(subject, n).await?.handle;
        decided(subject, &handle, first).await?;
        let before = subject.get(subject.scope(), &handle).await?.map(|record| record.text);
        match subject
            .try_decide(&subject.scope(), &handle, other, edit(subject, other).as_ref())
            .await
        {
            Err(CallError::Provider(ProviderError::InvalidRequest { .. })) => {}
            Err(error) => return failed(format!("`{other}` after `{first}`: {error}")),
            Ok(_) => return failed(format!("`{other}` after `{first}` is accepted")),
        }
        let after = subject.get(subject.scope(), &handle).await?.map(|record| record.text);
        holds(before == after, || {
            format!(
                "`{other}` after `{first}` is refused, but the record was {before:?} and is \
                 {after:?}"
            )
        })?;
    }
    Ok(())
}

/// Fails if a decision is accepted. Both errors are allowed, because a provider need not remember
/// rejected records.
fn refused(answer: Result<Option<Snippet>, CallError>, decision: Decision) -> Verdict {
    match answer {
        Err(CallError::Provider(
            ProviderError::NotFound(_) | ProviderError::InvalidRequest { .. },
        )) => Ok(()),
        Err(error) => failed(format!("`{decision}`: {error}")),
        Ok(None) if decision == Decision::Reject => Ok(()),
        Ok(_) => failed(format!("`{decision}` is accepted")),
    }
}

pub(super) async fn unknown(subject: &Subject) -> Verdict {
    let handle = subject.handle("no-such-record")?;
    for decision in [Decision::Approve, Decision::Reject, Decision::Edit] {
        let edited = edit(subject, decision);
        let answer = subject.try_decide(&subject.scope(), &handle, decision, edited.as_ref()).await;
        refused(answer, decision)?;
    }
    let found = subject.get(subject.scope(), &handle).await?;
    holds(found.is_none(), || "there is a record under that id".to_owned())
}

pub(super) async fn foreign(subject: &Subject) -> Verdict {
    let handle = one(subject, 0).await?.handle;
    let answer = subject.try_decide(&subject.other_agent(), &handle, Decision::Approve, None).await;
    refused(answer, Decision::Approve)?;
    holds(waits(subject, &handle).await?, || "it no longer waits".to_owned())
}
