//! A company's secrets: set by an operator, kept encrypted, put into outgoing requests by the sandbox, and shown to
//! nobody. A stored secret opens only as what it was set as: its company, its name, where it may go.

use async_recursion::async_recursion as boxed;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Service;
use crate::access::Caller;
use crate::bindings::NewActivity;
use crate::error::ServiceError;
use crate::host::vault::Vault;
use crate::host::vault::VaultError;
use crate::versions::serving::host;
use memhost_sandbox::{GrantedSecret, Secret};
use memhost_store::{self as store, Change, Expected, Store, StoreError, Table};
use memhost_types::{ActivityAction, CompanyId, FieldError, Origin};

/// Secrets of one company.
const MAX_SECRETS: usize = 1_000;
/// Where one secret may go.
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
    /// Whether it may be put into JSON bodies too. Texts of third parties are in bodies, and one that names the secret
    /// would then have it sent to these origins as part of the text.
    #[serde(default)]
    pub in_body: bool,
}

/// A secret as it is shown: everything but its value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SecretView {
    /// What placeholders and grants name.
    pub name: String,
    /// Where it may be sent.
    pub origins: Vec<Origin>,
    /// Whether it may be put into JSON bodies.
    pub in_body: bool,
    /// When its value was set last.
    pub set_at: Timestamp,
}

#[derive(Serialize, Deserialize)]
struct StoredSecret {
    view: SecretView,
    /// In base64.
    sealed: String,
}

/// Where secrets are kept.
pub(crate) struct SecretStore {
    store: Arc<dyn Store>,
    vault: Vault,
}

impl SecretStore {
    pub(crate) fn new(store: Arc<dyn Store>, vault: Vault) -> Self {
        Self { store, vault }
    }

    fn key(company: &CompanyId, name: &str) -> Vec<u8> {
        [company.as_str().as_bytes(), b"\0", name.as_bytes()].concat()
    }

    /// Whoever could write to the store must not be able to move a value to another name or origin.
    fn context(company: &CompanyId, view: &SecretView) -> Result<Vec<u8>, StoreError> {
        let view = store::encode("secret", view)?;
        let parts = [b"memhost secret".as_slice(), company.as_str().as_bytes(), &view];
        Ok(parts.iter().flat_map(|part| [&(part.len() as u64).to_be_bytes(), *part].concat()).collect())
    }

    async fn read(&self, company: &CompanyId, name: &str) -> Result<Option<StoredSecret>, StoreError> {
        let stored = self.store.get(Table::Secrets, &Self::key(company, name)).await?;
        stored.map(|bytes| store::decode("secret", &bytes)).transpose()
    }

    pub(crate) async fn list(&self, company: &CompanyId) -> Result<Vec<SecretView>, StoreError> {
        let page = self.store.scan(Table::Secrets, &Self::key(company, ""), None, MAX_SECRETS).await?;
        let views = page.entries.iter().map(|(_, bytes)| Ok(store::decode::<StoredSecret>("secret", bytes)?.view));
        views.collect()
    }

    fn seal(&self, company: &CompanyId, view: &SecretView, value: &str) -> Result<Vec<u8>, ServiceError> {
        let sealed = self.vault.seal(&Self::context(company, view)?, value)?;
        Ok(store::encode("secret", &StoredSecret { view: view.clone(), sealed: BASE64.encode(sealed) })?)
    }

    /// Those of the names that are set. One that does not open is left out: requests that name it are refused.
    pub(crate) async fn granted(
        &self,
        company: &CompanyId,
        names: &[String],
    ) -> Result<Vec<GrantedSecret>, StoreError> {
        let mut all = Vec::new();
        for name in names {
            let Some(stored) = self.read(company, name).await? else { continue };
            match self.open(company, &stored) {
                Ok(secret) => {
                    let SecretView { origins, in_body, .. } = stored.view;
                    all.push(GrantedSecret { secret, origins, in_body });
                }
                Err(reason) => tracing::error!(%company, secret = %name, reason, "a secret cannot be used"),
            }
        }
        Ok(all)
    }

    fn open(&self, company: &CompanyId, stored: &StoredSecret) -> Result<Secret, String> {
        let sealed = BASE64.decode(&stored.sealed).map_err(|_| "it is not stored as base64".to_owned())?;
        let context = Self::context(company, &stored.view).map_err(|error| error.to_string())?;
        let value = self.vault.open_sealed(&context, &sealed).map_err(|error: VaultError| error.to_string())?;
        Secret::new(stored.view.name.clone(), value).map_err(|error| error.to_string())
    }

    /// Whether a secret of this name is set and opens.
    pub(crate) async fn is_usable(&self, company: &CompanyId, name: &str) -> bool {
        matches!(self.read(company, name).await, Ok(Some(stored)) if self.open(company, &stored).is_ok())
    }
}

impl Service {
    /// Sets a secret, in the place of one of the same name.
    ///
    /// # Errors
    /// Where the name, the value or the origins will not do.
    #[boxed]
    pub async fn set_secret(
        &self,
        caller: &Caller,
        company: &CompanyId,
        name: &str,
        request: SetSecret,
    ) -> Result<SecretView, ServiceError> {
        if request.origins.is_empty() || request.origins.len() > MAX_ORIGINS {
            let message = format!("has {} entries; 1 to {MAX_ORIGINS} are allowed", request.origins.len());
            return Err(FieldError::new("origins", message).into());
        }
        // The error names what is wrong with the value and never the value.
        Secret::new(name, request.value.as_str()).map_err(|error| FieldError::new("value", error.to_string()))?;
        let before = self.secrets.read(company, name).await?.map(|stored| stored.view);
        if before.is_none() && self.secrets.list(company).await?.len() >= MAX_SECRETS {
            let message = format!("would be one too many; a company has at most {MAX_SECRETS} secrets");
            return Err(FieldError::new("name", message).into());
        }
        let SetSecret { value, origins, in_body } = request;
        let view = SecretView { name: name.to_owned(), origins, in_body, set_at: self.clock.now() };
        let new = Some(self.secrets.seal(company, &view, &value)?);
        let entry =
            NewActivity::new(caller.principal(), ActivityAction::SecretSet, name).with(before.as_ref(), Some(&view));
        self.write_secret(company, name, new, entry).await?;
        Ok(view)
    }

    /// Removes a secret.
    ///
    /// # Errors
    /// Where there is none of this name.
    #[boxed]
    pub async fn remove_secret(&self, caller: &Caller, company: &CompanyId, name: &str) -> Result<(), ServiceError> {
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
        let key = SecretStore::key(company, name);
        let change = Change { table: Table::Secrets, key, expected: Expected::Anything, new };
        self.bindings.record_with(company, entry, vec![change]).await?;
        self.serving.renew_secrets(company).await.map_err(|error| ServiceError::Host(host(&error).error.message))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_context_tells_its_parts_apart() {
        let view = |name: &str, origin: &str| SecretView {
            name: name.to_owned(),
            origins: vec![origin.parse().unwrap()],
            in_body: false,
            set_at: Timestamp::UNIX_EPOCH,
        };
        let context = |company: &str, name: &str, origin: &str| {
            SecretStore::context(&company.parse().unwrap(), &view(name, origin)).unwrap()
        };
        let one = context("acme", "KEY", "https://a.example");
        assert_eq!(one, context("acme", "KEY", "https://a.example"));
        assert_ne!(one, context("acme", "KEY", "https://b.example"));
        assert_ne!(one, context("acme2", "KEY", "https://a.example"));
        assert_ne!(one, context("acme", "KEY2", "https://a.example"));
    }
}
