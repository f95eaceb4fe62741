//! How much work the patterns of a schema make, before anybody compiles or matches them.

use regex::{Error, RegexBuilder};

/// The most patterns of one schema.
const MAX_PATTERNS: usize = 256;
/// The memory that one compiled pattern may take, in bytes.
const MAX_BYTES: usize = 256 << 10;
/// The steps that 16 bytes of a text make, at worst, by the memory of the pattern that they are
/// compared with: every state of it is tried at every character.
const STEPS: [(usize, usize); 3] = [(4 << 10, 4), (32 << 10, 32), (MAX_BYTES, 192)];
/// The bytes of patterns that the validator may read while it makes those of JavaScript into its
/// own. It reads a pattern again for each class such as `\d` in it.
const MAX_REWRITTEN: usize = 4 << 20;

/// Why these patterns are too much work for any text.
pub(crate) fn check(patterns: &[&str]) -> Result<(), String> {
    if patterns.len() > MAX_PATTERNS {
        return Err(format!(
            "it has {} patterns; at most {MAX_PATTERNS} are allowed",
            patterns.len()
        ));
    }
    let own: Vec<(String, usize)> = patterns.iter().map(|pattern| rewritten(pattern)).collect();
    if own.iter().map(|(_, bytes)| *bytes).fold(0, usize::saturating_add) > MAX_REWRITTEN {
        return Err(
            "its patterns have too many classes such as `\\d`; use counts, or `[0-9]`".to_owned()
        );
    }
    match patterns.iter().zip(&own).find(|(_, (own, _))| !fits(own, MAX_BYTES)) {
        Some((pattern, _)) => {
            let shown: String = pattern.chars().take(64).collect();
            Err(format!("the pattern `{shown}` stands for too many texts; use smaller counts"))
        }
        None => Ok(()),
    }
}

/// The steps that 16 bytes of a text make with a pattern.
pub(crate) fn steps(pattern: &str) -> usize {
    let (own, _) = rewritten(pattern);
    let found = STEPS.into_iter().find(|(bytes, _)| fits(&own, *bytes));
    found.map_or(usize::MAX, |(_, steps)| steps)
}

/// A pattern of JavaScript as the validator makes it into one of its own, and the bytes that it
/// reads for that.
fn rewritten(pattern: &str) -> (String, usize) {
    let (mut own, mut passes) = (String::with_capacity(pattern.len()), 1);
    let mut chars = pattern.chars().peekable();
    while let Some(c) = chars.next() {
        let escaped = if c == '\\' { chars.next() } else { None };
        let class = match escaped {
            Some('d') => "[0-9]",
            Some('D') => "[^0-9]",
            Some('w') => "[A-Za-z0-9_]",
            Some('W') => "[^A-Za-z0-9_]",
            Some('s') => r"[ \t\n\r\x0b\x0c\u00a0\ufeff\u2003\u2029]",
            Some('S') => r"[^ \t\n\r\x0b\x0c\u00a0\ufeff\u2003\u2029]",
            Some('c') if chars.next_if(char::is_ascii_alphabetic).is_some() => r"\x01",
            other => {
                own.push(c);
                own.extend(other);
                continue;
            }
        };
        own.push_str(class);
        passes += 1;
    }
    let bytes = own.len().max(pattern.len()).saturating_mul(passes);
    (own, bytes)
}

/// Whether a compiled pattern takes no more than this. What is no pattern takes nothing, and the
/// validator refuses it.
fn fits(own: &str, bytes: usize) -> bool {
    !matches!(RegexBuilder::new(own).size_limit(bytes).build(), Err(Error::CompiledTooBig(_)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_are_few_and_small() {
        assert_eq!(check(&["^[a-z]{1,64}$", "^x-"]), Ok(()));
        assert!(check(&[r"(\w{100}){100}"]).unwrap_err().contains("too many texts"));
        let many: Vec<String> = (0..300).map(|n| format!("^{n}")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        assert!(check(&many).unwrap_err().contains("300 patterns"));
    }

    #[test]
    fn patterns_of_javascript_are_measured_as_what_they_become() {
        assert_eq!(rewritten(r"^\cA\\c\d\.$").0, r"^\x01\\c[0-9]\.$");
        assert_eq!(check(&[r"^\cA\s?\w+\\c\D\S\W$", r"\c", "\\"]), Ok(()));
        assert!(check(&[r"\cA(\w{100}){100}"]).unwrap_err().contains("too many texts"));
        for class in [r"\d", r"\cA", r"[\d]"] {
            assert!(check(&[&class.repeat(1_500)]).unwrap_err().contains("classes"), "{class}");
        }
        assert!(steps("a+") < steps("[ab]*a[ab]{1000}c"));
    }
}
