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
use super::compiler::Compiler;
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
        let sandbox = self.clone();
        let compiled = match self.compiler() {
            Compiler::Process(process) if !is_trusted => {
                let limits = process.limits.within(patience);
                let flag = self.options().meter.is_some().then_some("--fuel");
                let compiled = process::run(&process.program, limits, flag, bytes).await?;
                let compiled = compiled.map_err(|text| AdmissionError::unreadable(&text))?;
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
