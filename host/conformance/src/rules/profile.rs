//! `profile`: a summary is of one scope, of what is there, and changes nothing.

use super::partition::{in_namespace, other_subject};
use super::query::has;
use crate::material::{clip, text};
use crate::rule::{Rule, Run, Stop, Verdict, failed, holds, optional, provider, skipped};
use crate::subject::Subject;
use memhost_sandbox::OptionalInterface;
use memhost_types::{CaptureMode, CaptureRequest, Scope};

/// What also those keep in mind who keep little of what they hear, and the word of it that nobody says here before.
const PREFERENCE: &str = "I prefer peppermint tea over coffee";
const TELLING: &str = "peppermint";
/// Records that are more than a summary holds, each as long as narrow providers take it.
const MANY: usize = 400;

const OF_THE_SCOPE: &str = "Made of what this scope may see: nothing of another partition";

pub(super) const RULES: &[Rule] = &[
    Rule::new(
        "PRF-01",
        "Asking for a summary changes nothing",
        "After three summaries the list is unchanged, and a query returns the same records as before.",
        optional("get-profile", "No effect that a later call could see."),
        Run::Binding(|subject| Box::pin(no_effect(subject))),
    )
    .of(OptionalInterface::Profile),
    Rule::new(
        "PRF-02",
        "Without records there is no summary",
        "In a scope without records, `get-profile` answers no summary, not a summary that says so.",
        optional("profile-response.summary", "None: nothing is known yet."),
        Run::Binding(|subject| Box::pin(nothing(subject))),
    )
    .of(OptionalInterface::Profile),
    Rule::new(
        "PRF-03",
        "Summaries separate agents",
        "One agent states a preference. The summary of another agent, who stated none, is as empty as before.",
        optional("get-profile", OF_THE_SCOPE),
        Run::Binding(|subject| Box::pin(agents(subject))),
    )
    .of(OptionalInterface::Profile),
    Rule::new(
        "PRF-04",
        "Summaries separate subjects",
        "One subject has a preference. The summary of another subject is as empty as before.",
        optional("get-profile", OF_THE_SCOPE),
        Run::Binding(|subject| Box::pin(subjects(subject))),
    )
    .of(OptionalInterface::Profile),
    Rule::new(
        "PRF-05",
        "Summaries separate namespaces",
        "One namespace has a preference. The summary of another namespace is as empty as before.",
        optional("get-profile", OF_THE_SCOPE),
        Run::Binding(|subject| Box::pin(namespaces(subject))),
    )
    .of(OptionalInterface::Profile),
    Rule::new(
        "PRF-06",
        "A summary contains nothing that was forgotten",
        "The suite forgets all records of a scope. The summary is as empty as before they were written, also on a \
         fresh instance.",
        provider("forget", "Makes records unreachable, and whatever was derived from them; at most 1,000 ids."),
        Run::Binding(|subject| Box::pin(forgotten(subject))),
    )
    .of(OptionalInterface::Profile),
    Rule::new(
        "PRF-07",
        "A summary is short",
        "The suite writes four hundred records of 200 bytes, or as many as the provider accepts. The summary has at \
         most 64 KiB.",
        optional("profile-response.summary", "At most 64 KiB."),
        Run::Binding(|subject| Box::pin(short(subject))),
    )
    .of(OptionalInterface::Profile)
    .thorough(),
];

/// Has the provider know something of a scope, by a write, an extraction or a capture, and answers what it then says.
async fn told(subject: &Subject, scope: &Scope) -> Result<String, Stop> {
    let captured = |mode| CaptureRequest { scope: scope.clone(), ..subject.capture_of(PREFERENCE, mode) };
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
    skipped("there is no summary, although a preference was written, captured as residue and captured as a record")
}

/// A summary must not say what it must not know: not by its words, and not by being there.
fn as_before(before: Option<&str>, after: Option<&str>, whose: &str) -> Verdict {
    match after {
        Some(summary) if summary.to_lowercase().contains(TELLING) => {
            failed(format!("{whose} tells of it: {}", clip(summary)))
        }
        Some(summary) if before.is_none() => failed(format!("{whose} was none, and now it is {}", clip(summary))),
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
    let is_same = before.len() == after.len() && before.iter().all(|snippet| has(&after, &snippet.handle));
    holds(is_same, || format!("{} records before, {} after", before.len(), after.len()))?;
    let again = subject.query(subject.scope(), &text(0)).await?;
    let is_same = found.len() == again.len() && found.iter().all(|snippet| has(&again, &snippet.handle));
    holds(is_same, || format!("a query found {} records before, {} after", found.len(), again.len()))?;
    let said = subject.got(&handle).await?.text;
    holds(said == text(0), || format!("a record said {}, and now it says {}", clip(&text(0)), clip(&said)))
}

async fn nothing(subject: &Subject) -> Verdict {
    match subject.summary(&subject.scope()).await? {
        None => Ok(()),
        Some(summary) => failed(format!("nothing was written, and the summary is {}", clip(&summary))),
    }
}

/// What is told in one scope is not told in the other.
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
    let handles: Vec<_> = subject.list(scope.clone()).await?.into_iter().map(|snippet| snippet.handle).collect();
    if handles.is_empty() {
        return skipped("the summary is of nothing that the list has");
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
        let record =
            |n| subject.write(&format!("I prefer {}, {}", "incomprehensibilities ".repeat(7).trim_end(), text(n)));
        let records = (begin..begin + 50).map(record).collect();
        // A limit on what is stored is the provider's own.
        if subject.upsert(subject.scope(), None, records).await.is_err() {
            break;
        }
    }
    // The host refuses a longer one, as it would in production.
    subject.summary(&subject.scope()).await.map(drop)
}
