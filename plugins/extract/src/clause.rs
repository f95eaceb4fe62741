//! Splits a sentence into clauses, in the plain form that rules read.

use std::sync::LazyLock;

use regex_lite::Regex;

use super::typing;
use crate::due;

/// One statement of a sentence.
#[derive(Debug)]
pub(crate) struct Clause {
    /// As it was written.
    pub(crate) text: String,
    /// Lower case, straight quotes, contractions written out, without what leads in (`by the way`).
    pub(crate) plain: String,
    pub(crate) is_question: bool,
    /// Whether it is in Chinese: the rules of its own for it are tried and the English ones are
    /// not.
    pub(crate) is_chinese: bool,
    /// The lead that was removed from `plain`, such as `please note that`. It shows how explicit
    /// the statement is.
    pub(crate) lead: String,
}

/// Written out in this order, on text in lower case.
const CONTRACTIONS: &[(&str, &str)] = &[
    (r"\bcan't\b", "cannot"),
    (r"\bwon't\b", "will not"),
    (r"\bshan't\b", "shall not"),
    (r"\bain't\b", "is not"),
    (r"n't\b", " not"),
    (r"\bi'm\b", "i am"),
    (r"\blet's\b", "let us"),
    (r"\b(it|that|this|he|she|what|there|here|who|where|name)'s\b", "$1 is"),
    (r"'re\b", " are"),
    (r"'ve\b", " have"),
    (r"'ll\b", " will"),
    (r"\b(i|we|you|he|she|they)'d\b", "$1 would"),
    (r"\bgonna\b", "going to"),
    (r"\bwanna\b", "want to"),
    (r"\bgotta\b", "have to"),
    (r"[*`_]{1,3}(\S)", "$1"),
    (r"(\S)[*`_]{1,3}", "$1"),
    (r"\s+", " "),
];

/// Leads without a meaning of their own.
const LEAD: &str = r"^(?:(?:and|but|so|also|well|ok|okay|yes|no|oh|hey|hi|sure|right|actually|btw|by the way|basically|honestly|anyway|plus|additionally|moreover|furthermore|besides|first|second|third|finally|then|one more thing|just so you know|for your information|for the record|for context|for reference|for background|some background|background|as a reminder|please (?:note|remember|know|keep in mind) that|(?:remember|note|keep in mind|bear in mind|know) that|you should know that|it is worth knowing that|in general|generally|as a rule|as a general rule|from now on|going forward|in (?:the )?future|in my case|personally|overall|update|today|yesterday|this morning|last (?:week|month|year|night))(?:[,:]? -? ?|[.!] ))+";

/// Where a new statement of its own begins within a sentence.
const JOINT: &str = r"(?i)(?:[,.]?\s+(?:and|but|so|yet|though|although|whereas|while)\s+)((?:also\s+|then\s+|that\s+)?(?:i|i'm|i've|i'd|i'll|we|we're|we've|we'll|my|our|please|never|always|don't|do not|let's|the user|user|you must|you should|it must)\b)";

static WRITTEN_OUT: LazyLock<Vec<(Regex, &str)>> = LazyLock::new(|| {
    let compile = |(pattern, with): &(&str, &'static str)| {
        Regex::new(pattern).ok().map(|regex| (regex, *with))
    };
    CONTRACTIONS.iter().filter_map(compile).collect()
});
static LEADS: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(LEAD).ok());
static JOINTS: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(JOINT).ok());

impl Clause {
    /// Whether one of its words is `word`, in plain form.
    pub(crate) fn has(&self, word: &str) -> bool {
        let end_of_word = |c: char| !c.is_alphanumeric() && c != '\'';
        self.plain.match_indices(word).any(|(at, _)| {
            self.plain[..at].chars().next_back().is_none_or(end_of_word)
                && self.plain[at + word.len()..].chars().next().is_none_or(end_of_word)
        })
    }

    /// Whether it says whose it is: `a colleague of mine`, `most of our users`.
    pub(crate) fn is_own(&self) -> bool {
        ["my", "mine", "our", "ours", "we", "us", "i", "user"].iter().any(|word| self.has(word))
    }

    /// Whether it speaks of a certain thing or day, and not of things in general.
    pub(super) fn is_anchored(&self) -> bool {
        const DEFINITE: [&str; 9] =
            ["the ", "this ", "that ", "his ", "her ", "their ", "yesterday", "both ", "dr"];
        const DAYS: [&str; 8] =
            ["last", "next", "yesterday", "tomorrow", "ago", "week", "month", "today"];
        self.is_own()
            || DEFINITE.iter().any(|start| self.plain.starts_with(start))
            || self.plain.contains("'s ")
            || DAYS.iter().any(|word| self.has(word))
            || due::mentions(&self.plain)
    }

