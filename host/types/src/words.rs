//! Parts of messages: the nearest word, and a number with its noun.

/// The least likeness for a suggestion, from 0 to 1.
const LIKE: f64 = 0.75;

/// The word of a list that is nearest to one that is not in it. `None`: nothing is like it.
pub fn nearest<'a>(given: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let simple = |word: &str| word.replace(['-', ' '], "_").to_lowercase();
    let like = |known: &str| match strsim::osa_distance(&simple(known), &simple(given)) {
        // One slip in a short word is most of the word.
        1 if known.len() >= 3 => 1.0,
        _ => strsim::jaro_winkler(&simple(known), &simple(given)),
    };
    let best = known.into_iter().max_by(|one, other| like(one).total_cmp(&like(other)));
    best.filter(|best| like(best) >= LIKE)
}

/// A number with its noun: `1 record`, `2 records`.
pub fn counted(number: impl std::fmt::Display, one: &str, several: &str) -> String {
    let number = number.to_string();
    let noun = if number == "1" { one } else { several };
    format!("{number} {noun}")
}

/// What a reader of JSON said, without the line and the column: a field says it better.
pub fn without_place(error: &serde_json::Error) -> String {
    let message = error.to_string();
    let place = format!(" at line {} column {}", error.line(), error.column());
    message.strip_suffix(&place).map(str::to_owned).unwrap_or(message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_slip_in_a_short_word_is_near() {
        let near = |given| nearest(given, ["day", "binding", "model"]);
        assert_eq!(
            ["dya", "dy", "bindings", "week", "x"].map(near),
            [Some("day"), Some("day"), Some("binding"), None, None]
        );
        assert_eq!(
            (counted(1, "day", "days"), counted(0, "day", "days")),
            ("1 day".to_owned(), "0 days".to_owned())
        );
    }

    #[test]
    fn a_message_is_told_without_the_place_in_the_text() {
        let error = serde_json::from_str::<u32>("\n\"7\"").unwrap_err();
        assert_eq!(without_place(&error), "invalid type: string \"7\", expected u32");
        let error = serde_json::from_value::<u32>("7".into()).unwrap_err();
        assert_eq!(without_place(&error), "invalid type: string \"7\", expected u32");
    }

    #[test]
    fn only_what_is_like_it_is_suggested() {
        let known = ["succeeded", "timed_out", "refused"];
        assert_eq!(nearest("Timed-Out", known), Some("timed_out"));
        assert_eq!(nearest("refuse", known), Some("refused"));
        assert_eq!(nearest("banana", known), None);
    }
}
