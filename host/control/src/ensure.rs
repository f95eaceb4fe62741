//! Making sure that a company has a default binding, in one call that can be repeated.

use async_recursion::async_recursion as boxed;

use crate::Control;
use crate::bindings::{BindingView, CreateBinding, SetTarget};
use memhost_access::Caller;
use memhost_registry::BindingError;
use memhost_tenancy::ServiceError;
use memhost_types::CompanyId;

impl Control {
    /// The company's default binding. Where there is none, the binding of the request's key becomes
    /// it, and is made where it is missing. Answers whether anything was changed.
    ///
    /// # Errors
    /// As [`Control::create_binding`] says.
    #[boxed]
    pub async fn ensure_default_binding(
        &self,
        caller: &Caller,
        company: &CompanyId,
        request: CreateBinding,
    ) -> Result<(BindingView, bool), ServiceError> {
        if let Ok(present) = self.bindings.resolve(company, None, None) {
            return Ok((self.binding(company, &present.binding.key).await?, false));
        }
        let key = request.key.clone();
        match self.create_binding(caller, company, CreateBinding { default: true, ..request }).await
        {
            Ok(made) => Ok((made, true)),
            // It is there and not assigned, or another call has made it.
            Err(ServiceError::Binding(BindingError::Exists { .. })) => {
                let target = SetTarget { agent_id: None, binding_key: Some(key.clone()) };
                self.set_target(caller, company, target).await?;
                Ok((self.binding(company, &key).await?, true))
            }
            Err(error) => Err(error),
        }
    }
}
