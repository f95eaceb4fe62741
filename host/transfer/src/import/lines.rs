//! The lines of one import, one after the other: what each one changes, and what it must fit.

use std::collections::HashMap;

use super::options::{ImportOptions, Imported, MAX_LINE};
use super::restoring::Restoring;
use super::row::{self, Row};
use crate::Transfer;
use crate::export::{FORMAT, Line, TABLES};
use memhost_operations::upsert_of;
use memhost_oplog::billing::{self, BillingRow};
use memhost_oplog::events;
use memhost_queues::due_queue::{Due, DueQueue};
use memhost_queues::waiting::Waiting;
use memhost_records::Records;
use memhost_store::{self as store, Change, Table, Transacted};
use memhost_tenancy::ServiceError;
use memhost_types::{
    Binding, BindingId, BindingKey, CompanyId, DeliveryStatus, FieldError, Operation, RecordHandle,
    Scope, Snippet, limits,
};

/// Bytes that are written between two waits for the disk.
const MOST_UNFLUSHED: usize = 4 << 20;
/// A line that is longer is read on a thread for blocking work. Shorter ones take less than a
/// millisecond.
const LONG_LINE: usize = 32 << 10;
/// The most bindings of an import. Each one is checked by its provider.
const MAX_BINDINGS: usize = 1_000;
/// The most lines of an import.
const MAX_LINES: u64 = 100_000_000;

/// Deliveries or jobs that are written between two waits for the disk.
const AT_ONCE: usize = 256;

/// An import in progress.
pub(super) struct Importing<'a> {
    pub(super) service: &'a Transfer,
    pub(super) company: &'a CompanyId,
    options: ImportOptions,
    pub(super) done: Imported,
    number: u64,
    ended: bool,
    /// The bindings of the file, as they are stored here.
    pub(super) bindings: HashMap<BindingId, Binding>,
    last_operation: Option<u64>,
    /// The highest number of an operation that the sums contain.
    last_summed: u64,
    /// Bytes that were written and may not be on disk yet.
    unflushed: usize,
    /// Lines in a provider's own format that the provider has not got yet.
    collected: (Option<BindingKey>, String),
    /// Set where records are restored in place. Then only records are taken from the file.
    pub(super) restoring: Option<Restoring>,
}

impl<'a> Importing<'a> {
    pub(super) fn new(
        service: &'a Transfer,
        company: &'a CompanyId,
        options: ImportOptions,
    ) -> Self {
        Self {
            service,
            company,
            options,
            done: Imported::default(),
            number: 0,
            ended: false,
            bindings: HashMap::new(),
            last_operation: None,
            last_summed: 0,
            unflushed: 0,
            collected: (None, String::new()),
            restoring: None,
        }
    }

    pub(super) fn wrong(&self, message: &str) -> ServiceError {
        FieldError::new(format!("lines.{}", self.number.saturating_sub(1)), message).into()
    }

    pub(super) async fn line(&mut self, text: String) -> Result<(), ServiceError> {
        self.number += 1;
        if self.number > MAX_LINES || text.len() > MAX_LINE {
            let message = format!(
                "is too long, or one of more than {MAX_LINES} lines; a line has at most {MAX_LINE} \
                 bytes"
            );
            return Err(self.wrong(&message));
        }
        if text.trim().is_empty() {
            return Ok(());
        }
        let bytes = text.len();
        let line = match bytes > LONG_LINE {
            true => memhost_executor::spawn_blocking(move || row::line(&text))
                .await
                .map_err(ServiceError::host)?,
            false => row::line(&text),
        };
        let line =
            line.map_err(|message| self.wrong(&format!("is no line of an export: {message}")))?;
        if !matches!(line, Line::Own { .. }) {
            self.hand_over(true).await?;
        }
        if self.ended {
            return Err(self.wrong("stands behind the end"));
        }
        match line {
            Line::Company { format, company_id, .. } => {
                if self.number != 1 || format != FORMAT || company_id != *self.company {
                    let message = format!(
                        "is not the beginning of an export of {} in format {FORMAT}",
                        self.company
                    );
                    return Err(self.wrong(&message));
                }
                Ok(())
            }
            _ if self.number == 1 => Err(self.wrong("is not the first line of an export")),
            Line::Row { table, key, value } => {
                let (table, key) = self.place(&table, &key)?;
                if self.restoring.is_some() && !Restoring::TABLES.contains(&table) {
                    return Ok(());
                }
                let company = self.company.clone();
                let read =
                    move || row::row(&company, table, &key, &value).map(|row| (row, key, value));
                let read = match bytes > LONG_LINE {
                    true => {
                        memhost_executor::spawn_blocking(read).await.map_err(ServiceError::host)?
                    }
                    false => read(),
                };
                match read.map_err(|message| self.wrong(&message))? {
                    (row, ..) if self.restoring.is_some() => self.restore_row(row).await,
                    (Row::Sums, key, value) => self.sums(key, store::encode("row", &value)?).await,
                    (row, key, _) => self.row(table, key, row).await,
                }
            }
            Line::Bytes { .. } | Line::Operation { .. } if self.restoring.is_some() => Ok(()),
            Line::Record { binding_key, .. } | Line::Own { binding_key, .. }
                if self.restoring.as_ref().is_some_and(|own| own.leaves(&binding_key)) =>
            {
                Ok(())
            }
            Line::Bytes { table, key, bytes } => match (self.place(&table, &key)?, unhex(&bytes)) {
                ((Table::Sums, key), Some(value)) => self.sums(key, value).await,
                _ => Err(self.wrong("has bytes where there are none")),
            },
            Line::Operation { value } => self.operation(*value, bytes).await,
            Line::Record { binding_key, value } => self.record(&binding_key, *value).await,
            Line::Own { binding_key, line } => self.own(binding_key, &line).await,
            Line::Secret { .. } | Line::Token { .. } => Ok(()),
            Line::End { lines } => {
                self.ended = true;
                match lines == self.number - 1 {
                    true => Ok(()),
                    false => {
                        Err(self
                            .wrong(&format!("counts {lines} lines, and {} came", self.number - 1)))
                    }
                }
            }
        }
    }

