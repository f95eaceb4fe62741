//! The JSON Schema of a provider's configuration, derived from its type: the feature `schema`.
//!
//! A field's doc comment becomes its description, `#[serde(default)]` its default, and
//! `#[schemars(range(min = 1))]`, `regex` and `length` its limits.

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;

/// The schema for [`Description::config_schema`](crate::types::Description), of JSON Schema
/// 2020-12, without references.
///
/// ```
/// use memhost_sdk::schemars::{self, JsonSchema};
///
/// #[derive(JsonSchema, serde::Deserialize)]
/// #[serde(deny_unknown_fields, rename_all = "camelCase")]
/// struct Config {
///     /// Where the service is.
///     url: String,
/// }
///
/// let schema = memhost_sdk::schema::of::<Config>();
/// assert!(
///     schema.contains(r#""description":"Where the service is.""#)
///         && schema.contains(r#""required":["url"]"#)
/// );
/// ```
pub fn of<T: JsonSchema>() -> String {
    let settings =
        SchemaSettings::draft2020_12().with(|settings| settings.inline_subschemas = true);
    settings.into_generator().into_root_schema_for::<T>().to_value().to_string()
}
