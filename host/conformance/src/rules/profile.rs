//! Rules of `profile`.

use super::partition::{in_namespace, other_subject};
use super::query::has;
use crate::material::{clip, text};
use crate::rule::{Rule, optional, provider, rules};
use crate::subject::Subject;
use crate::verdict::{Stop, Verdict, failed, holds, skipped};
use memhost_sandbox::OptionalInterface;
use memhost_types::{CaptureMode, CaptureRequest, HostWork, Scope};

/// A text that also providers with narrow rules keep, and a word that appears only in it.
const PREFERENCE: &str = "I prefer peppermint tea over coffee";
const TELLING: &str = "peppermint";
/// The number of records for a long summary. Each is as long as providers with narrow limits accept
/// it.
const MANY: usize = 400;

const OF_THE_SCOPE: &str = "Made of what this scope may see: nothing of another partition";

pub(super) const RULES: &[Rule] = rules! { Some(OptionalInterface::Profile);
    "PRF-01" "Asking for a summary changes nothing"
        "After three summaries the list is unchanged, and a query returns the same records as \
         before."
        optional("get-profile", "No effect that a later call could see.")
        => binding(no_effect);
    "PRF-02" "Without records there is no summary"
        "In a scope without records, `get-profile` answers no summary, not a summary that says so."
        optional("profile-response.summary", "None: nothing is known yet.")
        => binding(nothing);
    "PRF-03" "Summaries separate agents"
        "One agent states a preference. The summary of another agent, who stated none, is as empty \
         as before."
        optional("get-profile", OF_THE_SCOPE)
        => binding(agents).left(&[HostWork::AgentPartition]);
    "PRF-04" "Summaries separate subjects"
        "One subject has a preference. The summary of another subject is as empty as before."
        optional("get-profile", OF_THE_SCOPE)
        => binding(subjects).left(&[HostWork::SubjectPartition]);
    "PRF-05" "Summaries separate namespaces"
        "One namespace has a preference. The summary of another namespace is as empty as before."
        optional("get-profile", OF_THE_SCOPE)
        => binding(namespaces).left(&[HostWork::NamespacePartition]);
    "PRF-06" "A summary contains nothing that was forgotten"
        "The suite forgets all records of a scope. The summary is as empty as before they were \
         written, also on a fresh \
         instance."
        provider("forget", "Makes records unreachable, and whatever was derived from them.")
        => binding(forgotten);
    "PRF-07" "A summary is short"
        "The suite writes four hundred records of 200 bytes, or as many as the provider accepts. \
         The summary has at \
         most 64 KiB."
        optional("profile-response.summary", "At most 64 KiB.")
        => binding(short).thorough();
};

/// Tells the provider a preference by a write, an extraction or a capture, and answers the summary.
async fn told(subject: &Subject, scope: &Scope) -> Result<String, Stop> {
    let captured =
        |mode| CaptureRequest { scope: scope.clone(), ..subject.capture_of(PREFERENCE, mode) };
    for mode in [None, Some(CaptureMode::CaptureResidue), Some(CaptureMode::CaptureRecord)] {
        match mode {
            None => drop(subject.put(scope.clone(), PREFERENCE).await?),
            Some(mode) => {
                let jobs = subject.capture(subject.operation(), &captured(mode)).await?.jobs;
                subject.work_off(&jobs).await?;
            }
        }
        if let Some(summary) = subject.summary(scope).await? {
            return Ok(summary);
        }
    }
    skipped(
        "there is no summary, although a preference was written, captured as residue and captured \
         as a record",
    )
}

/// Fails if the summary reveals the preference: by its words, or by its existence.
fn as_before(before: Option<&str>, after: Option<&str>, whose: &str) -> Verdict {
    match after {
        Some(summary) if summary.to_lowercase().contains(TELLING) => {
            failed(format!("{whose} contains it: {}", clip(summary)))
        }
        Some(summary) if before.is_none() => {
            failed(format!("{whose} was empty, and is now {}", clip(summary)))
        }
        _ => Ok(()),
    }
}

async fn no_effect(subject: &Subject) -> Verdict {
    told(subject, &subject.scope()).await?;
    let handle = subject.put(subject.scope(), &text(0)).await?;
    let found = subject.query(subject.scope(), &text(0)).await?;
    let before = subject.list(subject.scope()).await?;
    for _ in 0..3 {
        subject.summary(&subject.scope()).await?;
    }
    let after = subject.list(subject.scope()).await?;
    let is_same =
        before.len() == after.len() && before.iter().all(|snippet| has(&after, &snippet.handle));
    holds(is_same, || format!("{} records before, {} after", before.len(), after.len()))?;
    let again = subject.query(subject.scope(), &text(0)).await?;
    let is_same =
        found.len() == again.len() && found.iter().all(|snippet| has(&again, &snippet.handle));
    holds(is_same, || {
        format!("a query found {} records before, {} after", found.len(), again.len())
    })?;
    let said = subject.got(&handle).await?.text;
    holds(said == text(0), || {
        format!("the text of a record was {}, and is now {}", clip(&text(0)), clip(&said))
    })
}

async fn nothing(subject: &Subject) -> Verdict {
    match subject.summary(&subject.scope()).await? {
        None => Ok(()),
        Some(summary) => {
            failed(format!("nothing was written, but the summary is {}", clip(&summary)))
        }
    }
}

/// Fails if a preference of one scope appears in the summary of the other.
async fn apart(subject: &Subject, own: Scope, other: Scope, whose: &str) -> Verdict {
    let before = subject.summary(&other).await?;
    told(subject, &own).await?;
    let after = subject.summary(&other).await?;
    as_before(before.as_deref(), after.as_deref(), whose)
}

async fn agents(subject: &Subject) -> Verdict {
    apart(subject, subject.scope(), subject.other_agent(), "the other agent's summary").await
}

async fn subjects(subject: &Subject) -> Verdict {
    apart(subject, subject.scope(), other_subject(subject), "the other subject's summary").await
}

async fn namespaces(subject: &Subject) -> Verdict {
    let [own, other] = ["one", "two"].map(|name| in_namespace(subject, name));
    apart(subject, own, other, "the other namespace's summary").await
}

async fn forgotten(subject: &Subject) -> Verdict {
    let scope = subject.scope();
    let before = subject.summary(&scope).await?;
    told(subject, &scope).await?;
    let handles: Vec<_> =
        subject.list(scope.clone()).await?.into_iter().map(|snippet| snippet.handle).collect();
    if handles.is_empty() {
        return skipped("the list has no records, so the suite cannot forget them");
    }
    subject.forget(scope.clone(), &handles).await?;
    for instances in [subject, &subject.beside().await?] {
        let after = instances.summary(&scope).await?;
        as_before(before.as_deref(), after.as_deref(), "the summary")?;
    }
    Ok(())
}

async fn short(subject: &Subject) -> Verdict {
    told(subject, &subject.scope()).await?;
    for begin in (0..MANY).step_by(50) {
        let record = |n| {
            subject.write(&format!(
                "I prefer {}, {}",
                "incomprehensibilities ".repeat(7).trim_end(),
                text(n)
            ))
        };
        let records = (begin..begin + 50).map(record).collect();
        // The provider may limit its storage.
        if subject.upsert(subject.scope(), None, records).await.is_err() {
            break;
        }
    }
    // The host refuses a longer summary.
    subject.summary(&subject.scope()).await.map(drop)
}
