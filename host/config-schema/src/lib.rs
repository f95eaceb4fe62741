//! Validates a binding's configuration against the JSON Schema that its provider gives.
//!
//! The schema fetches nothing, and its patterns run in linear time. A schema of 1 KB can ask for 2
//! to the power of 30 comparisons all the same, so one that is not trusted is used in a process
//! with limits. This is a crate of its own because the validator takes long to compile.

use boon::{Compiler, Draft, ErrorKind, SchemaIndex, Schemas, UrlLoader, ValidationError};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The largest schema that is accepted, in bytes of its compact form.
pub const MAX_SCHEMA_BYTES: usize = 256 << 10;
/// The most errors that are reported of one configuration.
pub const MAX_ERRORS: usize = 32;

/// A value of a configuration that the schema refuses.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConfigError {
    /// Where the value is, as a JSON pointer; empty for the configuration itself.
    pub path: String,
    /// What the schema asks for.
    pub message: String,
}

/// The errors of a configuration, at most [`MAX_ERRORS`]. It is valid if there are none.
///
/// # Errors
/// The schema itself cannot be used, and why.
pub fn errors(schema: &Value, config: &Value) -> Result<Vec<ConfigError>, String> {
    let (schemas, index) = compile(schema)?;
    let mut found = Vec::new();
    if let Err(error) = schemas.validate(config, index) {
        collect(&error, &mut found);
        if found.is_empty() {
            found.push(ConfigError { path: String::new(), message: said(&error.kind) });
        }
    }
    Ok(found)
}

/// What is wrong, without the schema's keyword where that means nothing to the person who wrote the
/// configuration.
fn said(kind: &ErrorKind<'_, '_>) -> String {
    let text = kind.to_string();
    let unknown = text
        .strip_prefix("additionalProperties ")
        .and_then(|rest| rest.strip_suffix(" not allowed"));
    unknown.map(|names| format!("has {names}, which the provider does not know")).unwrap_or(text)
}

/// Keywords such as `allOf` only group what failed below them: the causes are the errors.
fn collect(error: &ValidationError<'_, '_>, found: &mut Vec<ConfigError>) {
    let groups = matches!(
        error.kind,
        ErrorKind::Group
            | ErrorKind::Schema { .. }
            | ErrorKind::Reference { .. }
            | ErrorKind::AllOf
    );
    if !groups && found.len() < MAX_ERRORS {
        let (path, message) = (error.instance_location.to_string(), said(&error.kind));
        found.push(ConfigError { path, message });
    }
    if groups {
        error.causes.iter().for_each(|cause| collect(cause, found));
    }
}

fn compile(schema: &Value) -> Result<(Schemas, SchemaIndex), String> {
    if schema.to_string().len() > MAX_SCHEMA_BYTES {
        return Err(format!("it is larger than {MAX_SCHEMA_BYTES} bytes"));
    }
    // The base of relative references. Nothing is fetched from it.
    const ADDRESS: &str = "memhost:///config-schema.json";
    let mut compiler = Compiler::new();
    compiler.set_default_draft(Draft::V2020_12);
    compiler.use_loader(Box::new(FetchesNothing));
    compiler.add_resource(ADDRESS, schema.clone()).map_err(|error| error.to_string())?;
    let mut schemas = Schemas::new();
    let index = compiler.compile(ADDRESS, &mut schemas).map_err(|error| error.to_string())?;
    Ok((schemas, index))
}

/// Refuses every reference to another document.
struct FetchesNothing;

impl UrlLoader for FetchesNothing {
    fn load(&self, url: &str) -> Result<Value, Box<dyn std::error::Error>> {
        Err(format!("a schema cannot refer to another document, and this one refers to {url}")
            .into())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn errors_name_the_value() {
        let schema = json!({
            "properties": {"url": {"type": "string", "pattern": "^https://"}}, "required": ["url"],
        });
        assert_eq!(errors(&schema, &json!({"url": "https://x"})), Ok(vec![]));
        let found = errors(&schema, &json!({"url": "ftp://x"})).unwrap();
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].path, "/url");
        assert_eq!(errors(&schema, &json!({})).unwrap()[0].path, "");
    }

    #[test]
    fn a_schema_is_limited() {
        let problem = |schema: &Value| errors(schema, &json!({})).err();
        let long = json!({"description": "x".repeat(MAX_SCHEMA_BYTES)});
        assert!(problem(&long).unwrap().contains("larger than"));
        // A remote reference is not fetched, and a pattern that needs backtracking is refused.
        assert!(problem(&json!({"$ref": "http://127.0.0.1:9/schema.json"})).is_some());
        assert!(problem(&json!({"pattern": "(a)\\1"})).is_some());
        assert_eq!(problem(&json!({"type": "object"})), None);
    }

    #[test]
    fn errors_are_limited() {
        let schema = json!({"additionalProperties": {"type": "string"}});
        let config: serde_json::Map<_, _> = (0..100).map(|n| (n.to_string(), json!(n))).collect();
        assert_eq!(errors(&schema, &Value::Object(config)).unwrap().len(), MAX_ERRORS);
    }
}
