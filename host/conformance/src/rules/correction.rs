//! Rules of `correction`. They use replacements, because the effect of an instruction depends on
//! the provider.

use super::query::has;
use crate::material::{clip, text};
use crate::rule::{Rule, optional, rules, types};
use crate::subject::{Subject, answered};
use crate::verdict::{Stop, Verdict, failed, holds, skipped};
use memhost_sandbox::{CallError, Correction, OptionalInterface};
use memhost_types::{HostWork, ProviderError, RecordHandle, RecordWrite};

const NOW_HOLDS: &str = "The record that is now valid: the same id if it was changed in place, \
                         another id if it was superseded.";
const NOT_THERE: &str = "The thing named does not exist in this scope. Not retried.";

pub(super) const RULES: &[Rule] = rules! { Some(OptionalInterface::Correction);
    "COR-01" "A corrected record has the new text"
        "The record that `correct` answers has the replacement's text."
        optional("correct-response.record-id", NOW_HOLDS)
        => binding(says_the_new);
    "COR-02" "The same correction is made once"
        "The suite delivers a correction three times with the same `operation-id`. The list has as \
         many records as \
         after the first."
        optional("correct", "Idempotent for one `operation-id`.")
        => binding(once);
    "COR-03" "The old text is not found"
        "After a correction no query returns the old text."
        optional("correct-response.superseded", "The record that was superseded, if there is one.")
        => binding(old_is_gone);
    "COR-04" "The id of a replacement is ignored"
        "The suite sends a replacement with an id. The answer has another id, and no record exists \
         under the given one."
        optional("patch.replacement", "The record as it should be; an `id` in it is ignored.")
        => binding(id_is_ignored);
    "COR-05" "An unknown record cannot be corrected"
        "The correction of an id that was never given answers `not-found`."
        types("error.not-found", NOT_THERE)
        => binding(unknown);
    "COR-06" "A record of another agent cannot be corrected"
        "An agent corrects another agent's record. The answer is `not-found`, and the record is \
         unchanged."
        types("error.not-found", NOT_THERE)
        => binding(foreign).left(&[HostWork::AgentPartition, HostWork::SubjectPartition]);
};

async fn corrected(
    subject: &Subject,
    handle: &RecordHandle,
    record: RecordWrite,
) -> Result<Correction, Stop> {
    answered("correct", subject.correct(subject.operation(), subject.scope(), handle, record).await)
}

async fn says_the_new(subject: &Subject) -> Verdict {
    let handle = subject.put(subject.scope(), &text(0)).await?;
    let correction = corrected(subject, &handle, subject.write(&text(1))).await?;
    let found = subject.got(&correction.record).await?.text;
    holds(found == text(1), || format!("its text is {}", clip(&found)))
}

async fn once(subject: &Subject) -> Verdict {
    let handle = subject.put(subject.scope(), &text(0)).await?;
    let id = subject.operation();
    let (mut records, mut counts) = (Vec::new(), Vec::new());
    for _ in 0..3 {
        let correction =
            subject.correct(id, subject.scope(), &handle, subject.write(&text(1))).await;
        records.push(answered("correct", correction)?.record);
        counts.push(subject.list(subject.scope()).await?.len());
    }
    let other = records.iter().find(|record| Some(*record) != records.first());
    holds(other.is_none(), || format!("the deliveries answer different records: {records:?}"))?;
    holds(counts.first() == counts.last(), || {
        format!("{} records after the first delivery, {} after the third", counts[0], counts[2])
    })
}

async fn old_is_gone(subject: &Subject) -> Verdict {
    let handle = subject.put(subject.scope(), &text(2)).await?;
    let correction = corrected(subject, &handle, subject.write(&text(3))).await?;
    let found = subject.query(subject.scope(), &text(2)).await?;
    holds(found.iter().all(|snippet| snippet.text != text(2)), || {
        "a query returns the old text".to_owned()
    })?;
    match &correction.superseded {
        Some(superseded) => {
            holds(!has(&found, superseded), || "a query returns the superseded record".to_owned())
        }
        None => Ok(()),
    }
}

async fn id_is_ignored(subject: &Subject) -> Verdict {
    let handle = subject.put(subject.scope(), &text(0)).await?;
    let own = subject.name("own");
    let correction = corrected(subject, &handle, subject.write_as(&own, &text(1))).await?;
    holds(correction.record.provider_record_id.as_str() != own, || {
        "the answer has the replacement's id".to_owned()
    })?;
    let found = subject.get(subject.scope(), &subject.handle(&own)?).await?;
    holds(found.is_none(), || "there is a record under the replacement's id".to_owned())
}

fn not_found(outcome: Result<Correction, CallError>) -> Verdict {
    match outcome {
        Err(CallError::Provider(ProviderError::NotFound(_))) => Ok(()),
        Err(CallError::Provider(ProviderError::Unsupported(why))) => {
            skipped(format!("`correct` answers unsupported: {why}"))
        }
        Err(error) => failed(error.to_string()),
        Ok(correction) => {
            failed(format!("`correct` answers `{}`", correction.record.provider_record_id))
        }
    }
}

async fn unknown(subject: &Subject) -> Verdict {
    let handle = subject.handle("no-such-record")?;
    not_found(
        subject
            .correct(subject.operation(), subject.scope(), &handle, subject.write(&text(0)))
            .await,
    )
}

async fn foreign(subject: &Subject) -> Verdict {
    let handle = subject.put(subject.scope(), &text(0)).await?;
    let write = subject.write(&text(1));
    not_found(subject.correct(subject.operation(), subject.other_agent(), &handle, write).await)?;
    let found = subject.got(&handle).await?.text;
    holds(found == text(0), || format!("its text is {}", clip(&found)))
}
