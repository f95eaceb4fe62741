//! `forget`.

use super::query::{has, several};
use crate::material::text;
use crate::rule::{Rule, Run, Verdict, failed, holds, provider};
use crate::subject::Subject;
use memhost_types::ForgetEffect;

pub(super) const RULES: &[Rule] = &[
    Rule::new(
        "FGT-01",
        "Outcomes are in the order of the ids",
        "The suite forgets three records and an unknown id in one call. Each has an outcome, in its place.",
        provider("forget-response.outcomes", "One for each id of the request, in its order."),
        Run::Binding(|subject| Box::pin(order(subject))),
    ),
    Rule::new(
        "FGT-02",
        "A forgotten record is not returned",
        "No query, list or `get-record` returns a forgotten record, whatever the effect is.",
        provider("forget", "Makes records unreachable, and whatever was derived from them; at most 1,000 ids."),
        Run::Binding(|subject| Box::pin(gone(subject))),
    ),
    Rule::new(
        "FGT-03",
        "Forgetting twice is not an error",
        "The suite forgets a record again that was forgotten. The effect is `not-found`.",
        provider("forget", "forgetting twice answers `not-found` the second time; it is no error."),
        Run::Binding(|subject| Box::pin(twice(subject))),
    ),
    Rule::new(
        "FGT-04",
        "Forgetting an unknown id is not an error",
        "The suite forgets an id that was never given. The effect is `not-found`.",
        provider("forget-effect.not-found", "There was no such record in this scope."),
        Run::Binding(|subject| Box::pin(unknown(subject))),
    ),
    Rule::new(
        "FGT-05",
        "A record of another agent cannot be forgotten",
        "An agent forgets another agent's record. The effect is `not-found`, and the record still exists.",
        provider("forget-effect.not-found", "There was no such record in this scope."),
        Run::Binding(|subject| Box::pin(foreign(subject))),
    ),
    Rule::new(
        "FGT-06",
        "Only the named record is forgotten",
        "The suite forgets one of four records. The others still exist and are found.",
        provider("forget", "Makes records unreachable, and whatever was derived from them; at most 1,000 ids."),
        Run::Binding(|subject| Box::pin(others_stay(subject))),
    ),
];

async fn order(subject: &Subject) -> Verdict {
    let (_, handles) = several(subject, 3).await?;
    let mut asked = handles;
    asked.insert(1, subject.handle("no-such-record")?);
    // Ids in another order were refused by the host before this.
    let effects = subject.forget(subject.scope(), &asked).await?;
    let expected = |n: usize| n == 1;
    match effects.iter().enumerate().find(|(n, effect)| (**effect == ForgetEffect::NotFound) != expected(*n)) {
        None => Ok(()),
        Some((n, effect)) => failed(format!("in place {n} is {effect:?}")),
    }
}

async fn gone(subject: &Subject) -> Verdict {
    let handle = subject.put(subject.scope(), &text(0)).await?;
    let effects = subject.forget(subject.scope(), std::slice::from_ref(&handle)).await?;
    holds(effects != [ForgetEffect::NotFound], || "`not-found` for a record that was just written".to_owned())?;
    let found = subject.query(subject.scope(), &text(0)).await?;
    holds(!has(&found, &handle), || "a query finds it".to_owned())?;
    let listed = subject.list(subject.scope()).await?;
    holds(!has(&listed, &handle), || "it is in the list".to_owned())?;
    let got = subject.get(subject.scope(), &handle).await?;
    holds(got.is_none(), || "`get-record` answers it".to_owned())?;
    let again = subject.beside().await?.query(subject.scope(), &text(0)).await?;
    holds(!has(&again, &handle), || "a query of a fresh instance finds it".to_owned())
}

async fn twice(subject: &Subject) -> Verdict {
    let handle = subject.put(subject.scope(), &text(0)).await?;
    subject.forget(subject.scope(), std::slice::from_ref(&handle)).await?;
    let effects = subject.forget(subject.scope(), &[handle]).await?;
    holds(effects == [ForgetEffect::NotFound], || format!("the second time {effects:?}"))
}

async fn unknown(subject: &Subject) -> Verdict {
    let effects = subject.forget(subject.scope(), &[subject.handle("no-such-record")?]).await?;
    holds(effects == [ForgetEffect::NotFound], || format!("{effects:?}"))
}

async fn foreign(subject: &Subject) -> Verdict {
    let handle = subject.put(subject.scope(), &text(0)).await?;
    let effects = subject.forget(subject.other_agent(), std::slice::from_ref(&handle)).await?;
    holds(effects == [ForgetEffect::NotFound], || format!("{effects:?}"))?;
    subject.got(&handle).await.map(drop)
}

async fn others_stay(subject: &Subject) -> Verdict {
    let (question, handles) = several(subject, 4).await?;
    subject.forget(subject.scope(), &handles[1..2]).await?;
    let found = subject.query(subject.scope(), &question).await?;
    for handle in [&handles[0], &handles[2], &handles[3]] {
        subject.got(handle).await?;
        holds(has(&found, handle), || format!("`{}` is not found any more", handle.provider_record_id))?;
    }
    Ok(())
}
