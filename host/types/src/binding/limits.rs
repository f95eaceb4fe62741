//! What one binding's provider may use. One table declares every limit; the type, its JSON, its
//! defaults, its checks and its descriptions come from the table.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::FieldError;

/// The unit of a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LimitUnit {
    /// Bytes.
    Bytes,
    /// Milliseconds.
    Milliseconds,
    /// Things.
    Count,
    /// Things; 0 is no limit.
    CountOrUnlimited,
}

/// One row of the table.
#[derive(Debug, Clone, Copy)]
pub struct Limit {
    /// The name in JSON and in messages.
    pub name: &'static str,
    /// The unit of the limit.
    pub unit: LimitUnit,
    /// A description in one or two sentences.
    pub about: &'static str,
    /// The effect of reaching the limit.
    pub reached: &'static str,
    /// The value of a binding that sets none.
    pub default: u64,
    /// The lowest value that is allowed.
    pub min: u64,
    /// The highest value that is allowed. `None`: the host's own maximum of memory.
    pub max: Option<u64>,
    value: fn(&BindingLimits) -> u64,
}

impl Limit {
    /// The binding's own value.
    pub fn value(&self, limits: &BindingLimits) -> u64 {
        (self.value)(limits)
    }

    /// An amount of this limit, for people.
    pub fn shown(&self, amount: u64) -> String {
        match self.unit {
            LimitUnit::CountOrUnlimited if amount == 0 => "0: no limit".to_owned(),
            LimitUnit::Bytes if amount > 0 && amount.is_multiple_of(1 << 20) => {
                format!("{} MiB", amount >> 20)
            }
            LimitUnit::Bytes if amount > 0 && amount.is_multiple_of(1 << 10) => {
                format!("{} KiB", amount >> 10)
            }
            LimitUnit::Milliseconds => format!("{} ms", Grouped(amount)),
            _ => Grouped(amount).to_string(),
        }
    }

    /// The limit's row in `host/docs/limits.md`.
    pub fn markdown(&self) -> String {
        let max = self
            .max
            .map_or_else(|| "`max_memory_bytes` of the host".to_owned(), |max| self.shown(max));
        let (name, about, reached) = (self.name, self.about, self.reached);
        let (default, min) = (self.shown(self.default), Grouped(self.min));
        let min =
            if self.unit == LimitUnit::Bytes { self.shown(self.min) } else { min.to_string() };
        format!("| `{name}` | {about} | {default} | {min} to {max} | {reached} |")
    }
}

/// A number with commas between its thousands.
struct Grouped(u64);

impl fmt::Display for Grouped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = self.0.to_string();
        for (at, digit) in digits.chars().enumerate() {
            if at > 0 && (digits.len() - at).is_multiple_of(3) {
                f.write_str(",")?;
            }
            write!(f, "{digit}")?;
        }
        Ok(())
    }
}

