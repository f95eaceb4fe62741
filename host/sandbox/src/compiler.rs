//! Where components are compiled, within which limits, and what stopped a compiler.

use std::path::{Path, PathBuf};
use std::time::Duration;

/// How much longer computing may take on a machine that has other work, too.
const WALL_CLOCK: u32 = 5;

/// Where components are compiled.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Compiler {
    /// In this process, on a blocking thread. Nothing limits it and nothing can end it: a component
    /// that was made to compile slowly keeps a core, and as much memory as it asks for, until the
    /// process ends. Only for components that are trusted.
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
    /// The limits of one component.
    pub limits: CompileLimits,
}

/// The limits of compiling one component.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CompileLimits {
    /// How long it may take by the clock. Compiling has a low priority, so that on a busy machine
    /// this is several times the computing.
    pub time: Duration,
    /// Seconds of computing, on all cores together.
    pub cpu_seconds: u64,
    /// Bytes of address space.
    pub memory_bytes: u64,
}

impl Default for CompileLimits {
    fn default() -> Self {
        let cpu_seconds = 60;
        let time = Duration::from_secs(cpu_seconds).saturating_mul(WALL_CLOCK);
        Self { time, cpu_seconds, memory_bytes: 2 << 30 }
    }
}

impl CompileLimits {
    /// The same for a try that ends after so much computing.
    pub(super) fn within(self, patience: Duration) -> Self {
        Self {
            time: self.time.min(patience.saturating_mul(WALL_CLOCK)),
            cpu_seconds: self.cpu_seconds.min(patience.as_secs().max(1)),
            ..self
        }
    }

    /// Whether one of these limits is higher than that of `other`.
    pub fn exceeds(&self, other: &Self) -> bool {
        self.time > other.time
            || self.cpu_seconds > other.cpu_seconds
            || self.memory_bytes > other.memory_bytes
    }
}

impl CompilerProcess {
    /// The program of this process, with the default limits. Only for `memhost` itself, and for
    /// programs that answer to `compile-component` as it does.
    ///
    /// # Errors
    /// Where the system does not say which program this is.
    pub fn this_program() -> std::io::Result<Self> {
        // The running program, also where its file was replaced: another version's code could not
        // be loaded.
        let running = Path::new("/proc/self/exe");
        let program = if running.exists() { running.to_owned() } else { std::env::current_exe()? };
        Ok(Self { program, limits: CompileLimits::default() })
    }
}

/// The limit that stopped a compiler.
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

#[cfg(test)]
mod tests {
    use super::*;

    /// What a component may compute, it can also compute beside other work.
    #[test]
    fn the_default_time_leaves_room_for_other_work() {
        let limits = CompileLimits::default();
        assert!(limits.time >= Duration::from_secs(limits.cpu_seconds) * 5, "{limits:?}");
    }
}
