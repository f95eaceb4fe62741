//! The one path that every operation goes through.
//!
//! ```text
//! check fields ─ authorize ─ admit ─ prepare ─ write intent ─ call ─ finish ─ charge ─ complete
//!     Opened ──────────────────────▶ Intended ──▶ Ending ──────────▶ Concluded
//! ```
//!
//! What differs from operation to operation is a [`Step`]. The types make it impossible to return
//! between the provider's answer and the completion:
//!
//! - `call_provider` and `conclude` own the operation from the answer on, and return a
//!   [`Concluded`]. Between them `call` returns the operation beside the answer. Neither is a
//!   `Result`: `?` does not compile.
//! - Only [`Ending::complete`] makes a [`Concluded`], and it consumes the operation. An early
//!   `return` has no value.
//! - A step gets the operation by reference ([`Answered`], `&mut Ending`). It may fail with `?`.
//!   That ends the step only: the runner records the failure with the usage, the log and the
//!   records that are known by then.
//!
//! A caller that goes away drops the future. Then the operation's `Drop` records it as interrupted.

use std::collections::HashSet;
use std::future::{Future, ready};
use std::pin::pin;
use std::sync::Arc;

use crate::Operations;
use memhost_access::{Access, Caller, Denied};
use memhost_executor::in_turn;
use memhost_oplog::operation::{Completion, Concluded, Ended, Ending, Intended, Opened};
use memhost_records::{Made, Owner, Ownership, Since};
use memhost_registry::versions::Serving;
use memhost_sandbox::{Answer, Failure};
use memhost_store::{Lease, StoreError, TableWrite};
use memhost_tenancy::ServiceError;
use memhost_tenancy::reader_of;
use memhost_types::{
    BindingKey, FieldError, JsonObject, OperationId, OperationKind, RecordHandle, RecordId,
    RecordRow, RecordWrite, Refusal, Scope, Snippet, SourceRef, Usage, limits,
};

/// The most records that are asked for beside short requests.
const MAX_SHORT_PAGE: u32 = 100;

/// The scope that a caller asks in, and the binding that it names.
pub type Target<'a> = (&'a mut Scope, Option<&'a BindingKey>);

/// What one kind of operation does differently from the others. The runner calls the methods in
/// their order here.
pub trait Step: Send + Sync {
    /// Its kind.
    const KIND: OperationKind;
    /// The provider's answer.
    type Answer: Send;
    /// The caller's response.
    type Response: Send + Sync;

    /// Where its request goes.
    fn target(&mut self) -> Target<'_>;

    /// Checks the fields of the request. Nothing of a request is recorded before, except for its
    /// company and its agent.
    fn check_fields(&self) -> Result<(), FieldError> {
        Ok(())
    }

    /// How many records are read for the caller at most.
    fn wanted(&self) -> u32 {
        0
    }

    /// Whether its scope is meant as it is: nothing of it is left out for the binding.
    fn names_exactly(&self) -> bool {
        false
    }

    /// Checks what the binding would refuse, where the request would be the first of its company
    /// and so make it.
    fn check_first(&self) -> Result<(), FieldError> {
        Ok(())
    }

    /// Stamps what the host knows of where the request comes from, and who asserts the rest.
    fn stamp(&mut self, _caller: &Caller) -> Result<(), Denied> {
        Ok(())
    }

    /// Notes in the record where the request comes from. Its fields are checked.
    fn describe(&self, _opened: &mut Opened) {}

    /// Checks what else can be checked without a binding.
    fn check(&self, _host: &Operations) -> Result<(), Refusal> {
        Ok(())
    }

    /// Checks and changes the request for the binding that serves it.
    fn prepare(
        &mut self,
        _host: &Operations,
        _opened: &mut Opened,
        _serving: &Arc<Serving>,
    ) -> impl Future<Output = Result<(), Refusal>> + Send {
        ready(Ok(()))
    }

    /// The metadata of what it writes, for the policies of its binding.
    fn metadata(&self) -> Vec<&JsonObject> {
        Vec::new()
    }

    /// The ownership of the records that it writes, after [`Step::prepare`]. `None`: it writes
    /// none.
    fn ownership(&self) -> Option<&Ownership> {
        None
    }

    /// How old the material is that it writes. `None`: it came with this request.
    fn since(&self) -> Option<Since> {
        None
    }

