//! `migration`, from the provider's own version: the one that every build has to know.

use super::query::has;
use crate::material::text;
use crate::rule::{Rule, Run, Verdict, holds, optional};
use crate::subject::Subject;
use memhost_sandbox::OptionalInterface;

pub(super) const RULES: &[Rule] = &[
    Rule::new(
        "MIG-01",
        "A migration loses nothing",
        "The suite writes records, and a fresh instance migrates from its own version. The same records are listed \
         and found.",
        optional("migration", "bringing what another version stored into the form that this version reads."),
        Run::Binding(|subject| Box::pin(loses_nothing(subject, 1))),
    )
    .of(OptionalInterface::Migration),
    Rule::new(
        "MIG-02",
        "A migration can be repeated",
        "As MIG-01, but the migration runs three times.",
        optional("migrate", "After a crash of the host it is called again from the start."),
        Run::Binding(|subject| Box::pin(loses_nothing(subject, 3))),
    )
    .of(OptionalInterface::Migration),
];

async fn loses_nothing(subject: &Subject, times: usize) -> Verdict {
    let mut handles = Vec::new();
    for n in 0..4 {
        handles.push(subject.put(subject.scope(), &text(n)).await?);
    }
    let version = subject.description.version.to_string();
    for _ in 0..times {
        subject.beside().await?.migrate(&version).await?;
    }
    let fresh = subject.beside().await?;
    let listed = fresh.list(subject.scope()).await?;
    for (n, handle) in handles.iter().enumerate() {
        let is_there = has(&listed, handle) && has(&fresh.query(subject.scope(), &text(n)).await?, handle);
        holds(is_there, || format!("`{}` is gone", handle.provider_record_id))?;
    }
    holds(listed.len() == handles.len(), || format!("{} records before, {} after", handles.len(), listed.len()))
}
