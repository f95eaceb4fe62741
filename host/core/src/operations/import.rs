//! Import: takes in the lines of an export.

use crate::operations::prelude::*;
use crate::operations::privacy::private;
use async_recursion::async_recursion as boxed;
use memhost_sandbox::ImportAnswer;
use memhost_types::{BindingKey, ImportRequest, ImportResponse, Scope};

impl Service {
    /// Imports whole lines of an export: all of them or none, and what is there already only once.
    ///
    /// # Errors
    /// As [`ServiceError`] says; `unsupported` where the provider does not export `transfer`.
    #[boxed]
    pub async fn import_records(
        &self,
        caller: &Caller,
        request: ImportRequest,
    ) -> Result<ImportResponse, ServiceError> {
        self.operate(caller, &mut Import(request)).await
    }

    /// The same for the import of a whole company. Answers how many lines made or changed a record.
    pub(crate) async fn import_lines(
        &self,
        scope: Scope,
        key: &BindingKey,
        lines: String,
    ) -> Result<u32, ServiceError> {
        let request = ImportRequest { binding_key: Some(key.clone()), scope, lines };
        Ok(self.import_records(&Caller::system(), request).await?.imported)
    }
}

struct Import(ImportRequest);

impl Step for Import {
    const KIND: OperationKind = OperationKind::Import;
    type Answer = ImportAnswer;
    type Response = ImportResponse;

    asks_with!(0);

    async fn prepare(&mut self, _: &Service, _: &mut Opened, serving: &Arc<Serving>) -> Result<(), Refusal> {
        private(serving, &mut self.0)
    }

    async fn call(&self, serving: &Serving, _: OperationId) -> Result<Answer<ImportAnswer>, Failure> {
        serving.instances.import(&self.0.scope, &self.0.lines).await
    }

    fn completion(&self, answer: &ImportAnswer) -> Completion {
        Completion { record_count: answer.imported as usize, ..Completion::default() }
    }

    async fn finish(&mut self, answered: &mut Answered<'_>, answer: ImportAnswer) -> Result<ImportResponse, Refusal> {
        answered.queue_provider_review(&self.0.scope).await?;
        answered.discover_jobs(&self.0.scope).await?;
        let ImportAnswer { imported, unchanged } = answer;
        Ok(ImportResponse { operation_id: answered.id(), imported, unchanged })
    }
}
