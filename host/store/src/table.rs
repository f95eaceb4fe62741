//! The kinds of small records, and how their keys are made.

use jiff::Timestamp;
use uuid::Uuid;

use memhost_types::CompanyId;

macro_rules! tables {
    ($($(#[$doc:meta])* $table:ident = $name:literal),+ $(,)?) => {
        /// The kinds of small records. Keys begin with the company and a zero byte, except in `Host` and `Due`.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Table { $($(#[$doc])* $table),+ }

        impl Table {
            /// Every kind.
            pub const ALL: &'static [Self] = &[$(Self::$table),+];

            /// What it is called where it is stored.
            pub fn name(self) -> &'static str {
                match self { $(Self::$table => $name),+ }
            }
        }
    };
}

tables! {
    /// Facts about this host.
    Host = "host",
    /// What is set for a company as a whole.
    Companies = "companies",
    /// Bindings by key.
    Bindings = "bindings",
    /// Which binding a company or agent is resolved to.
    Targets = "targets",
    /// What was changed, by whom; newest first.
    Activity = "activity",
    /// Secrets, encrypted.
    Secrets = "secrets",
    /// Tokens, as digests.
    Tokens = "tokens",
    /// Extraction jobs; newest first.
    Jobs = "jobs",
    /// Deliveries of hooks, by hook and binding.
    Deliveries = "deliveries",
    /// When what is to be done next: a kind, a time, and what it is about.
    Due = "due",
    /// What was billed for operations; newest first.
    CostEvents = "cost_events",
    /// Flat charges; newest first.
    FinanceEvents = "finance_events",
    /// How much may be spent.
    Budgets = "budgets",
    /// What waits for a person, and what was decided.
    Reviews = "reviews",
    /// What sessions and tools did; newest first.
    Events = "events",
    /// Which events a project, session or tool has.
    EventIndex = "event_index",
    /// Which provider's job is which of ours.
    JobIndex = "job_index",
    /// Sums over operations, and which operations are in them. Derived, and kept: what is thrown away stays in them.
    Sums = "sums",
    /// What was answered to a request that came with an idempotency key.
    Idempotency = "idempotency",
}

/// A company's key: ids hold no control characters, so that a zero byte cannot be part of one.
pub fn company_key(company: &CompanyId, rest: &[u8]) -> Vec<u8> {
    [company.as_str().as_bytes(), b"\0", rest].concat()
}

/// A company's key that puts what is newest first in a scan that only goes forward.
pub fn newest_first(company: &CompanyId, id: Uuid) -> Vec<u8> {
    company_key(company, &id.into_bytes().map(|byte| !byte))
}

/// Which kind of thing is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DueKind {
    /// An extraction job.
    Job,
    /// A delivery of a hook.
    Delivery,
}

/// Where it stands when something is due: in the order of time. `rest` is the key of its record.
pub fn due_key(kind: DueKind, at: Timestamp, rest: &[u8]) -> Vec<u8> {
    let ms = u64::try_from(at.as_millisecond()).unwrap_or(0);
    [&due_prefix(kind)[..], &ms.to_be_bytes(), rest].concat()
}

/// What everything due of one kind begins with.
pub fn due_prefix(kind: DueKind) -> [u8; 1] {
    match kind {
        DueKind::Job => *b"j",
        DueKind::Delivery => *b"d",
    }
}

/// When something is due, and the key of its record.
pub fn due_at(key: &[u8]) -> Option<(Timestamp, &[u8])> {
    let (ms, rest) = key.get(1..)?.split_first_chunk::<8>()?;
    let at = Timestamp::from_millisecond(i64::try_from(u64::from_be_bytes(*ms)).ok()?).ok()?;
    Some((at, rest))
}
