//! What a line of an import may say. Every row is read as what its table holds, must have the key
//! that follows from it, and may name nothing that is not its own company's. Nothing here depends
//! on the state of the host.

use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::export::Line;
use memhost_executor::to_json;
use memhost_oplog::billing::BillingRow;
use memhost_queues::due_queue::{Due, key as due_key};
use memhost_records::{Mark, Records};
use memhost_registry::activity_key;
use memhost_registry::bindings::{StoredTarget, binding_key};
use memhost_store::{self as store, Table};
use memhost_tenancy::Retention;
use memhost_types::{
    Activity, Binding, CompanyId, Delivery, Event, HookContext, Job, Operation, OperationId,
    Outcome, RecordRow, ReviewItem, Scope, Snippet, SourcePayload, SourceRef, check_id, check_json,
    limits, repair_surrogates,
};

/// The most JSON values in one line. The largest record, with 256 KiB of metadata, has fewer.
const MOST_VALUES: usize = 200_000;
/// The most attempts and revisions: nothing that counts on from there overflows.
const MOST_COUNT: u64 = 1 << 52;
const MOST_ATTEMPTS: u32 = 1 << 30;
/// The most bytes of an operation's log. A host keeps less.
const MOST_LOG: usize = 1 << 20;

/// A row that was read, with the key that it has in its company.
pub(super) enum Row {
    Retention(Retention),
    Binding(Box<Binding>),
    Target(StoredTarget),
    Activity(Activity),
    Job(Box<Job>),
    Delivery(Box<Delivery>),
    Billing(BillingRow),
    Review(Box<ReviewItem>),
    Event(Box<Event>),
    Record(Box<RecordRow>),
    Private(Box<Mark>),
    /// The store checks it.
    Sums,
}

/// Reads a line. The number of its values is bounded before anything is allocated for them; their
/// depth is bounded by the parser.
pub(super) fn line(text: &str) -> Result<Line, String> {
    if values(text.as_bytes()) > MOST_VALUES {
        return Err(format!("has more than {MOST_VALUES} JSON values"));
    }
    serde_json::from_slice(&repair_surrogates(text.as_bytes())).map_err(|error| error.to_string())
}

/// How many JSON values a text has, at most.
fn values(text: &[u8]) -> usize {
    let (mut count, mut is_text, mut is_escaped) = (1, false, false);
    for byte in text {
        match (is_text, is_escaped, byte) {
            (true, true, _) => is_escaped = false,
            (true, false, b'\\') => is_escaped = true,
            (_, _, b'"') => is_text = !is_text,
            (false, _, b',' | b'[' | b'{' | b':') => count += 1,
            _ => {}
        }
    }
    count
}

/// Reads a row of a table, and checks that `key` is its own.
pub(super) fn row(
    company: &CompanyId,
    table: Table,
    key: &[u8],
    value: &Value,
) -> Result<Row, String> {
    if is_of_another(company, value) {
        return Err("belongs to another company".to_owned());
    }
    let row = match table {
        Table::Companies => Row::Retention(read(value)?),
        Table::Bindings => Row::Binding(read(value)?),
        Table::Targets => Row::Target(read(value)?),
        Table::Activity => Row::Activity(read(value)?),
        Table::Jobs => Row::Job(read(value)?),
        Table::Deliveries => Row::Delivery(read(value)?),
        Table::Reviews => Row::Review(read(value)?),
        Table::Events => Row::Event(read(value)?),
        Table::Records => Row::Record(read(value)?),
        Table::PrivateWrites => Row::Private(read(value)?),
        Table::Sums => return Ok(Row::Sums),
        _ => {
            let billing = BillingRow::read(company, table, key, value)?;
            let none = || "is of a table that is not imported".to_owned();
            return billing.map(Row::Billing).ok_or_else(none);
        }
    };
    if !row.has_key(company, key) {
        return Err("has a key that is not its own".to_owned());
    }
    row.check()?;
    Ok(row)
}

/// From bytes, as the store reads rows: reading values would be a second copy of the code of each
/// type.
fn read<T: DeserializeOwned>(value: &Value) -> Result<T, String> {
    let json = to_json(value).map_err(|error| error.to_string())?;
    serde_json::from_slice(&json).map_err(|error| error.to_string())
}

impl Row {
    /// The stored form: only parsed fields.
    pub(super) fn encode(&self) -> Result<Vec<u8>, store::StoreError> {
        match self {
            Self::Retention(row) => store::encode("retention", row),
            Self::Binding(row) => store::encode("binding", row),
            Self::Target(row) => store::encode("binding target", row),
            Self::Activity(row) => store::encode("activity", row),
            Self::Job(row) => store::encode("job", row),
            Self::Delivery(row) => store::encode("delivery", row),
            Self::Billing(row) => row.encode(),
            Self::Review(row) => store::encode("review", row),
            Self::Event(row) => store::encode("event", row),
            Self::Record(row) => store::encode("record row", row),
            Self::Private(row) => store::encode("private write", row),
            Self::Sums => Ok(Vec::new()),
        }
    }

