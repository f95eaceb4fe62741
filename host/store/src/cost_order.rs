//! The order in which cost events were written, for readers that want each of them once.
//!
//! An event is written when its operation ends, under a key that says when it began. A reader that
//! goes by these keys would miss the event of an operation that ends late. Therefore
//! [`OperationLog::write_operation`] writes a row of [`Table::CostOrder`] beside each new event:
//! under the company's next number, with the key of the event.
//!
//! [`OperationLog::write_operation`]: crate::OperationLog::write_operation

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::{StoreError, Table, company_key, decode, encode};
use memhost_types::CompanyId;

const NUMBER: u8 = b'n';
const TRIMMED: &[u8] = b"t";

/// The cost events of a company that retention has removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct CostsTrimmed {
    /// The events up to this number are gone. No number up to it is given again.
    pub through: u64,
    /// The gone events occurred before this moment.
    pub before: Timestamp,
}

/// The prefix of a company's rows with numbers.
pub fn cost_numbers(company: &CompanyId) -> Vec<u8> {
    company_key(company, &[NUMBER])
}

/// The key of the row with this number. Numbers begin with 1.
pub fn cost_number_key(company: &CompanyId, number: u64) -> Vec<u8> {
    [&cost_numbers(company)[..], &number.to_be_bytes()].concat()
}

/// The number of a row. `None` if it has none.
pub fn cost_number(company: &CompanyId, key: &[u8]) -> Option<u64> {
    let number = key.strip_prefix(&cost_numbers(company)[..])?;
    Some(u64::from_be_bytes(number.try_into().ok()?))
}

/// The key of a company's [`CostsTrimmed`].
pub fn costs_trimmed_key(company: &CompanyId) -> Vec<u8> {
    company_key(company, TRIMMED)
}

/// The value of a row: where the event is.
///
/// # Errors
/// Where the key is not of this company.
pub fn encode_cost_place(company: &CompanyId, event: &[u8]) -> Result<Vec<u8>, StoreError> {
    let Some(rest) = event.strip_prefix(&company_key(company, b"")[..]) else {
        return Err(corrupt("the cost event is of another company"));
    };
    encode(WHAT, &rest.iter().map(|byte| format!("{byte:02x}")).collect::<String>())
}

/// The key of the event that a row leads to, in [`Table::CostEvents`].
///
/// # Errors
/// Where the value is none of [`encode_cost_place`].
pub fn cost_place(company: &CompanyId, value: &[u8]) -> Result<Vec<u8>, StoreError> {
    let hex: String = decode(WHAT, value)?;
    let byte =
        |at: usize| hex.get(at..at + 2).and_then(|digits| u8::from_str_radix(digits, 16).ok());
    let bytes: Option<Vec<u8>> = (0..hex.len()).step_by(2).map(byte).collect();
    let rest = bytes.ok_or_else(|| corrupt("the key of the cost event is not hexadecimal"))?;
    Ok(company_key(company, &rest))
}

const WHAT: &str = "order of cost events";

fn corrupt(message: &str) -> StoreError {
    StoreError::Corrupt {
        what: format!("{WHAT} (`{}`)", Table::CostOrder.name()),
        message: message.to_owned(),
    }
}
