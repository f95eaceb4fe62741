//! The secrets of companies, encrypted: the table `Secrets`. A stored secret opens only as what it
//! was set as: its company, its name, its origins and its place in a request.

mod key;
mod vault;

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use key::key_from_env_or_file;
use memhost_sandbox::{GrantedSecret, Secret, SecretError};
use memhost_store::{self as store, Change, Store, StoreError, Table};
use memhost_types::{CompanyId, FieldError, Origin, SecretUse};
pub use vault::{Vault, VaultError};

/// The most secrets of one company.
const MAX_SECRETS: usize = 1_000;
/// The most origins of one secret.
const MAX_ORIGINS: usize = 64;

/// Why a secret was not set or removed.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum SetSecretError {
    #[error(transparent)]
    Field(#[from] FieldError),
    #[error("the company has no secret `{name}`; `memhost secret list` shows those that are set")]
    NotFound { name: String },
    #[error(transparent)]
    Vault(#[from] VaultError),
    #[error(transparent)]
    Store(#[from] StoreError),
}

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

/// A secret as it is shown: everything but its value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SecretView {
    /// The name in placeholders and grants.
    pub name: String,
    /// Where it may be sent.
    pub origins: Vec<Origin>,
    /// Where in a request it may be.
    pub used_as: SecretUse,
    /// When its value was set last.
    pub set_at: Timestamp,
}

#[derive(Serialize, Deserialize)]
struct StoredSecret {
    view: SecretView,
    /// In base64.
    sealed: String,
}

/// A change of a secret that is about to be written.
pub struct SecretChange {
    /// The secret as it is; `None`: there is none of this name.
    pub before: Option<SecretView>,
    /// The secret as it will be; `None`: it is removed.
    pub after: Option<SecretView>,
    /// The change of its row.
    pub row: Change,
}

/// Every company's secrets.
pub struct SecretStore {
    store: Arc<dyn Store>,
    vault: Vault,
}

impl SecretStore {
    /// The secrets of a store, encrypted with the key of a vault.
    pub fn new(store: Arc<dyn Store>, vault: Vault) -> Self {
        Self { store, vault }
    }

    /// Whether a store has a secret of any company.
    ///
    /// # Errors
    /// Where it cannot be read.
    pub async fn has_any(store: &dyn Store) -> Result<bool, StoreError> {
        Ok(!store.scan(Table::Secrets, b"", None, 1).await?.entries.is_empty())
    }

    fn key(company: &CompanyId, name: &str) -> Vec<u8> {
        store::company_key(company, name.as_bytes())
    }

    /// A secret and the change that sets it. It replaces one of the same name.
    ///
    /// # Errors
    /// Where the name, the value, the origins or the place is not valid, or the company has as many
    /// secrets as it may have. No error contains the value.
    pub async fn set(
        &self,
        company: &CompanyId,
        name: &str,
        request: SetSecret,
        set_at: Timestamp,
    ) -> Result<(SecretView, SecretChange), SetSecretError> {
        let SetSecret { value, origins, used_as } = request;
        if origins.is_empty() || origins.len() > MAX_ORIGINS {
            let message = format!("has {} entries; 1 to {MAX_ORIGINS} are allowed", origins.len());
            return Err(FieldError::new("origins", message).into());
        }
        Secret::new(name, value.as_str()).map_err(|error| match error {
            SecretError::Name => {
                FieldError::new("name", "is not 1 to 64 of A-Z, a-z, 0-9, `_` and `-`")
            }
            SecretError::Value { problem, .. } => FieldError::new("value", problem),
            error => FieldError::new("value", error.to_string()),
        })?;
        let before = self.read(company, name).await?.map(|stored| stored.view);
        if before.is_none() && self.list(company).await?.len() >= MAX_SECRETS {
            let message =
                format!("would be one too many; a company has at most {MAX_SECRETS} secrets");
            return Err(FieldError::new("name", message).into());
        }
        let used_as =
            used_as.checked().map_err(|error| FieldError::new("usedAs", error.to_string()))?;
        used_as.check_value(&value).map_err(|error| FieldError::new("value", error.to_string()))?;
        let view = SecretView { name: name.to_owned(), origins, used_as, set_at };
        let sealed = self.vault.seal(&Self::context(company, &view)?, &value)?;
        let stored = StoredSecret { view: view.clone(), sealed: BASE64.encode(sealed) };
        let new = Some(store::encode("secret", &stored)?);
        let row = Change::always(Table::Secrets, Self::key(company, name), new);
        Ok((view.clone(), SecretChange { before, after: Some(view), row }))
    }

    /// The change that removes a secret.
    ///
    /// # Errors
    /// Where there is none of this name.
    pub async fn remove(
        &self,
        company: &CompanyId,
        name: &str,
    ) -> Result<SecretChange, SetSecretError> {
        let Some(stored) = self.read(company, name).await? else {
            return Err(SetSecretError::NotFound { name: name.chars().take(64).collect() });
        };
        let row = Change::always(Table::Secrets, Self::key(company, name), None);
        Ok(SecretChange { before: Some(stored.view), after: None, row })
    }

    /// The bytes that a value is sealed with. Whoever can write to the store cannot move a value to
    /// another name, origin or place.
    fn context(company: &CompanyId, view: &SecretView) -> Result<Vec<u8>, StoreError> {
        let view = store::encode("secret", view)?;
        let parts = [b"memhost secret".as_slice(), company.as_str().as_bytes(), &view];
        Ok(parts
            .iter()
            .flat_map(|part| [&(part.len() as u64).to_be_bytes(), *part].concat())
            .collect())
    }

    async fn read(
        &self,
        company: &CompanyId,
        name: &str,
    ) -> Result<Option<StoredSecret>, StoreError> {
        let stored = self.store.get(Table::Secrets, &Self::key(company, name)).await?;
        stored.map(|bytes| store::decode("secret", &bytes)).transpose()
    }

    /// A company's secrets, by name, without their values.
    ///
    /// # Errors
    /// Where they cannot be read.
    pub async fn list(&self, company: &CompanyId) -> Result<Vec<SecretView>, StoreError> {
        let mut rows = store::scan_all(&*self.store, Table::Secrets, &Self::key(company, ""));
        let mut all = Vec::new();
        while let Some((_, secret)) = rows.next_row::<StoredSecret>("secret").await? {
            all.push(secret.view);
        }
        Ok(all)
    }

    /// The secrets of these names that are set. One that does not open is left out: requests that
    /// name it are refused.
    ///
    /// # Errors
    /// Where they cannot be read.
    pub async fn granted(
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
    pub async fn is_usable(&self, company: &CompanyId, name: &str) -> bool {
        let stored = self.read(company, name).await;
        stored.is_ok_and(|stored| stored.is_some_and(|it| self.open(company, &it).is_ok()))
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

    use crate::testing::{id, store};

    const VALUE: &str = "correct-horse-battery";

    fn request(value: &str) -> SetSecret {
        SetSecret {
            value: value.to_owned(),
            origins: vec!["https://a.example".parse().unwrap()],
            used_as: SecretUse::bearer(),
        }
    }

    fn secrets(store: &Arc<dyn Store>, key: u8) -> SecretStore {
        SecretStore::new(Arc::clone(store), Vault::open([key; 32]))
    }

    async fn write(store: &Arc<dyn Store>, change: SecretChange) {
        assert!(store::write(&**store, &[change.row]).await.unwrap());
    }

    async fn set(store: &Arc<dyn Store>, company: &str, name: &str) -> SecretView {
        let (secrets, company) = (secrets(store, 1), id(company));
        let set = secrets.set(&company, name, request(VALUE), Timestamp::UNIX_EPOCH);
        let (view, change) = set.await.unwrap();
        write(store, change).await;
        view
    }

    async fn granted(secrets: &SecretStore, company: &str, name: &str) -> usize {
        secrets.granted(&id(company), &[name.to_owned()]).await.unwrap().len()
    }

    #[tokio::test]
    async fn a_secret_is_listed_without_its_value_and_opens_for_its_binding() {
        let store = store();
        assert!(!SecretStore::has_any(&*store).await.unwrap());
        let view = set(&store, "acme", "KEY").await;
        assert!(SecretStore::has_any(&*store).await.unwrap());
        let secrets = secrets(&store, 1);
        assert_eq!(secrets.list(&id("acme")).await.unwrap(), [view]);
        assert!(secrets.is_usable(&id("acme"), "KEY").await);
        assert_eq!(granted(&secrets, "acme", "KEY").await, 1);
        assert_eq!(granted(&secrets, "acme", "OTHER").await, 0);
        // Nor do others see it, whose names begin alike.
        assert!(secrets.list(&id("acme2")).await.unwrap().is_empty());
        assert_eq!(granted(&secrets, "acme2", "KEY").await, 0);
        let row = store.get(Table::Secrets, &SecretStore::key(&id("acme"), "KEY")).await.unwrap();
        assert!(!String::from_utf8_lossy(&row.unwrap()).contains(VALUE));
    }

    #[tokio::test]
    async fn a_change_says_what_it_replaces_or_removes() {
        let store = store();
        let first = set(&store, "acme", "KEY").await;
        let secrets = secrets(&store, 1);
        let again = secrets.set(&id("acme"), "KEY", request("another-value"), first.set_at).await;
        let (view, change) = again.unwrap();
        assert_eq!((change.before.as_ref(), change.after.as_ref()), (Some(&first), Some(&view)));
        write(&store, change).await;
        let removed = secrets.remove(&id("acme"), "KEY").await.unwrap();
        assert_eq!((removed.before.as_ref(), removed.after.as_ref()), (Some(&view), None));
        write(&store, removed).await;
        let error = secrets.remove(&id("acme"), "KEY").await.err().unwrap();
        assert!(error.to_string().contains("no secret `KEY`"), "{error}");
        assert!(!SecretStore::has_any(&*store).await.unwrap());
    }

    #[tokio::test]
    async fn what_is_no_secret_is_refused_without_its_value() {
        let store = store();
        let secrets = secrets(&store, 1);
        let many = vec!["https://a.example".parse().unwrap(); MAX_ORIGINS + 1];
        for (name, request, field) in [
            ("KEY", SetSecret { origins: Vec::new(), ..request(VALUE) }, "origins"),
            ("KEY", SetSecret { origins: many, ..request(VALUE) }, "origins"),
            ("K EY", request(VALUE), "name"),
            ("", request(VALUE), "name"),
            ("KEY", request("short"), "value"),
            ("KEY", request("two\nlines-of-it"), "value"),
            ("KEY", SetSecret { used_as: SecretUse::Basic, ..request(VALUE) }, "value"),
        ] {
            let refused = secrets.set(&id("acme"), name, request, Timestamp::UNIX_EPOCH).await;
            let Err(SetSecretError::Field(error)) = refused else { panic!("{name}: {field}") };
            assert_eq!(error.field, field, "{error}");
            assert!(!error.to_string().contains("horse"), "{error}");
        }
    }

    #[tokio::test]
    async fn a_secret_of_another_vault_key_is_not_usable() {
        let store = store();
        set(&store, "acme", "KEY").await;
        let other = secrets(&store, 2);
        assert!(!other.is_usable(&id("acme"), "KEY").await);
        assert_eq!(granted(&other, "acme", "KEY").await, 0);
        assert_eq!(other.list(&id("acme")).await.unwrap().len(), 1, "it is still listed");
    }

    #[tokio::test]
    async fn a_row_that_was_moved_does_not_open() {
        let store = store();
        set(&store, "acme", "KEY").await;
        let key = SecretStore::key(&id("acme"), "KEY");
        let row = store.get(Table::Secrets, &key).await.unwrap().unwrap();
        let moved = SecretStore::key(&id("other"), "KEY");
        let change = Change::always(Table::Secrets, moved, Some(row.clone()));
        assert!(store::write(&*store, &[change]).await.unwrap());
        assert_eq!(granted(&secrets(&store, 1), "other", "KEY").await, 0);
        // Nor does it with another origin.
        let mut stored: StoredSecret = store::decode("secret", &row).unwrap();
        stored.view.origins = vec!["https://b.example".parse().unwrap()];
        let changed = Some(store::encode("secret", &stored).unwrap());
        let change = Change::always(Table::Secrets, key, changed);
        assert!(store::write(&*store, &[change]).await.unwrap());
        assert_eq!(granted(&secrets(&store, 1), "acme", "KEY").await, 0);
    }
}
