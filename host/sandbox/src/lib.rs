//! Runs providers without trusting them: the wasmtime engine, the instances of each binding, their limits, and the
//! host's side of every import. Only this room names wasmtime. It knows the contract and nothing of what a binding
//! means: it is handed a configuration, a storage and a directory.

mod answer;
mod bindings;
mod cache;
mod clocks;
mod component;
mod convert;
mod egress;
mod engine;
mod error;
mod imports;
mod instance;
mod instances;
mod limiter;
mod log;
mod meter;
mod normalize;
mod quota;
mod stats;

pub use answer::{
    Answer, BrowseAnswer, CaptureAnswer, ChunkAnswer, Correction, ExplainAnswer, ForgetAnswer, ImportAnswer, JobAnswer,
    ListAnswer, QueryAnswer, RecordsAnswer,
};
pub use cache::CacheKey;
pub use component::{Component, Inspection, MAX_COMPONENT_BYTES, OptionalInterface};
pub use egress::{Egress, GrantedSecret, Secret, SecretError, Secrets};
pub use engine::{Sandbox, SandboxOptions};
pub use error::{AdmissionError, CallError, Failure, LimitKind};
pub use instance::{Directory, DirectoryAccess};
pub use instances::{Drained, InstanceSetup, Instances};
pub use meter::{Meter, Metered};
pub use quota::{DirectoryQuota, DirectoryUsage};
pub use stats::SandboxStats;
