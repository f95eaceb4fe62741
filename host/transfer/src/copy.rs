//! Copies everything of one store into another, such as from the embedded one into PostgreSQL: rows
//! as they are, operations under their numbers, the storage and the files of providers. Nobody may
//! use either store meanwhile.
//!
//! A mark in the new store says that it is not whole, so no host starts on it. A copy that was cut
//! off goes on with the company that it was at.

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};

use memhost_files::{Copied as CopiedFiles, Directory, Kind, Then, durable};
use memhost_ports::{BindingStorage, StorageEntry, StorageError, StorageSize, StorageWrite};
use memhost_registry::bindings::Bindings;
use memhost_registry::versions::{MEMORY, partition};
use memhost_store::{self as store, Change, Store, StoreError, Table};
use memhost_types::{Binding, CompanyId};

use crate::oldest_first::OldestFirst;

/// The row of a store into which a copy goes on.
const COPYING: &[u8] = b"copying";
/// The prefix of the rows of companies that were copied.
const DONE: &[u8] = b"copied\0";

/// Rows and bytes that are written in one step.
const ROWS: usize = 500;
const BYTES: usize = 4 << 20;
/// As large as a partition can be.
const ANY_SIZE: StorageSize = StorageSize { bytes: u64::MAX, keys: u64::MAX };

/// A store, and the directory in which the files of providers are, if there is one.
#[derive(Clone, Copy)]
pub struct CopyEnd<'a> {
    /// The store.
    pub store: &'a dyn Store,
    /// The directory that has `memory`.
    pub files: Option<&'a Path>,
}

/// What was copied and compared.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Copied {
    /// Companies, with those that an earlier try had copied.
    pub companies: u64,
    /// Rows of tables.
    pub rows: u64,
    /// Operations.
    pub operations: u64,
    /// Values in the storage of providers.
    pub values: u64,
    /// Files of providers.
    pub files: u64,
}

/// Why a store was not copied.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum CopyError {
    #[error(
        "the store that is to be filled has {what} already, and nothing was changed; a store is \
         copied into an empty one: name another one"
    )]
    NotEmpty { what: String },
    #[error(
        "providers keep files in {path}, and there is no directory for them at the new host; name \
         one with --files: all hosts have to use it as their shared_dir then"
    )]
    NoDirectory { path: PathBuf },
    #[error(
        "the store that is to be copied is itself a part of a copy only; finish that one first, or \
         copy another one"
    )]
    CutSource,
    #[error(
        "{path} is to get the files of providers and has some already; name an empty directory, \
         outside of the data directory"
    )]
    HasFiles { path: PathBuf },
    #[error("{path} has no files of providers, no directory `memory`; name the right one")]
    NoFiles { path: PathBuf },
    #[error(
        "directories in {path} are nested more than {} deep, and nothing below that was copied; \
         move what is there up",
        memhost_files::MAX_DEPTH
    )]
    TooDeep { path: PathBuf },
    #[error("copying files of providers failed: {0}; repeat the command, it goes on")]
    Files(#[from] io::Error),
    #[error("copying the storage of the binding `{binding}` of {company} failed: {error}")]
    Storage { company: CompanyId, binding: String, error: StorageError },
    #[error("copying failed: {0}; repeat the command, it goes on")]
    Store(#[from] StoreError),
    #[error(
        "the copy differs: {what}; it is not used by any host. Repeat the command with an empty \
         store, and report it if it happens again"
    )]
    Differs { what: String },
}

/// Whether a copy into this store was begun and is not whole.
///
/// # Errors
/// Where the store fails.
pub async fn is_cut_copy(store: &dyn Store) -> Result<bool, StoreError> {
    Ok(store.get(Table::Host, COPYING).await?.is_some())
}

