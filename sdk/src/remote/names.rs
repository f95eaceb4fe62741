//! Texts of the host as names that services take: of small letters, digits and few signs.

use serde_json::{Value, json};

use crate::types::Scope;

/// A text as hexadecimal digits.
pub fn hex(text: &str) -> String {
    text.bytes().map(|byte| format!("{byte:02x}")).collect()
}

/// The inverse of [`hex`]; none for what is no text in hexadecimal digits.
pub fn unhex(hex: &str) -> Option<String> {
    if !hex.len().is_multiple_of(2) || !hex.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    let byte = |at| u8::from_str_radix(&hex[at..at + 2], 16).ok();
    String::from_utf8((0..hex.len()).step_by(2).filter_map(byte).collect()).ok()
}

/// A text in small letters, digits and `-`, and no two texts alike: other bytes are `_` and two hexadecimal digits.
pub fn plain(text: &str) -> String {
    let plain = |byte: u8| match byte {
        b'a'..=b'z' | b'0'..=b'9' | b'-' => char::from(byte).to_string(),
        _ => format!("_{byte:02x}"),
    };
    text.bytes().map(plain).collect()
}

/// A name for the partition of a scope, that [`partition_of`] reads: for a service that keeps what it extracts apart by
/// peer, agent or directory. About twice as long as company, agent, subject and namespace together.
pub fn partition_name(scope: &Scope) -> String {
    let Scope { company_id, agent_id, subject_id, namespace, .. } = scope;
    format!("memhost-{}", hex(&json!([company_id, agent_id, subject_id, namespace]).to_string()))
}

/// The partition of such a name; none for any other name.
pub fn partition_of(name: &str) -> Option<Scope> {
    let partition: Vec<Value> = serde_json::from_str(&unhex(name.strip_prefix("memhost-")?)?).ok()?;
    let text = |at: usize| Some(partition.get(at)?.as_str()?.to_owned());
    Some(Scope { agent_id: text(1), subject_id: text(2), namespace: text(3), ..Scope::company(&text(0)?) })
}
