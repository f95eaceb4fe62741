//! Tests of the masks, also against a search that tries every place with every value.

use super::*;
use proptest::prelude::*;

fn scrub(secrets: &[(&str, &str)], text: &str) -> String {
    let scrubber = Scrubber::new(secrets.iter().copied()).unwrap();
    String::from_utf8(scrubber.scrub(text.as_bytes()).into_owned()).unwrap()
}

#[test]
fn every_form_of_a_value_is_masked() {
    let secrets = [("K", "p\"a/s\\s é?>~ü")];
    for form in [
        "p\"a/s\\s é?>~ü",
        "p%22a%2Fs%5Cs%20%C3%A9%3F%3E~%C3%BC",
        "p%22a%2fs%5cs+%c3%a9%3f%3e%7e%c3%bc",
        "%70%22%61%2F%73%5C%73%20%C3%A9%3F%3E%7E%C3%BC",
        r#"p\"a/s\\s é?>~ü"#,
        r#"p\"a\/s\\s \u00e9?>~\u00FC"#,
    ] {
        assert_eq!(scrub(&secrets, &format!("<{form}>")), "<[secret K]>", "{form}");
    }
    for engine in [STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD] {
        let form = engine.encode(secrets[0].1);
        assert_eq!(scrub(&secrets, &format!("<{form}>")), "<[secret K]>", "{form}");
        assert_eq!(
            scrub(&secrets, &form.replace('/', "\\/").replace('=', "%3D"))
                .matches("[secret K]")
                .count(),
            1
        );
    }
    assert_eq!(
        scrub(&[("K", "a😀bc")], r"\ud83d\ude00 a\uD83D\ude00bc"),
        r"\ud83d\ude00 [secret K]"
    );
}

#[test]
fn a_percent_or_backslash_of_the_value_itself_is_found_in_both_forms() {
    assert_eq!(
        scrub(&[("K", "%25x\\\\")], "%25x\\\\ %2525x%5C%5c %25x\\\\\\\\"),
        "[secret K] [secret K] [secret K]"
    );
    assert_eq!(
        scrub(&[("K", "abcd")], "abc ab%63 ab%6 ab% ab\\ ab\\u006 abce"),
        "abc ab%63 ab%6 ab% ab\\ ab\\u006 abce"
    );
}

#[test]
fn a_percent_sign_that_was_left_alone_is_found() {
    assert_eq!(
        scrub(&[("K", "100% \"25\"")], "100%%20%2225%22 100%25+%2225%22"),
        "[secret K] [secret K]"
    );
}

#[test]
fn short_values_are_masked_in_plain_form_only() {
    assert_eq!(scrub(&[("K", "a/b")], "a/b a%2Fb YS9i"), "[secret K] a%2Fb YS9i");
}

#[test]
fn parts_and_overlaps_leave_nothing() {
    assert_eq!(scrub(&[("A", "bcde"), ("B", "abcdef")], "abcdef bcde"), "[secret B] [secret A]");
    assert_eq!(scrub(&[("A", "abcd"), ("B", "cdefg")], "<abcdefg>"), "<[secret B]>");
    assert_eq!(scrub(&[("A", "abab")], "<ababab>"), "<[secret A]>");
}

#[test]
fn what_holds_no_value_is_not_copied() {
    assert!(matches!(
        Scrubber::new([("A", "abcd")].into_iter()).unwrap().scrub(b"abc\xff%"),
        Cow::Borrowed(b"abc\xff%")
    ));
    assert!(matches!(Scrubber::default().scrub(b"%abc"), Cow::Borrowed(_)));
}

