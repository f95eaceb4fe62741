//! The rows of billing as an import brings them. Each must have the key that follows from it.

use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{finance_events, ledger, rows};
use memhost_executor::to_json;
use memhost_store::{self as store, Change, CostsTrimmed, Store, StoreError, Table};
use memhost_types::{Budget, CompanyId, CostEvent, FinanceEvent};

/// The highest number of a cost event: nothing that counts on from there overflows.
const MOST_COUNT: u64 = 1 << 52;

/// A row of a table of billing.
#[derive(Debug)]
#[allow(missing_docs, reason = "the tables say it")]
pub enum BillingRow {
    CostEvent(Box<CostEvent>),
    /// A row of the order of cost events: its number, and where the event is, as it is stored.
    CostPlace(u64, Vec<u8>),
    CostsTrimmed(CostsTrimmed),
    FinanceEvent(Box<FinanceEvent>),
    Budget(Budget),
}

impl BillingRow {
    /// Reads a row of a company and checks it. `key` is its key after the company. `None`: the
    /// table is not one of billing.
    ///
    /// # Errors
    /// What is wrong with it, as the rest of a sentence.
    pub fn read(
        company: &CompanyId,
        table: Table,
        key: &[u8],
        value: &Value,
    ) -> Result<Option<Self>, String> {
        let key = store::company_key(company, key);
        let row = match table {
            Table::CostEvents => Self::CostEvent(read(value)?),
            Table::CostOrder => match store::cost_number(company, &key) {
                Some(number) => Self::CostPlace(
                    number,
                    store::encode("order of cost events", value)
                        .map_err(|error| error.to_string())?,
                ),
                None => Self::CostsTrimmed(read(value)?),
            },
            Table::FinanceEvents => Self::FinanceEvent(read(value)?),
            Table::Budgets => Self::Budget(read(value)?),
            _ => return Ok(None),
        };
        if !row.has_key(company, &key) {
            return Err("has a key that is not its own".to_owned());
        }
        row.check()?;
        Ok(Some(row))
    }

    /// The stored form: only parsed fields.
    ///
    /// # Errors
    /// Where it has no JSON form.
    pub fn encode(&self) -> Result<Vec<u8>, StoreError> {
        match self {
            Self::CostEvent(row) => store::encode(rows::WHAT, row),
            Self::CostPlace(_, place) => Ok(place.clone()),
            Self::CostsTrimmed(row) => store::encode("trimmed cost events", row),
            Self::FinanceEvent(row) => store::encode(finance_events::WHAT, row),
            Self::Budget(row) => store::encode("budget", row),
        }
    }

    fn has_key(&self, company: &CompanyId, found: &[u8]) -> bool {
        match self {
            Self::CostEvent(row) => row.company_id == *company && rows::is_key_of(row, found),
            Self::CostPlace(number, place) => {
                rows::is_place(company, place) && found == store::cost_number_key(company, *number)
            }
            Self::CostsTrimmed(_) => found == store::costs_trimmed_key(company),
            Self::FinanceEvent(row) => {
                row.company_id == *company && found == finance_events::key(company, row.id)
            }
            Self::Budget(row) => {
                row.company_id == *company
                    && found == rows::budget_key(company, row.binding_key.as_ref(), row.period)
            }
        }
    }

    fn check(&self) -> Result<(), String> {
        match self {
            Self::CostPlace(number, _)
            | Self::CostsTrimmed(CostsTrimmed { through: number, .. })
                if *number == 0 || *number > MOST_COUNT =>
            {
                Err(format!("has the number {number} of a cost event"))
            }
            Self::FinanceEvent(row) => row.entered.check().map_err(|error| error.to_string()),
            Self::Budget(row) => ledger::check_warn_share(&row.set)
                .map_err(|error| format!("has a `{}` that {}", error.field, error.message)),
            _ => Ok(()),
        }
    }
}

/// The change that imports a row of sums, and the highest number of an operation that the row says
/// is summed. `key` is its key after the company. `None`: it is no row of sums, or its key is not
/// its own.
pub fn import_sums(
    store: &dyn Store,
    company: &CompanyId,
    key: &[u8],
    value: Vec<u8>,
) -> Option<(u64, Change)> {
    let key = store::company_key(company, key);
    let last = store.check_sums(company, &key, &value)?;
    Some((last, Change::insert(Table::Sums, key, value)))
}

/// From bytes, as the store reads rows: reading values would be a second copy of the code of each
/// type.
fn read<T: DeserializeOwned>(value: &Value) -> Result<T, String> {
    let json = to_json(value).map_err(|error| error.to_string())?;
    serde_json::from_slice(&json).map_err(|error| error.to_string())
}