    /// The clause with its lead, if the lead has a meaning.
    pub(crate) fn with_lead(&self) -> Option<Self> {
        let (text, lead) = (self.text.clone(), String::new());
        let plain = format!("{}{}", self.lead, self.plain);
        (!self.lead.is_empty()).then_some(Self { text, plain, lead, ..*self })
    }

    /// How many words it has. Chinese has no spaces: two characters count as a word.
    pub(crate) fn words(&self) -> usize {
        if self.is_chinese {
            return self.plain.chars().filter(|c| c.is_alphanumeric()).count().div_ceil(2);
        }
        self.plain.split(' ').filter(|word| word.contains(char::is_alphanumeric)).count()
    }
}

/// The clauses of a sentence.
pub(crate) fn clauses(sentence: &str) -> Vec<Clause> {
    let end = sentence
        .trim_end()
        .trim_end_matches(['"', '\'', ')', ' ', '\u{201D}', '\u{300D}', '\u{3002}']);
    // `吗` and `呢` make a question of a statement.
    let is_question = end.ends_with(['?', '\u{FF1F}', '\u{5417}', '\u{5462}']);
    let mut parts = Vec::new();
    for part in sentence.split("; ").flat_map(|part| part.split('\u{FF1B}')) {
        let mut from = 0;
        for joint in JOINTS.iter().flat_map(|joints| joints.captures_iter(part)) {
            let (Some(whole), Some(next)) = (joint.get(0), joint.get(1)) else { continue };
            // `and I` after one word is a list: `my wife and I`.
            if part[from..whole.start()].split_whitespace().count() > 2 {
                parts.push(&part[from..whole.start()]);
                from = next.start();
            }
        }
        parts.push(&part[from..]);
    }
    parts.into_iter().filter_map(|part| clause(part, is_question)).collect()
}

fn clause(text: &str, is_question: bool) -> Option<Clause> {
    let text = text.trim().trim_end_matches([',', ';']).trim();
    if text.is_empty() {
        return None;
    }
    let is_chinese = text.chars().any(is_han);
    let whole = plain(text);
    let lead = LEADS.as_ref().and_then(|lead| lead.find(&whole)).map_or("", |found| found.as_str());
    // A sentence that consists of a lead is skipped.
    let rest = whole[lead.len()..].trim().to_owned();
    Some(Clause {
        text: text.to_owned(),
        lead: lead.to_owned(),
        plain: rest,
        is_question,
        is_chinese,
    })
}

/// Whether a character is a Chinese one.
pub(super) fn is_han(c: char) -> bool {
    matches!(c, '\u{3400}'..='\u{4DBF}' | '\u{4E00}'..='\u{9FFF}')
}

/// Text in the form that patterns are written for.
pub(crate) fn plain(text: &str) -> String {
    let straight = |c: char| match c {
        '\u{2018}' | '\u{2019}' => '\'',
        '\u{201C}' | '\u{201D}' => '"',
        '\u{2010}'..='\u{2013}' => '-',
        // Full-width punctuation and digits.
        '\u{FF01}'..='\u{FF5E}' => char::from_u32(c as u32 - 0xFEE0).unwrap_or(c),
        c => c,
    };
    let mut plain: String = text.chars().map(straight).collect::<String>().to_lowercase();
    for (pattern, with) in WRITTEN_OUT.iter() {
        plain = pattern.replace_all(&plain, *with).into_owned();
    }
    typing::corrected(plain.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(sentence: &str) -> Vec<String> {
        clauses(sentence).into_iter().map(|clause| clause.text).collect()
    }

    #[test]
    fn contractions_are_written_out_and_leads_taken_off() {
        let plain = |text| clause(text, false).unwrap().plain;
        assert_eq!(plain("By the way, I\u{2019}m  a Nurse"), "i am a nurse");
        assert_eq!(
            plain("Also: we'll **not** use it, don't worry"),
            "we will not use it, do not worry"
        );
        assert_eq!(plain("Please note that my name's Ann."), "my name is ann.");
        assert_eq!(plain("User's deadline is Friday"), "user's deadline is friday");
    }

    #[test]
    fn sentences_are_cut_where_a_statement_begins() {
        assert_eq!(texts("I'm a nurse, and I prefer tea."), ["I'm a nurse", "I prefer tea."]);
        assert_eq!(texts("We chose Go; I need to learn it"), ["We chose Go", "I need to learn it"]);
        assert_eq!(texts("My wife and I live in Rome"), ["My wife and I live in Rome"]);
        assert_eq!(texts("RAG and memory and agents"), ["RAG and memory and agents"]);
    }

    #[test]
    fn words_are_whole() {
        let clause = clause("unpreferred option", false).unwrap();
        assert!(!clause.has("prefer") && clause.has("option"));
    }
}
