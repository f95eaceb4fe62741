//! What the tests of this crate share: a clock that stands still until it is set, and operations.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use parking_lot::Mutex;
use serde_json::{Value, json};

use memhost_ports::Clock;
use memhost_store::{MemoryStore, Store};
use memhost_types::{CompanyId, Operation, OperationId, RecordHandle};

/// 2026-03-10T12:00:00Z, a Tuesday in the middle of a month.
pub(crate) const NOON: Timestamp = Timestamp::constant(1_773_144_000, 0);

/// A clock that stands still. What it calls random is a number that grows.
pub(crate) struct TestClock(Mutex<(Timestamp, u128)>);

impl TestClock {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self(Mutex::new((NOON, 0))))
    }

    pub(crate) fn advance(&self, by: SignedDuration) {
        self.0.lock().0 += by;
    }
}

impl Clock for TestClock {
    fn now(&self) -> Timestamp {
        self.0.lock().0
    }

    fn random(&self) -> u128 {
        let mut now = self.0.lock();
        now.1 += 1;
        now.1 << 48 | now.1
    }
}

pub(crate) fn memory() -> Arc<dyn Store> {
    Arc::new(MemoryStore::default())
}

pub(crate) fn company(name: &str) -> CompanyId {
    name.parse().unwrap()
}

pub(crate) fn acme() -> CompanyId {
    company("acme")
}

pub(crate) fn handle(record: &str) -> RecordHandle {
    serde_json::from_value(json!({"providerKey": "p", "providerRecordId": record})).unwrap()
}

/// An operation of `acme` that succeeded, with some fields set otherwise.
pub(crate) fn operation(sequence: u64, at: Timestamp, fields: &Value) -> Operation {
    let ms = u64::try_from(at.as_millisecond()).unwrap();
    let mut operation = json!({
        "id": OperationId::new(ms, sequence, sequence), "companyId": "acme", "kind": "query",
        "outcome": "succeeded", "principal": "operator", "bindingKey": "b", "providerKey": "p",
        "scope": {"companyId": "acme"}, "startedAt": at, "finishedAt": at, "latencyUs": 10,
        "recordCount": 0,
    });
    for (name, value) in fields.as_object().unwrap() {
        operation[name] = value.clone();
    }
    serde_json::from_value(operation).unwrap()
}

/// The usage of so many cents that are billed directly.
pub(crate) fn cents(cents: u64) -> Value {
    json!({"provider": "openai", "model": "m", "billingType": "metered_api", "costCents": cents})
}

/// An operation that cost so many cents through the binding `b`.
pub(crate) fn paid(sequence: u64, at: Timestamp, cost: u64) -> Operation {
    operation(sequence, at, &json!({"usage": [cents(cost)]}))
}
