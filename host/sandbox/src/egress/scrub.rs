//! Finds secret values in what goes back to a guest or into a log, however they are escaped there, and masks them.

use std::borrow::Cow;
use std::ops::Range;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD};

/// Shorter values are only looked for as they are: too much innocent text would match one of their other forms.
const MIN_ESCAPED_BYTES: usize = 4;

/// A text to look for, and the mask that takes its place.
#[derive(Clone)]
struct Needle {
    text: String,
    mask: String,
    escaped: bool,
}

/// All forms of all secret values, the longest first. It shows nothing in `Debug`, for it has no `Debug`.
#[derive(Clone, Default)]
pub(crate) struct Scrubber(Vec<Needle>);

impl Scrubber {
    /// A scrubber for these pairs of a name and a value.
    pub(crate) fn new<'s>(secrets: impl Iterator<Item = (&'s str, &'s str)>) -> Self {
        let mut needles = Vec::new();
        for (name, value) in secrets {
            let escaped = value.len() >= MIN_ESCAPED_BYTES;
            let engines = [STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD];
            let encoded = engines.iter().filter(|_| escaped).map(|engine| engine.encode(value));
            let texts = std::iter::once(value.to_owned()).chain(encoded);
            needles.extend(texts.map(|text| Needle { text, mask: format!("[secret {name}]"), escaped }));
        }
        needles.sort_by_key(|needle| std::cmp::Reverse(needle.text.len()));
        needles.dedup_by(|a, b| a.text == b.text);
        Self(needles)
    }

    /// The bytes with every occurrence masked. Occurrences that overlap become one mask, so that no end of one is left.
    pub(crate) fn scrub<'a>(&self, bytes: &'a [u8]) -> Cow<'a, [u8]> {
        let found = self.find(bytes);
        if found.is_empty() {
            return Cow::Borrowed(bytes);
        }
        let mut out = Vec::with_capacity(bytes.len());
        let mut done = 0;
        for (range, needle) in found {
            out.extend_from_slice(&bytes[done..range.start]);
            out.extend_from_slice(needle.mask.as_bytes());
            done = range.end;
        }
        out.extend_from_slice(&bytes[done..]);
        Cow::Owned(out)
    }

    fn find(&self, bytes: &[u8]) -> Vec<(Range<usize>, &Needle)> {
        let mut first = [false; 256];
        for needle in &self.0 {
            first[usize::from(needle.text.as_bytes().first().copied().unwrap_or(b'%'))] = true;
        }
        for start_of_escape in *b"%\\+" {
            first[usize::from(start_of_escape)] |= !self.0.is_empty();
        }
        let mut found: Vec<(Range<usize>, &Needle)> = Vec::new();
        let mut longest = 0;
        for (start, byte) in bytes.iter().enumerate() {
            if !first[usize::from(*byte)] {
                continue;
            }
            let matches = self.0.iter().filter_map(|needle| Some((needle.length_at(&bytes[start..])?, needle)));
            let Some((length, needle)) = matches.reduce(|a, b| if b.0 > a.0 { b } else { a }) else { continue };
            match found.last_mut() {
                Some((range, named)) if start < range.end => {
                    range.end = range.end.max(start + length);
                    if length > longest {
                        (longest, *named) = (length, needle);
                    }
                }
                _ => {
                    longest = length;
                    found.push((start..start + length, needle));
                }
            }
        }
        found
    }
}

impl Needle {
    /// How many of these bytes, from the first one on, are this text in some form.
    fn length_at(&self, bytes: &[u8]) -> Option<usize> {
        let plain = bytes.starts_with(self.text.as_bytes()).then_some(self.text.len());
        if !self.escaped {
            return plain;
        }
        let percent = percent_length(&self.text, bytes, false).max(percent_length(&self.text, bytes, true));
        plain.max(percent).max(json_length(&self.text, bytes))
    }
}

// Encoders differ in what they escape, so that each byte may be escaped or not. Only for `%` it must be known: the URL
// standard leaves it alone, while the encoding of a component escapes it.
fn percent_length(text: &str, bytes: &[u8], percent_stays: bool) -> Option<usize> {
    let mut at = 0;
    for wanted in text.bytes() {
        at += match *bytes.get(at)? {
            b'%' if percent_stays && wanted == b'%' => 1,
            b'%' if hex_byte(bytes, at + 1)? == wanted => 3,
            b'%' => return None,
            b'+' if wanted == b' ' => 1,
            byte if byte == wanted => 1,
            _ => return None,
        };
    }
    Some(at)
}

// The same for the escapes of a JSON string, where only `\` always is escaped; a value has no control characters.
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
                if !escape || u16::from_be_bytes([hex_byte(bytes, at + 2)?, hex_byte(bytes, at + 4)?]) != *unit {
                    return None;
                }
                at += 6;
            }
        } else if matches!(wanted, '"' | '\\' | '/') && bytes.get(at + 1).copied().map(char::from) == Some(wanted) {
            at += 2;
        } else {
            return None;
        }
    }
    Some(at)
}

/// The byte of two hexadecimal digits at `at`.
pub(super) fn hex_byte(bytes: &[u8], at: usize) -> Option<u8> {
    let digit = |at: usize| char::from(*bytes.get(at)?).to_digit(16);
    u8::try_from(digit(at)? * 16 + digit(at + 1)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scrub(secrets: &[(&str, &str)], text: &str) -> String {
        let scrubber = Scrubber::new(secrets.iter().copied());
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
            assert_eq!(scrub(&secrets, &form.replace('/', "\\/").replace('=', "%3D")).matches("[secret K]").count(), 1);
        }
        assert_eq!(scrub(&[("K", "a😀bc")], r"\ud83d\ude00 a\uD83D\ude00bc"), r"\ud83d\ude00 [secret K]");
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
        assert_eq!(scrub(&[("K", "100% \"25\"")], "100%%20%2225%22 100%25+%2225%22"), "[secret K] [secret K]");
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
        assert!(matches!(Scrubber::new([("A", "abcd")].into_iter()).scrub(b"abc\xff%"), Cow::Borrowed(b"abc\xff%")));
        assert!(matches!(Scrubber::default().scrub(b"%abc"), Cow::Borrowed(_)));
    }
}
