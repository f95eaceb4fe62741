//! Where a record lives: a handle names a provider and a record, and the rows say at which binding
//! it is.

use async_recursion::async_recursion as boxed;
use std::sync::Arc;

use crate::Service;
use crate::access::Caller;
use crate::error::ServiceError;
use memhost_types::{
    Binding, BindingKey, FieldError, RecordHandle, RecordRow, Refusal, Scope, Snippet,
};

impl Service {
    /// What the host knows of records that an operation of this caller and scope has answered, in
    /// their order; none where it knows nothing of one.
    ///
    /// # Errors
    /// Where the scope is not the caller's, no binding answers for it, or the store fails.
    #[boxed]
    pub async fn rows_of(
        &self,
        caller: &Caller,
        scope: &Scope,
        named: Option<&BindingKey>,
        found: &[Snippet],
    ) -> Result<Vec<Option<RecordRow>>, ServiceError> {
        let mut scope = scope.clone();
        caller.confine(&mut scope).map_err(ServiceError::Denied)?;
        let binding =
            self.bindings.resolve(&scope.company_id, scope.agent_id.as_ref(), named)?.binding;
        let mut rows = Vec::with_capacity(found.len());
        for record in found {
            rows.push(self.records.row(&binding, &record.handle.provider_record_id).await?);
        }
        Ok(rows)
    }

    /// The binding that has the records of a request which names none; none where the rows say
    /// nothing of them, or where it is the one that the scope resolves to.
    ///
    /// # Errors
    /// Where they are at several bindings, or the store fails.
    pub(crate) async fn home_of(
        &self,
        scope: &Scope,
        handles: &[RecordHandle],
    ) -> Result<Option<BindingKey>, Refusal> {
        let company = &scope.company_id;
        let all = self.bindings.list(company);
        let active = self.bindings.resolve(company, scope.agent_id.as_ref(), None).ok();
        let active = active.map(|resolution| resolution.binding);
        // Most companies have one binding, and then there is nothing to look up.
        if all.len() < 2 && active.is_some() {
            return Ok(None);
        }
        let mut home: Option<Arc<Binding>> = None;
        for handle in handles {
            let others = all
                .iter()
                .filter(|other| active.as_ref().is_none_or(|active| active.id != other.id));
            let mut found = None;
            for binding in
                active.iter().chain(others).filter(|one| one.provider_key == handle.provider_key)
            {
                if self.records.row(binding, &handle.provider_record_id).await?.is_some() {
                    found = Some(Arc::clone(binding));
                    break;
                }
            }
            match (&home, found) {
                (_, None) => {}
                (None, found) => home = found,
                (Some(home), Some(found)) if home.id == found.id => {}
                (Some(home), Some(found)) => {
                    let message = format!(
                        "are at several bindings, such as `{}` and `{}`; ask for those of one \
                         binding at a time",
                        home.key, found.key
                    );
                    return Err(FieldError::new("handles", message).into());
                }
            }
        }
        Ok(home.map(|binding| binding.key.clone()))
    }
}