#[test]
fn a_value_is_found_that_begins_within_an_escape() {
    assert_eq!(scrub(&[("K", "41b c d")], "x%41b%20c+d"), "x%[secret K]");
    assert_eq!(scrub(&[("K", "abcd")], r"\u0061bcd \\u0061bcd"), r"[secret K] \[secret K]");
    assert_eq!(scrub(&[("K", r#"u0061"x"#)], r#"\u0061\"x"#), r"\[secret K]");
}

/// Every byte of a text that belongs to a value, found by trying every place with every value in
/// every form.
fn masked_by_trying(values: &[String], text: &[u8]) -> Vec<bool> {
    let mut masked = vec![false; text.len()];
    let engines = [STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD];
    for value in values {
        let texts = engines.iter().map(|engine| engine.encode(value)).chain([value.clone()]);
        for needle in texts {
            for start in 0..text.len() {
                let rest = &text[start..];
                let plain = rest.starts_with(needle.as_bytes()).then_some(needle.len());
                let percent = [false, true]
                    .into_iter()
                    .filter_map(|stays| percent_length(&needle, rest, stays))
                    .max();
                let length = plain.max(percent).max(json_length(&needle, rest));
                masked[start..start + length.unwrap_or(0)].fill(true);
            }
        }
    }
    masked
}

/// The same by the scrubber.
fn masked(values: &[String], text: &[u8]) -> Vec<bool> {
    let names: Vec<String> = (0..values.len()).map(|number| format!("K{number}")).collect();
    let pairs = names.iter().zip(values).map(|(name, value)| (name.as_str(), value.as_str()));
    let mut masked = vec![false; text.len()];
    for found in Scrubber::new(pairs).unwrap().0.unwrap().find(text) {
        masked[found.range].fill(true);
    }
    masked
}

/// Few letters, so that values overlap, and those that escapes consist of.
const VALUE: &str = r#"[a1"/\\u46é]{4,7}"#;
const TEXT: &str = r#"(a|1|"|/|\\|\\\\|u|4|6|é|%61|%31|%2F|%C3|%A9|%c3%a9|%5c|%|\\u0061|\\u00e9|\\u|\\"|\\/|%22){0,40}"#;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn what_is_found_is_what_trying_finds(
        values in prop::collection::vec(VALUE, 1..4),
        text in TEXT,
        picks in prop::collection::vec(0..3_usize, 0..3),
    ) {
        let more: String =
            picks.iter().filter_map(|pick| values.get(*pick)).map(String::as_str).collect();
        let json = serde_json::to_string(&more).unwrap();
        let text = format!("{text}{more}{json}{}", STANDARD.encode(&more));
        prop_assert_eq!(
            masked(&values, text.as_bytes()), masked_by_trying(&values, text.as_bytes()),
            "{:?} in {:?}", values, text,
        );
    }

    #[test]
    fn with_every_letter_nothing_is_missed(
        values in prop::collection::vec(r#"[a+ 4%"]{4,7}"#, 1..3),
        text in r#"(a|4|"| |\+|%61|%20|%2B|%25|%22|\\"){0,40}"#,
        picks in prop::collection::vec(0..3_usize, 0..3),
    ) {
        // An encoder that leaves `%` alone, where it reads like an escape, and escapes other bytes
        // is not known, and not looked for. What follows the value may be digits.
        let has_escape = |value: &str| {
            let followed = format!("{value}00");
            let bytes = followed.as_bytes();
            (0..value.len()).any(
                |at| bytes[at] == b'%' && crate::egress::escape::hex_byte(bytes, at + 1).is_some()
            )
        };
        prop_assume!(!values.iter().any(|value| has_escape(value)));
        let more: String =
            picks.iter().filter_map(|pick| values.get(*pick)).map(String::as_str).collect();
        let text = format!("{text}{more}");
        let (found, tried) = (
            masked(&values, text.as_bytes()), masked_by_trying(&values, text.as_bytes()),
        );
        for (at, is_value) in tried.iter().enumerate() {
            prop_assert!(found[at] || !is_value, "{:?} at {} of {:?}", values, at, text);
        }
    }
}

/// Eight kilobytes that end otherwise than they begin, in an answer that only begins like them:
/// each of a million places would be compared with all of it.
#[test]
fn a_value_that_almost_fits_everywhere_takes_one_pass() {
    let value = format!("{}b", "a".repeat(8_191));
    let scrubber = Scrubber::new([("K", value.as_str())].into_iter()).unwrap();
    let text = "a".repeat(4 << 20);
    assert!(matches!(scrubber.scrub(text.as_bytes()), Cow::Borrowed(_)));
    let escaped = "%61\\u0061".repeat(1 << 18);
    assert!(matches!(scrubber.scrub(escaped.as_bytes()), Cow::Borrowed(_)));
    let all = "a".repeat(8_192);
    let scrubber = Scrubber::new([("K", all.as_str())].into_iter()).unwrap();
    assert_eq!(scrubber.scrub(text.as_bytes()).as_ref(), b"[secret K]", "all of it overlaps");
}

// Encoders differ in what they escape, so that each byte may be escaped or not. Only for `%` it
// must be known: the URL standard leaves it alone, while the encoding of a component escapes it.
fn percent_length(text: &str, bytes: &[u8], percent_stays: bool) -> Option<usize> {
    let mut at = 0;
    for wanted in text.bytes() {
        at += match *bytes.get(at)? {
            b'%' if percent_stays && wanted == b'%' => 1,
            b'%' if crate::egress::escape::hex_byte(bytes, at + 1)? == wanted => 3,
            b'%' => return None,
            b'+' if wanted == b' ' => 1,
            byte if byte == wanted => 1,
            _ => return None,
        };
    }
    Some(at)
}

// The same for the escapes of a JSON string, where only `\` always is escaped; a value has no
// control characters.
fn json_length(text: &str, bytes: &[u8]) -> Option<usize> {
    let mut at = 0;
    for wanted in text.chars() {
        if *bytes.get(at)? != b'\\' {
            let mut buffer = [0; 4];
            let literal = wanted.encode_utf8(&mut buffer).as_bytes();
            if !bytes[at..].starts_with(literal) {
                return None;
            }
            at += literal.len();
        } else if bytes.get(at + 1) == Some(&b'u') {
            for unit in wanted.encode_utf16(&mut [0; 2]) {
                let escape = bytes.get(at..at + 2)? == b"\\u";
                if !escape
                    || u16::from_be_bytes([
                        crate::egress::escape::hex_byte(bytes, at + 2)?,
                        crate::egress::escape::hex_byte(bytes, at + 4)?,
                    ]) != *unit
                {
                    return None;
                }
                at += 6;
            }
        } else if matches!(wanted, '"' | '\\' | '/')
            && bytes.get(at + 1).copied().map(char::from) == Some(wanted)
        {
            at += 2;
        } else {
            return None;
        }
    }
    Some(at)
}
