//! Import: takes in the lines of an export.

use std::borrow::Cow;

use crate::prelude::*;
use crate::privacy::private;
use async_recursion::async_recursion as boxed;
use memhost_access::Guard;
use memhost_sandbox::ImportAnswer;
use memhost_types::{
    BindingKey, ImportRequest, ImportResponse, OperationErrorCode, Scope, repair_surrogates,
};

impl Operations {
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
        self.operate(caller, &mut Import { request, is_last: true }).await
    }

    /// The same for the import of a whole company. Answers how many lines made or changed a record.
    /// `is_last`: no more lines for this binding follow, and the records are judged.
    ///
    /// # Errors
    /// As [`ServiceError`] says.
    #[boxed]
    pub async fn import_lines(
        &self,
        scope: Scope,
        key: &BindingKey,
        lines: String,
        is_last: bool,
    ) -> Result<u32, ServiceError> {
        let request = ImportRequest { binding_key: Some(key.clone()), scope, lines };
        Ok(self.operate(&Caller::system(), &mut Import { request, is_last }).await?.imported)
    }
}

struct Import {
    request: ImportRequest,
    is_last: bool,
}

impl Step for Import {
    const KIND: OperationKind = OperationKind::Import;
    type Answer = ImportAnswer;
    type Response = ImportResponse;

    asks_with!(request);

    async fn prepare(
        &mut self,
        _: &Operations,
        opened: &mut Opened,
        serving: &Arc<Serving>,
    ) -> Result<(), Refusal> {
        let binding = &serving.binding;
        if Guard::protection(&opened.operation().principal, binding).is_protecting() {
            let message = format!(
                "the binding `{}` keeps records of administrators from everybody else \
                 (`protectAdministrators`), and the lines of an import may replace some; import \
                 with the token of an operator or a company's administrator",
                binding.key
            );
            return Err(Refusal::new(OperationErrorCode::Forbidden, message));
        }
        if let Cow::Owned(repaired) = repair_surrogates(self.request.lines.as_bytes()) {
            self.request.lines = String::from_utf8_lossy(&repaired).into_owned();
        }
        private(serving, &mut self.request)
    }

    async fn call(
        &self,
        serving: &Serving,
        id: OperationId,
    ) -> Result<Answer<ImportAnswer>, Failure> {
        serving.instances.import(id, &self.request.scope, &self.request.lines).await
    }

    fn completion(&self, answer: &ImportAnswer) -> Completion {
        Completion { record_count: answer.imported as usize, ..Completion::default() }
    }

    async fn finish(
        &mut self,
        answered: &mut Answered<'_>,
        answer: ImportAnswer,
    ) -> Result<ImportResponse, Refusal> {
        if self.is_last {
            // A record stays in its partition, whoever imports it: so everything of the company is
            // looked at.
            answered.judge_imported(&Scope::company(self.request.scope.company_id.clone())).await?;
        }
        if self.is_last {
            answered.note_imported().await?;
        }
        answered.discover_jobs(&self.request.scope).await?;
        let ImportAnswer { imported, unchanged } = answer;
        Ok(ImportResponse { operation_id: answered.id(), imported, unchanged })
    }
}
