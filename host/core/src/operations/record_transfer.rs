//! Everything that a binding holds, out and in, in the provider's own lines: lossless, where `record_upsert` would lose
//! when a record was made and what else only the provider knows of it.

use std::sync::Arc;

use crate::operations::pipeline::closed;

use crate::operations::pipeline::end;

use crate::Service;
use crate::access::Caller;
use crate::error::ServiceError;
use crate::operations::pipeline::refuse;
use crate::operations::privacy::private;
use crate::operations::record::Completion;
use crate::versions::serving::Serving;
use memhost_sandbox::OptionalInterface;
use memhost_types::{
    Binding, BindingKey, ExportPage, ExportRequest, ImportRequest, ImportResponse, OperationKind, QueryDigest, Scope,
};

impl Service {
    /// A part of everything that a binding holds.
    ///
    /// # Errors
    /// As [`ServiceError`] says; `unsupported` where the provider does not export `transfer`, or where the host holds
    /// records of the binding for a person; a cursor that is not of this export is an invalid `cursor`.
    pub async fn export_records(&self, caller: &Caller, request: ExportRequest) -> Result<ExportPage, ServiceError> {
        self.export_part(caller, request, false).await
    }

    async fn export_part(
        &self,
        caller: &Caller,
        mut request: ExportRequest,
        shows_hidden: bool,
    ) -> Result<ExportPage, ServiceError> {
        let mut open = self.begin(caller, OperationKind::Export, &mut request.scope).await?;
        let operation_id = open.id().map_err(closed)?;
        let checked = request.check();
        let mut admitted = self.admit(&mut open, checked, &request.scope, request.binding_key.as_ref()).await;
        if !shows_hidden {
            admitted = admitted.and_then(|serving| self.holds_nothing(serving));
        }
        let serving = match admitted {
            Ok(serving) => serving,
            Err(refusal) => return refuse(open, refusal).await,
        };
        let digest = export_digest(&serving, &request.scope);
        let cursor = match self.provider_cursor(&digest, request.cursor.as_deref()) {
            Ok(cursor) => cursor,
            Err(error) => return refuse(open, error.into()).await,
        };
        let (scope, cursor) = (&request.scope, cursor.as_deref());
        let called =
            self.run(&mut open, serving, |serving| async move { serving.instances.export(scope, cursor).await }).await;
        let answer = end(open, called, |answer| Completion {
            record_count: answer.lines.lines().count(),
            ..Completion::default()
        })
        .await?;
        let next_cursor = answer.next.map(|cursor| self.cursors.seal(&digest, cursor.as_bytes()));
        Ok(ExportPage { operation_id, lines: answer.lines, next_cursor })
    }

    /// Takes whole lines of an export in: all of them or none, and what is there already only once.
    ///
    /// # Errors
    /// As [`ServiceError`] says; `unsupported` where the provider does not export `transfer`.
    pub async fn import_records(
        &self,
        caller: &Caller,
        mut request: ImportRequest,
    ) -> Result<ImportResponse, ServiceError> {
        let mut open = self.begin(caller, OperationKind::Import, &mut request.scope).await?;
        let operation_id = open.id().map_err(closed)?;
        let checked = request.check();
        let serving = match self.admit(&mut open, checked, &request.scope, request.binding_key.as_ref()).await {
            Ok(serving) => serving,
            Err(refusal) => return refuse(open, refusal).await,
        };
        if let Err(refusal) = private(&serving, &mut request) {
            return refuse(open, refusal).await;
        }
        open.write_intent(Vec::new()).await.map_err(ServiceError::Audit)?;
        let (scope, lines, asked) = (&request.scope, request.lines.as_str(), Arc::clone(&serving));
        let called =
            self.run(&mut open, serving, |serving| async move { serving.instances.import(scope, lines).await }).await;
        if called.is_ok() {
            self.discover_jobs(&mut open, &asked, scope).await?;
        }
        let answer =
            end(open, called, |answer| Completion { record_count: answer.imported as usize, ..Completion::default() })
                .await?;
        Ok(ImportResponse { operation_id, imported: answer.imported, unchanged: answer.unchanged })
    }

    /// Whether what serves a binding writes lines of its own.
    pub(crate) async fn writes_lines(&self, binding: &Arc<Binding>) -> bool {
        let serving = self.serving.get(binding).await;
        serving.is_ok_and(|serving| serving.plugin.component.exports(OptionalInterface::Transfer))
    }

    /// The same for the export of a whole company: what waits for a person goes with it.
    pub(crate) async fn lines_of(&self, binding: &Binding, cursor: Option<String>) -> Result<ExportPage, ServiceError> {
        let (binding_key, scope) = (Some(binding.key.clone()), Scope::company(binding.company_id.clone()));
        self.export_part(&Caller::system(), ExportRequest { binding_key, scope, cursor }, true).await
    }

    /// The same for the import of a whole company.
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

fn export_digest(serving: &Serving, scope: &Scope) -> QueryDigest {
    let scope = serde_json::to_vec(scope).unwrap_or_default();
    let binding = &serving.binding;
    QueryDigest::new([b"export".as_slice(), binding.company_id.as_str().as_bytes(), binding.id.0.as_bytes(), &scope])
}
