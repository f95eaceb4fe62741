//! A text that grows line by line within a limit of tokens, where each line is counted once.

use crate::count_up_to;

/// A text of whole lines with at most so many tokens.
#[derive(Debug)]
pub struct Lines {
    text: String,
    tokens: usize,
    limit: usize,
}

impl Lines {
    /// An empty text that may have so many tokens.
    #[must_use]
    pub fn new(limit: usize) -> Self {
        Self { text: String::new(), tokens: 0, limit }
    }

    /// Adds lines, the last of which ends with a line break, if the whole text still fits. Answers
    /// whether it did. The time is linear in their length, and in what still fits where that is
    /// less.
    #[must_use]
    pub fn push(&mut self, lines: &str) -> bool {
        if self.joins(lines) {
            let text = format!("{}{lines}", self.text);
            let Some(tokens) = count_up_to(&text, self.limit) else { return false };
            (self.text, self.tokens) = (text, tokens);
            return true;
        }
        let Some(tokens) = count_up_to(lines, self.limit - self.tokens) else { return false };
        self.text.push_str(lines);
        self.tokens += tokens;
        true
    }

    /// Whether a token may reach from the text into lines: the encoding takes blanks and slashes to
    /// the line break before them, and nothing else.
    fn joins(&self, lines: &str) -> bool {
        let is_taken = |first: char| first == '/' || first.is_whitespace();
        !self.text.is_empty() && (!self.text.ends_with('\n') || lines.starts_with(is_taken))
    }

    /// The text so far.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// How many more tokens it may have.
    #[must_use]
    pub fn room(&self) -> usize {
        self.limit.saturating_sub(self.tokens)
    }

    /// How many tokens it has.
    #[must_use]
    pub fn tokens(&self) -> usize {
        self.tokens
    }

    /// The text.
    #[must_use]
    pub fn into_text(self) -> String {
        self.text
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::count;

    proptest! {
        #[test]
        fn the_sum_is_the_count_of_the_whole(
            lines in prop::collection::vec("[ \t/)a-z0-9.\r-é語]{0,8}", 0..12), limit in 0..60_usize,
        ) {
            let (mut all, mut bounded) = (Lines::new(usize::MAX), Lines::new(limit));
            for line in lines.iter().map(|line| format!("{line}\n")) {
                prop_assert!(all.push(&line));
                prop_assert_eq!(all.tokens(), count(all.text()));
                let whole = format!("{}{line}", bounded.text());
                prop_assert_eq!(bounded.push(&line), count(&whole) <= limit);
            }
            prop_assert_eq!(bounded.tokens(), count(bounded.text()));
        }
    }

    #[test]
    fn a_slash_after_punctuation_and_a_line_break_is_one_token_with_them() {
        let mut lines = Lines::new(100);
        assert!(lines.push("(a)\n") && lines.push("/b\n") && lines.push("- c\n"));
        assert_eq!(lines.tokens(), count("(a)\n/b\n- c\n"));
    }
}
