//! Export: everything that a binding holds, in the provider's own lines. `record_upsert` would lose
//! when a record was made and what else only the provider knows of it; these lines lose nothing.

use crate::guard::{moves_on, page_digest};
use crate::prelude::*;
use async_recursion::async_recursion as boxed;
use memhost_sandbox::{ChunkAnswer, OptionalInterface};
use memhost_types::{Binding, ExportPage, ExportRequest, QueryDigest, Scope};

impl Operations {
    /// A part of everything that a binding holds.
    ///
    /// # Errors
    /// As [`ServiceError`] says; `unsupported` where the provider does not export `transfer`, or
    /// where the host holds records of the binding for a person; a cursor that is not of this
    /// export is an invalid `cursor`.
    #[boxed]
    pub async fn export_records(
        &self,
        caller: &Caller,
        request: ExportRequest,
    ) -> Result<ExportPage, ServiceError> {
        self.operate(caller, &mut Export::new(request, false)).await
    }

    /// The same for the export of a whole company, with the records that wait for a person.
    ///
    /// # Errors
    /// As [`ServiceError`] says.
    #[boxed]
    pub async fn lines_of(
        &self,
        binding: &Binding,
        cursor: Option<String>,
    ) -> Result<ExportPage, ServiceError> {
        let (binding_key, scope) =
            (Some(binding.key.clone()), Scope::company(binding.company_id.clone()));
        let request = ExportRequest { binding_key, scope, cursor };
        self.operate(&Caller::system(), &mut Export::new(request, true)).await
    }

    /// Whether the provider that serves a binding can export lines of its own.
    #[boxed]
    pub async fn writes_lines(&self, binding: &Arc<Binding>) -> bool {
        let serving = self.serving.get(binding).await;
        serving.is_ok_and(|serving| serving.plugin.component.exports(OptionalInterface::Transfer))
    }
}

struct Export {
    request: ExportRequest,
    /// The provider's own cursor.
    cursor: Option<String>,
    shows_hidden: bool,
}

impl Export {
    fn new(request: ExportRequest, shows_hidden: bool) -> Self {
        Self { request, cursor: None, shows_hidden }
    }

    fn digest(&self, serving: &Serving) -> QueryDigest {
        page_digest("export", serving, &self.request.scope, b"")
    }
}

impl Step for Export {
    const KIND: OperationKind = OperationKind::Export;
    type Answer = ChunkAnswer;
    type Response = ExportPage;

    asks_with!(request);

    async fn prepare(
        &mut self,
        host: &Operations,
        _: &mut Opened,
        serving: &Arc<Serving>,
    ) -> Result<(), Refusal> {
        if !self.shows_hidden {
            host.holds_nothing(serving)?;
            host.shares_all(serving)?;
            if self.request.cursor.is_none() {
                // The host cannot read the lines, so it cannot leave anything out of them.
                host.forget_expired_at(&serving.binding, &|| true).await;
            }
        }
        self.cursor =
            host.tenancy.provider_cursor(&self.digest(serving), self.request.cursor.as_deref())?;
        Ok(())
    }

    async fn call(
        &self,
        serving: &Serving,
        _: OperationId,
    ) -> Result<Answer<ChunkAnswer>, Failure> {
        serving.instances.export(&self.request.scope, self.cursor.as_deref()).await
    }

    fn completion(&self, answer: &ChunkAnswer) -> Completion {
        Completion { record_count: answer.lines.lines().count(), ..Completion::default() }
    }

    async fn finish(
        &mut self,
        answered: &mut Answered<'_>,
        answer: ChunkAnswer,
    ) -> Result<ExportPage, Refusal> {
        moves_on(answered.serving, self.cursor.as_deref(), answer.next.as_deref())?;
        let digest = self.digest(answered.serving);
        let next_cursor =
            answer.next.map(|cursor| answered.host.cursors.seal(&digest, cursor.as_bytes()));
        Ok(ExportPage { operation_id: answered.id(), lines: answer.lines, next_cursor })
    }
}
