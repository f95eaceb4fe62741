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

/// A text in small letters, digits and `-`, and no two texts alike: other bytes are `_` and two
/// hexadecimal digits.
pub fn plain(text: &str) -> String {
    let plain = |byte: u8| match byte {
        b'a'..=b'z' | b'0'..=b'9' | b'-' => char::from(byte).to_string(),
        _ => format!("_{byte:02x}"),
    };
    text.bytes().map(plain).collect()
}

/// A text in letters, digits and `signs`: other bytes are `escape` and two hexadecimal digits. No
/// two texts are alike unless `escape` is one of the signs; [`unescaped`] reads it.
pub fn escaped(text: &str, escape: char, signs: &str) -> String {
    let is_kept = |byte: u8| byte.is_ascii_alphanumeric() || signs.as_bytes().contains(&byte);
    let write = |byte: u8| {
        if is_kept(byte) { char::from(byte).to_string() } else { format!("{escape}{byte:02x}") }
    };
    text.bytes().map(write).collect()
}

/// The inverse of [`escaped`]; none for what is not such a text.
pub fn unescaped(text: &str, escape: char) -> Option<String> {
    let mut pieces = text.split(escape);
    let mut bytes = pieces.next()?.as_bytes().to_vec();
    for piece in pieces {
        bytes.push(u8::from_str_radix(piece.get(..2)?, 16).ok()?);
        bytes.extend_from_slice(&piece.as_bytes()[2..]);
    }
    String::from_utf8(bytes).ok()
}

/// What a service calls the company: the name in the binding's configuration, or else `memhost-`
/// and the company. Without a company it is `memhost`.
pub fn owner(configured: Option<&str>, company: &str) -> String {
    match configured {
        Some(name) => name.to_owned(),
        None if company.is_empty() => "memhost".to_owned(),
        None => format!("memhost-{company}"),
    }
}

/// The members of metadata that tell the partition of a record.
pub(super) const PARTITION: [&str; 3] = ["memhost_agent", "memhost_subject", "memhost_namespace"];

fn parts(scope: &Scope) -> [Option<&str>; 3] {
    [scope.agent_id.as_deref(), scope.subject_id.as_deref(), scope.namespace.as_deref()]
}

fn is_part(part: &str) -> String {
    format!("={part}")
}

/// The place for records without agent, subject and namespace.
const OF_ALL: &str = "-";

/// Agent, subject and namespace as members of a record's metadata, for a service that filters by
/// texts.
pub(super) fn partition_members(scope: Option<&Scope>) -> [(&'static str, String); 3] {
    let [agent, subject, namespace] = scope.map(parts).unwrap_or_default();
    let text = |part: Option<&str>| part.map_or_else(|| OF_ALL.to_owned(), is_part);
    [(PARTITION[0], text(agent)), (PARTITION[1], text(subject)), (PARTITION[2], text(namespace))]
}

/// What a scope may see, for a service that filters by the members of
/// [`Tag::members`](super::Tag::members): each member that must have one of two values. None of
/// them for the whole company.
pub fn partition_choices(scope: &Scope) -> Vec<(&'static str, [String; 2])> {
    let choice = |(name, part): (&'static str, Option<&str>)| {
        Some((name, [is_part(part?), OF_ALL.to_owned()]))
    };
    PARTITION.into_iter().zip(parts(scope)).filter_map(choice).collect()
}

/// A name for the partition of a scope, that [`partition_of`] reads: for a service that keeps what
/// it extracts apart by peer, agent or directory. About twice as long as company, agent, subject
/// and namespace together.
pub fn partition_name(scope: &Scope) -> String {
    let Scope { company_id, agent_id, subject_id, namespace, .. } = scope;
    format!("memhost-{}", hex(&json!([company_id, agent_id, subject_id, namespace]).to_string()))
}

/// The partition of such a name; none for any other name.
pub fn partition_of(name: &str) -> Option<Scope> {
    let partition: Vec<Value> =
        serde_json::from_str(&unhex(name.strip_prefix("memhost-")?)?).ok()?;
    let text = |at: usize| Some(partition.get(at)?.as_str()?.to_owned());
    Some(Scope {
        agent_id: text(1),
        subject_id: text(2),
        namespace: text(3),
        ..Scope::company(&text(0)?)
    })
}
