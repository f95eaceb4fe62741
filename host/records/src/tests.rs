//! The rules of the rows, on a store of their own. `Room` is one binding of one company.

mod binding_of;
mod forgotten;
mod marks;
mod partitions;
mod readers;
mod rows;
mod visible;
mod written;

use std::sync::Arc;

use jiff::Timestamp;
use uuid::Uuid;

use crate::{Made, OperationMarks, Owner, Ownership, Progress, Reader, Records, RowChanges};
use memhost_store::{self as store, Change, MemoryStore, Store, TableWrite};
use memhost_types::{
    Binding, BindingId, BindingLimits, BindingPolicy, CompanyId, Grants, JsonObject, Operation,
    OperationId, OperationKind, Outcome, Principal, RecordHandle, RecordId, RecordRow, Scope,
    SourceKind, SourceRef, VersionChoice, Visibility,
};

/// Ids that are allowed and that a careless key or text could confuse.
const AWKWARD: [&str; 10] = [
    "eve as person:bob",
    "a",
    "p",
    "agent:ada",
    "\"}",
    "o\u{301}",
    "\u{f3}",
    "co.mpany",
    "scope any",
    "ada\u{200b}",
];

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn company(id: &str) -> CompanyId {
    id.parse().unwrap()
}

fn record(id: &str) -> RecordId {
    id.parse().unwrap()
}

fn handle(id: &str) -> RecordHandle {
    RecordHandle { provider_key: "p".parse().unwrap(), provider_record_id: record(id) }
}

fn agent(id: &str) -> Reader {
    Reader::Agent(id.parse().unwrap())
}

fn person(id: &str) -> Reader {
    Reader::Person(id.to_owned())
}

fn owner(reader: &Reader) -> Owner {
    match reader {
        Reader::Agent(id) => Owner::Agent(id.clone()),
        Reader::Person(id) => Owner::Person(id.clone()),
        Reader::All | Reader::Nobody => panic!("{reader:?} owns nothing"),
    }
}

/// The scope that a reader writes in.
fn scope_of(reader: &Reader) -> Scope {
    let company = Scope::company(company("acme"));
    match reader {
        Reader::Agent(id) => Scope { agent_id: Some(id.clone()), ..company },
        Reader::Person(id) => Scope { subject_id: Some(id.clone()), ..company },
        Reader::All | Reader::Nobody => company,
    }
}

/// What a reader writes for itself only.
fn visibility_of(reader: &Reader) -> Visibility {
    match reader {
        Reader::Agent(_) => Visibility::Agent,
        Reader::Person(_) => Visibility::Person,
        Reader::All | Reader::Nobody => Visibility::Company,
    }
}

fn source(change: impl FnOnce(&mut SourceRef)) -> SourceRef {
    let mut source = SourceRef::new(SourceKind::IssueComment, company("acme"));
    change(&mut source);
    source
}

fn binding(number: u128, key: &str) -> Binding {
    Binding {
        id: BindingId(Uuid::from_u128(number)),
        goes_on_as: None,
        company_id: company("acme"),
        key: key.parse().unwrap(),
        provider_key: "p".parse().unwrap(),
        version: VersionChoice::default(),
        config: JsonObject::new(),
        enabled: true,
        grants: Grants::default(),
        reviewed: Vec::new(),
        limits: BindingLimits::default(),
        policy: BindingPolicy::default(),
        requested: None,
        revision: 1,
        created_at: Timestamp::UNIX_EPOCH,
        updated_at: Timestamp::UNIX_EPOCH,
    }
}

fn operation(sequence: u64, kind: OperationKind, scope: Scope) -> Operation {
    let second = i64::try_from(sequence).unwrap();
    Operation {
        id: OperationId::new(sequence, sequence, 1),
        company_id: scope.company_id.clone(),
        kind,
        outcome: Outcome::InProgress,
        principal: Principal::Operator,
        binding_key: None,
        binding_id: None,
        provider_key: None,
        provider_version: None,
        scope,
        source: None,
        hook: None,
        started_at: at(second),
        finished_at: None,
        latency_us: None,
        provider_us: None,
        visibility: Visibility::Company,
        record_count: 0,
        records: Vec::new(),
        jobs: Vec::new(),
        outgoing: Vec::new(),
        usage: Vec::new(),
        attribution_mode: None,
        cost_event_ids: Vec::new(),
        error: None,
        log: Vec::new(),
        cited: Vec::new(),
        payload: None,
        count: 1,
    }
}

