//! Rules of `erasure`.

use super::query::has;
use crate::material::text;
use crate::rule::{Rule, optional, rules};
use crate::subject::{Subject, answered};
use crate::verdict::{Stop, Verdict, holds};
use memhost_sandbox::OptionalInterface;
use memhost_types::{HostWork, Scope};

const EVERY: &str = "every record that was written in a scope with the agent, the subject and the \
                     namespace that this \
                     scope names";

pub(super) const RULES: &[Rule] = rules! { Some(OptionalInterface::Erasure);
    "ERA-01" "A scope is forgotten at once"
        "After `forget-scope` no record of the scope is listed, found or read."
        optional("erasure.forget-scope", EVERY)
        => binding(gone);
    "ERA-02" "Other scopes stay"
        "`forget-scope` in the scope of an agent leaves the record of another one."
        optional("erasure.forget-scope", EVERY)
        => binding(others_stay).left(&[HostWork::AgentPartition]);
    "ERA-03" "A scope can be forgotten twice"
        "The suite forgets a scope, then again. Both calls get an answer."
        optional("erasure.forget-scope", "Idempotent.")
        => binding(twice);
};

async fn forget_scope(subject: &Subject, scope: Scope) -> Result<(), Stop> {
    let called = subject.instances().forget_scope(subject.operation(), &scope).await;
    answered("forget-scope", called.map_err(|failure| failure.error)).map(drop)?;
    subject.settle().await;
    Ok(())
}

async fn gone(subject: &Subject) -> Verdict {
    let mut handles = Vec::new();
    for n in 0..3 {
        handles.push(subject.put(subject.scope(), &text(n)).await?);
    }
    forget_scope(subject, subject.scope()).await?;
    let listed = subject.list(subject.scope()).await?.len();
    holds(listed == 0, || format!("{listed} records are listed"))?;
    for (n, handle) in handles.iter().enumerate() {
        let found = has(&subject.query(subject.scope(), &text(n)).await?, handle);
        let read = subject.get(subject.scope(), handle).await?.is_some();
        holds(!found && !read, || format!("`{}` is still there", handle.provider_record_id))?;
    }
    Ok(())
}

async fn others_stay(subject: &Subject) -> Verdict {
    subject.put(subject.scope(), &text(0)).await?;
    let other = subject.put(subject.other_agent(), &text(1)).await?;
    forget_scope(subject, subject.scope()).await?;
    let stays = has(&subject.list(subject.other_agent()).await?, &other);
    holds(stays, || format!("`{}` of another agent is gone, too", other.provider_record_id))
}

async fn twice(subject: &Subject) -> Verdict {
    subject.put(subject.scope(), &text(0)).await?;
    forget_scope(subject, subject.scope()).await?;
    forget_scope(subject, subject.scope()).await
}
