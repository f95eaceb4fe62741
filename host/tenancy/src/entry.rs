//! Making companies, and refusing requests to companies that this host does not have.

use async_recursion::async_recursion as boxed;

use crate::Tenancy;
use crate::error::ServiceError;
use crate::known::KnownCompanies;
use memhost_access::{Act, Caller};
use memhost_registry::CompanyRegister as _;
use memhost_store as store;
use memhost_types::foreign::visible;
use memhost_types::{CompanyId, FieldError, OperationKind, nearest};

/// Known companies that an unknown one is compared with, and how many characters longer or shorter
/// they may be.
const MOST_COMPARED: usize = 256;
const MOST_WRONG: usize = 4;

/// Whether an operation of this kind makes its company known where an operator asks for it. The
/// others change or read what is there, and in an unknown company nothing is there: the built-in
/// provider takes no lines of another one.
fn makes_company(kind: OperationKind) -> bool {
    matches!(kind, OperationKind::Capture | OperationKind::RecordUpsert)
}

impl Tenancy {
    /// All companies, whichever of the hosts on the database is their home, and those whose erasure
    /// was begun and is not complete, by id.
    ///
    /// # Errors
    /// Where the store cannot be read.
    pub async fn companies_of_all_hosts(
        &self,
    ) -> Result<(Vec<CompanyId>, Vec<CompanyId>), ServiceError> {
        Ok(KnownCompanies::of_all_hosts(&*self.store).await?)
    }

    /// The companies that this service serves, by id.
    pub fn companies(&self) -> Vec<CompanyId> {
        let mut all = self.known.all();
        all.retain(|company| !self.is_erased(company));
        all
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

    /// Whether this host has a company.
    pub fn is_known(&self, company: &CompanyId) -> bool {
        self.known.has(company)
    }

    /// Refuses a request to an unknown company: it is counted and named in the process's own log,
    /// because a company that does not exist has none. Only callers who may list companies are told
    /// of one that is like it.
    pub fn unknown(&self, caller: &Caller, company: &CompanyId) -> ServiceError {
        self.oplog.metrics.unknown_company();
        if self.known.is_to_log(caller, company, self.clock.now()) {
            let company = visible(company.as_str());
            tracing::warn!(
                company = company.as_ref(),
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
    ///
    /// # Errors
    /// Where it refuses the operation, `checked` is an error, or the company cannot be made.
    pub async fn enter(
        &self,
        caller: &Caller,
        kind: OperationKind,
        (company, is_named): (&CompanyId, bool),
        checked: Result<(), FieldError>,
    ) -> Result<(), ServiceError> {
        let is_let_in =
            self.is_known(company) || caller.is_host() || self.closed(company).is_some();
        // What the caller may not do is refused in its own company.
        if is_let_in || caller.may(Act::Operate(kind), Some(company)).is_err() {
            return Ok(());
        }
        if !makes_company(kind) || is_named || !self.zero_config {
            return Err(self.unknown(caller, company));
        }
        checked?;
        self.make_company(caller, company).await.map(drop)
    }
}
