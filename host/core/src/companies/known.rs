//! Which companies this host has. Whatever an operator makes for a company makes it known: the
//! company itself, a binding, a token, a secret, an import of a company, a record. Any other
//! request to an unknown company is refused and leaves nothing, so that a wrong id does not become
//! a company.
//!
//! A known company has one row among the host's own. The row is written in one transaction with the
//! first entry of the company's activity log, or alone before an operator's first write.

use async_recursion::async_recursion as boxed;
use std::collections::{BTreeSet, HashSet};

use jiff::Timestamp;
use parking_lot::{Mutex, RwLock};
use serde::{Deserialize, Serialize};

use crate::Service;
use crate::access::{Act, Caller};
use crate::error::ServiceError;
use crate::operations::runner::Target;
use memhost_registry::CompanyRegister;
use memhost_store::{self as store, Change, Store, StoreError, Table};
use memhost_types::{CompanyId, FieldError, OperationKind, Principal, nearest, visible};

/// The prefix of the rows of known companies.
const KNOWN: &[u8] = b"company\0";
/// Requests to unknown companies that the process's log names in a minute. Further ones are only
/// counted.
const MOST_LOGGED: usize = 64;

/// Known companies that an unknown one is compared with, and how many characters longer or shorter
/// they may be.
const MOST_COMPARED: usize = 256;
const MOST_WRONG: usize = 4;

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

    /// Reads the rows that other processes wrote, too.
    pub(crate) async fn reload(&self, store: &dyn Store) -> Result<(), StoreError> {
        let mut rows = store::scan_all(store, Table::Host, KNOWN);
        while let Some((key, _)) = rows.next().await? {
            if let Ok(company) = String::from_utf8_lossy(&key[KNOWN.len()..]).parse() {
                self.add(&company);
            }
        }
        Ok(())
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
    fn is_to_log(&self, caller: &Caller, company: &CompanyId, now: Timestamp) -> bool {
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

/// Whether an operation of this kind makes its company known where an operator asks for it. The
/// others change or read what is there, and in an unknown company nothing is there: the built-in
/// provider takes no lines of another one.
fn makes_company(kind: OperationKind) -> bool {
    matches!(kind, OperationKind::Capture | OperationKind::RecordUpsert)
}

impl Service {
    /// The companies that this host has, by id.
    pub fn companies(&self) -> Vec<CompanyId> {
        let all = self.known.all.read();
        all.iter().filter(|company| !self.is_erased(company)).cloned().collect()
    }

    /// Makes a company, without anything in it. Answers whether it is new; the call can be
    /// repeated.
    ///
    /// # Errors
    /// Where the company was erased or is being imported.
    #[boxed]
    pub async fn make_company(
        &self,
        caller: &Caller,
        company: &CompanyId,
    ) -> Result<bool, ServiceError> {
        if let Some(error) = self.closed(company) {
            return Err(self.shut_out(caller, Some(company), error).await);
        }
        if self.is_known(company) {
            return Ok(false);
        }
        let change = self.known.change(company, caller.principal(), self.clock.now())?;
        store::write(&*self.store, &[change]).await?;
        self.known.add(company);
        tracing::info!(%company, by = %caller.principal(), "a company was made");
        Ok(true)
    }

    pub(crate) fn is_known(&self, company: &CompanyId) -> bool {
        self.known.has(company)
    }

    /// Refuses a request to an unknown company: it is counted and named in the process's own log,
    /// because a company that does not exist has none. Only callers who may list companies are told
    /// of one that is like it.
    pub(crate) fn unknown(&self, caller: &Caller, company: &CompanyId) -> ServiceError {
        self.oplog.metrics.unknown_company();
        if self.known.is_to_log(caller, company, self.clock.now()) {
            let company = visible(company.as_str());
            tracing::warn!(
                company,
                by = %caller.principal(),
                "a request was refused: this host has no such company"
            );
        }
        let companies = match caller.may(Act::Host, None) {
            Ok(()) => self.companies(),
            Err(_) => Vec::new(),
        };
        // Comparing takes time for each of them.
        let alike = |known: &&CompanyId| {
            known.as_str().len().abs_diff(company.as_str().len()) <= MOST_WRONG
        };
        let alike = companies.iter().filter(alike).map(CompanyId::as_str).take(MOST_COMPARED);
        let near = nearest(company.as_str(), alike);
        ServiceError::UnknownCompany { company: company.clone(), near: near.map(str::to_owned) }
    }

    /// Refuses an operation in an unknown company, unless it is a write that makes the company:
    /// then it is made now, once, however many first writes come at a time. A write that cannot
    /// succeed makes none.
    pub(crate) async fn enter(
        &self,
        caller: &Caller,
        kind: OperationKind,
        (scope, named): Target<'_>,
        checked: Result<(), FieldError>,
    ) -> Result<(), ServiceError> {
        let company = &scope.company_id;
        let is_let_in =
            self.is_known(company) || caller.is_host() || self.closed(company).is_some();
        // What the caller may not do is refused in its own company.
        if is_let_in || caller.may(Act::Operate(kind), Some(company)).is_err() {
            return Ok(());
        }
        if !makes_company(kind) || named.is_some() || !self.zero_config {
            return Err(self.unknown(caller, company));
        }
        checked?;
        self.make_company(caller, company).await.map(drop)
    }
}