    /// The row of the record that the record of this number in the answer takes the place of.
    fn origin(&self, _number: usize) -> Option<&RecordRow> {
        None
    }

    /// The record of this number in the answer, as it was asked for.
    fn record(&self, _number: usize) -> Option<&RecordWrite> {
        None
    }

    /// Who made the record of this number in the answer, where the writer names somebody.
    fn created_by(&self, _number: usize) -> Option<&str> {
        None
    }

    /// The records that it names: without a binding key, the binding that has them answers.
    fn handles(&self) -> &[RecordHandle] {
        &[]
    }

    /// The changes written in one transaction with the intent of a write.
    fn intent(
        &mut self,
        _host: &Operations,
        _id: OperationId,
    ) -> impl Future<Output = Result<Writes, Refusal>> + Send {
        ready(Ok(Writes::default()))
    }

    /// Calls the provider. It is called again with another build where the first one fails.
    fn call(
        &self,
        serving: &Serving,
        id: OperationId,
    ) -> impl Future<Output = Result<Answer<Self::Answer>, Failure>> + Send;

    /// What the answer says about itself. The record has it even where [`Step::finish`] fails.
    fn completion(&self, answer: &Self::Answer) -> Completion;

    /// Makes the response of the answer.
    fn finish(
        &mut self,
        answered: &mut Answered<'_>,
        answer: Self::Answer,
    ) -> impl Future<Output = Result<Self::Response, Refusal>> + Send;

    /// The consequence of a refusal before the call.
    fn refused(
        &mut self,
        _host: &Operations,
        _opened: &Opened,
        refusal: Refusal,
    ) -> Ended<Self::Response> {
        Ended::Failed(refusal)
    }

    /// The changes written in one transaction with the completion, however the operation ended.
    fn writes(
        &mut self,
        _host: &Operations,
        _ending: &mut Ending,
        _ended: &Ended<Self::Response>,
    ) -> impl Future<Output = Result<Writes, Refusal>> + Send {
        ready(Ok(Writes::default()))
    }
}

/// The methods of a step whose request says where it goes, and checks its own fields.
macro_rules! asks_with {
    ($request:tt) => {
        fn target(&mut self) -> crate::runner::Target<'_> {
            (&mut self.$request.scope, self.$request.binding_key.as_ref())
        }

        fn check_fields(&self) -> Result<(), memhost_types::FieldError> {
            self.$request.check()
        }
    };
}
pub(crate) use asks_with;

/// Rows that are written in one step with a record, and a lock that is held until they are on disk.
#[derive(Default)]
pub struct Writes {
    /// The rows.
    pub rows: Vec<TableWrite>,
    /// Held until they are on disk.
    pub lock: Option<Lease>,
}

impl From<Vec<TableWrite>> for Writes {
    fn from(rows: Vec<TableWrite>) -> Self {
        Self { rows, lock: None }
    }
}

/// The context of the steps after a provider's answer. They cannot end the operation.
pub struct Answered<'a> {
    /// The operations of the host.
    pub host: &'a Operations,
    /// The build that answered.
    pub serving: &'a Arc<Serving>,
    /// The operation that ends.
    pub ending: &'a mut Ending,
}

impl Answered<'_> {
    pub(crate) fn id(&self) -> OperationId {
        self.ending.id()
    }

    /// What was used so far: what providers answered, what they reported with `meter`, and what the
    /// host's own imports used.
    pub(crate) fn usage(&mut self) -> Vec<Usage> {
        self.ending.usage().to_vec()
    }

    /// Records that these snippets, at most so many of them, are what the caller gets.
    pub(crate) fn returns(&mut self, snippets: &[Snippet]) {
        let handles = snippets
            .iter()
            .take(limits::MAX_RECORDED_HANDLES)
            .map(|found| found.handle.clone())
            .collect();
        self.ending.set_records(handles, snippets.len());
    }
}

/// The records that an operation has written, and how old their material is: a source or a scope
/// may have been forgotten since.
struct Arrived {
    serving: Arc<Serving>,
    scope: Scope,
    records: Vec<(RecordHandle, Option<SourceRef>)>,
    owner: Option<Owner>,
    since: Since,
}

