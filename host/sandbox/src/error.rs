//! The errors of this crate.

use super::compiler::{CompileLimits, CompileStop};
use memhost_types::{
    CallUsage, Digest, LogLine, OperationErrorCode, Outcome, ProviderError, Refusal,
};

/// Why a component is not admitted.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum AdmissionError {
    #[error("the file is {bytes} bytes; at most {max} are admitted")]
    TooLarge { bytes: u64, max: u64 },
    #[error(
        "the file is native code (ELF), not WebAssembly; give the `.wasm` that `cargo build \
         --target wasm32-wasip2` makes"
    )]
    NativeCode,
    /// It is WebAssembly of the kind before components.
    #[error(
        "the file is a core module, not a component; build it for `wasm32-wasip2` or wrap it with \
         `wasm-tools component new`"
    )]
    CoreModule,
    #[error("the file is not WebAssembly: it begins with {found}; give a component")]
    NotWasm { found: String },
    #[error(
        "the component cannot be read: {0}; it may be truncated or damaged, copy or build it again"
    )]
    Malformed(String),
    #[error(
        "the component exports no `paperclip:memory/provider`; it exports {found}. A provider is \
         made with `memhost_sdk::export!`"
    )]
    NoProvider { found: String },
    #[error(
        "the component is built for contract version {found}, and this host serves {known}; use a \
         matching host or rebuild the provider"
    )]
    UnknownContract { found: String, known: &'static str },
    /// It wants something that the host does not offer, or with another shape.
    #[error("the component does not fit this host: {0}")]
    Unlinkable(String),
    /// It cannot fit into the instance pool.
    #[error("the component needs {what}; at most {max} are given")]
    TooDemanding { what: String, max: u64 },
    /// Compiling it was stopped. The same bytes will be again.
    #[error("{}", not_compiled(*stop, limits, message))]
    NotCompiled { stop: CompileStop, limits: CompileLimits, message: String },
    /// The compiled code is not for this engine.
    #[error(
        "the compiled component cannot be loaded: {message}; the compiler must be the program \
         `memhost` of the same version"
    )]
    OtherCompiler { message: String },
    #[error("`describe` failed: {0}")]
    Describe(String),
    #[error("`describe` answered a {field} that {message}")]
    Description { field: &'static str, message: String },
    /// The file of more certificate authorities.
    #[error("{0}")]
    Roots(String),
    #[error("{action} {what} failed: {message}")]
    Io { action: &'static str, what: String, message: String },
    #[error(
        "the compiled form of {digest} was changed by another program; it is deleted and compiled \
         again"
    )]
    Tampered { digest: Digest },
}

impl AdmissionError {
    pub(super) fn io(
        action: &'static str,
        what: impl Into<String>,
        error: impl std::fmt::Display,
    ) -> Self {
        Self::Io { action, what: what.into(), message: error.to_string() }
    }

    /// wasmtime has one error type for a damaged component and for one that is too large for the
    /// pool.
    pub(super) fn unreadable(message: &str) -> Self {
        let message = memhost_types::cut_message(message.to_owned());
        match message.contains("exceeds") {
            true => Self::Unlinkable(message),
            false => Self::Malformed(message),
        }
    }
}

fn not_compiled(stop: CompileStop, limits: &CompileLimits, message: &str) -> String {
    let (what, key) = match stop {
        CompileStop::Time => {
            (format!("took longer than {} s", limits.time.as_secs_f64()), "compile_seconds")
        }
        CompileStop::Cpu => {
            (format!("took more than {} s of computing", limits.cpu_seconds), "compile_cpu_seconds")
        }
        CompileStop::Memory => (
            format!("needs more than {} MiB of memory", limits.memory_bytes >> 20),
            "compile_memory_bytes",
        ),
        CompileStop::Crash => {
            let why = if message.is_empty() { "it was ended by somebody else" } else { message };
            return format!(
                "compiling the component failed: {why}; build it again, or report it with the \
                 component"
            );
        }
    };
    format!(
        "compiling the component {what} and was stopped; use a component that compiles with less, \
         or raise `{key}` in the \
         host's configuration"
    )
}