    fn has_key(&self, company: &CompanyId, found: &[u8]) -> bool {
        let found = store::company_key(company, found);
        let is = |rest: &[u8]| found == store::company_key(company, rest);
        match self {
            Self::Retention(_) => is(b"retention"),
            Self::Binding(row) => row.company_id == *company && found == binding_key(row),
            Self::Target(row) => row.company_id == *company && found == row.key(),
            Self::Activity(row) => row.company_id == *company && found == activity_key(row),
            Self::Job(row) => {
                row.company_id == *company && found == due_key::<Job>(company, row.id())
            }
            Self::Delivery(row) => {
                row.company_id == *company && found == due_key::<Delivery>(company, row.id())
            }
            Self::Review(row) => {
                row.company_id == *company && found == store::newest_first(company, row.id.0)
            }
            Self::Event(row) => {
                row.company_id == *company && found == store::newest_first(company, row.id)
            }
            Self::Record(row) => row.company_id == *company && Records::is_key_of(row, &found),
            Self::Private(row) => row.company_id == *company && row.has_key(&found),
            // They were checked as they were read.
            Self::Billing(_) | Self::Sums => true,
        }
    }

    fn check(&self) -> Result<(), String> {
        let say = |error: memhost_types::FieldError| error.to_string();
        match self {
            Self::Retention(row) if row.zero().is_some() => Err("has the retention 0".to_owned()),
            Self::Binding(row) => {
                if row.revision == 0 || row.revision > MOST_COUNT {
                    return Err(format!("has the revision {}", row.revision));
                }
                row.policy.check().map_err(say)
            }
            Self::Job(row) if row.attempts > MOST_ATTEMPTS || row.failures > MOST_ATTEMPTS => {
                Err("has more attempts than a job can have".to_owned())
            }
            Self::Job(row) => about(&row.scope, row.source.as_ref(), row.hook.as_ref()),
            Self::Delivery(row) if row.attempts > MOST_ATTEMPTS => {
                Err("has more attempts than a delivery can have".to_owned())
            }
            Self::Delivery(row) => {
                about(&row.scope, row.source.as_ref(), Some(&row.hook))?;
                row.payload.as_ref().map_or(Ok(()), SourcePayload::check).map_err(say)?;
                check_json("metadata", row.metadata.as_ref()).map_err(say)
            }
            Self::Event(row) => row.event.check().map_err(say),
            Self::Record(row) => {
                row.scope.check().map_err(say)?;
                let run = row.hook_run_id.as_ref();
                run.map_or(Ok(()), |run| check_id("hookRunId", run)).map_err(say)?;
                row.source.as_ref().map_or(Ok(()), |source| source.check(&row.scope)).map_err(say)
            }
            _ => Ok(()),
        }
    }
}

/// Checks what a row says it is about: the host shows it, and keeps it in memory.
fn about(
    scope: &Scope,
    source: Option<&SourceRef>,
    hook: Option<&HookContext>,
) -> Result<(), String> {
    let checked = scope.check().and_then(|()| source.map_or(Ok(()), |source| source.check(scope)));
    checked
        .and_then(|()| hook.map_or(Ok(()), HookContext::check))
        .map_err(|error| error.to_string())
}

/// Checks an operation; `after` is the number of the one before it.
pub(super) fn operation(
    company: &CompanyId,
    operation: &Operation,
    after: Option<u64>,
) -> Result<(), String> {
    /// Numbers without a record between two operations: those of calls that a crash has cut off,
    /// and of refusals.
    const MOST_GAP: u64 = 1 << 24;
    /// The numbers left for the company's own operations.
    const LEFT: u64 = 1 << 32;
    let foreign = |found: &CompanyId| found != company;
    let sources = operation.source.iter().map(|source| &source.company_id);
    if [&operation.company_id, &operation.scope.company_id].into_iter().chain(sources).any(foreign)
    {
        return Err("belongs to another company".to_owned());
    }
    let sequence = operation.id.sequence();
    let is_next = after.is_none_or(|after| sequence > after && sequence - after <= MOST_GAP);
    if sequence == 0 || sequence > OperationId::MAX_SEQUENCE - LEFT || !is_next {
        return Err(format!(
            "has the number {sequence}, which does not follow on the operation before it"
        ));
    }
    if operation.outcome == Outcome::InProgress || operation.count == 0 {
        return Err("is an operation that has not ended".to_owned());
    }
    let bytes = operation.log.iter().map(|line| line.text.len()).sum::<usize>();
    let lists = [operation.records.len(), operation.outgoing.len()];
    if lists.iter().any(|length| *length > limits::MAX_ITEMS) || bytes > MOST_LOG {
        return Err(format!(
            "has more than {} records or origins, or a log of more than {MOST_LOG} bytes",
            limits::MAX_ITEMS
        ));
    }
    about(&operation.scope, operation.source.as_ref(), operation.hook.as_ref())
}

/// Checks what a record says of where it came from.
pub(super) fn record(company: &CompanyId, snippet: &Snippet) -> Result<(), String> {
    match &snippet.source {
        Some(source) if source.company_id != *company => {
            Err("has a source of another company".to_owned())
        }
        _ => Ok(()),
    }
}

/// Whether a value names another company anywhere: the host would use such a scope or source.
fn is_of_another(company: &CompanyId, value: &Value) -> bool {
    match value {
        Value::Object(members) => members.iter().any(|(name, value)| {
            (name == "companyId" && value.as_str().is_some_and(|found| found != company.as_str()))
                || is_of_another(company, value)
        }),
        Value::Array(items) => items.iter().any(|item| is_of_another(company, item)),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_counted_outside_of_texts() {
        assert_eq!(values(br#"{"a":[1,2],"b":"[,:{\",,\\"}"#), 7);
        let many = format!("[{}1]", "1,".repeat(MOST_VALUES));
        assert!(line(&many).is_err_and(|error| error.contains("more than")));
        let deep = format!(r#"{{"row":{}"#, "[".repeat(100_000));
        assert!(line(&deep).is_err_and(|error| error.contains("recursion")));
    }
}