/// Copies everything, and compares it. `source` names the store that is copied: a copy that was cut
/// off goes on only from the same one. `say` gets a line for each company.
///
/// # Errors
/// Where the new store has something else, one of the two fails, or the copy differs.
pub async fn copy_store(
    from: CopyEnd<'_>,
    to: CopyEnd<'_>,
    source: &str,
    mut say: impl FnMut(&str),
) -> Result<Copied, CopyError> {
    if is_cut_copy(from.store).await? {
        return Err(CopyError::CutSource);
    }
    let memory = from.files.map(|files| files.join(MEMORY)).filter(|memory| memory.exists());
    if let (Some(path), None) = (&memory, to.files)
        && has_files(path)?
    {
        return Err(CopyError::NoDirectory { path: path.clone() });
    }
    let is_begun = to.store.get(Table::Host, COPYING).await?.is_some();
    if let Some(files) = to.files.map(|files| files.join(MEMORY)).filter(|files| files.exists()) {
        // What a try before has left is replaced; what somebody else has there is not.
        match is_begun {
            true => {
                let above = files.parent().unwrap_or(&files);
                Directory::open(above)?.remove_all(OsStr::new(MEMORY))?;
            }
            false if has_files(&files)? => return Err(CopyError::HasFiles { path: files }),
            false => {}
        }
    }
    begin(to.store, source).await?;
    let mut done = Copied::default();
    for company in from.store.companies().await? {
        let mark = [DONE, company.as_str().as_bytes()].concat();
        done.companies += 1;
        if to.store.get(Table::Host, &mark).await?.is_some() {
            // A host may have used it since.
            match compare_company(from.store, to.store, &company).await {
                Ok(()) => {
                    say(&format!("{company}: copied before"));
                    continue;
                }
                Err(CopyError::Differs { .. }) => say(&format!("{company}: it has changed since")),
                Err(error) => return Err(error),
            }
        }
        let before = (done.rows, done.operations);
        copy_company(from.store, to.store, &company, &mut done).await?;
        compare_company(from.store, to.store, &company).await?;
        let whole = Change::always(Table::Host, mark, Some(Vec::new()));
        store::write(to.store, &[whole]).await?;
        let (rows, operations) = (done.rows - before.0, done.operations - before.1);
        say(&format!("{company}: {rows} rows and {operations} operations"));
    }
    if let (Some(memory), Some(to)) = (memory, to.files) {
        done.files = copy_files(&memory, to)?;
    }
    for table in Table::ALL {
        drop_rows((from.store, to.store), *table).await?;
        copy_rows((from.store, to.store), *table, &host_prefix(*table), &mut done).await?;
    }
    finish(to.store).await?;
    Ok(done)
}

/// The prefix of the host's own rows of a table. Due entries of companies are among them.
fn host_prefix(table: Table) -> Vec<u8> {
    if table.is_of_company() { vec![0] } else { Vec::new() }
}

async fn begin(to: &dyn Store, source: &str) -> Result<(), CopyError> {
    let expected = source.as_bytes();
    match to.get(Table::Host, COPYING).await? {
        Some(found) if found == expected => return Ok(()),
        Some(found) => {
            let what = format!("a part of a copy of {}", String::from_utf8_lossy(&found));
            return Err(CopyError::NotEmpty { what });
        }
        None => {}
    }
    if let Some(company) = to.companies().await?.first() {
        return Err(CopyError::NotEmpty { what: format!("the company {company}") });
    }
    for table in Table::ALL {
        if !to.scan(*table, &host_prefix(*table), None, 1).await?.entries.is_empty() {
            let what = format!("rows of the host in `{}`", table.name());
            return Err(CopyError::NotEmpty { what });
        }
    }
    let mark = Change::always(Table::Host, COPYING.to_vec(), Some(expected.to_vec()));
    store::write(to, &[mark]).await?;
    Ok(())
}

/// Removes the marks, the one that keeps hosts away last.
async fn finish(to: &dyn Store) -> Result<(), CopyError> {
    loop {
        let page = to.scan(Table::Host, DONE, None, ROWS).await?;
        if page.entries.is_empty() {
            break;
        }
        let gone = |(key, _)| Change::always(Table::Host, key, None);
        let gone: Vec<Change> = page.entries.into_iter().map(gone).collect();
        store::write(to, &gone).await?;
    }
    store::write(to, &[Change::always(Table::Host, COPYING.to_vec(), None)]).await?;
    Ok(())
}