    /// Checks that the last line has come.
    pub(super) fn has_ended(&self) -> Result<(), ServiceError> {
        match self.ended {
            true => Ok(()),
            false => Err(self.wrong("the last line is missing: the export was cut off")),
        }
    }

    /// The checks that need every line.
    pub(super) async fn finish(&mut self) -> Result<(), ServiceError> {
        self.has_ended()?;
        if self.last_summed > self.last_operation.unwrap_or(0) {
            let message = "the sums contain operations that come after the last one; their costs \
                           would not be counted";
            return Err(self.wrong(message));
        }
        let service = self.service;
        service.store.commit().await?;
        service.bindings.reload(self.company).await?;
        // Jobs and deliveries are due from now on, when everything is imported.
        service.records.reload(self.company, service.clock.now()).await?;
        begin_imported(&service.jobs, self.company).await?;
        begin_imported(&service.deliveries, self.company).await
    }

    /// A table that is imported, and the bytes of a key.
    fn place(&self, table: &str, key: &str) -> Result<(Table, Vec<u8>), ServiceError> {
        let found = TABLES.into_iter().find(|known| known.name() == table);
        found.zip(unhex(key)).ok_or_else(|| self.wrong("has a table or a key that is none"))
    }

    async fn sums(&mut self, key: Vec<u8>, value: Vec<u8>) -> Result<(), ServiceError> {
        let read = billing::import_sums(&*self.service.store, self.company, &key, value);
        let Some((last, change)) = read else {
            return Err(self.wrong("has sums that are none, or under a key that is not their own"));
        };
        self.last_summed = self.last_summed.max(last);
        self.write(&[change]).await
    }

    async fn row(&mut self, table: Table, key: Vec<u8>, mut row: Row) -> Result<(), ServiceError> {
        self.is_own(&row)?;
        if let Row::Binding(binding) = &mut row {
            self.request(binding).await?;
        }
        let mut changes =
            vec![Change::insert(table, store::company_key(self.company, &key), row.encode()?)];
        match &row {
            Row::Event(event) => changes.extend(events::index(event)?),
            Row::Record(row) => {
                changes.extend(Records::index_of(row).into_iter().map(Change::from));
            }
            _ => {}
        }
        self.write(&changes).await?;
        let service = self.service;
        match row {
            Row::Binding(binding) => {
                service.bindings.add_imported((*binding).clone());
                // Another import may have brought the same id meanwhile.
                if service.bindings.has_id(binding.id, self.company) {
                    return Err(self.wrong("has the id of another company's binding"));
                }
                self.bindings.insert(binding.id, *binding);
                Ok(())
            }
            Row::Review(item) => {
                service.reviews.apply_older(&item);
                Ok(())
            }
            Row::Billing(BillingRow::Budget(_)) => {
                Ok(service.oplog.ledger.reload(self.company).await?)
            }
            Row::Retention(_) => Ok(service.tenancy.reload_retention(self.company).await?),
            _ => Ok(()),
        }
    }

