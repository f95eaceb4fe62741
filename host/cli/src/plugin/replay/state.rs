//! The stored data on which a recorded operation is repeated: a copy of a data directory or a
//! backup, the records that a running host lists, or nothing.

use std::ffi::OsStr;
use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};

use serde_json::json;

use crate::answer::Answer;
use crate::args::CompanyArgs;
use crate::argument::without_nulls;
use crate::connection::Connection;
use crate::plugin::trial::{self, Trial};
use crate::session::Session;
use crate::texts::escape;
use crate::{Backend, CliError, Result};
use memhost_core::{BindingView, restore_backup};
use memhost_files::{Copied, Directory, durable};
use memhost_types::{
    Binding, ListPage, Operation, Pages, RecordWrite, Scope, Snippet, UpsertRequest, UpsertResponse,
};

/// The most records that are copied from a running host.
const MOST_RECORDS: usize = 10_000;
/// The number of records in one request.
const PAGE: usize = 500;

/// Where the stored data comes from.
pub(super) enum Data<'a> {
    Backup(&'a Path),
    /// The data directory of a stopped host.
    Stopped(&'a Path),
    /// The records that a running host lists.
    Running,
    /// A running host has the operation, and there are no records.
    Nothing,
}

/// The operation, its binding, and the stored data.
pub(super) struct State {
    pub(super) operation: Operation,
    pub(super) binding: Binding,
    /// A description of the data.
    pub(super) about: String,
    /// The build that serves the binding, if the copy has it.
    pub(super) build: Option<PathBuf>,
    records: Vec<Snippet>,
}

impl State {
    /// Reads the operation. Copied data goes to the directories `before` and `after` of `scratch`.
    pub(super) async fn take(
        id: &str,
        from: Data<'_>,
        company: &CompanyArgs,
        scratch: &Path,
    ) -> Result<Self> {
        let copies = [scratch.join("before"), scratch.join("after")];
        let about = match from {
            Data::Backup(backup) => {
                for copy in &copies {
                    restore_backup(backup, &copy.join("data")).map_err(CliError::host)?;
                }
                format!("a copy of the backup {}", backup.display())
            }
            Data::Stopped(data_dir) => {
                copy_stopped(data_dir, &copies)?;
                format!("a copy of {}", data_dir.display())
            }
            Data::Running => return Self::of_running(id, false, company).await,
            Data::Nothing => return Self::of_running(id, true, company).await,
        };
        Self::of_copy(id, company, &copies[0], about).await
    }

    async fn of_copy(id: &str, named: &CompanyArgs, copy: &Path, about: String) -> Result<Self> {
        let connection = Connection::of(&named.host)?;
        let missing =
            || CliError::input("--company", "is missing; give it, or set MEMHOST_COMPANY");
        let company = named.named(&connection).ok_or_else(missing)?;
        let service = trial::without_background(copy).await?;
        let (host, format) = (Backend::of(service), named.host.output.format());
        let session = Session { host, format, company, agent: None, connection };
        let (operation, BindingView { binding, serving, .. }) = known(id, &session).await?;
        let build = serving.map(|build| {
            let digest = build.digest.to_string().replace(':', "-");
            copy.join("data/components").join(format!("{digest}.wasm"))
        });
        let build = build.filter(|build| build.is_file());
        Ok(Self { operation, binding, about, build, records: Vec::new() })
    }

    async fn of_running(id: &str, is_empty: bool, company: &CompanyArgs) -> Result<Self> {
        let session = company.open().await?;
        let (operation, BindingView { binding, .. }) = known(id, &session).await?;
        let (mut records, mut pages) = (Vec::new(), Pages::default());
        let mut next = pages.next().filter(|_| !is_empty);
        while let Some(cursor) = next.take_if(|_| records.len() < MOST_RECORDS) {
            let body = without_nulls(json!({
                "scope": { "companyId": session.company }, "bindingKey": binding.key,
                "limit": PAGE, "cursor": cursor,
            }));
            let page: Answer<ListPage> = session.host.post(&session.runtime("list"), &body).await?;
            let page = page.read()?;
            records.extend(page.items);
            pages.go_on(page.next_cursor);
            next = pages.next();
        }
        let about = match is_empty {
            true => "an empty store".to_owned(),
            false => format!(
                "the {}{} records that the host lists, without agents and other data of the \
                 provider; --data-dir or --backup uses all data",
                if next.is_none() { "" } else { "first " },
                records.len()
            ),
        };
        Ok(Self { operation, binding, about, build: None, records })
    }

    /// Writes the listed records through the provider.
    pub(super) async fn fill(&self, trial: &Trial) -> Result<()> {
        let of_one_source = self.records.chunk_by(|one, next| one.source == next.source);
        for records in of_one_source.flat_map(|records| records.chunks(PAGE)) {
            let body = UpsertRequest {
                binding_key: Some(trial.key.clone()),
                scope: Scope::company(trial.company.clone()),
                source: records.first().and_then(|record| record.source.clone()),
                records: records.iter().map(record).collect(),
                visibility: None,
            };
            let records = trial.runtime("records");
            trial.host.post::<UpsertResponse>(&records, &body).await?;
        }
        Ok(())
    }
}

fn record(snippet: &Snippet) -> RecordWrite {
    RecordWrite {
        id: Some(snippet.handle.provider_record_id.clone()),
        summary: snippet.summary.clone(),
        metadata: snippet.metadata.clone(),
        ..RecordWrite::new(snippet.text.as_str())
    }
}

/// The operation and its binding.
async fn known(id: &str, session: &Session) -> Result<(Operation, BindingView)> {
    let operation: Answer<Operation> = session.get(&format!("operations/{}", escape(id))).await?;
    let operation = operation.read()?;
    let Some(key) = &operation.binding_key else {
        let message = format!("{id} reached no binding, so it cannot be repeated");
        return Err(CliError::input("OPERATION", message));
    };
    let path = format!("bindings/{}", escape(key.as_str()));
    let binding = session.get(&path).await?.read()?;
    Ok((operation, binding))
}

/// Copies a data directory that no host uses.
fn copy_stopped(data_dir: &Path, copies: &[PathBuf]) -> Result<()> {
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
