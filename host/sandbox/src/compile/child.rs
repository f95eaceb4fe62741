//! The child's side: limits itself, reads a component or a configuration, and answers its compiled
//! form or its errors.

use std::io::{self, Read, Write};

use rustix::process::{Resource, Rlimit, nice, setrlimit};
use serde_json::Value;
use wasmtime::Engine;

use crate::component::MAX_COMPONENT_BYTES;
use crate::engine;

/// The first byte of an answer: the compiled form follows, or the errors as JSON.
pub(super) const DONE: u8 = 0;
/// The first byte of an answer: why it cannot be done follows.
pub(super) const UNREADABLE: u8 = 1;

/// How much less important compiling is than serving.
const NICENESS: i32 = 10;

/// The instructions for a process that compiles one component, or checks one configuration.
#[derive(Debug, Clone, Copy)]
pub struct CompileSetup {
    /// Bytes of address space.
    pub memory_bytes: u64,
    /// Seconds of computing, on all cores together.
    pub cpu_seconds: u64,
    /// Whether the code counts the instructions that it executes.
    pub measures_fuel: bool,
    /// Whether the host waits for it: it has the priority of serving.
    pub is_urgent: bool,
    /// Whether the input is a schema and a configuration, in a list of JSON.
    pub checks_config: bool,
}

/// Compiles the component on the standard input, in a process that was started for this: 8 bytes of
/// length, then as many bytes. The answer on the standard output is one byte, 0 or 1, and the
/// compiled form or the reason why there is none. A configuration is checked in the same way: the
/// answer is its errors. The process gets the limits, and ends where its input does: then the host
/// is gone.
///
/// # Errors
/// Where a limit cannot be set, or the input or the output breaks.
pub fn compile_component(setup: CompileSetup) -> io::Result<()> {
    limit(Resource::Core, 0, 0)?;
    limit(Resource::As, setup.memory_bytes, setup.memory_bytes)?;
    // At the first limit there is a signal that says why, and a second later an end without one.
    limit(Resource::Cpu, setup.cpu_seconds, setup.cpu_seconds.saturating_add(1))?;
    if !setup.is_urgent {
        // Without it compiling competes with calls; it is no reason to fail.
        let _ = nice(NICENESS);
    }
    let mut input = io::stdin().lock();
    let mut length = [0; 8];
    input.read_exact(&mut length)?;
    let length = u64::from_le_bytes(length);
    if length > MAX_COMPONENT_BYTES {
        return Err(io::Error::other(format!(
            "the component has {length} bytes; at most {MAX_COMPONENT_BYTES}"
        )));
    }
    let mut bytes = Vec::new();
    input.by_ref().take(length).read_to_end(&mut bytes)?;
    drop(input);
    std::thread::Builder::new().spawn(|| {
        let _ = io::copy(&mut io::stdin().lock(), &mut io::sink());
        std::process::exit(1);
    })?;
    let done = match setup.checks_config {
        true => check_config(&bytes),
        false => Engine::new(&engine::code_config(setup.measures_fuel))
            .and_then(|engine| engine.precompile_component(&bytes))
            .map_err(|error| format!("{:#}", error.root_cause())),
    };
    let mut out = io::stdout().lock();
    match done {
        Ok(done) => out.write_all(&[DONE]).and_then(|()| out.write_all(&done))?,
        Err(message) => {
            out.write_all(&[UNREADABLE]).and_then(|()| out.write_all(message.as_bytes()))?;
        }
    }
    out.flush()
}

fn check_config(bytes: &[u8]) -> Result<Vec<u8>, String> {
    let text = |error: serde_json::Error| error.to_string();
    let (schema, config): (Value, Value) = serde_json::from_slice(bytes).map_err(text)?;
    serde_json::to_vec(&memhost_config_schema::errors(&schema, &config)?).map_err(text)
}

fn limit(resource: Resource, current: u64, maximum: u64) -> io::Result<()> {
    Ok(setrlimit(resource, Rlimit { current: Some(current), maximum: Some(maximum) })?)
}