    /// Checks that every id in a row belongs to the file.
    fn is_own(&self, row: &Row) -> Result<(), ServiceError> {
        let is_known = |key: &BindingKey| self.bindings.values().any(|binding| binding.key == *key);
        match row {
            Row::Binding(binding) => {
                if self.bindings.len() >= MAX_BINDINGS {
                    return Err(self.wrong(&format!(
                        "is one binding too many; at most {MAX_BINDINGS} are imported"
                    )));
                }
                if self.bindings.contains_key(&binding.id)
                    || self.service.bindings.has_id(binding.id, self.company)
                {
                    return Err(self.wrong("has the id of another binding"));
                }
                Ok(())
            }
            Row::Target(target) => match &target.binding_key {
                Some(key) if !is_known(key) => Err(self.foreign(key.as_str())),
                _ => Ok(()),
            },
            Row::Billing(BillingRow::Budget(budget))
                if budget.binding_key.as_ref().is_some_and(|key| !is_known(key)) =>
            {
                Err(self.wrong("is a budget of a binding that is not in the file before it"))
            }
            Row::Review(item) => {
                self.is_of_binding(item.binding_id, &item.binding_key, item.subject.record(), false)
            }
            Row::Record(row) => self.is_of_known(row.binding_id, Some(&row.handle)),
            Row::Private(row) => self.is_of_known(row.binding_id, None),
            Row::Job(job) => {
                let ended = job.status.is_end() && job.due_at.is_none();
                self.is_of_binding(job.binding_id, &job.binding_key, job.records.iter(), ended)
            }
            Row::Delivery(delivery) => {
                let ended =
                    !matches!(delivery.status, DeliveryStatus::Pending | DeliveryStatus::Held);
                self.is_of_binding(
                    delivery.binding_id,
                    &delivery.binding_key,
                    delivery.records.iter(),
                    ended && delivery.due_at.is_none(),
                )
            }
            _ => Ok(()),
        }
    }

    /// Checks that a row about a record is of a binding of the file, and of its provider.
    fn is_of_known(
        &self,
        id: BindingId,
        record: Option<&RecordHandle>,
    ) -> Result<(), ServiceError> {
        let binding = self.bindings.get(&id);
        let fits = binding
            .is_some_and(|own| record.is_none_or(|record| record.provider_key == own.provider_key));
        if fits {
            Ok(())
        } else {
            Err(self.wrong("is of a binding that is not in the file before it"))
        }
    }

