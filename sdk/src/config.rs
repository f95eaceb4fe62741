//! From the binding's configuration to the author's own type.

use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::Provider;
use crate::types::ConfigError;

/// The configuration of a provider that has none: an empty object.
#[derive(Debug, Default, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NoConfig {}

/// Reads a configuration into the author's own type.
///
/// # Errors
/// One error with a JSON Pointer to the value at fault, such as `/limits/maxRecords`.
pub fn parse_config<C: DeserializeOwned>(json: &str) -> Result<C, ConfigError> {
    let mut deserializer = serde_json::Deserializer::from_str(json);
    let config = serde_path_to_error::deserialize(&mut deserializer).map_err(|error| {
        ConfigError { pointer: pointer(error.path()), message: plain(error.inner()) }
    })?;
    deserializer
        .end()
        .map_err(|error| ConfigError { pointer: String::new(), message: plain(&error) })?;
    Ok(config)
}

/// Reads and checks a configuration as the host's `validate-config` does.
///
/// # Errors
/// Every error of [`parse_config`] and [`Provider::check_config`].
pub fn check_config<P: Provider>(json: &str) -> Result<P::Config, Vec<ConfigError>> {
    let config = parse_config(json).map_err(|error| vec![error])?;
    P::check_config(&config)?;
    Ok(config)
}

/// serde's message without the position, because the operator may have written the text in another
/// form.
fn plain(error: &serde_json::Error) -> String {
    let text = error.to_string();
    match text.rfind(" at line ") {
        Some(end) => text[..end].to_owned(),
        None => text,
    }
}

fn pointer(path: &serde_path_to_error::Path) -> String {
    use serde_path_to_error::Segment;
    let mut pointer = String::new();
    for segment in path {
        let name = match segment {
            Segment::Seq { index } => index.to_string(),
            Segment::Map { key } => key.clone(),
            Segment::Enum { variant } => variant.clone(),
            Segment::Unknown => continue,
        };
        pointer.push('/');
        pointer.push_str(&name.replace('~', "~0").replace('/', "~1"));
    }
    pointer
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields, rename_all = "camelCase")]
    struct Outer {
        #[allow(dead_code)]
        limits: Inner,
    }

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields, rename_all = "camelCase")]
    struct Inner {
        #[allow(dead_code)]
        max_records: u32,
    }

    #[test]
    fn a_wrong_value_is_named_by_its_pointer() {
        let error = parse_config::<Outer>(r#"{"limits":{"maxRecords":"many"}}"#).unwrap_err();
        assert_eq!(error.pointer, "/limits/maxRecords");
        assert_eq!(error.message, r#"invalid type: string "many", expected u32"#);
    }

    #[test]
    fn a_misspelt_field_is_named() {
        let error = parse_config::<Outer>(r#"{"limits":{"maxRecord":1}}"#).unwrap_err();
        assert_eq!(error.pointer, "/limits/maxRecord");
        assert!(error.message.contains("expected `maxRecords`"), "{}", error.message);
    }

    #[test]
    fn text_after_the_configuration_is_refused() {
        assert!(parse_config::<NoConfig>("{} {}").is_err());
    }
}
