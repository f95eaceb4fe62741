//! The context of a page about one record.

use std::ops::Deref;
use std::sync::Arc;

use axum::extract::{FromRequestParts, Path};
use axum::http::request::Parts;

use super::scope::{ScopeQuery, address};
use crate::components::{CompanyView, Page, QueryParams, View};
use memhost_core::{Abilities, Act, Service};
use memhost_http::{Permission, Problem, ProblemCode, parse};
use memhost_types::{
    BindingKey, EXPLORER, GetRequest, GetResponse, OperationKind, RecordHandle, RecordId, Scope,
    Snippet,
};

/// The context of a page about one record, whose caller has the permission `P` in the company of
/// the address.
pub(crate) struct RecordView<P> {
    pub(super) binding: BindingKey,
    pub(super) id: RecordId,
    pub(super) scope: Scope,
    pub(super) handle: RecordHandle,
    pub(super) abilities: Abilities,
    pub(super) view: CompanyView<P>,
}

impl<P: Permission> FromRequestParts<Arc<Service>> for RecordView<P> {
    type Rejection = Problem;

    /// The binding in the address decides the provider.
    async fn from_request_parts(
        parts: &mut Parts,
        service: &Arc<Service>,
    ) -> Result<Self, Problem> {
        let view = CompanyView::<P>::from_request_parts(parts, service).await?;
        let names = Path::<(String, String, String)>::from_request_parts(parts, service).await;
        let Path((_, binding, id)) =
            names.map_err(|rejection| Problem::invalid(rejection.to_string()))?;
        let query = QueryParams::<ScopeQuery>::from_request_parts(parts, service).await?.query;
        let binding: BindingKey = parse("bindingKey", &binding)?;
        let id: RecordId = parse("providerRecordId", &id)?;
        let scope = query.of(&view.company);
        let kind = if let Act::Operate(kind) = P::ACT { kind } else { OperationKind::Get };
        let abilities = service
            .control()
            .abilities(&view.caller, kind, &mut scope.clone(), Some(&binding))
            .await?;
        let Some(provider_key) = abilities.provider_key.clone() else {
            let detail = format!(
                "the company {} has no binding `{binding}`; see its list of bindings",
                view.company
            );
            return Err(Problem::new(ProblemCode::NoBinding, detail));
        };
        let handle = RecordHandle { provider_key, provider_record_id: id.clone() };
        Ok(Self { binding, id, scope, handle, abilities, view })
    }
}

impl<P> Deref for RecordView<P> {
    type Target = View;

    fn deref(&self) -> &View {
        &self.view
    }
}

impl<P> RecordView<P> {
    /// The address of a page about the record: `records`, `correct` or `forget`.
    pub(super) fn path(&self, page: &str) -> String {
        address(&self.at(&[page, self.binding.as_str(), self.id.as_str()]), None, &self.scope)
    }

    /// The address of the list that the record is in.
    pub(super) fn list(&self) -> String {
        address(&self.at(&["records"]), Some(&self.binding), &self.scope)
    }

    /// A page below the list.
    pub(super) fn page<'a>(&'a self, title: &'a str, about: &'a str) -> Page<'a> {
        Page::new(self, title, about).crumb("Records", self.list())
    }

    /// The record, if this scope sees it.
    pub(super) async fn get(&self) -> Result<Option<Snippet>, Problem> {
        Ok(self.read().await?.record)
    }

    /// The same, with what the host knows of it.
    pub(super) async fn read(&self) -> Result<GetResponse, Problem> {
        let request = GetRequest {
            binding_key: Some(self.binding.clone()),
            scope: self.scope.clone(),
            handle: self.handle.clone(),
        };
        Ok(self.service.operations().get(&self.caller.clone().through(EXPLORER), request).await?)
    }
}
