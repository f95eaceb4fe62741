//! Where a company's secrets are stored, encrypted. A stored secret opens only as what it was set
//! as: its company, its name, its origins and its place in a request.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::ServiceError;
use crate::host::vault::{Vault, VaultError};
use memhost_sandbox::{GrantedSecret, Secret};
use memhost_store::{self as store, Change, Store, StoreError, Table};
use memhost_types::{CompanyId, Origin, SecretUse};

/// The most secrets of one company.
pub(crate) const MAX_SECRETS: usize = 1_000;

/// A secret as it is shown: everything but its value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SecretView {
    /// What placeholders and grants name.
    pub name: String,
    /// Where it may be sent.
    pub origins: Vec<Origin>,
    /// Where in a request it may be.
    pub used_as: SecretUse,
    /// When its value was set last.
    pub set_at: Timestamp,
}

#[derive(Serialize, Deserialize)]
pub(crate) struct StoredSecret {
    pub(crate) view: SecretView,
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
        store::company_key(company, name.as_bytes())
    }

    /// The change that stores a secret, or removes it.
    pub(crate) fn change(company: &CompanyId, name: &str, new: Option<Vec<u8>>) -> Change {
        Change::always(Table::Secrets, Self::key(company, name), new)
    }

    /// What a value is sealed with. Who can write to the store cannot move a value to another name,
    /// origin or place.
    fn context(company: &CompanyId, view: &SecretView) -> Result<Vec<u8>, StoreError> {
        let view = store::encode("secret", view)?;
        let parts = [b"memhost secret".as_slice(), company.as_str().as_bytes(), &view];
        Ok(parts
            .iter()
            .flat_map(|part| [&(part.len() as u64).to_be_bytes(), *part].concat())
            .collect())
    }

    pub(crate) async fn read(
        &self,
        company: &CompanyId,
        name: &str,
    ) -> Result<Option<StoredSecret>, StoreError> {
        let stored = self.store.get(Table::Secrets, &Self::key(company, name)).await?;
        stored.map(|bytes| store::decode("secret", &bytes)).transpose()
    }

    pub(crate) async fn list(&self, company: &CompanyId) -> Result<Vec<SecretView>, StoreError> {
        let mut rows = store::scan_all(&*self.store, Table::Secrets, &Self::key(company, ""));
        let mut all = Vec::new();
        while let Some((_, secret)) = rows.next_row::<StoredSecret>("secret").await? {
            all.push(secret.view);
        }
        Ok(all)
    }

    pub(crate) fn seal(
        &self,
        company: &CompanyId,
        view: &SecretView,
        value: &str,
    ) -> Result<Vec<u8>, ServiceError> {
        let sealed = self.vault.seal(&Self::context(company, view)?, value)?;
        Ok(store::encode(
            "secret",
            &StoredSecret { view: view.clone(), sealed: BASE64.encode(sealed) },
        )?)
    }

    /// The secrets of these names that are set. One that does not open is left out: requests that
    /// name it are refused.
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
                    let SecretView { origins, used_as, .. } = stored.view;
                    all.push(GrantedSecret { secret, origins, used_as });
                }
                Err(reason) => {
                    tracing::error!(%company, secret = %name, reason, "a secret cannot be used");
                }
            }
        }
        Ok(all)
    }

    fn open(&self, company: &CompanyId, stored: &StoredSecret) -> Result<Secret, String> {
        let sealed =
            BASE64.decode(&stored.sealed).map_err(|_| "it is not stored as base64".to_owned())?;
        let context = Self::context(company, &stored.view).map_err(|error| error.to_string())?;
        let value = self
            .vault
            .open_sealed(&context, &sealed)
            .map_err(|error: VaultError| error.to_string())?;
        Secret::new(stored.view.name.clone(), value).map_err(|error| error.to_string())
    }

    /// Whether a secret of this name is set and opens.
    pub(crate) async fn is_usable(&self, company: &CompanyId, name: &str) -> bool {
        matches!(self.read(company, name).await, Ok(Some(stored)) if self.open(company, &stored).is_ok())
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
            used_as: SecretUse::bearer(),
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