impl Arrived {
    /// `None` if it has written nothing, or is the host's own.
    fn of<S: Step>(
        step: &S,
        ending: &Ending,
        serving: &Arc<Serving>,
        written: &[RecordHandle],
    ) -> Option<Self> {
        let ownership = step.ownership()?;
        if written.is_empty() || ending.is_systems() {
            return None;
        }
        let of_operation = &ending.operation().source;
        let with_source = |(number, handle): (usize, &RecordHandle)| {
            let own = step.record(number).and_then(|write| write.source.as_ref());
            (handle.clone(), own.or(of_operation.as_ref()).cloned())
        };
        Some(Self {
            serving: Arc::clone(serving),
            scope: ending.operation().scope.clone(),
            records: written.iter().enumerate().map(with_source).collect(),
            owner: ownership.owner().cloned(),
            since: step.since().unwrap_or(Since::Operation(ending.id())),
        })
    }
}

impl Operations {
    /// Runs an operation of a caller.
    ///
    /// # Errors
    /// As [`ServiceError`] says; the same for every operation.
    pub async fn operate<S: Step>(
        &self,
        caller: &Caller,
        step: &mut S,
    ) -> Result<S::Response, ServiceError> {
        let is_long = step.wanted() > MAX_SHORT_PAGE;
        let company = is_long.then(|| step.target().0.company_id.clone());
        // Pinned here: the future of an operation is kilobytes, and each layer would copy it.
        let task = pin!(self.run(caller, step));
        match company {
            Some(company) => in_turn(company.as_str(), usize::MAX, task).await,
            None => task.await,
        }
    }

    async fn run<S: Step>(
        &self,
        caller: &Caller,
        step: &mut S,
    ) -> Result<S::Response, ServiceError> {
        let checked = step.check_fields();
        let first = checked.clone().and_then(|()| step.check_first());
        let (scope, named) = step.target();
        self.tenancy.enter(caller, S::KIND, (&scope.company_id, named.is_some()), first).await?;
        let mut opened = self.begin(caller, S::KIND, step.target().0, checked.is_ok()).await?;
        let ready = match checked {
            Ok(()) => match step.stamp(caller) {
                Ok(()) => {
                    step.describe(&mut opened);
                    opened.set_reader(reader_of(caller, step.target().0));
                    self.ready(step, &mut opened).await
                }
                Err(denied) => Err((&denied).into()),
            },
            Err(error) => Err(error.into()),
        };
        let concluded = match ready {
            Err(refusal) => {
                let ended = step.refused(self, &opened, refusal);
                self.conclude(step, opened.without_a_call(), ended).await
            }
            Ok((serving, Writes { rows, lock })) => {
                let intended = opened.write_intent(rows).await?;
                drop(lock);
                self.call_provider(step, intended, serving).await
            }
        };
        Ok(concluded.into_result()?)
    }

    /// Everything that may refuse an operation before its provider is called.
    async fn ready<S: Step>(
        &self,
        step: &mut S,
        opened: &mut Opened,
    ) -> Result<(Arc<Serving>, Writes), Refusal> {
        step.check(self)?;
        let scope = step.target().0.clone();
        let binding = match step.target().1.is_none() && !step.handles().is_empty() {
            true => self.binding_of(&scope, step.handles()).await?,
            false => None,
        };
        let serving = self.admit(opened, &scope, binding.as_ref().or(step.target().1)).await?;
        self.narrow(step, opened, &serving);
        let prepared = step.prepare(self, opened, &serving).await;
        // Also where the change waits for a person: its operation has the text.
        if let Some(ownership) = step.ownership() {
            opened.set_ownership(&serving.binding, ownership);
        }
        prepared?;
        let intent = step.intent(self, opened.id()).await?;
        Ok((serving, intent))
    }

    /// Has the policies of the binding narrow the scope that a step is bound to.
    fn narrow<S: Step>(&self, step: &mut S, opened: &mut Opened, serving: &Serving) {
        let is_write = matches!(S::KIND, OperationKind::RecordUpsert | OperationKind::Capture)
            && !opened.is_systems();
        let guard = self.policies.guard(&opened.operation().principal, &serving.binding);
        if !guard.is_open() {
            let mut scope = step.target().0.clone();
            let access = match S::KIND {
                OperationKind::Forget | OperationKind::Correct => {
                    Access::Change { is_exact: step.names_exactly() }
                }
                kind if kind.is_read() => Access::Read,
                _ if is_write => Access::Add { metadata: step.metadata() },
                _ => Access::Other,
            };
            guard.narrow(&access, &mut scope);
            *step.target().0 = scope;
        }
        if is_write {
            // Its rows say whose the records are.
            opened.set_scope(step.target().0);
        }
    }

