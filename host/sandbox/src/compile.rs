//! Where components are compiled. Compiling takes time and memory that a hostile component chooses: thirteen kilobytes can
//! keep a compiler busy for minutes. In a process of its own it has limits and can be killed.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

mod child;
mod process;

pub use self::child::{CompileSetup, compile_component};
use super::engine::Sandbox;
use super::error::AdmissionError;

/// How much longer computing may take on a machine that has other work, too.
const WALL_CLOCK: u32 = 5;

/// Where components are compiled.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Compiler {
    /// In this process, on a blocking thread. Nothing limits it and nothing can end it: a component that was made to
    /// compile slowly keeps a core, and as much memory as it asks for, until the process ends. Only for components that
    /// are trusted.
    #[default]
    InProcess,
    /// In a process of its own, within limits.
    Process(CompilerProcess),
}

/// A program that compiles, and its limits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompilerProcess {
    /// The program `memhost` of this version. It is called with `compile-component`.
    pub program: PathBuf,
    /// What one component may use.
    pub limits: CompileLimits,
}

/// What compiling one component may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CompileLimits {
    /// How long it may take.
    pub time: Duration,
    /// Seconds of computing, on all cores together.
    pub cpu_seconds: u64,
    /// Bytes of address space.
    pub memory_bytes: u64,
}

impl Default for CompileLimits {
    fn default() -> Self {
        Self { time: Duration::from_secs(30), cpu_seconds: 60, memory_bytes: 2 << 30 }
    }
}

impl CompileLimits {
    /// The same for a try that ends after so much computing.
    fn within(self, patience: Duration) -> Self {
        Self {
            time: self.time.min(patience.saturating_mul(WALL_CLOCK)),
            cpu_seconds: self.cpu_seconds.min(patience.as_secs().max(1)),
            ..self
        }
    }

    /// Whether one of these limits is higher than that of `other`.
    pub fn exceeds(&self, other: &Self) -> bool {
        self.time > other.time || self.cpu_seconds > other.cpu_seconds || self.memory_bytes > other.memory_bytes
    }
}

impl CompilerProcess {
    /// The program of this process, with the default limits. Only for `memhost` itself, and for programs that answer to
    /// `compile-component` as it does.
    ///
    /// # Errors
    /// Where the system does not say which program this is.
    pub fn this_program() -> std::io::Result<Self> {
        // The running program, also where its file was replaced: another version's code could not be loaded.
        let running = Path::new("/proc/self/exe");
        let program = if running.exists() { running.to_owned() } else { std::env::current_exe()? };
        Ok(Self { program, limits: CompileLimits::default() })
    }
}

/// What stopped a compiler.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CompileStop {
    /// It took too long.
    Time,
    /// It computed for too long.
    Cpu,
    /// It wanted too much memory.
    Memory,
    /// It crashed, or somebody else ended it.
    Crash,
}

/// A compiled component, and its bytes for the cache where they are known already.
pub(super) struct Compiled {
    pub(super) component: wasmtime::component::Component,
    pub(super) bytes: Option<Vec<u8>>,
}

impl Sandbox {
    /// How components are compiled.
    pub fn compiler(&self) -> &Compiler {
        &self.options().compiler
    }

    /// Compiles a component, with at most `patience` of computing if that is less than the limit and the compiler can be
    /// stopped.
    pub(super) async fn compile(
        &self,
        bytes: Arc<Vec<u8>>,
        patience: Duration,
        is_trusted: bool,
    ) -> Result<Compiled, AdmissionError> {
        let started = std::time::Instant::now();
        let sandbox = self.clone();
        let compiled = match self.compiler() {
            Compiler::Process(process) if !is_trusted => {
                let limits = process.limits.within(patience);
                let measures_fuel = self.options().meter.is_some();
                let compiled = process::compile(&process.program, limits, measures_fuel, bytes).await?;
                blocking(move || load(&sandbox, compiled)).await?
            }
            _ => blocking(move || in_process(&sandbox, &bytes)).await?,
        };
        self.counters().compiled(started.elapsed());
        Ok(compiled)
    }
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, AdmissionError> + Send + 'static,
) -> Result<T, AdmissionError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|error| AdmissionError::io("compiling", "the component", error))?
}

fn in_process(sandbox: &Sandbox, bytes: &[u8]) -> Result<Compiled, AdmissionError> {
    let component = wasmtime::component::Component::from_binary(&sandbox.0.engine, bytes);
    let component = component.map_err(|error| AdmissionError::unreadable(&format!("{:#}", error.root_cause())))?;
    Ok(Compiled { component, bytes: None })
}

#[allow(unsafe_code, reason = "the only way to load compiled code; see the comment at the call")]
fn load(sandbox: &Sandbox, compiled: Vec<u8>) -> Result<Compiled, AdmissionError> {
    // SAFETY: `deserialize` trusts its bytes. These came through a pipe from the compiler that this process started, which
    // is the program that the operator named, and are trusted as what this process compiles itself.
    let loaded = unsafe { wasmtime::component::Component::deserialize(&sandbox.0.engine, &compiled) };
    match loaded {
        Ok(component) => Ok(Compiled { component, bytes: Some(compiled) }),
        Err(error) => {
            let message = format!("{:#}", error.root_cause());
            match message.contains("exceeds") {
                true => Err(AdmissionError::unreadable(&message)),
                false => Err(AdmissionError::OtherCompiler { message }),
            }
        }
    }
}
