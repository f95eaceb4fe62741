//! Checks a configuration against the provider's JSON Schema. The schema is not trusted either: its size is limited, it
//! fetches nothing, and its patterns run in linear time.

use jsonschema::{Draft, PatternOptions, Validator};
use serde_json::Value;

use crate::error::ServiceError;
use memhost_types::{JsonObject, ProviderDescription};

/// The largest schema, in bytes of its compact form.
const MAX_SCHEMA_BYTES: usize = 256 << 10;
/// The most errors that are reported.
const MAX_ERRORS: usize = 32;

/// Checks whether a configuration fits.
pub(crate) fn check(description: &ProviderDescription, config: &JsonObject) -> Result<(), ServiceError> {
    let Some(schema) = &description.config_schema else { return Ok(()) };
    let validator = compile(schema).map_err(|message| {
        let key = &description.provider_key;
        let message = format!("the schema of the provider `{key}` cannot be used: {message}; tell its author");
        ServiceError::Config { errors: vec![(String::new(), message)] }
    })?;
    let config = Value::Object(config.clone());
    let error = |error: jsonschema::ValidationError<'_>| {
        (error.instance_path().as_str().to_owned(), memhost_types::cut_message(error.to_string()))
    };
    let errors: Vec<_> = validator.iter_errors(&config).take(MAX_ERRORS).map(error).collect();
    if errors.is_empty() { Ok(()) } else { Err(ServiceError::Config { errors }) }
}

/// What is wrong with a provider's schema, if anything is.
pub fn problem(schema: &Value) -> Option<String> {
    compile(schema).err()
}

fn compile(schema: &Value) -> Result<Validator, String> {
    if schema.to_string().len() > MAX_SCHEMA_BYTES {
        return Err(format!("it is larger than {MAX_SCHEMA_BYTES} bytes"));
    }
    let options = jsonschema::options().with_draft(Draft::Draft202012).with_pattern_options(PatternOptions::regex());
    options.build(schema).map_err(|error| error.to_string())
}
