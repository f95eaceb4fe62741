//! Messages of parsers in the words of this project: what is wrong with which value, and what to
//! write instead.

/// The least likeness for a suggestion, from 0 to 1.
const LIKE: f64 = 0.75;
/// The longest value that a message repeats, in characters.
const MAX_SHOWN: usize = 60;

/// What a parser said, in plain words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plain {
    /// The field at fault below the place that was parsed, where the message names one.
    pub field: Option<String>,
    /// What is wrong, as the rest of a sentence that begins with the field's name.
    pub text: String,
}

/// The word of a list that is nearest to one that is not in it. `None` if nothing is like it.
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

/// A text from outside for a message: characters that cannot be seen, or that change the order of
/// others, are written as their number.
pub fn visible(text: &str) -> String {
    let is_hidden = |c: char| {
        c.is_control()
            || matches!(c, '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}')
            || matches!(c, '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
    };
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        match is_hidden(c) {
            true => shown.push_str(&format!("\\u{{{:x}}}", u32::from(c))),
            false => shown.push(c),
        }
    }
    shown
}

/// `; did you mean …?`, or nothing.
fn suggestion(given: &str, known: &[&str]) -> String {
    nearest(given, known.iter().copied())
        .map(|near| format!("; did you mean `{near}`?"))
        .unwrap_or_default()
}

/// What a parser of JSON, a query or a value said, in plain words. A message that is not known
/// stays as it is.
pub fn plain(message: &str) -> Plain {
    let message = without_place(message);
    let said = |text: String| Plain { field: None, text };
    if let Some(rest) = message.strip_prefix("unknown variant ") {
        let (given, known) = (quoted(rest), quoted_all(rest));
        let known = known.get(1..).unwrap_or_default();
        let given = given.unwrap_or_default();
        return said(format!(
            "is `{}`, which is none of {}{}",
            cut(given),
            known.join(", "),
            suggestion(given, known)
        ));
    }
    if let Some(rest) = message.strip_prefix("unknown field ") {
        let all = quoted_all(rest);
        let given = all.first().copied().unwrap_or_default();
        let known = all.get(1..).unwrap_or_default();
        let known_text = match known.is_empty() {
            true => "there are none".to_owned(),
            false => format!("known are {}", known.join(", ")),
        };
        let text = format!(
            "is not known here{}; {known_text}",
            suggestion(given, known).trim_end_matches('?')
        );
        return Plain { field: Some(given.to_owned()), text };
    }
    for (start, text) in [
        ("missing field ", "is missing; set it"),
        ("duplicate field ", "is there twice; set it once"),
    ] {
        if let Some(field) = message.strip_prefix(start).and_then(quoted) {
            return Plain { field: Some(field.to_owned()), text: text.to_owned() };
        }
    }
    let of_type =
        message.strip_prefix("invalid type: ").or_else(|| message.strip_prefix("invalid value: "));
    if let Some((found, wanted)) = of_type.and_then(|rest| rest.rsplit_once(", expected ")) {
        return said(format!("is {}; {} is needed", kind(found), wanted_kind(wanted)));
    }
    said(value(&syntax(message)))
}

/// What a reader of JSON said of a text that is none.
fn syntax(message: &str) -> String {
    let said = match message {
        "expected value" | "expected ident" => "a value is expected",
        "trailing characters" => "there is more after the end",
        "key must be a string" => "a name in double quotes is expected",
        "trailing comma" => "there is a comma before the end",
        "invalid number" => "that is no number",
        _ if message.starts_with("EOF while parsing") => "the text ends too early",
        _ => return message.to_owned(),
    };
    said.to_owned()
}

/// What a reader of JSON said of a text that is none, with the place.
pub fn plain_syntax(message: &str) -> String {
    let said = without_place(message);
    let place =
        message[said.len()..].replace(" at line ", " in line ").replace(" column ", ", column ");
    format!("{}{place}", syntax(said))
}

