//! Rules of imports.

use super::moving::{difference, exported, fresh, imported, written};
use crate::rules::query::has;
use crate::subject::{Subject, answered, variant};
use crate::verdict::{Stop, Verdict, failed, holds, skipped};
use memhost_sandbox::{CallError, OptionalInterface};
use memhost_types::ProviderError;

pub(super) async fn lossless(subject: &Subject) -> Verdict {
    let records = written(subject).await?;
    let parts = exported(subject).await?;
    let there = fresh(subject).await?;
    imported(&there, &parts).await?;
    match difference(&records, &there.list(subject.scope()).await?) {
        None => Ok(()),
        Some(difference) => failed(difference),
    }
}

pub(super) async fn waits(subject: &Subject) -> Verdict {
    if !subject.interfaces.contains(&OptionalInterface::Review) {
        return skipped("no record waits for review: the component does not export `review`");
    }
    let held = subject.make_pending(0, 1).await?;
    let parts = exported(subject).await?;
    let there = fresh(subject).await?;
    imported(&there, &parts).await?;
    match difference(&held, &there.pending(&subject.scope()).await?) {
        None => Ok(()),
        Some(difference) => failed(format!("of the waiting records, {difference}")),
    }
}

pub(super) async fn once(subject: &Subject) -> Verdict {
    let records = written(subject).await?;
    let parts = exported(subject).await?;
    let there = fresh(subject).await?;
    imported(&there, &parts).await?;
    for (place, binding) in [("the other binding", &there), ("its own binding", subject)] {
        let new = imported(binding, &parts).await?;
        holds(new == 0, || {
            format!(
                "{place} has the records already, but the report says that {new} lines were \
                 `imported`"
            )
        })?;
        let after = binding.list(subject.scope()).await?;
        if let Some(difference) = difference(&records, &after) {
            return failed(format!("in {place}, {difference}"));
        }
    }
    Ok(())
}

/// Whole lines of an export, and one of them cut off in its middle.
async fn whole_and_broken(subject: &Subject) -> Result<(String, String), Stop> {
    written(subject).await?;
    let Some(whole) = exported(subject).await?.into_iter().next() else {
        return skipped("there is no line to break");
    };
    let line: Vec<char> = whole.lines().next().unwrap_or_default().chars().collect();
    let broken: String = line[..line.len() / 2].iter().collect();
    // If it is still JSON, it may be a valid line.
    match serde_json::from_str::<serde_json::Value>(&broken) {
        Ok(_) => skipped("half a line is still a valid line"),
        Err(_) => Ok((whole, broken + "\n")),
    }
}

async fn refusal(there: &Subject, lines: &str) -> Result<ProviderError, Stop> {
    match there.try_import(&there.scope(), lines).await {
        Err(CallError::Provider(error)) => Ok(error),
        Ok(report) => {
            failed(format!("a broken line is accepted: {} records were imported", report.imported))
        }
        error => {
            answered("import-records", error).and_then(|_| failed("a broken line is accepted"))
        }
    }
}

pub(super) async fn all_or_none(subject: &Subject) -> Verdict {
    let (whole, broken) = whole_and_broken(subject).await?;
    let there = fresh(subject).await?;
    refusal(&there, &(whole + &broken)).await?;
    let listed = there.list(subject.scope()).await?.len();
    holds(listed == 0, || format!("the lines are refused, but {listed} records exist"))
}

pub(super) async fn names_the_line(subject: &Subject) -> Verdict {
    let (whole, broken) = whole_and_broken(subject).await?;
    let there = fresh(subject).await?;
    for (at, lines) in
        [(0, format!("{broken}{whole}")), (whole.lines().count(), format!("{whole}{broken}"))]
    {
        let field = match refusal(&there, &lines).await? {
            ProviderError::InvalidRequest { field, .. } => field.unwrap_or_default(),
            error => return failed(format!("it answers {}: {error}", variant(&error))),
        };
        let named = format!("lines.{at}");
        let is_named = field == named || field.starts_with(&format!("{named}."));
        holds(is_named, || format!("line {at} is broken, but the field is {field:?}"))?;
    }
    Ok(())
}

pub(super) async fn stays(subject: &Subject) -> Verdict {
    let records = written(subject).await?;
    let other = subject.other_agent();
    for part in exported(subject).await? {
        match subject.try_import(&other, &part).await {
            // The provider may refuse the lines, or ignore them.
            Ok(_) | Err(CallError::Provider(_)) => {}
            error => drop(answered("import-records", error)?),
        }
    }
    let theirs = subject.list(other).await?;
    if let Some(strange) = records.iter().find(|record| has(&theirs, &record.handle)) {
        return failed(format!(
            "the list of that agent has `{}`",
            strange.handle.provider_record_id
        ));
    }
    match difference(&records, &subject.list(subject.scope()).await?) {
        None => Ok(()),
        Some(difference) => failed(format!("for its own agent, {difference}")),
    }
}
