//! Building a project's component.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::{CliError, Result};

/// How a project is built.
pub(super) struct Build {
    project: PathBuf,
    /// A command and what it makes, instead of cargo.
    other: Option<(String, PathBuf)>,
}

impl Build {
    /// The build of a project: with cargo, unless another command is given.
    pub(super) fn of(
        project: &Path,
        command: Option<&str>,
        artifact: Option<&Path>,
    ) -> Result<Self> {
        let other = command
            .zip(artifact)
            .map(|(command, artifact)| (command.to_owned(), project.join(artifact)));
        if other.is_none() && !project.join("Cargo.toml").is_file() {
            let message = format!(
                "{} has no Cargo.toml; give a project that `memhost plugin new` made, or \
                 --build-command and --artifact",
                project.display()
            );
            return Err(CliError::input("PROJECT", message));
        }
        Ok(Self { project: project.to_owned(), other })
    }

    /// The output of the author's build command, which does not count as a change of the project.
    pub(super) fn artifact(&self) -> Option<&Path> {
        self.other.as_ref().map(|(_, artifact)| artifact.as_path())
    }

    /// Builds. None if the build failed; the compiler has explained it on standard error.
    pub(super) async fn run(&self) -> Result<Option<PathBuf>> {
        let (mut command, named) = match &self.other {
            Some((text, _)) => {
                let mut command = Command::new("sh");
                command.arg("-c").arg(text);
                (command, text.as_str())
            }
            None => {
                let mut command =
                    Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
                command.args(["build", "--release", "--target", "wasm32-wasip2"]);
                command.args(["--message-format", "json-render-diagnostics"]);
                (command, "cargo")
            }
        };
        command
            .current_dir(&self.project)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit());
        let missing = |error: &dyn std::fmt::Display| {
            CliError::host(format!("{named} could not be started: {error}"))
        };
        let done = tokio::task::spawn_blocking(move || command.output())
            .await
            .map_err(|error| missing(&error))?;
        let done = done.map_err(|error| missing(&error))?;
        if !done.status.success() {
            return Ok(None);
        }
        match &self.other {
            Some((_, artifact)) => Ok(Some(artifact.clone())),
            None => component(&done.stdout).map(Some).ok_or_else(|| {
                let message =
                    "no package makes a component; add crate-type = [\"cdylib\"] to [lib]";
                CliError::input("PROJECT", format!("{}: {message}", self.project.display()))
            }),
        }
    }
}

/// The last component that cargo says it has made.
fn component(messages: &[u8]) -> Option<PathBuf> {
    let messages = messages
        .split(|byte| *byte == b'\n')
        .filter_map(|line| serde_json::from_slice::<Value>(line).ok());
    let mut made =
        messages.filter(|message| message["reason"] == "compiler-artifact").filter_map(|message| {
            let files = message["filenames"].as_array()?;
            files
                .iter()
                .filter_map(Value::as_str)
                .find(|file| file.ends_with(".wasm"))
                .map(PathBuf::from)
        });
    made.next_back()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_component_is_what_cargo_made_last() {
        let messages = br#"{"reason":"compiler-artifact","filenames":["/t/libserde.rlib"]}
{"reason":"compiler-artifact","filenames":["/t/libnotes.rlib","/t/notes.wasm"]}
{"reason":"build-finished","success":true}
"#;
        assert_eq!(component(messages), Some(PathBuf::from("/t/notes.wasm")));
        assert_eq!(component(b"no json\n"), None);
    }

    #[tokio::test]
    async fn a_build_that_fails_makes_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let build = |command: &str| {
            Build::of(directory.path(), Some(command), Some(Path::new("a.wasm"))).unwrap()
        };
        assert_eq!(build("exit 3").run().await.unwrap(), None);
        assert_eq!(build("true").run().await.unwrap(), Some(directory.path().join("a.wasm")));
        assert!(Build::of(directory.path(), None, None).is_err(), "there is no Cargo.toml");
    }
}
