//! Values of arguments: text that may come from a file or standard input, JSON, and the names of choices.

use std::io::Read;
use std::path::Path;

use clap::ValueEnum;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::CliError;
use memhost_types::JsonObject;

/// The text itself, or standard input where the text is `-`.
pub(super) fn text(text: &str) -> Result<String, CliError> {
    if text == "-" { input(None) } else { Ok(text.to_owned()) }
}

/// The content of a file, or of standard input if no file is given.
pub(super) fn input(file: Option<&Path>) -> Result<String, CliError> {
    let Some(file) = file else {
        let mut read = String::new();
        std::io::stdin().read_to_string(&mut read).map_err(|error| CliError::input("standard input", error))?;
        return Ok(read);
    };
    std::fs::read_to_string(file).map_err(|error| CliError::file(file, &error))
}

/// Reads JSON; `what` names the argument or the file in errors.
pub(super) fn json<T: DeserializeOwned>(what: &str, text: &str) -> Result<T, CliError> {
    serde_json::from_str(text).map_err(|error| CliError::input(what, format!("is not valid JSON: {error}")))
}

/// Reads a JSON object, if one is given; `argument` names it in errors.
pub(super) fn object(argument: &str, text: Option<&str>) -> Result<Option<JsonObject>, CliError> {
    let read = text.map(serde_json::from_str).transpose();
    read.map_err(|error| {
        CliError::input(argument, format!("is not a JSON object: {error}; write it like '{{\"team\":\"red\"}}'"))
    })
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

/// The name of a choice, as on the command line.
pub(super) fn name(choice: &impl ValueEnum) -> String {
    choice.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
}
