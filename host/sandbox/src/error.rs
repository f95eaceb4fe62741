//! The errors of this crate.

use memhost_types::{Digest, LogLine, ProviderError, Usage};

/// Why a component is not admitted.
#[derive(Debug, thiserror::Error)]
pub enum AdmissionError {
    /// It is too large to look at.
    #[error("the file is {bytes} bytes; at most {max} are admitted")]
    TooLarge {
        /// Its size.
        bytes: u64,
        /// The limit.
        max: u64,
    },
    /// It is native code, of this or another program.
    #[error(
        "the file is native code (ELF), not WebAssembly; give the `.wasm` that `cargo build --target wasm32-wasip2` makes"
    )]
    NativeCode,
    /// It is WebAssembly of the kind before components.
    #[error(
        "the file is a core module, not a component; build it for `wasm32-wasip2` or wrap it with `wasm-tools component new`"
    )]
    CoreModule,
    /// It is no WebAssembly at all.
    #[error("the file is not WebAssembly: it begins with {found}; give a component")]
    NotWasm {
        /// Its first bytes.
        found: String,
    },
    /// It begins like a component and cannot be parsed.
    #[error("the component cannot be read: {0}; it may be truncated or damaged, copy or build it again")]
    Malformed(String),
    /// It exports nothing of the contract.
    #[error(
        "the component exports no `paperclip:memory/provider`; it exports {found}. A provider is made with `memhost_sdk::export!`"
    )]
    NoProvider {
        /// What it exports instead.
        found: String,
    },
    /// It was built for a contract that this host does not have.
    #[error(
        "the component is built for contract version {found}, and this host serves {known}; use a matching host or rebuild the provider"
    )]
    UnknownContract {
        /// The component's version.
        found: String,
        /// The host's versions.
        known: &'static str,
    },
    /// It wants something that the host does not offer, or with another shape.
    #[error("the component does not fit this host: {0}")]
    Unlinkable(String),
    /// It cannot fit into the instance pool.
    #[error("the component needs {what}; at most {max} are given")]
    TooDemanding {
        /// What and how much.
        what: String,
        /// The limit.
        max: u64,
    },
    /// Its `describe` failed.
    #[error("`describe` failed: {0}")]
    Describe(String),
    /// Its description breaks the contract.
    #[error("`describe` answered a {field} that {message}")]
    Description {
        /// Which part.
        field: &'static str,
        /// What is wrong.
        message: String,
    },
    /// The host could not read or write.
    #[error("{action} {what} failed: {message}")]
    Io {
        /// What was tried.
        action: &'static str,
        /// To which thing.
        what: String,
        /// What the system said.
        message: String,
    },
    /// The compiled form is there but was not written by this host.
    #[error("the compiled form of {digest} was changed by another program; it is deleted and compiled again")]
    Tampered {
        /// Of which component.
        digest: Digest,
    },
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
pub enum CallError {
    /// The provider said no.
    #[error(transparent)]
    Provider(ProviderError),
    /// Too many calls of this binding run and wait.
    #[error("the binding has {waiting} calls waiting, as many as its limit `queuedCalls` allows; try again later")]
    Busy {
        /// The limit.
        waiting: u32,
    },
    /// Another version serves now. The service repeats the call there; no caller sees this.
    #[error("the version that was asked for serves no longer; try again")]
    Retired,
    /// No instance could be made because the host's pool is in use.
    #[error("all {slots} instances of the host are in use; try again later")]
    NoInstance {
        /// The pool's size.
        slots: usize,
    },
    /// The call took too long.
    #[error("the call ran into its limit `{limit}` of {ms} ms; it was stopped and its instance dropped")]
    TimedOut {
        /// Which limit.
        limit: &'static str,
        /// Its value.
        ms: u64,
    },
    /// The provider used too much.
    #[error("the call ran into its limit `{name}` of {max}; it was stopped and its instance dropped")]
    LimitExceeded {
        /// Which limit.
        kind: LimitKind,
        /// Its name in the binding's limits.
        name: &'static str,
        /// Its value.
        max: u64,
    },
    /// The provider crashed.
    #[error("the provider crashed: {message}; its instance was dropped")]
    Trapped {
        /// What wasmtime said, without addresses.
        message: String,
    },
    /// The answer breaks the contract.
    #[error("the provider's answer breaks the contract: {0}; nothing of it was passed on")]
    BadAnswer(String),
    /// The provider does not have the interface.
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
        matches!(self, Self::Provider(_) | Self::NoInterface(_))
    }

    /// Whether the provider is at fault: a crash, a limit or a broken contract.
    pub fn is_providers_fault(&self) -> bool {
        matches!(self, Self::Trapped { .. } | Self::TimedOut { .. } | Self::LimitExceeded { .. } | Self::BadAnswer(_))
    }
}

/// A failed call with what is known about it.
#[derive(Debug)]
pub struct Failure {
    /// Why.
    pub error: CallError,
    /// What the guest logged before.
    pub log: Vec<LogLine>,
    /// Microseconds in the provider.
    pub provider_us: u64,
    /// What the host's own imports used before.
    pub embedded: Vec<Usage>,
}