    async fn call_provider<S: Step>(
        &self,
        step: &mut S,
        intended: Intended,
        serving: Arc<Serving>,
    ) -> Concluded<S::Response> {
        let (mut ending, called) = self.call(step, intended, serving).await;
        let mut arrived = None;
        let ended = match called {
            Err(refusal) => Ended::Failed(refusal),
            Ok((serving, answer)) => {
                let Completion { records, record_count, usage } = step.completion(&answer);
                let written = if step.ownership().is_some() { records.clone() } else { Vec::new() };
                ending.set_records(records, record_count);
                ending.add_usage(usage);
                let mut answered = Answered { host: self, serving: &serving, ending: &mut ending };
                let finished = step.finish(&mut answered, answer).await;
                // What a source or a scope left that was forgotten meanwhile.
                arrived = Arrived::of(step, &ending, &serving, &written);
                let left = self.forget_late(arrived.as_ref()).await;
                if let (Some(arrived), Ok(gone)) = (&mut arrived, &left) {
                    arrived
                        .records
                        .retain(|(handle, _)| !gone.contains(&handle.provider_record_id));
                }
                let (finished, written) = match (finished, left) {
                    (finished, Ok(gone)) => (finished, without(written, &gone)),
                    (finished, Err(failure)) => (finished.and(Err(failure)), written),
                };
                // Also where the host failed: the provider has the records.
                let noted = self.note_written(step, &mut ending, &serving, &written).await;
                match finished.and_then(|response| noted.map(|()| response).map_err(Refusal::from))
                {
                    Ok(response) => Ended::Succeeded(response),
                    Err(failure) => Ended::Failed(ending.failure(failure)),
                }
            }
        };
        let concluded = self.conclude(step, ending, ended).await;
        // A request to forget that came between the check above and the writing of the rows has
        // found no rows, so check again.
        if let Err(refusal) = self.forget_late(arrived.as_ref()).await {
            tracing::error!(error = %refusal.error.message, "a record may stay although its source \
                or scope was forgotten while it was written; if somebody has just forgotten it, \
                forget it again");
        }
        concluded
    }

    /// Forgets what an operation has written of a source, or for a scope, that was forgotten after
    /// the host got the material. Answers which.
    async fn forget_late(&self, arrived: Option<&Arrived>) -> Result<HashSet<RecordId>, Refusal> {
        let Some(Arrived { serving, scope, records, owner, since }) = arrived else {
            return Ok(HashSet::new());
        };
        let records = records.clone();
        self.forget_arrived(&serving.binding, scope, records, owner.as_ref(), *since).await
    }

    /// Adds the rows of what an operation wrote. Where that fails, records without a row may be
    /// private.
    async fn note_written<S: Step>(
        &self,
        step: &S,
        ending: &mut Ending,
        serving: &Serving,
        written: &[RecordHandle],
    ) -> Result<(), StoreError> {
        let Some(ownership) = step.ownership() else { return Ok(()) };
        let made = |(number, handle)| Made {
            handle,
            origin: step.origin(number),
            write: step.record(number),
            created_by: step.created_by(number),
        };
        let made: Vec<Made<'_>> = written.iter().enumerate().map(made).collect();
        self.note_rows(ending, &serving.binding, ownership, &made)
            .await
            .inspect_err(|_| ending.rows_are_missing())
    }

    async fn conclude<S: Step>(
        &self,
        step: &mut S,
        mut ending: Ending,
        mut ended: Ended<S::Response>,
    ) -> Concluded<S::Response> {
        if let Err(error) = ending.charge() {
            ended = ended.or_failed(ending.failure(error.into()));
        }
        let Writes { rows, lock } = match step.writes(self, &mut ending, &ended).await {
            Ok(writes) => writes,
            Err(failure) => {
                // The step may have something else to write for a failure, such as when to try
                // again.
                ended = ended.or_failed(ending.failure(failure));
                step.writes(self, &mut ending, &ended).await.unwrap_or_default()
            }
        };
        let concluded = ending.complete(ended, rows).await;
        drop(lock);
        concluded
    }
}

/// `records` minus `gone`.
fn without(mut records: Vec<RecordHandle>, gone: &HashSet<RecordId>) -> Vec<RecordHandle> {
    records.retain(|handle| !gone.contains(&handle.provider_record_id));
    records
}