/// Removes rows of the host that an earlier try has copied and that are gone by now.
async fn drop_rows((from, to): (&dyn Store, &dyn Store), table: Table) -> Result<(), StoreError> {
    let mut rows = store::scan_all(to, table, &host_prefix(table));
    let mut gone = Vec::new();
    while let Some((key, _)) = rows.next().await? {
        let is_mark = table == Table::Host && (key == COPYING || key.starts_with(DONE));
        if !is_mark && from.get(table, &key).await?.is_none() {
            gone.push(Change::always(table, key, None));
        }
    }
    for some in gone.chunks(ROWS) {
        store::write(to, some).await?;
    }
    Ok(())
}

async fn copy_company(
    from: &dyn Store,
    to: &dyn Store,
    company: &CompanyId,
    done: &mut Copied,
) -> Result<(), CopyError> {
    // What an earlier try has left of it.
    to.erase_company(company).await?;
    to.begin_numbers(company).await?;
    let prefix = store::company_key(company, b"");
    for table in Table::ALL.iter().filter(|table| table.is_of_company()) {
        copy_rows((from, to), *table, &prefix, done).await?;
    }
    let mut log = OldestFirst::of(from, company).await?;
    loop {
        let found = log.next().await?;
        if found.is_empty() {
            break;
        }
        for operation in found {
            to.import_operation(operation).await?;
            done.operations += 1;
        }
    }
    for binding in Bindings::stored(from, company).await? {
        done.values += copy_storage(from, to, &binding).await?;
    }
    Ok(())
}

async fn copy_rows(
    (from, to): (&dyn Store, &dyn Store),
    table: Table,
    prefix: &[u8],
    done: &mut Copied,
) -> Result<(), StoreError> {
    let mut rows = store::scan_all(from, table, prefix);
    let (mut batch, mut bytes) = (Vec::new(), 0);
    while let Some((key, value)) = rows.next().await? {
        done.rows += 1;
        bytes += key.len() + value.len();
        batch.push(Change::always(table, key, Some(value)));
        if batch.len() == ROWS || bytes >= BYTES {
            store::write(to, &std::mem::take(&mut batch)).await?;
            bytes = 0;
        }
    }
    if !batch.is_empty() {
        store::write(to, &batch).await?;
    }
    Ok(())
}

/// Copies what a provider stores, and the host's own record of it.
async fn copy_storage(
    from: &dyn Store,
    to: &dyn Store,
    binding: &Binding,
) -> Result<u64, CopyError> {
    let key = partition(binding);
    let failed = |error| CopyError::Storage {
        company: binding.company_id.clone(),
        binding: binding.key.to_string(),
        error,
    };
    let source = from.binding_storage(&key, ANY_SIZE).await?;
    let target = to.binding_storage(&key, ANY_SIZE).await?;
    let mut entries = Entries::of(&*source);
    let mut count = 0;
    loop {
        let page = entries.page().await.map_err(failed)?;
        if page.is_empty() {
            break;
        }
        count += page.len() as u64;
        target.apply(page.into_iter().map(StorageWrite::Put).collect()).await.map_err(failed)?;
    }
    if let Some(state) = from.partition_state(&key).await? {
        to.write_partition_state(&key, ANY_SIZE, &state, Vec::new()).await?.await?;
    }
    Ok(count)
}

/// The values of a provider, page by page.
struct Entries<'a> {
    storage: &'a dyn BindingStorage,
    cursor: Option<Vec<u8>>,
    is_over: bool,
}

impl<'a> Entries<'a> {
    fn of(storage: &'a dyn BindingStorage) -> Self {
        Self { storage, cursor: None, is_over: false }
    }

    /// Empty: there are no more.
    async fn page(&mut self) -> Result<Vec<StorageEntry>, StorageError> {
        while !self.is_over {
            let page = self.storage.scan(b"", self.cursor.as_deref(), 0).await?;
            self.is_over = page.next.is_none();
            self.cursor = page.next;
            if !page.entries.is_empty() {
                return Ok(page.entries);
            }
        }
        Ok(Vec::new())
    }
}

