//! Checks that several operations make before the call, and the digests that bind a cursor to its
//! query.

use crate::Operations;
use memhost_access::Guard;
use memhost_records::Reader;
use memhost_registry::versions::Serving;
use memhost_sandbox::CallError;
use memhost_types::{
    Binding, FieldError, OperationErrorCode, Outcome, QueryDigest, RecordHandle, RecordId, Refusal,
    Scope,
};

/// A handle of another provider names nothing here, whatever its record id.
pub(crate) fn own_handles(
    serving: &Serving,
    field: &str,
    handles: &[RecordHandle],
) -> Result<(), Refusal> {
    let own = &serving.binding.provider_key;
    match handles.iter().find(|handle| handle.provider_key != *own) {
        None => Ok(()),
        Some(foreign) => Err(FieldError::new(
            field,
            format!(
                "is a record of the provider `{}`, and the binding `{}` is served by `{own}`; name \
                 the binding that \
                 the record came from",
                foreign.provider_key, serving.binding.key
            ),
        )
        .into()),
    }
}

/// Refuses to change records that a policy of their binding keeps.
pub(crate) async fn may_change(
    host: &Operations,
    guard: &Guard,
    binding: &Binding,
    records: impl Iterator<Item = &RecordId>,
) -> Result<(), Refusal> {
    if guard.may_change_all() {
        return Ok(());
    }
    for record in records {
        if let Some(row) = host.records.row(binding, record).await? {
            guard.may_change(&row).map_err(|denied| Refusal::from(&denied))?;
        }
    }
    Ok(())
}

/// There is no such record, or none that the caller may know of: the two look the same.
pub(crate) fn not_there(record: &RecordId) -> Refusal {
    let message = format!(
        "there is no record `{record}` in this scope; list records to see those that are there"
    );
    Refusal { outcome: Outcome::Failed, ..Refusal::new(OperationErrorCode::NotFound, message) }
}

/// Why a request ended in the middle that the host divides, because the provider takes fewer
/// records at once.
pub(crate) fn partly(done: &str, count: usize, of: usize, rest: &CallError) -> Refusal {
    let mut refusal = Refusal::from(rest);
    refusal.error.message = format!(
        "{count} of {of} records were {done}, the others not or not known to be: {}",
        refusal.error.message
    );
    refusal
}

/// A list that answers the cursor that it was asked with never ends.
pub(crate) fn moves_on(
    serving: &Serving,
    asked: Option<&str>,
    next: Option<&str>,
) -> Result<(), Refusal> {
    if next.is_none() || next != asked {
        return Ok(());
    }
    let message = format!(
        "the provider of the binding `{}` answers the cursor that it was asked with, so its list \
         never ends; report it to \
         the provider's author",
        serving.binding.key
    );
    Err(Refusal {
        outcome: Outcome::Failed,
        ..Refusal::new(OperationErrorCode::BadAnswer, message)
    })
}

/// What a cursor belongs to: a kind of list, of a binding, in a scope, with what else makes it
/// another list.
pub(crate) fn page_digest(
    list: &str,
    serving: &Serving,
    scope: &Scope,
    rest: &[u8],
) -> QueryDigest {
    let scope = memhost_executor::to_json(scope).unwrap_or_default();
    let binding = &serving.binding;
    QueryDigest::new([
        list.as_bytes(),
        binding.company_id.as_str().as_bytes(),
        binding.id.0.as_bytes(),
        &scope,
        rest,
    ])
}

impl Operations {
    /// Refuses an export of private records in a provider's lines: single records cannot be removed
    /// from them, and an import would show the records to everybody.
    pub(crate) fn shares_all(&self, serving: &Serving) -> Result<(), Refusal> {
        let binding = &serving.binding;
        if !self.records.hides_from(binding.id, &Reader::Nobody) {
            return Ok(());
        }
        let message = format!(
            "the binding `{}` has records that are private to an agent or a person, and its \
             provider's lines do not say whose they are; `memhost company export` keeps that",
            binding.key
        );
        Err(Refusal::new(OperationErrorCode::Forbidden, message))
    }

    /// Refuses a read that would disclose records that wait for a person. The labels of a tree and
    /// the parts of a score repeat a record's text, and single records cannot be removed from them.
    pub(crate) fn holds_nothing(&self, serving: &Serving) -> Result<(), Refusal> {
        let binding = &serving.binding;
        if binding.policy.review.is_none() && self.reviews.hidden(binding.id) == 0 {
            return Ok(());
        }
        let message = format!(
            "the binding `{}` holds records until a person approves them, and this would tell of \
             them; query it \
             instead",
            binding.key
        );
        Err(Refusal::new(OperationErrorCode::Unsupported, message))
    }
}
