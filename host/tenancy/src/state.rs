//! Whether a company is open: erased, being erased, being imported. A tombstone is the row that
//! says that a company was erased; a mark beside it says that its erasure is not complete.

use std::sync::Arc;

use ed25519_dalek::Signer as _;

use crate::Tenancy;
use crate::error::ServiceError;
use crate::known::{ERASING, KnownCompanies, named};
use crate::settings::{Erased, ImportGuard, TOMBSTONE, Tombstone};
use memhost_access::AccessError;
use memhost_store::{self as store, Change, StoreError, Table, TableWrite};
use memhost_types::CompanyId;

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

impl Tenancy {
    /// Whether a company was erased.
    pub fn is_erased(&self, company: &CompanyId) -> bool {
        self.settings.erased.read().contains_key(company)
    }

    /// Whether everything of an erased company is gone.
    pub fn is_erasure_complete(&self, company: &CompanyId) -> bool {
        self.settings.erased.read().get(company).is_some_and(|erased| erased.tombstone.is_complete)
    }

    /// The companies whose erasure was begun and is not complete, by id.
    pub fn erasing(&self) -> Vec<CompanyId> {
        let erased = self.settings.erased.read();
        let open = erased.values().filter(|erased| !erased.tombstone.is_complete);
        let mut companies: Vec<CompanyId> =
            open.map(|erased| erased.tombstone.company_id.clone()).collect();
        companies.sort_unstable();
        companies
    }

    /// Why nothing can be done in an erased company. `None` if it was not erased.
    pub fn erased(&self, company: &CompanyId) -> Option<ServiceError> {
        let erased = self.tombstone(company)?;
        let Tombstone { is_complete, erased_by: by, erased_at: at, .. } = erased.tombstone.clone();
        Some(ServiceError::Erased { company: company.clone(), is_complete, by, at })
    }

    /// Why a company cannot be used now. `None` if it can.
    pub fn closed(&self, company: &CompanyId) -> Option<ServiceError> {
        if let Some(erased) = self.erased(company) {
            return Some(erased);
        }
        self.is_importing(company).then(|| ServiceError::Importing { company: company.clone() })
    }

    /// Whether a company is being imported.
    pub fn is_importing(&self, company: &CompanyId) -> bool {
        self.settings.importing.read().contains(company)
    }

    /// The tombstone of an erased company.
    pub fn tombstone(&self, company: &CompanyId) -> Option<Arc<Erased>> {
        self.settings.erased.read().get(company).cloned()
    }

    /// Begins the import of a company. `None` if it is being imported already.
    pub fn begin_import(&self, company: &CompanyId) -> Option<ImportGuard<'_>> {
        self.settings.begin_import(company)
    }

    /// Companies of this host whose erasure was cut short, by the marks in the store.
    ///
    /// # Errors
    /// Where they cannot be read.
    pub async fn cut_erasures(&self) -> Result<Vec<CompanyId>, StoreError> {
        let (mut found, mut marks) =
            (Vec::new(), store::scan_all(&*self.store, Table::Host, ERASING));
        while let Some((key, _)) = marks.next().await? {
            found.extend(named(&key, ERASING).filter(|company| self.store.is_home(company)));
        }
        Ok(found)
    }

    /// Writes a tombstone, and in the same step the mark of an erasure that is not complete, or its
    /// removal.
    ///
    /// # Errors
    /// Where it cannot be written.
    pub async fn write_tombstone(
        &self,
        tombstone: &Tombstone,
        goes_on: bool,
    ) -> Result<Arc<Erased>, ServiceError> {
        let text = serde_json::to_string(tombstone).map_err(ServiceError::host)?;
        let erased = Arc::new(Erased {
            tombstone: tombstone.clone(),
            signature: hex(&self.signing.sign(text.as_bytes()).to_bytes()),
            public_key: hex(self.signing.verifying_key().as_bytes()),
        });
        let key = [TOMBSTONE, tombstone.company_id.as_str().as_bytes()].concat();
        let change = Change::always(Table::Host, key, Some(store::encode("tombstone", &*erased)?));
        let mark = [ERASING, tombstone.company_id.as_str().as_bytes()].concat();
        let mark = Change::always(Table::Host, mark, goes_on.then(Vec::new));
        let known = KnownCompanies::removal(&tombstone.company_id);
        store::write(&*self.store, &[change, mark, known]).await?;
        self.settings.erased.write().insert(tombstone.company_id.clone(), Arc::clone(&erased));
        self.known.forget(&tombstone.company_id);
        Ok(erased)
    }

    /// Forgets what is cached of an erased company.
    pub fn forget(&self, company: &CompanyId) {
        self.settings.retention.write().remove(company);
    }

    /// Updates the tokens with a row that another process wrote.
    ///
    /// # Errors
    /// Where it cannot be read.
    pub fn follow(&self, row: &TableWrite) -> Result<(), AccessError> {
        self.tokens.follow(row)
    }

    /// Reads again how long operations are kept, after somebody else wrote it.
    ///
    /// # Errors
    /// Where it cannot be read.
    pub async fn reload_retention(&self, company: &CompanyId) -> Result<(), StoreError> {
        let key = store::company_key(company, b"retention");
        if let Some(stored) = self.store.get(Table::Companies, &key).await? {
            let retention = store::decode("retention", &stored)?;
            self.settings.retention.write().insert(company.clone(), retention);
        }
        Ok(())
    }

    /// Notes durably that something is about to be removed, or was, outside of an operation.
    ///
    /// # Errors
    /// Where it cannot be written.
    pub async fn note_forgetting(&self) -> Result<(), StoreError> {
        if let Some(change) = self.forgetting()? {
            store::write(&*self.store, &[change]).await?;
        }
        Ok(())
    }

    /// The same for changes that are written together with it.
    ///
    /// # Errors
    /// Where the mark cannot be encoded.
    pub fn forgetting(&self) -> Result<Option<Change>, StoreError> {
        Ok(self.oplog.mark_removal()?.map(Change::from))
    }
}
