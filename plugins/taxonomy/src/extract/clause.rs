//! Splits a sentence into clauses, in the plain form that rules read.

use std::sync::LazyLock;

use regex_lite::Regex;

use super::lines::Speaker;

/// One statement of a sentence.
#[derive(Debug)]
pub(crate) struct Clause {
    /// As it was written.
    pub(crate) text: String,
    /// Lower case, straight quotes, contractions written out, without what leads in (`by the way`).
    pub(crate) plain: String,
    pub(crate) is_question: bool,
    pub(crate) speaker: Speaker,
    /// The lead that was removed from `plain`, such as `please note that`. It shows how explicit the statement is.
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
    let compile = |(pattern, with): &(&str, &'static str)| Regex::new(pattern).ok().map(|regex| (regex, *with));
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

    /// The clause with its lead, if the lead has a meaning.
    pub(crate) fn with_lead(&self) -> Option<Self> {
        let (text, lead) = (self.text.clone(), String::new());
        let plain = format!("{}{}", self.lead, self.plain);
        (!self.lead.is_empty()).then_some(Self { text, plain, lead, ..*self })
    }

    /// How many words it has.
    pub(crate) fn words(&self) -> usize {
        self.plain.split(' ').filter(|word| word.contains(char::is_alphanumeric)).count()
    }
}

/// The clauses of a sentence.
pub(crate) fn clauses(sentence: &str, speaker: Speaker) -> Vec<Clause> {
    let is_question = sentence.trim_end().trim_end_matches(['"', '\'', ')', ' ']).ends_with('?');
    let mut parts = Vec::new();
    for part in sentence.split("; ") {
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
    parts.into_iter().filter_map(|part| clause(part, is_question, speaker)).collect()
}

fn clause(text: &str, is_question: bool, speaker: Speaker) -> Option<Clause> {
    let text = text.trim().trim_end_matches([',', ';']).trim();
    if text.is_empty() {
        return None;
    }
    let whole = plain(text);
    let lead = LEADS.as_ref().and_then(|lead| lead.find(&whole)).map_or("", |found| found.as_str());
    // A sentence that consists of a lead is skipped.
    let rest = whole[lead.len()..].trim().to_owned();
    Some(Clause { text: text.to_owned(), lead: lead.to_owned(), plain: rest, is_question, speaker })
}

/// Text in the form that patterns are written for.
pub(crate) fn plain(text: &str) -> String {
    let straight = |c: char| match c {
        '\u{2018}' | '\u{2019}' => '\'',
        '\u{201C}' | '\u{201D}' => '"',
        '\u{2010}'..='\u{2013}' => '-',
        c => c,
    };
    let mut plain: String = text.chars().map(straight).collect::<String>().to_lowercase();
    for (pattern, with) in WRITTEN_OUT.iter() {
        plain = pattern.replace_all(&plain, *with).into_owned();
    }
    plain.trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(sentence: &str) -> Vec<String> {
        clauses(sentence, Speaker::Unknown).into_iter().map(|clause| clause.text).collect()
    }

    #[test]
    fn contractions_are_written_out_and_leads_taken_off() {
        let plain = |text| clause(text, false, Speaker::Unknown).unwrap().plain;
        assert_eq!(plain("By the way, I\u{2019}m  a Nurse"), "i am a nurse");
        assert_eq!(plain("Also: we'll **not** use it, don't worry"), "we will not use it, do not worry");
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
        let clause = clause("unpreferred option", false, Speaker::Unknown).unwrap();
        assert!(!clause.has("prefer") && clause.has("option"));
    }
}
