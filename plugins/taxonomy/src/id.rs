//! Ids of records and jobs, derived from their content: a repeated write or capture gets the same
//! id.

use memhost_sdk::types::CaptureRequest;
use sha2::{Digest, Sha256};

use crate::kind::Kind;
use crate::place::Place;

/// 128 bits of a hash over the parts. Each part is preceded by its length, so that no two lists of
/// parts are one.
fn hash(parts: &[&str]) -> String {
    let mut hasher = Sha256::new();
    for part in parts {
        hasher.update((part.len() as u64).to_be_bytes());
        hasher.update(part.as_bytes());
    }
    hasher.finalize().iter().take(16).map(|byte| format!("{byte:02x}")).collect()
}

/// The id of a record that an operation writes without one.
pub(crate) fn written(operation: &str, number: usize) -> String {
    format!("written-{}", hash(&["written", operation, &number.to_string()]))
}

/// The id of a statement in a place, bound to its project or not: said twice, it is one record.
pub(crate) fn statement(kind: Kind, text: &str, place: &Place, is_bound: bool) -> String {
    let words: Vec<String> = text
        .split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
        .collect();
    let part =
        |part: &Option<String>| part.as_ref().map_or("-".to_owned(), |text| format!("+{text}"));
    let project =
        if is_bound || kind.is_project_scoped() { part(&place.project) } else { "-".to_owned() };
    let (agent, subject, namespace) =
        (part(&place.agent), part(&place.subject), part(&place.namespace));
    // `C++` and `C#` have the same words but are not the same text.
    let signs: String = text.chars().filter(|c| "+#".contains(*c)).collect();
    format!(
        "memory-{}",
        hash(&[kind.name(), &words.join(" "), &signs, &agent, &subject, &namespace, &project])
    )
}

/// A cursor of a list: the last record of the page. The host binds it to the scope.
pub(crate) fn cursor(last: &str) -> String {
    format!("1.{last}")
}

/// The inverse of [`cursor`].
pub(crate) fn read_cursor(cursor: &str) -> Option<&str> {
    cursor.strip_prefix("1.")
}

/// Whether two requests for a decision are the same.
pub(crate) fn decision(parts: &[&str]) -> String {
    hash(parts)
}

/// The id of the job of a capture.
pub(crate) fn job(request: &CaptureRequest) -> String {
    format!("job-{}", hash(&["operation", &request.operation_id]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_statement_is_one_record_in_each_place() {
        let place = Place {
            agent: Some("ada".to_owned()),
            project: Some("p".to_owned()),
            ..Place::default()
        };
        let other = Place { project: Some("q".to_owned()), ..place.clone() };
        let name = |kind, text: &str, place: &Place| statement(kind, text, place, false);
        assert_eq!(
            name(Kind::Fact, "The  meeting is on Friday!", &place),
            name(Kind::Fact, "the meeting is on friday", &place)
        );
        assert_ne!(name(Kind::Fact, "I use C", &place), name(Kind::Fact, "I use C++", &place));
        assert_ne!(name(Kind::Fact, "x", &place), name(Kind::Note, "x", &place));
        assert_ne!(name(Kind::Fact, "x", &place), name(Kind::Fact, "x", &Place::default()));
        assert_eq!(
            name(Kind::Fact, "x", &place),
            name(Kind::Fact, "x", &other),
            "facts are of no project"
        );
        assert_ne!(name(Kind::Decision, "x", &place), name(Kind::Decision, "x", &other));
        let bound = |place| statement(Kind::Fact, "x", place, true);
        assert_ne!(bound(&place), bound(&other), "but those that say so");
    }
}
