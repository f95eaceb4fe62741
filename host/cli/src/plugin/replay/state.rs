//! What is stored when a recorded operation is asked again: a copy of a data directory or of a backup, the records that
//! a running host lists, or nothing.

use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::ReplayArgs;
use crate::context::Target;
use crate::output::{escape, text};
use crate::page::items;
use crate::plugin::trial::{self, Trial};
use crate::session::Session;
use crate::{Backend, CliError};
use memhost_core::restore_backup;

/// More records than these are not taken from a running host.
const MOST_RECORDS: usize = 10_000;
/// So many are read and written at once.
const PAGE: usize = 500;

/// What is known of the operation, and what is stored.
pub(super) struct State {
    pub(super) operation: Value,
    pub(super) binding: Value,
    /// Description.
    pub(super) about: String,
    /// The build that answered last, where it is there.
    pub(super) build: Option<PathBuf>,
    records: Vec<Value>,
}

impl State {
    /// Reads the operation; a copied state is in the directories `before` and `after` of `scratch` then.
    pub(super) async fn take(args: &ReplayArgs, scratch: &Path) -> Result<Self, CliError> {
        let copies = [scratch.join("before"), scratch.join("after")];
        let about = match (&args.backup, &args.company.host.data_dir) {
            (Some(backup), _) => {
                for copy in &copies {
                    restore_backup(backup, &copy.join("data")).map_err(CliError::host)?;
                }
                format!("a copy of the backup {}", backup.display())
            }
            (None, Some(data_dir)) => {
                copy_stopped(data_dir, &copies)?;
                format!("a copy of {}", data_dir.display())
            }
            (None, None) => return Self::of_running(args).await,
        };
        Self::of_copy(args, &copies[0], about).await
    }

    async fn of_copy(args: &ReplayArgs, copy: &Path, about: String) -> Result<Self, CliError> {
        let company = match &args.company.company {
            Some(company) => Some(company.clone()),
            None => Target::of(&args.company.host)?.company,
        };
        let missing = || CliError::input("--company", "is missing; give it, or set MEMHOST_COMPANY");
        let company = company.ok_or_else(missing)?;
        let service = trial::quiet(copy).await?;
        let session =
            Session { host: Backend::of(service), format: args.company.host.output.format(), company, agent: None };
        let (operation, binding) = known(args, &session).await?;
        // Its builds are kept by their digests.
        let digest = text(&binding, "/serving/digest").replace(':', "-");
        let build = copy.join("data/components").join(format!("{digest}.wasm"));
        let build = Some(build).filter(|build| !digest.is_empty() && build.is_file());
        Ok(Self { operation, binding, about, build, records: Vec::new() })
    }

    async fn of_running(args: &ReplayArgs) -> Result<Self, CliError> {
        let session = args.company.open().await?;
        let (operation, binding) = known(args, &session).await?;
        let (mut records, mut cursor) = (Vec::new(), Value::Null);
        while !args.empty && records.len() < MOST_RECORDS {
            let mut body = json!({
                "scope": { "companyId": session.company }, "bindingKey": binding["key"], "limit": PAGE,
            });
            if !cursor.is_null() {
                body["cursor"] = cursor;
            }
            let page = session.host.post(&session.runtime("list"), &body).await?;
            records.extend_from_slice(items(&page, "items"));
            cursor = page["nextCursor"].clone();
            if cursor.is_null() {
                break;
            }
        }
        let about = match args.empty {
            true => "an empty store".to_owned(),
            false => format!(
                "the {}{} records that the host lists, without agents and other data of the provider; --data-dir or \
                 --backup uses all data",
                if cursor.is_null() { "" } else { "first " },
                records.len()
            ),
        };
        Ok(Self { operation, binding, about, build: None, records })
    }

    /// Writes the listed records through the provider.
    pub(super) async fn fill(&self, trial: &Trial) -> Result<(), CliError> {
        let path = format!("/runtime/v1/companies/{}/records", escape(trial.company.as_str()));
        let of_one_source = self.records.chunk_by(|one, next| one["source"] == next["source"]);
        for records in of_one_source.flat_map(|records| records.chunks(PAGE)) {
            let written: Vec<Value> = records.iter().map(record).collect();
            let mut body = json!({
                "scope": { "companyId": trial.company }, "bindingKey": trial.key, "records": written,
            });
            if !records[0]["source"].is_null() {
                body["source"] = records[0]["source"].clone();
            }
            trial.host.post(&path, &body).await?;
        }
        Ok(())
    }
}

fn record(snippet: &Value) -> Value {
    let mut record = json!({ "id": snippet["handle"]["providerRecordId"], "text": snippet["text"] });
    for name in ["summary", "metadata"] {
        if !snippet[name].is_null() {
            record[name] = snippet[name].clone();
        }
    }
    record
}

/// The operation, and the binding that it went to.
async fn known(args: &ReplayArgs, session: &Session) -> Result<(Value, Value), CliError> {
    let operation = session.get(&format!("operations/{}", escape(&args.id))).await?;
    let key = text(&operation, "/bindingKey");
    if key.is_empty() {
        let message = format!("{} reached no binding, so there is nothing to ask again", args.id);
        return Err(CliError::input("OPERATION", message));
    }
    let binding = session.get(&format!("bindings/{}", escape(&key))).await?;
    Ok((operation, binding))
}

/// Copies a data directory while nobody else has it.
fn copy_stopped(data_dir: &Path, copies: &[PathBuf]) -> Result<(), CliError> {
    let wrong = |message: String| CliError::input("--data-dir", format!("{}: {message}", data_dir.display()));
    let lock = File::options().write(true).open(data_dir.join("LOCK"));
    let lock = lock.map_err(|error| wrong(format!("is no data directory of a host: {error}")))?;
    match lock.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            let message = "a host has it; name that host with --url, or make a backup of it and take --backup";
            return Err(wrong(message.to_owned()));
        }
        Err(TryLockError::Error(error)) => return Err(wrong(error.to_string())),
    }
    copies.iter().try_for_each(|copy| copy_all(data_dir, &copy.join("data")).map_err(|error| wrong(error.to_string())))
}

fn copy_all(from: &Path, to: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(to)?;
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        let (kind, target) = (entry.file_type()?, to.join(entry.file_name()));
        if kind.is_dir() {
            copy_all(&entry.path(), &target)?;
        } else if kind.is_file() && entry.file_name() != "LOCK" {
            std::fs::copy(entry.path(), target)?;
        }
    }
    std::fs::set_permissions(to, std::fs::metadata(from)?.permissions())
}