/// What a parser of one value said.
fn value(message: &str) -> String {
    const TIME: &str = "is no date or time; write it like 2026-11-20T10:00:00Z, or 2026-11-20 \
                        where a day is asked for";
    // The parser of times explains which digits it wanted.
    const RANGE: &str = "is no range of versions; write it like ^1.2, =1.2.3 or '>=1, <3'";
    if message.contains("parsing") && message.contains("version number")
        || message.contains("semver version")
        || message.contains("version req")
    {
        return RANGE.to_owned();
    }
    let is_of_time =
        ["failed to parse", "failed to find", "expected ", "premature end of input", "parameter '"];
    let names_time =
        ["year", "month", "day", "date", "time", "hour", "minute", "second", "offset", "timestamp"];
    if is_of_time.iter().any(|start| message.starts_with(start))
        && names_time.iter().any(|word| message.contains(word))
    {
        return TIME.to_owned();
    }
    let is_of_range =
        ["failed to convert", "converting "].iter().any(|start| message.starts_with(start));
    if is_of_range && names_time.iter().any(|word| message.contains(word)) {
        return "is too far from now; the last time that can be stored is 9999-12-30T22:00:00Z"
            .to_owned();
    }
    match message {
        "invalid digit found in string" | "invalid float literal" => "is no number".to_owned(),
        "cannot parse integer from empty string" | "cannot parse float from empty string" => {
            "is empty; write a number".to_owned()
        }
        "number too large to fit in target type" => "is too large".to_owned(),
        "number too small to fit in target type" => "is too small".to_owned(),
        "provided string was not `true` or `false`" => "is neither true nor false".to_owned(),
        other => other.to_owned(),
    }
}

/// A message without the place in the text: a field says it better.
fn without_place(message: &str) -> &str {
    let Some((start, place)) = message.rsplit_once(" at line ") else { return message };
    let is_place = place.split(" column ").all(|number| number.parse::<u64>().is_ok());
    if is_place { start } else { message }
}

/// The first text between backticks.
fn quoted(text: &str) -> Option<&str> {
    text.split('`').nth(1)
}

fn quoted_all(text: &str) -> Vec<&str> {
    text.split('`').skip(1).step_by(2).collect()
}

fn cut(text: &str) -> String {
    let short: String = text.chars().take(MAX_SHOWN).collect();
    if short.len() < text.len() { format!("{short}…") } else { short }
}

/// What was found.
fn kind(found: &str) -> String {
    let shown = |rest: &str| cut(rest.trim_matches(['`', '"']));
    let (kind, rest) = found.split_once(' ').unwrap_or((found, ""));
    match kind {
        "string" => format!("the text `{}`", shown(rest)),
        "integer" | "boolean" => format!("`{}`", shown(rest)),
        "floating" => format!("`{}`", shown(rest.trim_start_matches("point "))),
        "map" => "an object".to_owned(),
        "sequence" => "a list".to_owned(),
        "null" | "unit" => "null".to_owned(),
        _ => cut(found),
    }
}

