//! Carelessly typed English in the form that the rules read: chat spellings, lost apostrophes,
//! words left out.

use std::sync::LazyLock;

use regex_lite::Regex;

/// Words that are always written out so, whatever stands around them.
const WORDS: &[(&str, &str)] = &[
    ("im", "i am"),
    ("ive", "i have"),
    ("dont", "do not"),
    ("doesnt", "does not"),
    ("didnt", "did not"),
    ("cant", "cannot"),
    ("wont", "will not"),
    ("isnt", "is not"),
    ("arent", "are not"),
    ("wasnt", "was not"),
    ("werent", "were not"),
    ("havent", "have not"),
    ("hasnt", "has not"),
    ("shouldnt", "should not"),
    ("couldnt", "could not"),
    ("wouldnt", "would not"),
    ("mustnt", "must not"),
    ("thats", "that is"),
    ("theres", "there is"),
    ("whats", "what is"),
    ("lets", "let us"),
    ("youre", "you are"),
    ("theyre", "they are"),
    ("u", "you"),
    ("ur", "your"),
    ("r", "are"),
    ("n", "and"),
    ("&", "and"),
    ("w", "with"),
    ("w/", "with"),
    ("w/o", "without"),
    ("b4", "before"),
    ("bc", "because"),
    ("cuz", "because"),
    ("cos", "because"),
    ("pls", "please"),
    ("plz", "please"),
    ("abt", "about"),
    ("tmrw", "tomorrow"),
    ("tmr", "tomorrow"),
    ("prob", "probably"),
    ("probs", "probably"),
    ("prolly", "probably"),
    ("probly", "probably"),
    ("mite", "might"),
    ("rn", "now"),
    ("atm", "now"),
    ("ppl", "people"),
    ("yr", "year"),
    ("yrs", "years"),
    ("hrs", "hours"),
    ("mins", "minutes"),
    ("fav", "favorite"),
    ("fave", "favorite"),
    ("luv", "love"),
    ("kinda", "kind of"),
    ("sorta", "sort of"),
    ("em", "them"),
    ("hafta", "have to"),
    ("rly", "really"),
    ("rlly", "really"),
    ("alot", "a lot"),
    ("thru", "through"),
    ("tho", "though"),
    ("mins", "minutes"),
    ("gf", "girlfriend"),
    ("bf", "boyfriend"),
    ("bro", "brother"),
    ("sis", "sister"),
    ("prof", "professor"),
    ("appt", "appointment"),
    ("conf", "conference"),
    ("mon", "monday"),
    ("tue", "tuesday"),
    ("tues", "tuesday"),
    ("weds", "wednesday"),
    ("thu", "thursday"),
    ("thurs", "thursday"),
    ("fri", "friday"),
    ("xmas", "christmas"),
    ("hw", "homework"),
    ("pref", "prefer"),
    ("wed", "wednesday"),
    // Particles without a meaning of their own.
    ("btw", ""),
    ("tbh", ""),
    ("imo", ""),
    ("imho", ""),
    ("ngl", ""),
    ("sry", ""),
    ("thx", ""),
];

/// Forms that depend on their neighbours. They are tried in this order, after the words.
const FORMS: &[(&str, &str)] = &[
    (r"^i d\b|\bid (like|love|rather|prefer|say|guess|hate|be|want)\b", "i would $1"),
    (r"^(so |and |but |then )?ill (\w)", "${1}i will $2"),
    (r"^well (use|go|keep|do|take|stick|have|switch|move|need|make)\b", "we will $1"),
    (
        r"^were (going|gonna|using|not|moving|switching|building|trying|working|making|sticking|keeping|dropping)\b",
        "we are $1",
    ),
    (
        r"\bits (an?|the|not|decided|probably|likely|always|going|all|just|only|caused|because|due|in|on)\b",
        "it is $1",
    ),
    (r"\b(my|our|the) (\w+)s name\b", "$1 $2's name"),
    (r"\b(could|might|may|would|will|should|must) b\b", "$1 be"),
    (r"\b(need|needs|have|has|had|want|wants|going|decided|got|gotta|used) 2 ([a-z])", "$1 to $2"),
    // A swallowed g: `workin`, `tryin`.
    (
        r"\b(work|learn|study|train|try|do|look|think|build|hop|plann|mak|writ|runn|sav|mov)in\b",
        "${1}ing",
    ),
    (r"\b(\w{3,})yng\b", "${1}ying"),
    (r"\bgoing to to\b", "going to"),
    (r"\s+", " "),
];

static WRITTEN: LazyLock<Vec<(Regex, &str)>> = LazyLock::new(|| {
    FORMS.iter().filter_map(|(pattern, with)| Some((Regex::new(pattern).ok()?, *with))).collect()
});

/// The text, which is in lower case, as somebody would have written it with care.
pub(super) fn corrected(text: &str) -> String {
    let mut whole = String::with_capacity(text.len() + 16);
    for word in text.split(' ') {
        let bare = word.trim_end_matches([',', '.', '!', '?', ':', ';']);
        let with = WORDS.iter().find(|(short, _)| *short == bare).map_or(bare, |(_, long)| long);
        if !whole.is_empty() && !with.is_empty() {
            whole.push(' ');
        }
        whole.push_str(with);
        whole.push_str(&word[bare.len()..]);
    }
    for (pattern, with) in WRITTEN.iter() {
        whole = pattern.replace_all(&whole, *with).into_owned();
    }
    whole.trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chat_spellings_are_written_out() {
        assert_eq!(WRITTEN.len(), FORMS.len());
        for (typed, meant) in [
            ("im a nurse btw, i dont drive", "i am a nurse, i do not drive"),
            ("id rather have u ask b4 u start", "i would rather have you ask before you start"),
            ("well use docker, its decided", "we will use docker, it is decided"),
            ("my cats name is miso", "my cat's name is miso"),
            ("could b the dns, need 2 check", "could be the dns, need to check"),
            ("the idea is well known", "the idea is well known"),
        ] {
            assert_eq!(corrected(typed), meant);
        }
    }
}