async fn compare_company(
    from: &dyn Store,
    to: &dyn Store,
    company: &CompanyId,
) -> Result<(), CopyError> {
    let differs = |what: String| CopyError::Differs { what: format!("{what} of {company}") };
    let prefix = store::company_key(company, b"");
    for table in Table::ALL.iter().filter(|table| table.is_of_company()) {
        let mut source = store::scan_all(from, *table, &prefix);
        let mut target = store::scan_all(to, *table, &prefix);
        loop {
            let (one, other) = (source.next().await?, target.next().await?);
            if one != other {
                return Err(differs(format!("a row in `{}`", table.name())));
            }
            if one.is_none() {
                break;
            }
        }
    }
    let (mut source, mut target) =
        (OldestFirst::of(from, company).await?, OldestFirst::of(to, company).await?);
    let different =
        first_difference(async || source.next().await, async || target.next().await).await?;
    if let Some(operation) = different {
        return Err(differs(format!("the operation {}", operation.id.sequence())));
    }
    for binding in Bindings::stored(from, company).await? {
        let key = partition(&binding);
        let failed = |error| CopyError::Storage {
            company: company.clone(),
            binding: binding.key.to_string(),
            error,
        };
        let source = from.binding_storage(&key, ANY_SIZE).await?;
        let target = to.binding_storage(&key, ANY_SIZE).await?;
        let (mut source, mut target) = (Entries::of(&*source), Entries::of(&*target));
        let different =
            first_difference(async || source.page().await, async || target.page().await);
        let is_same_state = from.partition_state(&key).await? == to.partition_state(&key).await?;
        if different.await.map_err(failed)?.is_some() || !is_same_state {
            return Err(differs(format!("the storage of the binding `{}`", binding.key)));
        }
    }
    Ok(())
}

/// The first item that only one side has at its place. Each side answers page after page, which may
/// end at different places; an empty one is the last.
async fn first_difference<T: PartialEq, E>(
    mut one: impl AsyncFnMut() -> Result<Vec<T>, E>,
    mut other: impl AsyncFnMut() -> Result<Vec<T>, E>,
) -> Result<Option<T>, E> {
    let (mut left, mut right) = (Vec::new().into_iter(), Vec::new().into_iter());
    loop {
        if left.len() == 0 {
            left = one().await?.into_iter();
        }
        if right.len() == 0 {
            right = other().await?.into_iter();
        }
        match (left.next(), right.next()) {
            (None, None) => return Ok(None),
            (a, b) if a == b => {}
            (a, b) => return Ok(a.or(b)),
        }
    }
}

fn has_files(memory: &Path) -> io::Result<bool> {
    let mut has = false;
    Directory::open(memory)?.walk(|one| {
        has |= one.kind == Kind::File;
        Ok(if has { Then::Stop } else { Then::Into })
    })?;
    Ok(has)
}

/// Copies the files of providers and compares them. Answers how many there are.
fn copy_files(memory: &Path, to: &Path) -> Result<u64, CopyError> {
    durable::create_directory(to, 0o700)?;
    let (source, target) = (Directory::open(memory)?, Directory::open(to)?);
    let mut copied = CopiedFiles::default();
    source.copy_changed(MEMORY, &target, &CopiedFiles::default(), &mut copied)?;
    let target = target.below(OsStr::new(MEMORY))?;
    if copied.is_cut {
        return Err(CopyError::TooDeep { path: memory.to_owned() });
    }
    let (one, other) = (source.digests()?, target.digests()?);
    let paths = one.keys().chain(other.keys());
    if let Some(path) = paths.into_iter().find(|path| one.get(*path) != other.get(*path)) {
        let what = format!("the file {}", memory.join(path).display());
        return Err(CopyError::Differs { what });
    }
    durable::sync_tree(&to.join(MEMORY))?;
    Ok(one.len() as u64)
}
