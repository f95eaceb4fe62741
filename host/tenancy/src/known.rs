//! Which companies this host has. Whatever an operator makes for a company makes it known: the
//! company itself, a binding, a token, a secret, an import of a company, a record. Any other
//! request to an unknown company is refused and leaves nothing, so that a wrong id does not become
//! a company.
//!
//! A known company has one row among the host's own. The row is written in one transaction with the
//! first entry of the company's activity log, or alone before an operator's first write.

use std::collections::{BTreeSet, HashSet};

use jiff::Timestamp;
use parking_lot::{Mutex, RwLock};
use serde::{Deserialize, Serialize};

use memhost_access::Caller;
use memhost_registry::CompanyRegister;
use memhost_store::{self as store, Change, Store, StoreError, Table};
use memhost_types::{CompanyId, Principal};

/// The prefix of the marks of erasures that are not complete.
pub(crate) const ERASING: &[u8] = b"erasing\0";
/// The prefix of the rows of known companies.
const KNOWN: &[u8] = b"company\0";
/// Requests to unknown companies that the process's log names in a minute. Further ones are only
/// counted.
const MOST_LOGGED: usize = 64;

/// The company that a key behind a prefix names.
pub(crate) fn named(key: &[u8], prefix: &[u8]) -> Option<CompanyId> {
    String::from_utf8_lossy(key.get(prefix.len()..)?).parse().ok()
}

/// The row of a known company.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Made {
    made_at: Timestamp,
    made_by: Principal,
}

/// The companies that this host has.
#[derive(Default)]
pub struct KnownCompanies {
    all: RwLock<BTreeSet<CompanyId>>,
    /// The minute, and who asked in it for which unknown company.
    logged: Mutex<(i64, HashSet<(String, CompanyId)>)>,
}

impl KnownCompanies {
    /// Reads the rows of a store.
    ///
    /// # Errors
    /// Where they cannot be read.
    pub async fn open(store: &dyn Store) -> Result<Self, StoreError> {
        let known = Self::default();
        known.reload(store).await?;
        Ok(known)
    }

    /// All of them, by id.
    pub(crate) fn all(&self) -> Vec<CompanyId> {
        self.all.read().iter().cloned().collect()
    }

    /// Reads the rows of the companies whose home this host is.
    pub(crate) async fn reload(&self, store: &dyn Store) -> Result<(), StoreError> {
        let mut rows = store::scan_all(store, Table::Host, KNOWN);
        while let Some((key, _)) = rows.next().await? {
            if let Some(company) = named(&key, KNOWN).filter(|company| store.is_home(company)) {
                self.add(&company);
            }
        }
        Ok(())
    }

    /// All companies, whichever host is their home, and those whose erasure was begun and is not
    /// complete, by id.
    pub(crate) async fn of_all_hosts(
        store: &dyn Store,
    ) -> Result<(Vec<CompanyId>, Vec<CompanyId>), StoreError> {
        let mut all = [Vec::new(), Vec::new()];
        for (prefix, found) in [KNOWN, ERASING].into_iter().zip(&mut all) {
            let mut rows = store::scan_all(store, Table::Host, prefix);
            while let Some((key, _)) = rows.next().await? {
                found.extend(named(&key, prefix));
            }
        }
        let [known, erasing] = all;
        Ok((known, erasing))
    }

    pub(crate) fn forget(&self, company: &CompanyId) {
        self.all.write().remove(company);
    }

    /// The change that removes the row of a company.
    pub(crate) fn removal(company: &CompanyId) -> Change {
        Change::always(Table::Host, [KNOWN, company.as_str().as_bytes()].concat(), None)
    }

    /// Whether the log names this request: each caller and company once in a minute, and some of a
    /// flood.
    pub(crate) fn is_to_log(&self, caller: &Caller, company: &CompanyId, now: Timestamp) -> bool {
        let minute = now.as_second().div_euclid(60);
        let mut logged = self.logged.lock();
        if logged.0 != minute {
            *logged = (minute, HashSet::new());
        }
        logged.1.len() < MOST_LOGGED && logged.1.insert((caller.key().to_owned(), company.clone()))
    }
}

impl CompanyRegister for KnownCompanies {
    fn has(&self, company: &CompanyId) -> bool {
        self.all.read().contains(company)
    }

    fn change(
        &self,
        company: &CompanyId,
        made_by: &Principal,
        made_at: Timestamp,
    ) -> Result<Change, StoreError> {
        let row = store::encode("company", &Made { made_at, made_by: made_by.clone() })?;
        Ok(Change::always(Table::Host, [KNOWN, company.as_str().as_bytes()].concat(), Some(row)))
    }

    fn add(&self, company: &CompanyId) {
        self.all.write().insert(company.clone());
    }
}
