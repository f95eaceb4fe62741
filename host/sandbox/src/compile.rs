//! Where components are compiled. Compiling takes time and memory that a hostile component chooses:
//! thirteen kilobytes can keep a compiler busy for minutes. In a process of its own it has limits
//! and can be killed.

use std::sync::Arc;
use std::time::Duration;

mod child;
mod config;
mod process;

pub use self::child::{CompileSetup, compile_component};
pub use self::config::ConfigCheckError;
use super::compiler::{Compiler, CompilerProcess};
use super::engine::Sandbox;
use super::error::AdmissionError;

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

    /// Compiles a component, with at most `patience` of computing if that is less than the limit
    /// and the compiler can be stopped.
    pub(super) async fn compile(
        &self,
        bytes: Arc<Vec<u8>>,
        patience: Duration,
        is_trusted: bool,
    ) -> Result<Compiled, AdmissionError> {
        let started = std::time::Instant::now();
        if is_trusted {
            self.options().compiles_own.send_replace(true);
        }
        let sandbox = self.clone();
        let compiled = match self.compiler() {
            Compiler::Process(process) => {
                let done = self.in_another_process(process, &bytes, patience, is_trusted).await;
                match done {
                    // The host needs its own component, also where no process can be started.
                    Err(error) if is_trusted => {
                        tracing::warn!(%error, "the built-in provider is compiled in the host's \
                            own process, because the compiler process failed");
                        blocking(move || in_process(&sandbox, &bytes)).await?
                    }
                    done => done?,
                }
            }
            Compiler::InProcess => blocking(move || in_process(&sandbox, &bytes)).await?,
        };
        self.counters().compiled(started.elapsed());
        Ok(compiled)
    }

    /// The memory that compiling takes ends with the process: the allocator of this one would keep
    /// tens of megabytes of it.
    async fn in_another_process(
        &self,
        process: &CompilerProcess,
        bytes: &Arc<Vec<u8>>,
        patience: Duration,
        is_trusted: bool,
    ) -> Result<Compiled, AdmissionError> {
        let limits = process.limits.within(patience);
        let fuel = self.options().meter.is_some().then_some("--fuel");
        // Nothing serves before it.
        let urgent = is_trusted.then_some("--urgent");
        let flags: Vec<&str> = fuel.into_iter().chain(urgent).collect();
        let compiled = process::run(&process.program, limits, &flags, Arc::clone(bytes)).await?;
        let compiled = compiled.map_err(|text| AdmissionError::unreadable(&text))?;
        let sandbox = self.clone();
        blocking(move || load(&sandbox, compiled)).await
    }
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, AdmissionError> + Send + 'static,
) -> Result<T, AdmissionError> {
    let done = memhost_executor::spawn_blocking(work).await;
    done.map_err(|error| AdmissionError::io("compiling", "the component", error))?
}

fn in_process(sandbox: &Sandbox, bytes: &[u8]) -> Result<Compiled, AdmissionError> {
    let component = wasmtime::component::Component::from_binary(&sandbox.0.engine, bytes);
    let component = component
        .map_err(|error| AdmissionError::unreadable(&format!("{:#}", error.root_cause())))?;
    Ok(Compiled { component, bytes: None })
}

#[allow(unsafe_code, reason = "the only way to load compiled code; see the comment at the call")]
fn load(sandbox: &Sandbox, compiled: Vec<u8>) -> Result<Compiled, AdmissionError> {
    // SAFETY: `deserialize` trusts its bytes. These came through a pipe from the compiler that this
    // process started, which is the program that the operator named, and are trusted as what this
    // process compiles itself.
    let loaded =
        unsafe { wasmtime::component::Component::deserialize(&sandbox.0.engine, &compiled) };
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