/// Each row: its description, the field, its type and its name in JSON; what it counts; the
/// default; the lowest and the highest value; and what happens at the limit.
macro_rules! binding_limits {
    ($(
        $(#[doc = $about:literal])+
        $field:ident: $type:ty = $name:literal, $unit:ident, $default:expr, $min:expr =>
            $max:expr, $reached:literal;
    )+) => {
        /// The limits of one binding's provider. Every limit has a default that protects its
        /// neighbours.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
        #[serde(deny_unknown_fields, default)]
        pub struct BindingLimits {
            $($(#[doc = $about])+ #[serde(rename = $name)] pub $field: $type,)+
        }

        impl Default for BindingLimits {
            fn default() -> Self {
                Self { $($field: $default,)+ }
            }
        }

        impl BindingLimits {
            /// Every limit, in the order of the type's fields.
            pub const TABLE: &'static [Limit] = &[$(
                Limit {
                    name: $name,
                    unit: LimitUnit::$unit,
                    about: concat!($($about),+).trim_ascii(),
                    reached: $reached,
                    default: $default,
                    min: $min,
                    max: $max,
                    value: |limits| limits.$field.into(),
                },
            )+];
        }
    };
}

binding_limits! {
    /// Memory of one instance in bytes: all its linear memories, and the host's buffers for it.
    memory_bytes: u64 = "memoryBytes", Bytes, 256 << 20, 1 << 20 =>
        None, "`limit_exceeded`; the instance is dropped";
    /// Elements of all tables of one instance.
    table_elements: u64 = "tableElements", Count, 100_000, 1 =>
        Some(100_000), "growing a table fails in the provider";
    /// How long one call may take, in milliseconds of wall time, instantiation included.
    call_timeout_ms: u64 = "callTimeoutMs", Milliseconds, 30_000, 1 => Some(600_000),
        "`timed_out`; the instance is dropped";
    /// How long one call may compute, and the host for it, in milliseconds.
    call_cpu_ms: u64 = "callCpuMs", Milliseconds, 20_000, 1 =>
        Some(600_000), "`timed_out`; the instance is dropped";
    /// How many calls may run at once; the provider's own `max-concurrency` also holds.
    concurrent_calls: u32 = "concurrentCalls", Count, 4, 1 => Some(256),
        "the next call waits. A binding never has more than a quarter of the host's instances";
    /// How many calls may wait for a permit; one more is refused.
    queued_calls: u32 = "queuedCalls", Count, 256, 0 => Some(100_000), "`busy`";
    /// How much a call may hand over in either direction, in bytes.
    transfer_bytes: u64 = "transferBytes", Bytes, 32 << 20, 1 << 20 => Some(512 << 20),
        "`limit_exceeded`; the instance is dropped";
    /// How much log of one call is kept, in bytes.
    log_bytes: u64 = "logBytes", Bytes, 64 << 10, 0 => Some(1 << 20),
        "the rest is dropped and counted. The operation's log entry keeps 8 KiB";
    /// Keys that the private storage may hold.
    storage_keys: u64 = "storageKeys", Count, 1_000_000, 1 => Some(1_000_000_000),
        "`quota_exceeded`; the write is refused";
    /// Files, directories and links that the private directory may hold.
    directory_files: u64 = "directoryFiles", Count, 500_000, 1 =>
        Some(10_000_000), "`quota_exceeded`";
    /// Calls in a second, on average over a second; 0 is no limit.
    calls_per_second: u32 = "callsPerSecond", CountOrUnlimited, 0, 0 => Some(1_000_000),
        "`rate_limited`, with the time to wait";
    /// Outgoing requests of one call.
    outgoing_requests: u32 = "outgoingRequests", Count, 64, 0 => Some(10_000),
        "the next request is refused and names the limit";
    /// Outgoing requests in a minute.
    outgoing_requests_per_minute: u32 = "outgoingRequestsPerMinute", Count, 1_000, 0 =>
        Some(1_000_000),
        "the next request is refused and names the limit";
    /// Outgoing requests that run at once.
    outgoing_connections: u32 = "outgoingConnections", Count, 16, 1 => Some(256),
        "the next request is refused and names the limit";
    /// What the requests of one call may send in their bodies, in bytes.
    outgoing_bytes: u64 = "outgoingBytes", Bytes, 16 << 20, 0 => Some(256 << 20),
        "the request is refused and names the limit";
    /// What the responses of one call may bring in their bodies, in bytes.
    incoming_bytes: u64 = "incomingBytes", Bytes, 16 << 20, 0 => Some(256 << 20),
        "the request is refused and names the limit";
    /// Extraction jobs that run at once.
    concurrent_jobs: u32 = "concurrentJobs", Count, 1, 1 => Some(64), "the next job waits";
    /// How long a job may go on from its first call to its last, in milliseconds. One call has
    /// `callTimeoutMs`.
    job_timeout_ms: u64 = "jobTimeoutMs", Milliseconds, 3_600_000, 1_000 =>
        Some(604_800_000), "the job fails";
}

impl BindingLimits {
    /// Whether every limit is within its range. `max_memory_bytes` is the most that the host gives
    /// one instance.
    ///
    /// # Errors
    /// The first limit that is out of its range, as a field of `limits`.
    pub fn check(&self, max_memory_bytes: u64) -> Result<(), FieldError> {
        for limit in Self::TABLE {
            let (value, min, max) =
                (limit.value(self), limit.min, limit.max.unwrap_or(max_memory_bytes));
            if !(min..=max).contains(&value) {
                let message = format!("is {value}; {min} to {max} are allowed");
                return Err(FieldError::new(format!("limits.{}", limit.name), message));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_default_is_within_its_range_and_every_limit_is_checked() {
        BindingLimits::default().check(1 << 30).unwrap();
        let json = serde_json::to_value(BindingLimits::default()).unwrap();
        assert_eq!(json.as_object().unwrap().len(), BindingLimits::TABLE.len());
        for limit in BindingLimits::TABLE {
            assert_eq!(json[limit.name], limit.default, "{}", limit.name);
            let max = limit.max.unwrap_or(1 << 30);
            let below = limit.min.checked_sub(1);
            for (value, fits) in
                [(Some(limit.min), true), (Some(max), true), (below, false), (Some(max + 1), false)]
            {
                let Some(value) = value else { continue };
                let limits: BindingLimits =
                    serde_json::from_value(serde_json::json!({ limit.name: value })).unwrap();
                match limits.check(1 << 30) {
                    Ok(()) => assert!(fits, "{} of {value}", limit.name),
                    Err(error) => {
                        assert!(
                            !fits && error.field == format!("limits.{}", limit.name),
                            "{error}"
                        );
                    }
                }
            }
        }
    }

    /// `UPDATE_DOCS=1` writes the table into the document.
    #[test]
    fn the_document_has_a_row_for_each_limit() {
        let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/limits.md");
        let text = std::fs::read_to_string(page).unwrap();
        let from = text.find("| limit |").unwrap();
        let there = &text[from..from + text[from..].find("\n\n").unwrap()];
        let rows: Vec<String> = BindingLimits::TABLE.iter().map(Limit::markdown).collect();
        let heads = "| limit | what it limits | default | allowed | at the limit |\n| --- | --- | \
                     --- | --- | --- |";
        let table = format!("{heads}\n{}", rows.join("\n"));
        if std::env::var_os("UPDATE_DOCS").is_some() {
            std::fs::write(page, text.replace(there, &table)).unwrap();
            return;
        }
        assert!(
            there == table,
            "{page} differs from the table of limits; UPDATE_DOCS=1 writes it anew"
        );
    }

    #[test]
    fn amounts_are_shown_with_their_unit() {
        let shown = |name: &str, amount| {
            BindingLimits::TABLE.iter().find(|limit| limit.name == name).unwrap().shown(amount)
        };
        assert_eq!(shown("memoryBytes", 256 << 20), "256 MiB");
        assert_eq!(shown("logBytes", 0), "0");
        assert_eq!(shown("callTimeoutMs", 30_000), "30,000 ms");
        assert_eq!(shown("callsPerSecond", 0), "0: no limit");
        assert_eq!(shown("storageKeys", 1_000_000), "1,000,000");
    }
}
