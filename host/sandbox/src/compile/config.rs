//! Checks of configurations against the schemas of providers, which are not trusted: a small one
//! can ask for years of comparisons. They are done where components are compiled.

use std::sync::Arc;
use std::time::Duration;

use memhost_config_schema::ConfigError;
use serde_json::Value;
use tokio::sync::Semaphore;

use super::process;
use crate::compiler::{CompileLimits, CompileStop, Compiler};
use crate::engine::Sandbox;
use crate::error::AdmissionError;

/// The limits of one check. An ordinary one takes a thousandth of them.
const LIMITS: CompileLimits =
    CompileLimits { time: Duration::from_secs(10), cpu_seconds: 2, memory_bytes: 1 << 30 };
/// How many checks are done at a time.
static TURNS: Semaphore = Semaphore::const_new(2);

/// Why a configuration could not be checked.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigCheckError {
    /// The schema cannot be used, and why: its author must mend it.
    #[error("{0}")]
    Schema(String),
    /// The host could not do the check.
    #[error("a configuration could not be checked against its schema: {0}")]
    Host(String),
}

impl Sandbox {
    /// The errors of a configuration by the JSON Schema of its provider, 32 at most. It is valid if
    /// there are none. With [`Compiler::Process`] this has limits: 2 s of computing and 1 GiB.
    ///
    /// # Errors
    /// Where the schema itself cannot be used, or the host cannot do the check.
    pub async fn config_errors(
        &self,
        schema: &Value,
        config: &Value,
    ) -> Result<Vec<ConfigError>, ConfigCheckError> {
        let failed = |error: &dyn std::fmt::Display| ConfigCheckError::Host(error.to_string());
        let Compiler::Process(process) = self.compiler() else {
            let (schema, config) = (schema.clone(), config.clone());
            let check = move || memhost_config_schema::errors(&schema, &config);
            let checked = memhost_executor::spawn_blocking(check).await;
            return checked.map_err(|error| failed(&error))?.map_err(ConfigCheckError::Schema);
        };
        let bytes = serde_json::to_vec(&(schema, config)).map_err(|error| failed(&error))?;
        let _turn = TURNS.acquire().await.map_err(|error| failed(&error))?;
        let checked = process::run(&process.program, LIMITS, &["--config"], Arc::new(bytes)).await;
        let errors = checked.map_err(|error| match error {
            AdmissionError::NotCompiled { stop: CompileStop::Crash, message, .. } => {
                ConfigCheckError::Schema(format!(
                    "checking a configuration with it failed: {message}"
                ))
            }
            AdmissionError::NotCompiled { limits, .. } => {
                let (cpu, clock) = (limits.cpu_seconds, limits.time.as_secs());
                ConfigCheckError::Schema(format!(
                    "checking a configuration with it takes more than {cpu} s of computing, \
                     {clock} s by the clock or 1 GiB"
                ))
            }
            other => failed(&other),
        })?;
        let errors = errors.map_err(ConfigCheckError::Schema)?;
        serde_json::from_slice(&errors).map_err(|error| failed(&error))
    }
}
