//! Values of arguments: text that may come from standard input, and JSON objects.

use std::io::Read;

use serde_json::{Map, Value};

use super::CliError;

/// The text itself, or standard input where the text is `-`.
pub(super) fn text(text: &str) -> Result<String, CliError> {
    if text != "-" {
        return Ok(text.to_owned());
    }
    let mut read = String::new();
    std::io::stdin().read_to_string(&mut read).map_err(|error| CliError::input("standard input", error))?;
    Ok(read)
}

/// A JSON object; `argument` names it in errors.
pub(super) fn object(argument: &str, json: Option<&str>) -> Result<Option<Value>, CliError> {
    let Some(json) = json else { return Ok(None) };
    match serde_json::from_str::<Value>(json) {
        Ok(value @ Value::Object(_)) => Ok(Some(value)),
        Ok(_) => Err(CliError::input(argument, "is not a JSON object; write it like '{\"team\":\"red\"}'")),
        Err(error) => Err(CliError::input(argument, format!("is not JSON: {error}"))),
    }
}

/// The value without its null members.
pub(super) fn without_nulls(value: Value) -> Value {
    match value {
        Value::Object(members) => {
            Value::Object(members.into_iter().filter(|(_, value)| !value.is_null()).collect::<Map<_, _>>())
        }
        other => other,
    }
}
