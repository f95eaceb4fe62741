//! The parent's side: starts the compiler, gives it the component, and ends it when its time is up
//! or nobody waits for it.

use std::io::{Read, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::oneshot;

use super::child::{DONE, UNREADABLE};
use crate::compiler::{CompileLimits, CompileStop};
use crate::error::AdmissionError;

/// The most bytes of compiled code that are read.
const MAX_COMPILED_BYTES: u64 = 512 << 20;
/// How much of what the compiler says about its own failure is kept, in bytes.
const MAX_MESSAGE_BYTES: u64 = 4 << 10;
/// The most threads of one compiler: each takes address space for its stack and its heap.
const MAX_THREADS: usize = 4;

/// Gives a component, or a configuration with its schema, to a process of its own, which ends with
/// this future. `flags` say which it is, beside the limits. The answer is what the process made of
/// it, or why it made nothing.
pub(super) async fn run(
    program: &Path,
    limits: CompileLimits,
    flags: &[&str],
    bytes: Arc<Vec<u8>>,
) -> Result<Result<Vec<u8>, String>, AdmissionError> {
    let command = command(program, limits, flags);
    let running = Running::default();
    let (done, waiting) = oneshot::channel();
    let work = running.clone();
    // A thread of its own: the runtime's end waits for its blocking threads, and must not wait for
    // a compiler.
    std::thread::Builder::new()
        .name("memhost-compile".to_owned())
        // The receiver is gone where nobody waits any more.
        .spawn(move || drop(done.send(work.run(command, &bytes))))
        .map_err(|error| failed(program, &error))?;
    let _ended_with_this_future = KillOnDrop(running);
    let ended = tokio::time::timeout(limits.time, waiting).await;
    let stopped = |stop| Err(AdmissionError::NotCompiled { stop, limits, message: String::new() });
    match ended {
        Err(_) => stopped(CompileStop::Time),
        Ok(Err(_)) => stopped(CompileStop::Crash),
        Ok(Ok(Err(error))) => Err(failed(program, &error)),
        Ok(Ok(Ok(ended))) => ended.result(limits),
    }
}

fn failed(program: &Path, error: &std::io::Error) -> AdmissionError {
    AdmissionError::io("starting", format!("the compiler {}", program.display()), error)
}

fn command(program: &Path, limits: CompileLimits, flags: &[&str]) -> Command {
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let mut command = Command::new(program);
    command
        .arg0("memhost")
        .arg("compile-component")
        .args([
            "--memory-bytes",
            &limits.memory_bytes.to_string(),
            "--cpu-seconds",
            &limits.cpu_seconds.to_string(),
        ])
        // It gets nothing of the host's: no keys and tokens in variables, no signals of its
        // terminal.
        .args(flags)
        .env_clear()
        .env("RAYON_NUM_THREADS", cores.min(MAX_THREADS).to_string())
        // The limit counts address space, and the program's allocator would keep the part that it
        // has freed.
        .env("_RJEM_MALLOC_CONF", "retain:false")
        .process_group(0)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// A compiler that may run.
#[derive(Clone, Default)]
struct Running(Arc<Mutex<Stage>>);

#[derive(Default)]
enum Stage {
    #[default]
    Starting,
    Runs(Child),
    /// It ended, or must not begin.
    Ended,
}

struct KillOnDrop(Running);

impl Drop for KillOnDrop {
    fn drop(&mut self) {
        let stage = std::mem::replace(&mut *self.0.0.lock(), Stage::Ended);
        if let Stage::Runs(mut child) = stage {
            let _ = child.kill();
            // The process is gone within moments, but this may be an executor's thread.
            let _ = std::thread::Builder::new().spawn(move || child.wait());
        }
    }
}

/// How a compiler ended, and what it wrote.
struct Ended {
    status: Option<ExitStatus>,
    out: Option<(u8, Vec<u8>)>,
    message: String,
}

impl Running {
    /// Runs the compiler to its end. Blocks.
    fn run(&self, mut command: Command, bytes: &[u8]) -> std::io::Result<Ended> {
        let pipes = {
            let mut stage = self.0.lock();
            if matches!(*stage, Stage::Ended) {
                return Ok(Ended { status: None, out: None, message: String::new() });
            }
            let mut child = command.spawn()?;
            let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
            *stage = Stage::Runs(child);
            pipes
        };
        let (Some(stdin), Some(stdout), Some(mut stderr)) = pipes else {
            return Err(std::io::Error::other("it has no pipes"));
        };
        let (out, message) = std::thread::scope(|scope| {
            // The input stays open until the output has ended: its end would tell the compiler that
            // the host is gone.
            let input = scope.spawn(move || give(stdin, bytes));
            let said = scope.spawn(move || {
                let mut message = Vec::new();
                let _ = stderr.by_ref().take(MAX_MESSAGE_BYTES).read_to_end(&mut message);
                let _ = std::io::copy(&mut stderr, &mut std::io::sink());
                String::from_utf8_lossy(&message).into_owned()
            });
            let out = take(stdout);
            self.kill();
            drop(input.join());
            (out, said.join().unwrap_or_default())
        });
        let stage = std::mem::replace(&mut *self.0.lock(), Stage::Ended);
        let status = match stage {
            Stage::Runs(mut child) => Some(child.wait()?),
            _ => None,
        };
        Ok(Ended { status, out: out?, message })
    }
}

impl Running {
    /// Ends the compiler. It has ended already, unless it wrote too much or closed its output
    /// itself.
    fn kill(&self) {
        if let Stage::Runs(child) = &mut *self.0.lock() {
            let _ = child.kill();
        }
    }
}

/// Writes the length and the bytes. An error means that the compiler has ended, which its status
/// explains.
fn give(mut stdin: ChildStdin, bytes: &[u8]) -> ChildStdin {
    let _ =
        stdin.write_all(&(bytes.len() as u64).to_le_bytes()).and_then(|()| stdin.write_all(bytes));
    stdin
}

/// The first byte, which says what the others are, and the others.
fn take(mut stdout: ChildStdout) -> std::io::Result<Option<(u8, Vec<u8>)>> {
    let mut kind = [0];
    if stdout.read(&mut kind)? == 0 {
        return Ok(None);
    }
    let mut rest = Vec::new();
    stdout.take(MAX_COMPILED_BYTES + 1).read_to_end(&mut rest)?;
    Ok(Some((kind[0], rest)))
}

impl Ended {
    fn result(self, limits: CompileLimits) -> Result<Result<Vec<u8>, String>, AdmissionError> {
        const SIGABRT: i32 = 6;
        const SIGXCPU: i32 = 24;
        let message = self.message.lines().last().unwrap_or_default().trim().to_owned();
        let stopped =
            |stop| Err(AdmissionError::NotCompiled { stop, limits, message: message.clone() });
        if self.out.as_ref().is_some_and(|(_, bytes)| bytes.len() as u64 > MAX_COMPILED_BYTES) {
            return stopped(CompileStop::Memory);
        }
        let Some(status) = self.status else { return stopped(CompileStop::Crash) };
        if status.signal() == Some(SIGXCPU) {
            return stopped(CompileStop::Cpu);
        }
        // What the allocator and the system say where a limit on memory is reached.
        let lacks_memory = ["memory allocation of", "annot allocate memory"]
            .iter()
            .any(|text| self.message.contains(text));
        if lacks_memory && (status.signal() == Some(SIGABRT) || !status.success()) {
            return stopped(CompileStop::Memory);
        }
        if !status.success() {
            return Err(AdmissionError::NotCompiled {
                stop: CompileStop::Crash,
                limits,
                message: if message.is_empty() { status.to_string() } else { message },
            });
        }
        match self.out {
            Some((DONE, done)) => Ok(Ok(done)),
            Some((UNREADABLE, text)) => Ok(Err(String::from_utf8_lossy(&text).into_owned())),
            _ => stopped(CompileStop::Crash),
        }
    }
}
