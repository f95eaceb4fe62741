//! The kinds of small records, and how their keys are made.

use jiff::Timestamp;
use uuid::Uuid;

use memhost_types::CompanyId;

macro_rules! tables {
    ($($(#[$doc:meta])* $table:ident = $name:literal),+ $(,)?) => {
        /// The kinds of small records. Keys begin with the company and a zero byte, except in
        /// `Host` and `Due`.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Table { $($(#[$doc])* $table),+ }

        impl Table {
            /// Every kind.
            pub const ALL: &'static [Self] = &[$(Self::$table),+];

            /// Its name in the store.
            pub fn name(self) -> &'static str {
                match self { $(Self::$table => $name),+ }
            }
        }
    };
}

tables! {
    /// Facts about this host.
    Host = "host",
    /// Settings of a company as a whole.
    Companies = "companies",
    /// Bindings by key.
    Bindings = "bindings",
    /// The binding that a company or an agent is assigned to.
    Targets = "targets",
    /// The activity log: who changed what; newest first.
    Activity = "activity",
    /// Secrets, encrypted.
    Secrets = "secrets",
    /// Tokens, as digests.
    Tokens = "tokens",
    /// Extraction jobs; newest first.
    Jobs = "jobs",
    /// Deliveries of hooks, by hook and binding.
    Deliveries = "deliveries",
    /// Due entries, in the order of time: a kind, a time, and the key of a record.
    Due = "due",
    /// Cost events of operations; newest first.
    CostEvents = "cost_events",
    /// Cost events in the order in which they were written; the log numbers them.
    CostOrder = "cost_order",
    /// Flat charges; newest first.
    FinanceEvents = "finance_events",
    /// Budgets.
    Budgets = "budgets",
    /// Review items and decisions; newest first.
    Reviews = "reviews",
    /// Events of sessions and tools; newest first.
    Events = "events",
    /// Events by project, session and tool, and by the sender's id.
    EventIndex = "event_index",
    /// Jobs by the provider's name for them.
    JobIndex = "job_index",
    /// Sums over operations, and which operations they contain. Kept when the operations are
    /// removed.
    Sums = "sums",
    /// Records of an import that wait for a decision, by binding and in their order.
    Waiting = "waiting",
    /// Records: where each is, where it came from, and whose it is; by binding and the provider's
    /// name for it.
    Records = "records",
    /// Records by what their source names, by binding: made from `Records`, and in step with it.
    RecordSources = "record_sources",
    /// Records by the time at which they expire, by binding: made from `Records`, and in step with
    /// it.
    RecordExpiries = "record_expiries",
    /// Which bindings have records that are not for the whole company, and writes of such records
    /// that have not ended.
    PrivateWrites = "private_writes",
    /// Sources that were forgotten, by binding.
    ForgottenSources = "forgotten_sources",
    /// Answers to requests with an idempotency key.
    Idempotency = "idempotency",
}

impl Table {
    /// Whether its keys begin with a company.
    pub fn is_of_company(self) -> bool {
        !matches!(self, Self::Host | Self::Due)
    }

    /// Whether its rows count as what a company has. Sums have so many rows a day at most
    /// (`sums.rs`), and no retention removes them.
    pub fn counts(self) -> bool {
        self.is_of_company() && self != Self::Sums
    }

    /// Whether a new row of this table is new data. The others get rows when something is deleted
    /// or ends, too.
    pub fn is_new_data(self) -> bool {
        match self {
            Self::Host
            | Self::Companies
            | Self::Activity
            | Self::Due
            | Self::CostEvents
            | Self::CostOrder
            | Self::JobIndex
            | Self::Sums
            | Self::Records
            | Self::RecordSources
            | Self::RecordExpiries
            | Self::PrivateWrites
            | Self::ForgottenSources
            | Self::Idempotency => false,
            Self::Bindings
            | Self::Targets
            | Self::Secrets
            | Self::Tokens
            | Self::Jobs
            | Self::Deliveries
            | Self::FinanceEvents
            | Self::Budgets
            | Self::Reviews
            | Self::Events
            | Self::EventIndex
            | Self::Waiting => true,
        }
    }
}

/// A key of a company. Ids contain no control characters, so a zero byte ends the company's id.
pub fn company_key(company: &CompanyId, rest: &[u8]) -> Vec<u8> {
    [company.as_str().as_bytes(), b"\0", rest].concat()
}

/// The company that a key begins with.
pub fn company_of(key: &[u8]) -> Option<CompanyId> {
    let end = key.iter().position(|byte| *byte == 0)?;
    std::str::from_utf8(&key[..end]).ok()?.parse().ok()
}

/// A key of a company that orders the newest record first, for scans that only go forward.
pub fn newest_first(company: &CompanyId, id: Uuid) -> Vec<u8> {
    company_key(company, &id.into_bytes().map(|byte| !byte))
}

/// A kind of work that is due at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DueKind {
    /// An extraction job.
    Job,
    /// A delivery of a hook.
    Delivery,
}

/// The key of a due entry; the keys are in the order of time. `rest` is the key of the record.
pub fn due_key(kind: DueKind, at: Timestamp, rest: &[u8]) -> Vec<u8> {
    let ms = u64::try_from(at.as_millisecond()).unwrap_or(0);
    [&due_prefix(kind)[..], &ms.to_be_bytes(), rest].concat()
}

/// The prefix of the due entries of a kind.
pub fn due_prefix(kind: DueKind) -> [u8; 1] {
    match kind {
        DueKind::Job => *b"j",
        DueKind::Delivery => *b"d",
    }
}

/// The time of a due entry and the key of its record.
pub fn due_at(key: &[u8]) -> Option<(Timestamp, &[u8])> {
    let (ms, rest) = key.get(1..)?.split_first_chunk::<8>()?;
    let at = Timestamp::from_millisecond(i64::try_from(u64::from_be_bytes(*ms)).ok()?).ok()?;
    Some((at, rest))
}