    /// Checks what a row says of its binding. `ended`: it may be of a binding that was deleted.
    fn is_of_binding<'h>(
        &self,
        id: BindingId,
        key: &BindingKey,
        records: impl IntoIterator<Item = &'h RecordHandle>,
        ended: bool,
    ) -> Result<(), ServiceError> {
        let mut records = records.into_iter();
        let known = || self.bindings.values().find(|binding| binding.known_as() == id);
        match self.bindings.get(&id).or_else(known) {
            Some(own) => match own.key == *key
                && records.all(|record| record.provider_key == own.provider_key)
            {
                true => Ok(()),
                false => Err(self.wrong("does not fit its binding")),
            },
            None if ended && !self.service.bindings.has_id(id, self.company) => Ok(()),
            None => Err(self.foreign(key.as_str())),
        }
    }

    fn foreign(&self, key: &str) -> ServiceError {
        self.wrong(&format!(
            "names the binding `{key}`, which is not in the file before it, or has another id there"
        ))
    }

    /// Makes a request of what a binding of the file may reach and use, unless the operator accepts
    /// it.
    async fn request(&mut self, binding: &mut Binding) -> Result<(), ServiceError> {
        let service = self.service;
        service.control.request_grants(binding, self.options.accepts_grants).await.map_err(
            |error| match error {
                ServiceError::Field(field) => self.wrong(&field.to_string()),
                error => error,
            },
        )?;
        if binding.requested.is_some() {
            self.done.requested.push(binding.key.clone());
        }
        service.control.can_be_served(binding).await
    }

    /// Writes a row, and what finds it. What is not on disk yet is bounded.
    pub(super) async fn write(&mut self, changes: &[Change]) -> Result<(), ServiceError> {
        let size =
            |change: &Change| change.key.len() + change.new.as_ref().map_or(0, Vec::len) + 64;
        let bytes = changes.iter().map(size).sum();
        match self.service.store.transact(changes).await? {
            Transacted::Done(commit) => drop(commit),
            Transacted::Conflict(_) => return Err(self.wrong("is there twice")),
        }
        self.done.rows += 1;
        self.wrote(bytes).await
    }

    async fn wrote(&mut self, bytes: usize) -> Result<(), ServiceError> {
        self.unflushed += bytes;
        if self.unflushed > MOST_UNFLUSHED {
            self.service.store.commit().await?;
            self.unflushed = 0;
        }
        Ok(())
    }

    async fn operation(&mut self, operation: Operation, bytes: usize) -> Result<(), ServiceError> {
        row::operation(self.company, &operation, self.last_operation)
            .map_err(|message| self.wrong(&message))?;
        self.last_operation = Some(operation.id.sequence());
        self.service.store.import_operation(operation).await?;
        self.done.operations += 1;
        self.wrote(bytes).await
    }

    /// The binding of a record.
    fn binding(&self, key: &BindingKey) -> Result<Binding, ServiceError> {
        let found = self.bindings.values().find(|binding| binding.key == *key);
        found.cloned().ok_or_else(|| self.foreign(key.as_str()))
    }

    /// A line in the provider's own format. Such lines are collected up to the size that one call
    /// may have.
    async fn own(&mut self, binding_key: BindingKey, line: &str) -> Result<(), ServiceError> {
        let (key, lines) = &self.collected;
        let is_full = lines.len() + line.len() >= limits::MAX_TRANSFER_BYTES;
        let is_another = key.as_ref().is_some_and(|key| *key != binding_key);
        if is_full || is_another {
            self.hand_over(is_another).await?;
        }
        let (key, lines) = &mut self.collected;
        *key = Some(binding_key);
        lines.push_str(line);
        lines.push('\n');
        Ok(())
    }

    /// Gives the collected lines to their provider. `is_last`: another binding's follow, or none.
    async fn hand_over(&mut self, is_last: bool) -> Result<(), ServiceError> {
        let (Some(key), lines) = std::mem::take(&mut self.collected) else { return Ok(()) };
        let binding = self.binding(&key)?;
        if let Some(restoring) = &mut self.restoring {
            restoring.with_lines.insert(key.clone());
        }
        if binding.requested.is_some() {
            return self.wait(&binding, &Waiting::Own(lines)).await;
        }
        let taken = self
            .service
            .operations
            .import_lines(Scope::company(self.company.clone()), &key, lines, is_last)
            .await;
        self.done.records += self.answered(&key, taken)?.map_or(0, u64::from);
        Ok(())
    }

    async fn record(
        &mut self,
        binding_key: &BindingKey,
        snippet: Snippet,
    ) -> Result<(), ServiceError> {
        let binding = self.binding(binding_key)?;
        row::record(self.company, &snippet).map_err(|message| self.wrong(&message))?;
        if snippet.handle.provider_key != binding.provider_key {
            return Err(self.wrong("is a record of another provider than its binding's"));
        }
        if self.restoring.is_some() && self.leaves_out(&binding, &snippet).await? {
            return Ok(());
        }
        let row = self.service.records.row(&binding, &snippet.handle.provider_record_id).await?;
        if row.is_none() && snippet.scope.is_none() && !self.options.accepts_unscoped {
            let message = format!(
                "is a record of the binding `{binding_key}`, whose provider cannot export scopes: \
                 a note of one agent \
                 would become visible to the whole company; repeat the import with `--scope \
                 company` if that may be"
            );
            return Err(self.wrong(&message));
        }
        if binding.requested.is_some() {
            return self.wait(&binding, &Waiting::Record(Box::new(snippet))).await;
        }
        let request = upsert_of(&binding, snippet, row.as_ref());
        let written = self.service.operations.import_upsert(request, row).await;
        self.done.records += u64::from(self.answered(binding_key, written)?.is_some());
        Ok(())
    }

    async fn wait(&mut self, binding: &Binding, what: &Waiting) -> Result<(), ServiceError> {
        self.service.waiting.put(binding, self.done.waiting, what).await?;
        self.done.waiting += 1;
        Ok(())
    }
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    let digits = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    if !text.is_ascii() || !text.len().is_multiple_of(2) {
        return None;
    }
    text.as_bytes().chunks(2).map(digits).collect()
}

/// Accepts imported records as new ones, with their due entries and marks.
async fn begin_imported<T: Due>(
    queue: &DueQueue<T>,
    company: &CompanyId,
) -> Result<(), ServiceError> {
    let (mut imported, mut some) = (queue.all(company), Vec::new());
    while let Some(record) = imported.next().await? {
        some.push(record);
        if some.len() == AT_ONCE {
            queue.accept(std::mem::take(&mut some)).await?;
        }
    }
    queue.accept(some).await?;
    Ok(())
}
