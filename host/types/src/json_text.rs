//! Half a character in JSON. JavaScript cuts texts between the two halves of a character, such as
//! an emoji, and writes the half that is left as an escape, such as `\ud83d`. Readers of JSON in
//! Rust refuse the whole document for it, and everything else in it would be lost.

use std::borrow::Cow;

/// The length of `\ud83d`, in bytes.
const ESCAPE: usize = 6;

/// JSON in which each half of a character stands as `\ufffd`, the sign for what cannot be read.
///
/// It changes escapes of halves without their other half, and nothing else: whole characters of two
/// escapes stay, and so does `\\ud83d`, which is a backslash and five letters. The length stays the
/// same. Bytes that are no JSON come back unless they look like such an escape.
#[must_use]
pub fn repair_surrogates(json: &[u8]) -> Cow<'_, [u8]> {
    let mut repaired = Cow::Borrowed(json);
    let mut at = 0;
    while let Some(found) = json[at..].iter().position(|byte| *byte == b'\\') {
        let escape = at + found;
        at = match unit(json, escape) {
            Some(0xd800..=0xdbff) if is_low(unit(json, escape + ESCAPE)) => escape + 2 * ESCAPE,
            Some(0xd800..=0xdfff) => {
                repaired.to_mut()[escape + 2..escape + ESCAPE].copy_from_slice(b"fffd");
                escape + ESCAPE
            }
            // The byte after a backslash begins no escape, even if it is one itself.
            _ => escape + 2,
        };
        if at >= json.len() {
            break;
        }
    }
    repaired
}

/// The number in an escape that begins here.
fn unit(json: &[u8], at: usize) -> Option<u16> {
    let digits = json.get(at..at + ESCAPE)?.strip_prefix(b"\\u")?;
    let digits = std::str::from_utf8(digits).ok()?;
    // The reader of numbers would take a sign, too.
    let are_digits = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    are_digits.then(|| u16::from_str_radix(digits, 16).ok())?
}

fn is_low(unit: Option<u16>) -> bool {
    matches!(unit, Some(0xdc00..=0xdfff))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;

    #[test]
    fn half_a_character_becomes_the_sign_for_what_cannot_be_read() {
        for (json, text) in [
            (r#""cut \ud83d""#, "cut \u{fffd}"),
            (r#""\uDE00 cut""#, "\u{fffd} cut"),
            (r#""\ud83d\ud83d\ude00""#, "\u{fffd}😀"),
            (r#""\ude00\ud83d""#, "\u{fffd}\u{fffd}"),
            (r#""\ud83d\n\ude00""#, "\u{fffd}\n\u{fffd}"),
            (r#""\ud83d\\ude00""#, "\u{fffd}\\ude00"),
            (r#""\\\ud83d""#, "\\\u{fffd}"),
            (r#""\uD83Dx\u0041""#, "\u{fffd}xA"),
        ] {
            assert!(serde_json::from_str::<Value>(json).is_err(), "{json}");
            let repaired = repair_surrogates(json.as_bytes());
            assert_eq!(serde_json::from_slice::<String>(&repaired).unwrap(), text, "{json}");
            assert_eq!(repaired.len(), json.len());
        }
        let object = repair_surrogates(br#"{"\udfff": ["\ud800"]}"#);
        assert_eq!(object, &br#"{"\ufffd": ["\ufffd"]}"#[..]);
    }

    #[test]
    fn everything_else_stays_as_it_is() {
        for json in [
            "",
            r#""\ud83d\ude00 \uD83D\uDE00""#,
            r#""\\ud83d""#,
            r#""\\\\ud83d and \u00e9 and \ud7ff and \ue000""#,
            r#""ud83d 😀""#,
            // No JSON: nothing is made of it, and nothing is read behind its end.
            r"\ud83",
            r"\u",
            r"\",
            r"\u+d83",
        ] {
            let repaired = repair_surrogates(json.as_bytes());
            assert!(matches!(repaired, Cow::Borrowed(_)), "{json}");
            assert_eq!(repaired, json.as_bytes());
        }
    }

    proptest! {
        #[test]
        fn any_units_are_a_text_afterwards(units in prop::collection::vec(any::<u16>(), 0..40)) {
            let escaped: String = units.iter().map(|unit| format!("\\u{unit:04x}")).collect();
            let json = format!("\"{escaped}\"");
            let text: String = serde_json::from_slice(&repair_surrogates(json.as_bytes())).unwrap();
            prop_assert_eq!(text, String::from_utf16_lossy(&units));
        }

        #[test]
        fn any_bytes_are_taken(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
            prop_assert_eq!(repair_surrogates(&bytes).len(), bytes.len());
        }
    }
}
