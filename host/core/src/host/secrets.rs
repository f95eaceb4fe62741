//! The control plane of secrets. An operator sets them and the sandbox puts them into outgoing
//! requests. No call returns their values.

use async_recursion::async_recursion as boxed;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::Service;
use crate::access::Caller;
use crate::bindings::NewActivity;
use crate::error::ServiceError;
use crate::host::secret_store::{MAX_SECRETS, SecretStore, SecretView};
use memhost_sandbox::{Secret, SecretError};
use memhost_types::{ActivityAction, CompanyId, FieldError, Origin, SecretUse};

/// The most origins of one secret.
const MAX_ORIGINS: usize = 64;

/// A request to set a secret. It has no `Debug`, so that its value is in no log.
#[derive(Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[allow(missing_debug_implementations, reason = "the value must not be shown")]
pub struct SetSecret {
    /// 1 to 8,192 bytes in one line.
    #[schemars(length(min = 8, max = 8192))]
    pub value: String,
    /// Where it may be sent; at least one.
    #[schemars(length(min = 1, max = 64))]
    pub origins: Vec<Origin>,
    /// Where in a request it may be: the one place where the server expects it. Elsewhere another
    /// user of the server could read it.
    pub used_as: SecretUse,
}

impl Service {
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
        if request.origins.is_empty() || request.origins.len() > MAX_ORIGINS {
            let message =
                format!("has {} entries; 1 to {MAX_ORIGINS} are allowed", request.origins.len());
            return Err(FieldError::new("origins", message).into());
        }
        // The error does not contain the value.
        Secret::new(name, request.value.as_str()).map_err(|error| match error {
            SecretError::Name => {
                FieldError::new("name", "is not 1 to 64 of A-Z, a-z, 0-9, `_` and `-`")
            }
            SecretError::Value { problem, .. } => FieldError::new("value", problem),
            error => FieldError::new("value", error.to_string()),
        })?;
        let before = self.secrets.read(company, name).await?.map(|stored| stored.view);
        if before.is_none() && self.secrets.list(company).await?.len() >= MAX_SECRETS {
            let message =
                format!("would be one too many; a company has at most {MAX_SECRETS} secrets");
            return Err(FieldError::new("name", message).into());
        }
        let SetSecret { value, origins, used_as } = request;
        let used_as =
            used_as.checked().map_err(|error| FieldError::new("usedAs", error.to_string()))?;
        used_as.check_value(&value).map_err(|error| FieldError::new("value", error.to_string()))?;
        let view = SecretView { name: name.to_owned(), origins, used_as, set_at: self.clock.now() };
        let new = Some(self.secrets.seal(company, &view, &value)?);
        let entry = NewActivity::new(caller.principal(), ActivityAction::SecretSet, name)
            .with(before.as_ref(), Some(&view));
        self.write_secret(company, name, new, entry).await?;
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
        let Some(stored) = self.secrets.read(company, name).await? else {
            return Err(ServiceError::NoSecret { name: name.chars().take(64).collect() });
        };
        let entry = NewActivity::new(caller.principal(), ActivityAction::SecretRemoved, name)
            .with(Some(&stored.view), None::<&SecretView>);
        self.write_secret(company, name, None, entry).await
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
        company: &CompanyId,
        name: &str,
        new: Option<Vec<u8>>,
        entry: NewActivity,
    ) -> Result<(), ServiceError> {
        self.bindings
            .record_with(company, entry, vec![SecretStore::change(company, name, new)])
            .await?;
        Ok(self.serving.renew_secrets(company).await?)
    }
}
