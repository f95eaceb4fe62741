//! Rules of exports.

use serde_json::Value;

use super::moving::{exported, fresh, imported, written};
use crate::material::text;
use crate::rules::partition::{in_namespace, other_subject};
use crate::rules::query::has;
use crate::subject::Subject;
use crate::verdict::{Verdict, failed, holds, skipped};

/// Long records that have more than one MiB together, and the bytes of each.
const LONG: usize = 24;
const LONG_BYTES: usize = 60_000;
/// A shorter id may be part of a line by chance.
const TELLING: usize = 8;

pub(super) async fn whole_lines(subject: &Subject) -> Verdict {
    written(subject).await?;
    // The host has refused lines that are not JSON, and parts that end within a line, already.
    exported(subject).await.map(drop)
}

pub(super) async fn anew(subject: &Subject) -> Verdict {
    written(subject).await?;
    // Lines and their members may be in any order.
    let read = |parts: Vec<String>| -> Vec<Value> {
        parts
            .iter()
            .flat_map(|part| part.lines())
            .filter_map(|line| serde_json::from_str(line).ok())
            .collect()
    };
    let first = read(exported(subject).await?);
    let mut again = read(subject.beside().await?.export(&subject.scope()).await?);
    holds(first.len() == again.len(), || {
        format!("the first export has {} lines, the second {}", first.len(), again.len())
    })?;
    for line in &first {
        let same = again.iter().position(|other| other == line);
        same.map(|at| again.swap_remove(at));
    }
    holds(again.is_empty(), || format!("{} of {} lines differ", again.len(), first.len()))
}

pub(super) async fn to_the_end(subject: &Subject) -> Verdict {
    let mut handles = Vec::new();
    for n in 0..LONG {
        let mut long = text(n).repeat(LONG_BYTES / text(n).len() + 1);
        long.truncate(LONG_BYTES);
        // The provider may limit texts and storage.
        match subject.upsert(subject.scope(), None, vec![subject.write(&long)]).await {
            Ok(made) => handles.extend(made),
            Err(error) => {
                return skipped(format!(
                    "{} texts of {LONG_BYTES} bytes are not accepted: {error}",
                    n + 1
                ));
            }
        }
    }
    let parts = exported(subject).await?;
    let there = fresh(subject).await?;
    imported(&there, &parts).await?;
    let listed = there.list_of(&there.listing(subject.scope(), 5)).await?;
    let lost = handles.iter().filter(|handle| !has(&listed, handle)).count();
    holds(lost == 0, || {
        format!("the {} parts of the export lack {lost} of {} records", parts.len(), handles.len())
    })
}

pub(super) async fn partitions(subject: &Subject) -> Verdict {
    let own = in_namespace(subject, "one");
    let handle = subject.put(own.clone(), &text(0)).await?;
    let has_it = |parts: Vec<String>| {
        let id = handle.provider_record_id.as_str();
        parts
            .iter()
            .any(|part| part.contains(&text(0)) || (id.len() >= TELLING && part.contains(id)))
    };
    if !has_it(subject.export(&own).await?) {
        return skipped("the lines contain neither ids nor texts");
    }
    let others = [("agent", subject.other_agent()), ("subject", other_subject(subject))].map(
        |(what, mut scope)| {
            scope.namespace.clone_from(&own.namespace);
            (what, scope)
        },
    );
    for (what, other) in others.into_iter().chain([("namespace", in_namespace(subject, "two"))]) {
        if has_it(subject.export(&other).await?) {
            return failed(format!("the export of another {what} contains the record"));
        }
    }
    Ok(())
}

pub(super) async fn forgotten(subject: &Subject) -> Verdict {
    let handle = subject.put(subject.scope(), &text(0)).await?;
    subject.put(subject.scope(), &text(1)).await?;
    let has_it = |parts: &[String]| parts.iter().any(|part| part.contains(&text(0)));
    if !has_it(&exported(subject).await?) {
        return skipped("the lines do not contain texts");
    }
    subject.forget(subject.scope(), &[handle]).await?;
    holds(!has_it(&subject.export(&subject.scope()).await?), || {
        "the export contains its text".to_owned()
    })
}
