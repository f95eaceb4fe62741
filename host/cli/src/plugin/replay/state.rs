//! The stored data on which a recorded operation is repeated: a copy of a data directory or a
//! backup, the records that a running host lists, or nothing.

use std::ffi::OsStr;
use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::ReplayArgs;
use crate::argument::without_nulls;
use crate::connection::Connection;
use crate::output::{escape, text};
use crate::page::{items, next_cursor};
use crate::plugin::trial::{self, Trial};
use crate::session::Session;
use crate::{Backend, CliError};
use memhost_core::restore_backup;
use memhost_files::{Copied, Directory, durable};
use memhost_types::Pages;

/// The most records that are copied from a running host.
const MOST_RECORDS: usize = 10_000;
/// The number of records in one request.
const PAGE: usize = 500;

/// The operation, its binding, and the stored data.
pub(super) struct State {
    pub(super) operation: Value,
    pub(super) binding: Value,
    /// A description of the data.
    pub(super) about: String,
    /// The build that serves the binding, if the copy has it.
    pub(super) build: Option<PathBuf>,
    records: Vec<Value>,
}

impl State {
    /// Reads the operation. Copied data goes to the directories `before` and `after` of `scratch`.
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
        let connection = Connection::of(&args.company.host)?;
        let missing =
            || CliError::input("--company", "is missing; give it, or set MEMHOST_COMPANY");
        let company = args.company.named(&connection).ok_or_else(missing)?;
        let service = trial::without_background(copy).await?;
        let (host, format) = (Backend::of(service), args.company.host.output.format());
        let session = Session { host, format, company, agent: None, connection };
        let (operation, binding) = known(args, &session).await?;
        let digest = text(&binding, "/serving/digest").replace(':', "-");
        let build = copy.join("data/components").join(format!("{digest}.wasm"));
        let build = Some(build).filter(|build| !digest.is_empty() && build.is_file());
        Ok(Self { operation, binding, about, build, records: Vec::new() })
    }

    async fn of_running(args: &ReplayArgs) -> Result<Self, CliError> {
        let session = args.company.open().await?;
        let (operation, binding) = known(args, &session).await?;
        let (mut records, mut pages) = (Vec::new(), Pages::default());
        let mut next = pages.next().filter(|_| !args.empty);
        while let Some(cursor) = next.take_if(|_| records.len() < MOST_RECORDS) {
            let body = without_nulls(json!({
                "scope": { "companyId": session.company }, "bindingKey": binding["key"], "limit": PAGE, "cursor": cursor,
            }));
            let page = session.host.post(&session.runtime("list"), &body).await?;
            records.extend_from_slice(items(&page, "items"));
            pages.go_on(next_cursor(&page));
            next = pages.next();
        }
        let about = match args.empty {
            true => "an empty store".to_owned(),
            false => format!(
                "the {}{} records that the host lists, without agents and other data of the \
                 provider; --data-dir or \
                 --backup uses all data",
                if next.is_none() { "" } else { "first " },
                records.len()
            ),
        };
        Ok(Self { operation, binding, about, build: None, records })
    }

    /// Writes the listed records through the provider.
    pub(super) async fn fill(&self, trial: &Trial) -> Result<(), CliError> {
        let of_one_source = self.records.chunk_by(|one, next| one["source"] == next["source"]);
        for records in of_one_source.flat_map(|records| records.chunks(PAGE)) {
            let written: Vec<Value> = records.iter().map(record).collect();
            let mut body = json!({
                "scope": { "companyId": trial.company }, "bindingKey": trial.key, "records": written,
            });
            if !records[0]["source"].is_null() {
                body["source"] = records[0]["source"].clone();
            }
            trial.host.post(&trial.runtime("records"), &body).await?;
        }
        Ok(())
    }
}

fn record(snippet: &Value) -> Value {
    let mut record =
        json!({ "id": snippet["handle"]["providerRecordId"], "text": snippet["text"] });
    for name in ["summary", "metadata"] {
        if !snippet[name].is_null() {
            record[name] = snippet[name].clone();
        }
    }
    record
}

/// The operation and its binding.
async fn known(args: &ReplayArgs, session: &Session) -> Result<(Value, Value), CliError> {
    let operation = session.get(&format!("operations/{}", escape(&args.id))).await?;
    let key = text(&operation, "/bindingKey");
    if key.is_empty() {
        let message = format!("{} reached no binding, so it cannot be repeated", args.id);
        return Err(CliError::input("OPERATION", message));
    }
    let binding = session.get(&format!("bindings/{}", escape(&key))).await?;
    Ok((operation, binding))
}

/// Copies a data directory that no host uses.
fn copy_stopped(data_dir: &Path, copies: &[PathBuf]) -> Result<(), CliError> {
    let wrong = |message: String| {
        CliError::input("--data-dir", format!("{}: {message}", data_dir.display()))
    };
    let lock = File::options().write(true).open(data_dir.join("LOCK"));
    let lock =
        lock.map_err(|error| wrong(format!("is not a data directory of a host: {error}")))?;
    match lock.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            let message = "a host uses it; name that host with --url, or make a backup and give it \
                           with --backup";
            return Err(wrong(message.to_owned()));
        }
        Err(TryLockError::Error(error)) => return Err(wrong(error.to_string())),
    }
    copies.iter().try_for_each(|copy| {
        copy_all(data_dir, &copy.join("data")).map_err(|error| wrong(error.to_string()))
    })
}

/// Copies all but the lock, which belongs to whoever has the original open.
fn copy_all(from: &Path, to: &Path) -> std::io::Result<()> {
    let (from, parent) = (Directory::open(from)?, to.parent().unwrap_or(Path::new(".")));
    durable::create_directory(parent, 0o700)?;
    let name = to.file_name().and_then(OsStr::to_str).unwrap_or("data");
    let parent = Directory::open(parent)?;
    from.copy_changed(name, &parent, &Copied::default(), &mut Copied::default())?;
    parent.below(name.as_ref())?.remove_all("LOCK".as_ref())
}
