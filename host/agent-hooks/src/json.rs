//! JSON of others: of a tool, of a transcript, of a host. One character that is cut in two must not
//! lose all that is around it.

use memhost_types::repair_surrogates;
use serde::de::DeserializeOwned;

/// Reads JSON. Half a character, as an escape or as bytes, becomes the sign for what cannot be
/// read.
pub(super) fn parse<T: DeserializeOwned>(json: &[u8]) -> serde_json::Result<T> {
    let text = String::from_utf8_lossy(json);
    serde_json::from_slice(&repair_surrogates(text.as_bytes()))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn half_a_character_loses_nothing_else() {
        let cut = &[br#"{"a":"\ud83d","b":""#, &"😀".as_bytes()[..2], br#" c"}"#].concat();
        assert_eq!(parse::<Value>(cut).unwrap(), json!({"a": "\u{fffd}", "b": "\u{fffd} c"}));
        assert!(parse::<Value>(b"{\"a\":").is_err());
    }
}