/// A limit on what one call may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LimitKind {
    /// Linear memory, in bytes.
    Memory,
    /// Elements of tables.
    TableElements,
    /// Bytes that cross in one call.
    Transfer,
}

/// Why a call failed.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum CallError {
    #[error(transparent)]
    Provider(ProviderError),
    #[error(
        "the binding has {waiting} calls waiting, as many as its limit `queuedCalls` allows; try \
         again later"
    )]
    Busy { waiting: u32 },
    /// Another build serves the binding now, or the binding was deleted. The host repeats the call
    /// with what serves.
    #[error("the version that was asked for serves no longer; try again")]
    Retired,
    #[error("all {slots} instances of the host are in use; try again later")]
    NoInstance { slots: usize },
    #[error(
        "the call ran into its limit `{limit}` of {ms} ms; it was stopped and its instance dropped"
    )]
    TimedOut { limit: &'static str, ms: u64 },
    #[error(
        "the call ran into its limit `{name}` of {max}; it was stopped and its instance dropped"
    )]
    LimitExceeded { kind: LimitKind, name: &'static str, max: u64 },
    #[error("the provider crashed: {message}; its instance was dropped")]
    Trapped { message: String },
    #[error("the provider's answer breaks the contract: {0}; nothing of it was passed on")]
    BadAnswer(String),
    /// Its other records can still be answered, so the provider counts as sound.
    #[error("the provider's record breaks the contract: {0}; nothing of it was passed on")]
    BadRecord(String),
    #[error("the provider does not export the interface `{0}`; use a provider that does")]
    NoInterface(&'static str),
}

impl CallError {
    /// The limit of the binding that the call ran into, by its name.
    pub fn limit(&self) -> Option<&'static str> {
        match self {
            Self::Busy { .. } => Some("queuedCalls"),
            Self::TimedOut { limit, .. } => Some(limit),
            Self::LimitExceeded { name, .. } => Some(name),
            _ => None,
        }
    }

    /// Whether the provider answered, if only with an error.
    pub fn is_providers_answer(&self) -> bool {
        matches!(self, Self::Provider(_) | Self::NoInterface(_) | Self::BadRecord(_))
    }

    /// Whether the provider is at fault: a crash, a limit or a broken contract.
    pub fn is_providers_fault(&self) -> bool {
        matches!(
            self,
            Self::Trapped { .. }
                | Self::TimedOut { .. }
                | Self::LimitExceeded { .. }
                | Self::BadAnswer(_)
        )
    }
}

/// A failed call with what is known about it.
#[derive(Debug)]
pub struct Failure {
    /// Why.
    pub error: CallError,
    /// The guest's log until then.
    pub log: Vec<LogLine>,
    /// Microseconds in the provider.
    pub provider_us: u64,
    /// The usage of the host's own imports until then, the provider's report, and what was sent.
    pub metered: CallUsage,
}

impl From<&CallError> for Refusal {
    fn from(call: &CallError) -> Self {
        use OperationErrorCode as Code;
        let (outcome, code) = match call {
            CallError::Provider(error) => return error.into(),
            CallError::Busy { .. } | CallError::NoInstance { .. } | CallError::Retired => {
                (Outcome::Refused, Code::Busy)
            }
            CallError::NoInterface(_) => (Outcome::Refused, Code::Unsupported),
            CallError::TimedOut { .. } => (Outcome::TimedOut, Code::TimedOut),
            CallError::LimitExceeded { .. } => (Outcome::Trapped, Code::LimitExceeded),
            CallError::Trapped { .. } => (Outcome::Trapped, Code::Trapped),
            CallError::BadAnswer(_) | CallError::BadRecord(_) => (Outcome::Failed, Code::BadAnswer),
        };
        Self { outcome, ..Self::new(code, call.to_string()) }
    }
}
