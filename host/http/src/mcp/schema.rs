//! JSON Schemas of arguments and results, and reading arguments with errors that say what is valid.

use std::sync::Arc;

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::error::McpError;
use crate::document::without_null;
use crate::extract::field_at;
use crate::objects::{Missing, Objects};
use memhost_types::{JsonObject, cut_message};

/// The schema of arguments. It is closed: other members are refused.
pub fn of_arguments<T: JsonSchema>() -> Arc<JsonObject> {
    schema::<T>(SchemaSettings::draft2020_12().for_deserialize())
}

/// The schema of a result.
pub fn of_result<T: JsonSchema>() -> Arc<JsonObject> {
    schema::<T>(SchemaSettings::draft2020_12().for_serialize())
}

/// A schema without members that cost a model tokens and tell it nothing.
fn schema<T: JsonSchema>(settings: SchemaSettings) -> Arc<JsonObject> {
    let settings = settings.with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    let mut schema = settings.into_generator().into_root_schema_for::<T>().to_value();
    tidy(&mut schema);
    let Value::Object(mut members) = schema else { return Arc::default() };
    members.remove("title");
    members.remove("description");
    Arc::new(members)
}

fn tidy(schema: &mut Value) {
    without_null(schema);
    match schema {
        Value::Object(members) => {
            members.retain(|name, value| {
                name != "format" || value.as_str().is_none_or(|f| !f.starts_with("uint"))
            });
            members.values_mut().for_each(tidy);
        }
        Value::Array(items) => items.iter_mut().for_each(tidy),
        _ => {}
    }
}

/// A tool's arguments.
///
/// # Errors
/// Which argument is not valid, and why.
pub fn read<T: DeserializeOwned + JsonSchema>(
    arguments: Option<JsonObject>,
) -> Result<T, McpError> {
    let mut arguments = arguments.unwrap_or_default();
    leave_out_nulls::<T>(&mut arguments);
    let (value, missing) = (Value::Object(arguments), Missing::default());
    serde_path_to_error::deserialize(Objects(value, &missing)).map_err(|error| {
        let (field, mut message) =
            (field_at(&error.path().to_string(), &missing), cut_message(error.inner().to_string()));
        let known = of_arguments::<T>();
        let is_known = |name: &str| known["properties"].get(name).is_some();
        if !field.split('.').next().is_some_and(is_known) {
            message.push_str(
                "; company, agent, run, project and issue come from the token and the client's \
                 configuration and are \
                 no arguments",
            );
        }
        McpError::arguments(field, message)
    })
}

/// Leaves out each argument that may be absent and is null: models fill in what they do not use.
fn leave_out_nulls<T: JsonSchema>(arguments: &mut JsonObject) {
    if !arguments.values().any(Value::is_null) {
        return;
    }
    let known = of_arguments::<T>();
    let required = known.get("required").and_then(Value::as_array);
    let may_be_absent = |name: &str| {
        known["properties"].get(name).is_some()
            && !required.is_some_and(|required| required.iter().any(|needed| needed == name))
    };
    arguments.retain(|name, value| !value.is_null() || !may_be_absent(name));
}

/// Checks that a text is within its limit, in characters as in its schema.
///
/// # Errors
/// If it is empty or too long.
pub fn check_text(field: &str, text: &str, most: usize) -> Result<(), McpError> {
    if text.trim().is_empty() {
        return Err(McpError::arguments(field, "is empty; give a text"));
    }
    match text.chars().count() {
        length if length > most => Err(McpError::arguments(
            field,
            format!("has {length} characters; at most {most} are allowed"),
        )),
        _ => Ok(()),
    }
}

/// Checks that a number is within its limits.
///
/// # Errors
/// If it is not.
pub(super) fn check_range(field: &str, number: u32, least: u32, most: u32) -> Result<(), McpError> {
    if (least..=most).contains(&number) {
        return Ok(());
    }
    Err(McpError::arguments(field, format!("is {number}; {least} to {most} are allowed")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;
    use serde_json::json;

    #[derive(Debug, Deserialize, JsonSchema)]
    #[serde(rename_all = "camelCase", deny_unknown_fields)]
    struct Sample {
        #[schemars(length(min = 1, max = 5))]
        text: String,
        #[schemars(range(min = 1, max = 3))]
        top_k: Option<u32>,
    }

    #[test]
    fn a_schema_is_closed_and_has_its_limits() {
        let schema = Value::Object((*of_arguments::<Sample>()).clone());
        let expected = json!({
            "type": "object",
            "properties": {
                "text": {"type": "string", "minLength": 1, "maxLength": 5},
                "topK": {"type": "integer", "minimum": 1, "maximum": 3},
            },
            "required": ["text"],
            "additionalProperties": false,
        });
        assert_eq!(schema, expected, "{schema:#}");
    }

    #[test]
    fn arguments_that_will_not_do_are_named() {
        let wrong =
            |json: Value| read::<Sample>(json.as_object().cloned()).unwrap_err().to_string();
        assert!(wrong(json!({"text": "a", "companyId": "other"})).contains("come from the token"));
        let error = wrong(json!({"text": "a", "topK": "3"}));
        assert!(error.starts_with("topK: invalid type: string \"3\", expected u32"), "{error}");
        assert!(wrong(json!({})).starts_with("text: missing field `text`"));
        assert!(wrong(json!({"text": null})).starts_with("text: invalid type: null"));
        assert!(wrong(json!({"text": "a", "companyId": null})).contains("come from the token"));
        assert!(wrong(json!({"text": 7, "topK": 2.5})).starts_with("text"));
        for (top_k, read_as) in [(Value::Null, None), (json!(3.0), Some(3))] {
            let arguments = json!({"text": "a", "topK": top_k});
            let fine: Sample = read(arguments.as_object().cloned()).unwrap();
            assert_eq!((fine.text.as_str(), fine.top_k), ("a", read_as));
        }
        assert!(check_text("text", "ééé", 3).is_ok() && check_text("text", "éééé", 3).is_err());
        assert!(check_text("text", " \n", 3).is_err() && check_range("topK", 0, 1, 3).is_err());
    }
}