/// What is needed.
fn wanted_kind(wanted: &str) -> String {
    match wanted {
        "u8" | "u16" | "u32" | "u64" | "usize" => "a whole number, not negative,".to_owned(),
        "i8" | "i16" | "i32" | "i64" => "a whole number".to_owned(),
        "f32" | "f64" => "a number".to_owned(),
        "a boolean" => "true or false".to_owned(),
        "a sequence" => "a list".to_owned(),
        "a string" | "a borrowed string" | "string" | "str" => "a text".to_owned(),
        "a map" => "an object".to_owned(),
        _ if wanted.starts_with("struct ") || wanted.starts_with("internally tagged ") => {
            "an object".to_owned()
        }
        _ if wanted.contains("UUID") => {
            "an id, such as 0199f0a0-0000-7000-8000-000000000000,".to_owned()
        }
        _ => cut(wanted),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;

    #[derive(Debug, Deserialize)]
    #[serde(rename_all = "snake_case")]
    enum Outcome {
        Succeeded,
        TimedOut,
    }

    #[derive(Debug, Deserialize)]
    #[serde(rename_all = "camelCase", deny_unknown_fields)]
    #[allow(dead_code, reason = "only read")]
    struct Asked {
        outcome: Option<Outcome>,
        top_k: u32,
        #[serde(default)]
        at: Option<jiff::Timestamp>,
        #[serde(default)]
        names: Vec<String>,
    }

    fn read(json: &str) -> Plain {
        plain(&serde_json::from_str::<Asked>(json).unwrap_err().to_string())
    }

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
    fn no_message_has_a_parsers_words() {
        for (json, field, text) in [
            (
                r#"{"topK":1,"outcome":"suceeded"}"#,
                None,
                "is `suceeded`, which is none of succeeded, timed_out; did you mean `succeeded`?",
            ),
            (r#"{"topK":1,"outcome":"x"}"#, None, "is `x`, which is none of succeeded, timed_out"),
            (
                r#"{"topk":1}"#,
                Some("topk"),
                "is not known here; did you mean `topK`; known are outcome, topK, at, names",
            ),
            ("{}", Some("topK"), "is missing; set it"),
            (r#"{"topK":1,"topK":2}"#, Some("topK"), "is there twice; set it once"),
            (r#"{"topK":"7"}"#, None, "is the text `7`; a whole number, not negative, is needed"),
            (r#"{"topK":-1}"#, None, "is `-1`; a whole number, not negative, is needed"),
            (r#"{"topK":1.5}"#, None, "is `1.5`; a whole number, not negative, is needed"),
            (r#"{"topK":null}"#, None, "is null; a whole number, not negative, is needed"),
            (r#"{"topK":[1]}"#, None, "is a list; a whole number, not negative, is needed"),
            (r#"{"topK":1,"names":{}}"#, None, "is an object; a list is needed"),
            ("[]", None, "is a list; an object is needed"),
        ] {
            if json == "[]" {
                // A derived reader takes a list for an object; readers of this project do not.
                assert_eq!(plain("invalid type: sequence, expected struct Asked").text, text);
                continue;
            }
            let said = read(json);
            assert_eq!((said.field.as_deref(), said.text.as_str()), (field, text), "{json}");
        }
        for time in
            ["soon", "2026", "2026-13-01T00:00:00Z", "2026-11-20", "", "2026-11-20T10:00:00"]
        {
            let said = read(&format!(r#"{{"topK":1,"at":"{time}"}}"#));
            assert!(said.text.contains("is no date or time"), "{time}: {}", said.text);
        }
        let late = read(r#"{"topK":1,"at":"9999-12-31T23:59:59Z"}"#).text;
        assert_eq!(
            late,
            "is too far from now; the last time that can be stored is 9999-12-30T22:00:00Z"
        );
        assert_eq!(visible("ünit \u{202e}x\u{200b}\n"), "ünit \\u{202e}x\\u{200b}\\u{a}");
        for (message, text) in [
            ("x".parse::<u32>().unwrap_err().to_string(), "is no number"),
            ("".parse::<u32>().unwrap_err().to_string(), "is empty; write a number"),
            ("99999999999".parse::<u32>().unwrap_err().to_string(), "is too large"),
            ("x".parse::<bool>().unwrap_err().to_string(), "is neither true nor false"),
            (
                semver::VersionReq::parse("newest").unwrap_err().to_string(),
                "is no range of versions; write it like ^1.2, =1.2.3 or '>=1, <3'",
            ),
            ("something else at line 1 column 2".to_owned(), "something else"),
        ] {
            assert_eq!(plain(&message).text, text);
        }
    }

    #[test]
    fn a_text_that_is_no_json_is_told_where_it_is_wrong() {
        for (text, said) in [
            ("{\"a\":", "the text ends too early in line 1, column 5"),
            ("{\"a\":}", "a value is expected in line 1, column 6"),
            ("nope", "a value is expected in line 1, column 2"),
            ("{} x", "there is more after the end in line 1, column 4"),
            ("{a:1}", "a name in double quotes is expected in line 1, column 2"),
        ] {
            let error = serde_json::from_str::<serde_json::Value>(text).unwrap_err();
            assert_eq!(plain_syntax(&error.to_string()), said, "{text}");
        }
    }

    #[test]
    fn only_what_is_like_it_is_suggested() {
        let known = ["succeeded", "timed_out", "refused"];
        assert_eq!(nearest("Timed-Out", known), Some("timed_out"));
        assert_eq!(nearest("refuse", known), Some("refused"));
        assert_eq!(nearest("banana", known), None);
    }
}
