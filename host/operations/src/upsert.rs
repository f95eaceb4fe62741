//! Upsert: records as the caller writes them.

use crate::guard::{may_change, partly};
use crate::prelude::*;
use crate::privacy::private;
use crate::review::change;
use crate::review::written::Author;
use async_recursion::async_recursion as boxed;
use memhost_records::check_owner;
use memhost_sandbox::RecordsAnswer;
use memhost_types::{
    Binding, FieldError, HeldChange, HeldRecord, InReview, JsonObject, Outcome, RecordHandle,
    RecordRow, RecordWrite, ReviewItem, UpsertRequest, UpsertResponse,
};

impl Operations {
    /// Writes records as they are. A review policy holds what an agent writes; a person who may
    /// review writes past it.
    ///
    /// # Errors
    /// As [`ServiceError`] says.
    #[boxed]
    pub async fn upsert(
        &self,
        caller: &Caller,
        request: UpsertRequest,
    ) -> Result<UpsertResponse, ServiceError> {
        let author = Author::of(caller, &request.scope.company_id);
        self.upsert_as(caller, request, author).await
    }

    pub(crate) async fn upsert_as(
        &self,
        caller: &Caller,
        request: UpsertRequest,
        author: Author,
    ) -> Result<UpsertResponse, ServiceError> {
        self.operate(caller, &mut Upsert::new(request, author)).await
    }

    /// Writes records of another host. The state of their reviews came before them; what has none
    /// is judged. `row` is what that host knew of the record, where it did.
    ///
    /// # Errors
    /// As [`ServiceError`] says.
    #[boxed]
    pub async fn import_upsert(
        &self,
        request: UpsertRequest,
        row: Option<RecordRow>,
    ) -> Result<(), ServiceError> {
        let mut step = Upsert { row, ..Upsert::new(request, Author::Judged) };
        self.operate(&Caller::system(), &mut step).await.map(drop)
    }
}

struct Upsert {
    request: UpsertRequest,
    author: Author,
    ownership: Option<Ownership>,
    /// Another host's row of the one record of an import.
    row: Option<RecordRow>,
    /// Records that would take the place of others and wait for a person, with their numbers in the
    /// request. The request has the rest.
    held: Vec<(usize, ReviewItem)>,
    /// Who made each record of the request, as the policies of the binding answer it.
    created_by: Vec<Option<String>>,
}

impl Upsert {
    fn new(request: UpsertRequest, author: Author) -> Self {
        let (held, created_by) = (Vec::new(), Vec::new());
        Self { request, author, ownership: None, row: None, held, created_by }
    }

    /// The ownership of the records: what the request says, or that of the records which they
    /// replace. A record that is somebody else's is not replaced.
    async fn owned(
        &self,
        host: &Operations,
        opened: &Opened,
        serving: &Serving,
    ) -> Result<Ownership, Refusal> {
        let Self { request, .. } = self;
        let mut ownership = Ownership::of(&serving.binding, &request.scope, request.visibility)?;
        if !host.records.has_private(serving.binding.id) {
            return Ok(ownership);
        }
        for (number, record) in request.records.iter().enumerate() {
            let Some(id) = &record.id else { continue };
            let Some(row) = host.records.row(&serving.binding, id).await? else { continue };
            if !opened.reader().may_read(&row) {
                let message =
                    "is the id of a record that is not yours; leave it out, or choose another one";
                return Err(FieldError::new(format!("records.{number}.id"), message).into());
            }
            if row.is_private() && request.visibility.is_none() {
                ownership = Ownership::like(&row);
            }
        }
        Ok(ownership)
    }

    /// Takes out of the request what would take the place of records that are there, and must wait
    /// for a person.
    async fn hold(
        &mut self,
        host: &Operations,
        opened: &Opened,
        binding: &Binding,
    ) -> Result<(), Refusal> {
        let Self { request, author, created_by, .. } = self;
        let mut made_by = std::mem::take(created_by).into_iter();
        let mut kept = Vec::with_capacity(request.records.len());
        for (number, write) in std::mem::take(&mut request.records).into_iter().enumerate() {
            let by = made_by.next();
            let verdict = match &write.id {
                Some(id) => host
                    .holds_change(binding, author, id, Some(&write))
                    .await?
                    .map(|verdict| (id.clone(), verdict)),
                None => None,
            };
            let Some((provider_record_id, verdict)) = verdict else {
                kept.push(write);
                created_by.extend(by);
                continue;
            };
            let handle =
                RecordHandle { provider_key: binding.provider_key.clone(), provider_record_id };
            let (source, visibility) = (request.source.clone(), request.visibility);
            let change = HeldChange::Record(Box::new(HeldRecord { write, source, visibility }));
            self.held
                .push((number, host.change_item(binding, opened.id(), &handle, verdict, change)));
        }
        request.records = kept;
        Ok(())
    }

    /// The handles of what waits put where they belong among those of the rest.
    fn all_of(&self, mut written: Vec<RecordHandle>) -> Vec<RecordHandle> {
        for (number, item) in &self.held {
            written.splice(*number..*number, item.subject.record().cloned());
        }
        written
    }

    fn waiting(&self) -> impl Iterator<Item = InReview> + '_ {
        self.held.iter().filter_map(|(_, item)| change::in_review(item))
    }
}

impl Step for Upsert {
    const KIND: OperationKind = OperationKind::RecordUpsert;
    type Answer = RecordsAnswer;
    type Response = UpsertResponse;

