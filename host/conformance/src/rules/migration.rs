//! Rules of `migration`. The suite migrates from the provider's own version, which every build
//! supports.

use super::query::has;
use crate::material::text;
use crate::rule::{Rule, optional, rules};
use crate::subject::Subject;
use crate::verdict::{Verdict, holds};
use memhost_sandbox::OptionalInterface;

pub(super) const RULES: &[Rule] = rules! { Some(OptionalInterface::Migration);
    "MIG-01" "A migration loses nothing"
        "The suite writes records, and a fresh instance migrates from its own version. The same \
         records are listed and \
         found."
        optional(
            "migration",
            "bringing what another version stored into the form that this version reads.",
        )
        => binding(loses_nothing::<1>);
    "MIG-02" "A migration can be repeated"
        "As MIG-01, but the migration runs three times."
        optional("migrate", "After a crash of the host it is called again from the start.")
        => binding(loses_nothing::<3>);
};

async fn loses_nothing<const TIMES: usize>(subject: &Subject) -> Verdict {
    let mut handles = Vec::new();
    for n in 0..4 {
        handles.push(subject.put(subject.scope(), &text(n)).await?);
    }
    let version = subject.description.version.to_string();
    for _ in 0..TIMES {
        subject.beside().await?.migrate(&version).await?;
    }
    let fresh = subject.beside().await?;
    let listed = fresh.list(subject.scope()).await?;
    for (n, handle) in handles.iter().enumerate() {
        let is_there =
            has(&listed, handle) && has(&fresh.query(subject.scope(), &text(n)).await?, handle);
        holds(is_there, || format!("`{}` is missing", handle.provider_record_id))?;
    }
    holds(listed.len() == handles.len(), || {
        format!("{} records before, {} after", handles.len(), listed.len())
    })
}
