//! The columns by which operations are found.

use uuid::Uuid;

use memhost_types::Operation;

/// The longest text in a column of an index. PostgreSQL refuses entries of more than about 2,700
/// bytes.
const LONGEST: usize = 200;

/// What an operation is found by.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Facets {
    pub(crate) agent: Option<String>,
    pub(crate) project: Option<String>,
    pub(crate) session: Option<String>,
    pub(crate) binding_key: Option<String>,
    pub(crate) binding_id: Option<Uuid>,
    pub(crate) provider: Option<String>,
    pub(crate) hook: Option<String>,
    pub(crate) source: Option<String>,
    pub(crate) issues: Vec<String>,
    pub(crate) runs: Vec<String>,
    pub(crate) records: Vec<String>,
}

impl Facets {
    pub(crate) fn of(operation: &Operation) -> Self {
        let (about, scope) = (operation.about(), &operation.scope);
        let all = |texts: &mut dyn Iterator<Item = &str>| {
            let mut all: Vec<_> = texts.map(column).collect();
            all.sort();
            all.dedup();
            all
        };
        Self {
            agent: about.agent().map(|id| column(id.as_str())),
            project: about.project().map(column),
            session: scope.session_key.as_deref().map(column),
            binding_key: operation.binding_key.as_ref().map(|key| column(key.as_str())),
            binding_id: operation.binding_id.map(|id| id.0),
            provider: operation.provider_key.as_ref().map(|key| column(key.as_str())),
            hook: operation.hook.as_ref().map(|hook| column(hook.hook_kind.as_str())),
            source: operation.source.as_ref().map(|source| column(source.kind.as_str())),
            issues: all(&mut about.issues()),
            runs: all(&mut about.runs()),
            records: all(&mut operation.named().map(|handle| handle.provider_record_id.as_str())),
        }
    }
}

/// A text as it stands in a column. Where it is long, or has a character that a column cannot have
/// or that separates others, its hash stands there: two texts may have one, so whoever finds a
/// record by it compares the record.
pub(crate) fn column(text: &str) -> String {
    if text.len() <= LONGEST && !text.is_empty() && !text.contains(char::is_control) {
        return text.to_owned();
    }
    let hash = blake3::hash(text.as_bytes()).to_hex();
    format!("#{}", &hash[..16])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_that_a_column_cannot_have_is_hashed() {
        assert_eq!(column("run-1"), "run-1");
        let long = "x".repeat(LONGEST + 1);
        for text in ["a\0b", "a\nb", "", &long] {
            assert!(column(text).starts_with('#') && column(text).len() == 17, "{text:?}");
        }
        assert_ne!(column("a\0b"), column("a\nb"));
    }
}
