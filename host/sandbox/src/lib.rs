//! Runs providers without trusting them: the wasmtime engine, the instances of each binding, their
//! limits, and the host's side of every import. Only this crate names wasmtime. It knows the
//! contract, but not what a binding means: it gets a configuration, a storage and a directory.

mod admission;
mod answer;
mod cache;
mod calls;
mod carried;
mod clocks;
mod compile;
mod compiler;
mod component;
mod computing;
mod contract;
mod convert;
mod declared;
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
mod open_files;
mod optional;
mod pool;
mod quota;
mod stats;
mod ticker;

pub use answer::{Answer, CaptureAnswer, ForgetAnswer, ListAnswer, QueryAnswer, RecordsAnswer};
pub use cache::CacheKey;
pub use carried::carry_compiled;
pub use compile::{CompileSetup, ConfigCheckError, compile_component};
pub use compiler::{CompileLimits, CompileStop, Compiler, CompilerProcess};
pub use component::{Component, Inspection, MAX_COMPONENT_BYTES};
pub use contract::OptionalInterface;
pub use egress::{Egress, GrantedSecret, Secret, SecretError, Secrets};
pub use engine::{Sandbox, SandboxOptions};
pub use error::{AdmissionError, CallError, Failure, LimitKind};
pub use instance::{Directory, DirectoryAccess, InstanceSetup};
pub use instances::{Drained, Instances, LeftOut};
pub use meter::{Meter, Metered};
pub use optional::*;
pub use quota::{DirectoryQuota, DirectoryUsage};
pub use stats::SandboxStats;
