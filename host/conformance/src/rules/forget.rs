//! Rules of `forget`.

use super::query::{has, several};
use crate::material::text;
use crate::rule::{Rule, provider, rules};
use crate::subject::Subject;
use crate::verdict::{Verdict, failed, holds};
use memhost_types::{ForgetEffect, HostWork};

pub(super) const RULES: &[Rule] = rules! { None;
    "FGT-01" "Outcomes are in the order of the ids"
        "The suite forgets three records and an unknown id in one call. Each has an outcome, in \
         its place."
        provider("forget-response.outcomes", "One for each id of the request, in its order.")
        => binding(order);
    "FGT-02" "A forgotten record is not returned"
        "No query, list or `get-record` returns a forgotten record, whatever the effect is."
        provider("forget", "Makes records unreachable, and whatever was derived from them.")
        => binding(gone);
    "FGT-03" "Forgetting twice is not an error"
        "The suite forgets a record again that was forgotten. The effect is `not-found`."
        provider("forget", "forgetting twice answers `not-found` the second time; it is no error.")
        => binding(twice);
    "FGT-04" "Forgetting an unknown id is not an error"
        "The suite forgets an id that was never given. The effect is `not-found`."
        provider("forget-effect.not-found", "There was no such record in this scope.")
        => binding(unknown);
    "FGT-05" "A record of another agent cannot be forgotten"
        "An agent forgets another agent's record. The effect is `not-found`, and the record still \
         exists."
        provider("forget-effect.not-found", "There was no such record in this scope.")
        => binding(foreign).left(&[HostWork::AgentPartition, HostWork::SubjectPartition]);
    "FGT-06" "Only the named record is forgotten"
        "The suite forgets one of four records. The others still exist and are found."
        provider("forget", "Makes records unreachable, and whatever was derived from them.")
        => binding(others_stay);
};

async fn order(subject: &Subject) -> Verdict {
    let (_, handles) = several(subject, 3).await?;
    let mut asked = handles;
    asked.insert(1, subject.handle("no-such-record")?);
    // The host has refused ids in another order already.
    let effects = subject.forget(subject.scope(), &asked).await?;
    let expected = |n: usize| n == 1;
    match effects
        .iter()
        .enumerate()
        .find(|(n, effect)| (**effect == ForgetEffect::NotFound) != expected(*n))
    {
        None => Ok(()),
        Some((n, effect)) => failed(format!("the effect in place {n} is {effect:?}")),
    }
}

async fn gone(subject: &Subject) -> Verdict {
    let handle = subject.put(subject.scope(), &text(0)).await?;
    let effects = subject.forget(subject.scope(), std::slice::from_ref(&handle)).await?;
    holds(effects != [ForgetEffect::NotFound], || {
        "`not-found` for a record that was just written".to_owned()
    })?;
    let found = subject.query(subject.scope(), &text(0)).await?;
    holds(!has(&found, &handle), || "a query returns it".to_owned())?;
    let listed = subject.list(subject.scope()).await?;
    holds(!has(&listed, &handle), || "the list has it".to_owned())?;
    let got = subject.get(subject.scope(), &handle).await?;
    holds(got.is_none(), || "`get-record` returns it".to_owned())?;
    let again = subject.beside().await?.query(subject.scope(), &text(0)).await?;
    holds(!has(&again, &handle), || "a query on a fresh instance returns it".to_owned())
}

async fn twice(subject: &Subject) -> Verdict {
    let handle = subject.put(subject.scope(), &text(0)).await?;
    subject.forget(subject.scope(), std::slice::from_ref(&handle)).await?;
    let effects = subject.forget(subject.scope(), &[handle]).await?;
    holds(effects == [ForgetEffect::NotFound], || format!("the second effect is {effects:?}"))
}

async fn unknown(subject: &Subject) -> Verdict {
    let effects = subject.forget(subject.scope(), &[subject.handle("no-such-record")?]).await?;
    holds(effects == [ForgetEffect::NotFound], || format!("the effect is {effects:?}"))
}

async fn foreign(subject: &Subject) -> Verdict {
    let handle = subject.put(subject.scope(), &text(0)).await?;
    let effects = subject.forget(subject.other_agent(), std::slice::from_ref(&handle)).await?;
    holds(effects == [ForgetEffect::NotFound], || format!("the effect is {effects:?}"))?;
    subject.got(&handle).await.map(drop)
}

async fn others_stay(subject: &Subject) -> Verdict {
    let (question, handles) = several(subject, 4).await?;
    subject.forget(subject.scope(), &handles[1..2]).await?;
    let found = subject.query(subject.scope(), &question).await?;
    for handle in [&handles[0], &handles[2], &handles[3]] {
        subject.got(handle).await?;
        holds(has(&found, handle), || {
            format!("a query no longer returns `{}`", handle.provider_record_id)
        })?;
    }
    Ok(())
}