/// A row as if this reader had written it for itself.
fn row(id: &str, reader: &Reader) -> RecordRow {
    let binding = binding(1, "main");
    RecordRow {
        binding_id: binding.id,
        company_id: binding.company_id,
        handle: handle(id),
        scope: scope_of(reader),
        source: None,
        hook_kind: None,
        hook_agent_id: None,
        hook_run_id: None,
        written_by: Principal::Operator,
        created_by: None,
        operation_id: OperationId::new(1, 1, 1),
        created_at: Timestamp::UNIX_EPOCH,
        expires_at: None,
        visibility: visibility_of(reader),
        happened_at: None,
        replaces: None,
        corrected_by: None,
        corrected_via: None,
    }
}

/// One binding with its records.
struct Room {
    store: Arc<dyn Store>,
    records: Records,
    binding: Binding,
    sequence: std::cell::Cell<u64>,
}

impl Room {
    async fn new() -> Self {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
        let records = Records::open(Arc::clone(&store), Timestamp::UNIX_EPOCH).await.unwrap();
        let sequence = std::cell::Cell::new(1);
        Self { store, records, binding: binding(1, "main"), sequence }
    }

    /// As after a crash: only what is stored is there.
    async fn reopen(&mut self, now: Timestamp) {
        self.records = Records::open(Arc::clone(&self.store), now).await.unwrap();
    }

    fn next(&self) -> u64 {
        self.sequence.set(self.sequence.get() + 1);
        self.sequence.get()
    }

    async fn put(&self, writes: Vec<TableWrite>) {
        let changes: Vec<Change> = writes.into_iter().map(Change::from).collect();
        if !changes.is_empty() {
            assert!(store::write(&*self.store, &changes).await.unwrap());
        }
    }

    async fn row(&self, id: &str) -> Option<RecordRow> {
        self.records.row(&self.binding, &record(id)).await.unwrap()
    }

    /// A reader's operation that asks for a visibility, up to its intent.
    async fn begin(&self, writer: &Reader, asked: Option<Visibility>) -> Write {
        let operation = operation(self.next(), OperationKind::RecordUpsert, scope_of(writer));
        let ownership = Ownership::of(&self.binding, &operation.scope, asked).unwrap();
        let mut marks = OperationMarks::default();
        marks.plan(&operation, &self.binding, &ownership);
        self.put(marks.begin(&self.records).unwrap()).await;
        Write { operation, writer: writer.clone(), ownership, marks }
    }

    /// Ends an operation with the rows of these records.
    async fn end(&self, mut write: Write, ids: &[&str]) {
        let changes = self.rows_of(&write, ids).await;
        write.marks.take_from(changes.taken_from);
        let mut writes = changes.writes;
        writes.extend(write.marks.end(&self.records, Progress::Answered, at(100)).unwrap());
        self.put(writes.clone()).await;
        self.settle(&mut write.marks, &writes).await;
        drop(changes.lock);
    }

    async fn rows_of(&self, write: &Write, ids: &[&str]) -> RowChanges {
        let handles: Vec<RecordHandle> = ids.iter().map(|id| handle(id)).collect();
        let made = |handle| Made { handle, origin: None, write: None, created_by: None };
        let made: Vec<Made<'_>> = handles.iter().map(made).collect();
        let by = (&write.writer, &write.ownership);
        let rules = (false, |_: &RecordRow| false);
        let mut changes =
            self.records.written(&write.operation, &self.binding, by, &made, rules).await.unwrap();
        // Nobody else writes in these tests, and `settle` takes the lock.
        changes.lock = None;
        changes
    }

    async fn settle(&self, marks: &mut OperationMarks, writes: &[TableWrite]) {
        let owners = marks.ended(&self.records, writes);
        let company = &self.binding.company_id;
        self.records.remove_stale(company, self.binding.id, owners).await.unwrap();
    }

    /// A reader writes records for itself only.
    async fn write(&self, writer: &Reader, ids: &[&str]) {
        let write = self.begin(writer, Some(visibility_of(writer))).await;
        self.end(write, ids).await;
    }

    /// Removes the rows of records, as an operation that forgets them.
    async fn remove(&self, ids: &[&str]) {
        let ids: Vec<RecordId> = ids.iter().map(|id| record(id)).collect();
        let changes = self.records.remove(&self.binding, ids.iter()).await.unwrap();
        let mut marks = OperationMarks::default();
        marks.take_from(changes.taken_from);
        self.put(changes.writes.clone()).await;
        self.settle(&mut marks, &changes.writes).await;
    }

    /// Whether something is hidden from whoever is neither owner nor administrator.
    fn hides(&self) -> bool {
        self.records.hides_from(self.binding.id, &Reader::Nobody)
    }
}

/// A write that has an intent and no end.
struct Write {
    operation: Operation,
    writer: Reader,
    ownership: Ownership,
    marks: OperationMarks,
}
