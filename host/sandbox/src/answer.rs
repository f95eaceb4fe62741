//! The answers of the required interface, checked and in the host's types.

use super::error::{CallError, Failure};
use memhost_types::{
    CallUsage, ExtractionJob, ForgetOutcome, LogLine, RecordHandle, Snippet, Usage,
};

/// A checked answer, with what is known about the call.
#[derive(Debug)]
pub struct Answer<T> {
    /// The provider's answer.
    pub value: T,
    /// The guest's log.
    pub log: Vec<LogLine>,
    /// Microseconds in the provider, instantiation included.
    pub provider_us: u64,
    /// What the host's own imports used for the call, what the provider reported beside its answer,
    /// and what was sent.
    pub metered: CallUsage,
    /// What the host has left out of the answer because it was wrong, a sentence each. The log has
    /// it, too.
    pub left_out: Vec<String>,
}

impl<T> Answer<T> {
    /// The answer where there was nothing to ask the provider.
    pub fn without_call(value: T) -> Self {
        Self {
            value,
            log: Vec::new(),
            provider_us: 0,
            metered: CallUsage::default(),
            left_out: Vec::new(),
        }
    }

    /// Adds what is known about a further call for the same request, and hands over its value.
    pub fn add<U>(&mut self, further: Answer<U>) -> U {
        self.log.extend(further.log);
        self.provider_us += further.provider_us;
        self.metered.extend(further.metered);
        self.left_out.extend(further.left_out);
        further.value
    }

    /// A further call failed: what is known of this one belongs to the failure.
    #[must_use]
    pub fn into_failure(self, further: Failure) -> Failure {
        Failure {
            log: [self.log, further.log].concat(),
            provider_us: self.provider_us + further.provider_us,
            metered: self.metered.and(further.metered),
            ..further
        }
    }
}

/// The answer of `capture`.
#[derive(Debug)]
#[allow(missing_docs, reason = "the contract's names")]
pub struct CaptureAnswer {
    pub records: Vec<RecordHandle>,
    pub jobs: Vec<ExtractionJob>,
    pub usage: Vec<Usage>,
}

/// The answer of `upsert-records`.
#[derive(Debug)]
#[allow(missing_docs, reason = "the contract's names")]
pub struct RecordsAnswer {
    pub records: Vec<RecordHandle>,
    pub usage: Vec<Usage>,
    /// Why the records after these were not written, where the host divided the request.
    pub rest: Option<CallError>,
}

/// The answer of `query`.
#[derive(Debug)]
#[allow(missing_docs, reason = "the contract's names")]
pub struct QueryAnswer {
    pub snippets: Vec<Snippet>,
    pub profile_summary: Option<String>,
    pub usage: Vec<Usage>,
}

/// The answer of `list-records`.
#[derive(Debug)]
pub struct ListAnswer {
    /// At most as many as asked for.
    pub items: Vec<Snippet>,
    /// The provider's own cursor.
    pub next: Option<String>,
    /// There may be more, but the provider cannot continue.
    pub truncated: bool,
    /// Its usage.
    pub usage: Vec<Usage>,
}

/// The answer of `forget`.
#[derive(Debug, Default)]
#[allow(missing_docs, reason = "the contract's names")]
pub struct ForgetAnswer {
    pub outcomes: Vec<ForgetOutcome>,
    pub usage: Vec<Usage>,
    /// Why the records after these were not forgotten, where the host divided the request.
    pub rest: Option<CallError>,
}
