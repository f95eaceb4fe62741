//! The format of small records: a format version, then JSON.

use serde::Serialize;
use serde::de::DeserializeOwned;

use memhost_executor::{off_executor, to_json_after};

use super::{Expected, Store, StoreError, Table};

const VERSION: u8 = 1;

/// A record as bytes.
///
/// # Errors
/// Where the value has no JSON form, such as a map with keys that are no strings.
pub fn encode<T: Serialize>(what: &str, value: &T) -> Result<Vec<u8>, StoreError> {
    to_json_after(&[VERSION], value)
        .map_err(|error| StoreError::Corrupt { what: what.to_owned(), message: error.to_string() })
}

/// A record from bytes.
///
/// # Errors
/// Where the bytes are not of this version or not of this type.
pub fn decode<T: DeserializeOwned>(what: &str, bytes: &[u8]) -> Result<T, StoreError> {
    let corrupt = |message: String| StoreError::Corrupt { what: what.to_owned(), message };
    match bytes.split_first() {
        Some((&VERSION, json)) => off_executor(json.len(), || serde_json::from_slice(json))
            .map_err(|error| corrupt(error.to_string())),
        Some((version, _)) => {
            Err(corrupt(format!("it has value format {version}; this host reads {VERSION}")))
        }
        None => Err(corrupt("it is empty".to_owned())),
    }
}

/// Expects a row to be unchanged since it was read. An import may have written the same value as
/// different bytes: the stored bytes are expected, as long as they decode to the same value.
///
/// # Errors
/// Where the row cannot be read or the value cannot be encoded.
pub async fn unchanged<T: Serialize + DeserializeOwned + Sync>(
    store: &dyn Store,
    table: Table,
    key: &[u8],
    what: &str,
    before: &T,
) -> Result<Expected, StoreError> {
    let written = encode(what, before)?;
    let Some(stored) = store.get(table, key).await? else { return Ok(Expected::Value(written)) };
    let is_same = decode::<T>(what, &stored)
        .and_then(|found| encode(what, &found))
        .is_ok_and(|found| found == written);
    Ok(Expected::Value(if is_same { stored } else { written }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_round_trip_and_other_versions_are_refused() {
        let bytes = encode("thing", &vec![1, 2]).unwrap();
        assert_eq!(decode::<Vec<u8>>("thing", &bytes).unwrap(), [1, 2]);
        let error = decode::<Vec<u8>>("thing", b"\x02[]").unwrap_err().to_string();
        assert!(error.contains("thing") && error.contains("format 2"), "{error}");
        assert!(decode::<Vec<u8>>("thing", b"").is_err());
    }
}