    asks_with!(request);

    fn check_first(&self) -> Result<(), FieldError> {
        check_owner(&self.request.scope, self.request.visibility.unwrap_or_default())
    }

    fn stamp(&mut self, caller: &Caller) -> Result<(), Denied> {
        if self.author.is_decision() {
            // It has the stamp of who asked for it.
            return Ok(());
        }
        let of_records =
            self.request.records.iter_mut().filter_map(|record| record.source.as_mut());
        let mut all = self.request.source.iter_mut().chain(of_records);
        all.try_for_each(|source| caller.stamp_source(source))
    }

    fn describe(&self, opened: &mut Opened) {
        opened.set_provenance(self.request.source.as_ref(), None);
        opened
            .note_context(self.request.records.first().and_then(|record| record.metadata.as_ref()));
        opened.set_cited(self.request.records.iter().map(|record| record.metadata.as_ref()));
    }

    async fn prepare(
        &mut self,
        host: &Operations,
        opened: &mut Opened,
        serving: &Arc<Serving>,
    ) -> Result<(), Refusal> {
        // Like a hook's `triggeredAt`: a time in the future counts as now.
        let now = opened.operation().started_at;
        for record in &mut self.request.records {
            record.created_at = record.created_at.map(|at| at.min(now));
        }
        let times = self.request.records.iter().filter_map(|record| record.created_at);
        self.ownership = Some(self.owned(host, opened, serving).await?.made_at(times));
        let ids = self.request.records.iter().filter_map(|record| record.id.as_ref());
        let guard = host.policies.guard(&opened.operation().principal, &serving.binding);
        may_change(host, &guard, &serving.binding, ids).await?;
        let Self { request: UpsertRequest { scope, records, .. }, .. } = self;
        let metadata = records.iter_mut().map(|record| &mut record.metadata);
        self.created_by = guard.stamp(scope, metadata);
        private(serving, &mut self.request)?;
        opened.keep_payload(&serving.binding, &self.request);
        // The queue of an imported company comes with it.
        if !opened.is_systems() {
            self.hold(host, opened, &serving.binding).await?;
        }
        match self.request.records.is_empty() && !self.held.is_empty() {
            true => Err(change::waits()),
            false => Ok(()),
        }
    }

    fn metadata(&self) -> Vec<&JsonObject> {
        self.request.records.iter().filter_map(|record| record.metadata.as_ref()).collect()
    }

    fn ownership(&self) -> Option<&Ownership> {
        self.ownership.as_ref()
    }

    fn origin(&self, _: usize) -> Option<&RecordRow> {
        self.row.as_ref()
    }

    fn record(&self, number: usize) -> Option<&RecordWrite> {
        self.request.records.get(number)
    }

    fn created_by(&self, number: usize) -> Option<&str> {
        self.created_by.get(number)?.as_deref()
    }

    async fn call(
        &self,
        serving: &Serving,
        id: OperationId,
    ) -> Result<Answer<RecordsAnswer>, Failure> {
        let scope = self
            .ownership
            .as_ref()
            .map_or_else(|| self.request.scope.clone(), |own| own.scope(&self.request.scope));
        let request = UpsertRequest { scope, ..self.request.clone() };
        serving.instances.upsert(id, &request).await
    }

    fn completion(&self, answer: &RecordsAnswer) -> Completion {
        Completion::records(answer.records.clone(), &answer.usage)
    }

    async fn finish(
        &mut self,
        answered: &mut Answered<'_>,
        answer: RecordsAnswer,
    ) -> Result<UpsertResponse, Refusal> {
        // The jobs are found even where the records could not be judged.
        let judged = answered.judge_new(&self.request.scope, &answer.records, &self.author).await;
        answered.discover_jobs(&self.request.scope).await?;
        judged?;
        if let Some(rest) = answer.rest {
            // The part that failed may have been written all the same, and nothing says whose its
            // records are.
            answered.ending.rows_are_missing();
            return Err(partly("written", answer.records.len(), self.request.records.len(), &rest));
        }
        let mut in_review = answered.in_review(&answer.records).await?;
        in_review.extend(self.waiting());
        let records = self.all_of(answer.records);
        Ok(UpsertResponse {
            operation_id: answered.id(),
            records,
            in_review,
            usage: answered.usage(),
        })
    }

    fn refused(
        &mut self,
        _: &Operations,
        opened: &Opened,
        refusal: Refusal,
    ) -> Ended<UpsertResponse> {
        if self.held.is_empty() {
            return Ended::Failed(refusal);
        }
        let (records, in_review) = (self.all_of(Vec::new()), self.waiting().collect());
        let response =
            UpsertResponse { operation_id: opened.id(), records, in_review, usage: Vec::new() };
        Ended::Held(response, Refusal { outcome: Outcome::Held, ..refusal })
    }

    async fn writes(
        &mut self,
        host: &Operations,
        ending: &mut Ending,
        ended: &Ended<UpsertResponse>,
    ) -> Result<Writes, Refusal> {
        if matches!(ended, Ended::Failed(_)) || self.held.is_empty() {
            return Ok(Writes::default());
        }
        if matches!(ended, Ended::Held(..)) {
            ending.set_records(self.all_of(Vec::new()), self.held.len());
        }
        let items: Vec<ReviewItem> = self.held.iter().map(|(_, item)| item.clone()).collect();
        Ok(host.reviews.plan(&items)?.into())
    }
}
