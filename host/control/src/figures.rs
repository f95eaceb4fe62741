//! Reads rows of records and operations, for the figures of systems in front.

use async_recursion::async_recursion as boxed;

use crate::Control;
use memhost_store as store;
use memhost_tenancy::ServiceError;
use memhost_types::{BindingKey, CompanyId, Operation, OperationFilter, RecordRow};

impl Control {
    /// Reads the first `most` rows of the records of a company's default or named binding, and
    /// answers which binding that is. `None`: there is none.
    ///
    /// # Errors
    /// Where they cannot be read.
    #[boxed]
    pub async fn each_row(
        &self,
        company: &CompanyId,
        binding: Option<&BindingKey>,
        most: usize,
        each: &mut (dyn FnMut(RecordRow) + Send),
    ) -> Result<Option<BindingKey>, ServiceError> {
        let Ok(resolved) = self.bindings.resolve(company, None, binding) else { return Ok(None) };
        let mut rows = self.records.rows(company, resolved.binding.id);
        for _ in 0..most {
            let Some(row) = rows.next().await? else { break };
            each(row);
        }
        Ok(Some(resolved.binding.key.clone()))
    }

    /// Reads the newest `most` operations of a company that match, newest first.
    ///
    /// # Errors
    /// Where they cannot be read.
    #[boxed]
    pub async fn each_operation(
        &self,
        company: &CompanyId,
        filter: &OperationFilter,
        most: usize,
        each: &mut (dyn FnMut(Operation) + Send),
    ) -> Result<(), ServiceError> {
        let mut operations = store::scan_operations(&*self.store, company, filter);
        for _ in 0..most {
            let Some(operation) = operations.next().await? else { break };
            each(operation);
        }
        Ok(())
    }
}
