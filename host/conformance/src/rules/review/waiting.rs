//! Records that wait for review.

use std::time::Duration;

use crate::rules::partition::other_subject;
use crate::rules::query::has;
use crate::subject::Subject;
use crate::verdict::{Verdict, failed, holds};
use memhost_types::{ForgetEffect, Intent, QueryRequest, Snippet};

/// The time between two records, because a guest's clock advances in steps of 100 milliseconds.
const APART: Duration = Duration::from_millis(150);

pub(super) async fn hidden(subject: &Subject) -> Verdict {
    for snippet in subject.make_pending(0, 1).await? {
        let question = subject.question(subject.scope(), &snippet.text);
        let preamble = QueryRequest {
            intent: Intent::AgentPreamble,
            query: String::new(),
            ..question.clone()
        };
        for request in [question, preamble] {
            let found = subject.ask(&request).await?;
            holds(!has(&found, &snippet.handle), || {
                format!(
                    "a query for {:?} returns `{}`, which waits",
                    request.query, snippet.handle.provider_record_id
                )
            })?;
        }
    }
    Ok(())
}

fn ids(snippets: &[Snippet]) -> String {
    snippets
        .iter()
        .map(|snippet| snippet.handle.provider_record_id.to_string())
        .collect::<Vec<_>>()
        .join(", ")
}

pub(super) async fn oldest_first(subject: &Subject) -> Verdict {
    let mut came = subject.make_pending(0, 1).await?;
    for n in 1..3 {
        tokio::time::sleep(APART).await;
        came.extend(subject.make_pending(n, 1).await?);
    }
    let listed = subject.pending(&subject.scope()).await?;
    let is_in_order =
        came.len() == listed.len() && came.iter().zip(&listed).all(|(a, b)| a.handle == b.handle);
    holds(is_in_order, || {
        format!(
            "they were created in the order {}, but are listed in the order {}",
            ids(&came),
            ids(&listed)
        )
    })
}

pub(super) async fn limit(subject: &Subject) -> Verdict {
    subject.make_pending(0, 3).await?;
    let (page, _) = subject.pending_page(&subject.scope(), None, 2).await?;
    holds(!page.is_empty() && page.len() <= 2, || format!("{} items for a limit of 2", page.len()))
}

pub(super) async fn pages(subject: &Subject) -> Verdict {
    let came = subject.make_pending(0, 3).await?;
    let listed = subject.pending_by(&subject.scope(), 1).await?;
    for snippet in &came {
        let times = listed.iter().filter(|item| item.handle == snippet.handle).count();
        holds(times == 1, || {
            format!("the list has `{}` {times} times", snippet.handle.provider_record_id)
        })?;
    }
    Ok(())
}

pub(super) async fn partitions(subject: &Subject) -> Verdict {
    let held = subject.make_pending(0, 1).await?;
    for other in [subject.other_agent(), other_subject(subject)] {
        let listed = subject.pending(&other).await?;
        if let Some(strange) = held.iter().find(|snippet| has(&listed, &snippet.handle)) {
            return failed(format!("the list has `{}`", strange.handle.provider_record_id));
        }
    }
    Ok(())
}

pub(super) async fn forgotten(subject: &Subject) -> Verdict {
    let handles: Vec<_> =
        subject.make_pending(0, 1).await?.into_iter().map(|snippet| snippet.handle).collect();
    let effects = subject.forget(subject.scope(), &handles).await?;
    holds(!effects.contains(&ForgetEffect::NotFound), || format!("the effects are {effects:?}"))?;
    for instances in [subject, &subject.beside().await?] {
        let listed = instances.pending(&subject.scope()).await?;
        let left = handles.iter().find(|handle| has(&listed, handle));
        holds(left.is_none(), || "it still waits".to_owned())?;
    }
    Ok(())
}
