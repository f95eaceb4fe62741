//! One operation that has a provider forget a scope at once.

use std::collections::HashSet;

use super::wanted::{Gone, Wanted, number};
use crate::prelude::*;
use crate::runner::Target;
use memhost_records::RowChanges;
use memhost_sandbox::ErasureAnswer;
use memhost_store::{self as store, Change};
use memhost_types::{BindingKey, FieldError, ForgetEffect, RecordHandle, RecordId, RecordRow};

/// Records whose rows are removed in one step.
const AT_ONCE: usize = 500;

/// Has a provider forget what is in the partition that a scope names. Records that the scope only
/// attributes to an agent are in no partition; they are forgotten one by one after this.
pub(super) struct ForgetAtOnce {
    wanted: Wanted,
    key: BindingKey,
    binding: Option<Arc<Serving>>,
    /// The records of the partition that the host knows.
    known: Vec<RecordHandle>,
    /// Those of an import that had not reached the provider yet.
    waited: HashSet<RecordId>,
    is_gone: bool,
}

impl ForgetAtOnce {
    pub(super) fn new(wanted: &Wanted, key: BindingKey) -> Self {
        let (known, waited) = (Vec::new(), HashSet::new());
        Self { wanted: wanted.clone(), key, binding: None, known, waited, is_gone: false }
    }

    /// The records that the provider has only hidden. It is not asked for them a second time.
    pub(super) fn hidden(self) -> HashSet<RecordId> {
        match self.is_gone {
            true => HashSet::new(),
            false => self.known.into_iter().map(|handle| handle.provider_record_id).collect(),
        }
    }

    /// Whether the provider sees a record in the partition: an agent is one only of its own
    /// records.
    fn is_in_partition(&self, row: &RecordRow) -> bool {
        self.wanted.scope.agent_id.is_none() || row.is_agents()
    }
}

impl Step for ForgetAtOnce {
    const KIND: OperationKind = OperationKind::Forget;
    type Answer = ErasureAnswer;
    type Response = Gone;

    fn target(&mut self) -> Target<'_> {
        (&mut self.wanted.scope, Some(&self.key))
    }

    /// A scope that is left out in part would be a larger one.
    fn names_exactly(&self) -> bool {
        true
    }

    /// It may read every row of the binding.
    fn wanted(&self) -> u32 {
        u32::MAX
    }

    fn check_fields(&self) -> Result<(), FieldError> {
        self.wanted.scope.check()
    }

    async fn prepare(
        &mut self,
        host: &Operations,
        opened: &mut Opened,
        serving: &Arc<Serving>,
    ) -> Result<(), Refusal> {
        opened.keep_payload(&serving.binding, &self.wanted.scope);
        let (binding, by) = (&serving.binding, opened.id());
        let is_meant = |row: &RecordRow| self.wanted.has(row, by) && self.is_in_partition(row);
        let what = self.wanted.selection();
        let rows = host.records.select(binding, what, usize::MAX, is_meant).await?;
        self.known = rows.into_iter().map(|row| row.handle).collect();
        // First: none of these is given to the provider any more.
        self.waited = host.forget_waiting(binding, &self.known).await?;
        self.binding = Some(Arc::clone(serving));
        Ok(())
    }

    /// First it is remembered: what is written from here on is forgotten by whoever writes it.
    async fn intent(&mut self, host: &Operations, id: OperationId) -> Result<Writes, Refusal> {
        let Some(serving) = &self.binding else { return Ok(Writes::default()) };
        Ok(host.remembered(&serving.binding, &self.wanted, id).await?.into())
    }

    async fn call(
        &self,
        serving: &Serving,
        id: OperationId,
    ) -> Result<Answer<ErasureAnswer>, Failure> {
        serving.instances.forget_scope(id, &self.wanted.scope).await
    }

    fn completion(&self, answer: &ErasureAnswer) -> Completion {
        let counted = answer.count.and_then(|count| usize::try_from(count).ok());
        let record_count = counted.unwrap_or(self.known.len());
        Completion { records: self.known.clone(), record_count, ..Completion::usage(&answer.usage) }
    }

    async fn finish(
        &mut self,
        answered: &mut Answered<'_>,
        answer: ErasureAnswer,
    ) -> Result<Gone, Refusal> {
        let (operation_id, host, binding) =
            (answered.id(), answered.host, &answered.serving.binding);
        self.is_gone = answer.effect == ForgetEffect::Hard;
        let origin = self.wanted.origin(operation_id);
        host.remove_traces_of(binding, &self.known, origin).await?;
        let records = self.known.iter().map(|handle| &handle.provider_record_id);
        // What is only hidden is still there, and stays whose it is.
        let gone: Vec<&RecordId> =
            records.filter(|record| self.is_gone || self.waited.contains(*record)).collect();
        for some in gone.chunks(AT_ONCE) {
            let changes = host.records.remove(binding, some.iter().copied()).await?;
            let writes: Vec<Change> = changes.writes.into_iter().map(Change::from).collect();
            answered.ending.change_rows(RowChanges { writes: Vec::new(), ..changes });
            store::write(&*host.store, &writes).await?;
        }
        let count = answer
            .count
            .map_or(number(self.known.len()), |count| u32::try_from(count).unwrap_or(u32::MAX));
        let (forgotten, hidden) =
            if self.is_gone { (count, 0) } else { (number(gone.len()), count) };
        Ok(Gone { operation_id, forgotten, hidden })
    }
}
