//! The control plane of secrets. An operator sets them and the sandbox puts them into outgoing
//! requests. No call returns their values.

use async_recursion::async_recursion as boxed;

use crate::Control;
use memhost_access::Caller;
use memhost_registry::NewActivity;
use memhost_registry::secrets::{SecretChange, SecretView, SetSecret};
use memhost_tenancy::ServiceError;
use memhost_types::{ActivityAction, CompanyId};

impl Control {
    /// Sets a secret. It replaces one of the same name.
    ///
    /// # Errors
    /// Where the name, the value, the origins or the place is not valid.
    #[boxed]
    pub async fn set_secret(
        &self,
        caller: &Caller,
        company: &CompanyId,
        name: &str,
        request: SetSecret,
    ) -> Result<SecretView, ServiceError> {
        let (view, change) = self.secrets.set(company, name, request, self.clock.now()).await?;
        self.write_secret(caller, company, (name, ActivityAction::SecretSet), change).await?;
        Ok(view)
    }

    /// Removes a secret.
    ///
    /// # Errors
    /// Where there is none of this name.
    #[boxed]
    pub async fn remove_secret(
        &self,
        caller: &Caller,
        company: &CompanyId,
        name: &str,
    ) -> Result<(), ServiceError> {
        let change = self.secrets.remove(company, name).await?;
        self.write_secret(caller, company, (name, ActivityAction::SecretRemoved), change).await
    }

    /// A company's secrets, by name, without their values.
    ///
    /// # Errors
    /// Where they cannot be read.
    #[boxed]
    pub async fn secrets(&self, company: &CompanyId) -> Result<Vec<SecretView>, ServiceError> {
        Ok(self.secrets.list(company).await?)
    }

    async fn write_secret(
        &self,
        caller: &Caller,
        company: &CompanyId,
        (name, action): (&str, ActivityAction),
        SecretChange { before, after, row }: SecretChange,
    ) -> Result<(), ServiceError> {
        let entry = NewActivity::new(caller.principal(), action, name)
            .with(before.as_ref(), after.as_ref());
        self.activity.record_with(company, entry, vec![row]).await?;
        Ok(self.serving.renew_secrets(company).await?)
    }
}
