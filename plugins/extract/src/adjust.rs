//! Circumstances that change the confidence of a rule, the same for all kinds.

use std::sync::LazyLock;

use regex_lite::Regex;

use super::clause::Clause;
use crate::due;
use crate::kind::Kind;
use crate::rule::compile;

/// One circumstance: its pattern, how much it adds, and the kinds that it applies to.
struct Adjuster {
    id: &'static str,
    pattern: &'static str,
    by: f64,
    concerns: fn(Kind) -> bool,
    /// The pattern of what is excepted; empty: nothing.
    unless: &'static str,
}

impl Adjuster {
    const fn unless(self, pattern: &'static str) -> Self {
        Self { unless: pattern, ..self }
    }
}

const fn about(
    id: &'static str,
    by: f64,
    pattern: &'static str,
    concerns: fn(Kind) -> bool,
) -> Adjuster {
    Adjuster { id, pattern, by, concerns, unless: "" }
}

/// A state, and that it is today's: an adjective at the end of the clause.
const OF_TODAY: &str = concat!(
    r"\b(?:is|are|feels?|looks?) (?:(?:being|feeling|acting|running|just|so|very|really|quite|a|an|a bit|a little|rather|",
    r"pretty|extremely|super|too|such) )*(?:in an? (?:\w+ )?(?:mood|state|mess|shape)|[\w-]+(?: (?:up|mess|slow|weird|strange|day))?)",
    r"(?: and [\w-]+)? ",
    r"(?:today|tonight|this (?:morning|afternoon|evening)|at the moment|right now|lately|these days)[.!]*$",
);
/// What is so for a day, but is news.
const NEWS: &str = concat!(
    r"\b(?:is|are) (?:[\w-]+ )?(?:open|off|away|out|due|here|back|sick|ill|(?:clos|releas|schedul|postpon|delay|publish|launch|cancel|cancell)ed|",
    r"(?:arriv|leav|com|fly|mov|start|open|clos|visit|gett|hav|meet)ing) \w",
);
/// That there is no decision.
const NOTHING_DECIDED: &str = concat!(
    r"\b(?:decided|settled|chose|chosen|picked|resolved|concluded|agreed) (?:on |upon )?(?:\w+ly )?(?:nothing|no one|none)\b",
    r"(?:[.!,]|$| (?:yet|yesterday|today|so far|in|at|about|during|lol|really|again|new|definite|concrete|final|this|last|as)\b)",
    r"|^(?:nothing|neither|none|nobody|no one|no (?:[\w-]+ )?(?:decision|choice|agreement|consensus|option|one))\b",
    r"(?: [\w-]+){0,5}? (?:decided|chosen|chose|agreed|settled|picked|selected|made|reached)\b",
    r"|^(?:[\w'-]+ ){1,4}(?:could|did|do|does|have|has|had|were|was|are|is|am) not (?:\w+ )?(?:been able to |able to )?",
    r"(?:decide|agree|choose|settle|pick|reach|make|chosen|picked|made|reached|decided|agreed|settled)\b",
    r"|\b(?:unable|failed|struggling|unwilling) to (?:decide|agree|choose|settle|pick|reach)\b",
);
/// A wish that ends with this conversation: `I want to understand why this test fails`.
const AT_HAND: &str = concat!(
    r"\bto (?:\w+ly )?(?:understand|know|see|learn|check|find out|figure out|work out|verify|test) ",
    r"(?:(?:exactly |just )*(?:why|how|whether|if|what|which|where|when)(?: (?:is|are) wrong with| happens(?: when| if)?)? ",
    r"(?:{athand}|i )|what (?:happens|is (?:wrong|going on))\b",
    r"|(?:an? |the |some )(?:[\w-]+ )?(?:examples?|differences?|outputs?|results?)\b|{athand})",
    r"|\bto (?:print|sort|filter|parse|split|join|rename|remove|delete|replace|convert|check|test|run|call|copy|move|read|",
    r"load|open|close|format|align|count|loop|iterate|show|display|hide|select|add|pass|return|reverse|change|see|try|",
    r"get rid of|fix|debug|silence) (?:over |through )?{athand}",
    r"|\bto (?:make|get) (?:this|that|these) ",
);

/// A circumstance that lowers by at least this leaves it to a person: see [`DOUBTED`].
const DOUBT: f64 = -0.25;
/// At most so sure is a candidate in a doubtful circumstance, however sure its rule is.
const DOUBTED: f64 = 0.59;

/// The confidence of a rule in some circumstances, 0 to 0.99.
pub(crate) fn adjusted(confidence: f64, adjustments: &[(&'static str, f64)]) -> f64 {
    let sum = adjustments.iter().fold(confidence, |sum, (_, by)| sum + by);
    let most = if adjustments.iter().any(|(_, by)| *by <= DOUBT) { DOUBTED } else { 0.99 };
    // Rounded to three places, because sums of decimal fractions are inexact and are compared with
    // thresholds.
    (sum.clamp(0.0, most) * 1_000.0).round() / 1_000.0
}

/// Patterns see [`Clause::plain`].
const ADJUSTERS: &[Adjuster] = &[
    about(
        "hedged",
        -0.25,
        concat!(
            r"\b(?:maybe|perhaps|probably|possibly|presumably|apparently|supposedly|likely|might|i (?:think|",
            r"guess|suppose|assume|believe|suspect|wonder)|sort of|kind of|not (?:sure|certain)|no idea|",
            r"seems?|unsure|unclear|not decided|my (?:guess|hunch|theory|hypothesis|suspicion|assumption) is|",
            r"chances? (?:are|is|that)|i (?:am |would )?guess(?:ing)?|i bet|could be|i reckon)\b",
            r"|可能|也许|或许|大概|恐怕|说不定|估计",
        ),
        |kind| !matches!(kind, Kind::Hypothesis | Kind::Note),
    ),
    // A remark may be an idea, but not one that its author does not stand by.
    about(
        "undecided",
        -0.25,
        concat!(
            r"\bi (?:guess|suppose)\W*$",
            r"|\bwe (?:might|may|could) (?:\w+ )?(?:go (?:with|for)|switch|migrate|move (?:over )?to|settle|choose|pick|adopt|end up)\b",
        ),
        |kind| kind == Kind::Note,
    ),
    about(
        "conditional",
        -0.3,
        concat!(
            r"^(?:如果|假如|假设我|要是|想象|假装|倘若|万一)",
            r"|^(?:if (?:i|we|you|it|they|he|she|only) |suppose|pretend|let us say|imagine|assuming|what if|",
            r"had (?:i|we)|unless|in case)",
            r"|\bwould have\b",
        ),
        |kind| !matches!(kind, Kind::Hypothesis | Kind::Constraint | Kind::Preference),
    ),
    about(
        "counterfactual",
        -0.3,
        r"^if (?:i|we|you|he|she|they|it) (?:were|had)\b|\bhad i (?:known|been|had)\b",
        |kind| matches!(kind, Kind::Constraint | Kind::Preference),
    ),
    about(
        "over",
        -0.3,
        r"\b(?:i|we|user) used to (?:[ac-vx-z]|b[^e]|w[^o])|\bno longer\b|\banymore\b|\bback then\b",
        |kind| matches!(kind, Kind::Profile | Kind::Preference | Kind::Goal | Kind::Project),
    ),
    about(
        "reported",
        -0.3,
        concat!(
            r"^(?:in|according to) (?:the|this|that|a) (?:[\w-]+ )?(?:story|film|movie|book|novel|article|",
            r"game|song|example|poem|paper|text|recipe)\b",
            r"|\b(?:she|he) (?:whispered|shouted|replied|asked)\b|\b(?:says|they say|people say) the \w+",
            r"|\bsaid the \w+|^(?:the )?(?:lyrics|song|proverb|saying|example sentence|recipe|story)\b",
            r"|\b(?:knight|king|queen|princess|dragon|hero|protagonist|detective|wizard|narrator|character)\b",
            r"|^(?:translate|how (?:do|would) (?:i|you) say|write|make|give me|used in)\b.*\x22",
            r"|(?:小说|电影|故事|文章|书|诗|游戏|菜谱|案例)(?:里|中|说|提到|上说)|文中|主角|主人公|骑士|公主",
            r"|国王|侦探|歌词|例句|俗话|教科书|\x22,?说|\x22[^,。]*(?:翻译|怎么说)|\x22造(?:个)?句|对话,?里",
            r"|\b(?:he|she|they|people|someone|somebody|everyone|the (?:article|author|book|paper|docs?|post|",
            r"result|guy|speaker|assistant|chatbot|bot|model|ai)s?|chatgpt|gpt\S*|claude|copilot|gemini) (?:said|says|claims?|claimed|wrote|writes|argues?|thinks?|believes?|",
            r"told)\b",
        ),
        |kind| kind != Kind::Hypothesis,
    ),
    about(
        "in jest",
        -0.4,
        r"\b(?:lol|haha+|(?:just |am )?kidding|was joking|jk|lmao|rofl)\b|哈哈|开玩笑|逗你|;-?\)",
        |_| true,
    ),
    about(
        "for this once",
        -0.25,
        concat!(
            r"这(?:一)?(?:次|封|段|句|份)|\bright now waiting\b",
            r"|\b(?:once more|one second|one minute|in a minute|just now)\b",
            r"|\b(?:just this once|just for this|only today|this time|this {parts_of_answer}|that (?:one|",
            r"answer|paragraph|sentence|function|file|line|part)|the (?:above|following|attached|first|second|",
            r"third|last|next) {parts_of_text}\b)",
        ),
        |kind| matches!(kind, Kind::Profile | Kind::Preference | Kind::Constraint | Kind::Goal),
    ),
    about(
        "standing",
        0.05,
        concat!(
            r"\b(?:always|never|every time|whenever|in general|by default|from now on|going forward|",
            r"at all times|under no circumstances|without exception|all (?:my|your|our)|any)\b",
        ),
        |kind| matches!(kind, Kind::Preference | Kind::Constraint),
    ),
    about(
        "of the moment",
        -0.3,
        r"\b(?:just now|again|right now|a second ago|a minute ago)\b",
        |kind| kind == Kind::Fact,
    ),
    // How a thing is today, and not what it is: `my laptop is slow today`. What is off, due or
    // cancelled is an event.
    about("of today", -0.3, OF_TODAY, |kind| {
        matches!(kind, Kind::Fact | Kind::Project | Kind::Profile)
    })
    .unless(NEWS),
    about("nothing decided", -0.4, NOTHING_DECIDED, |kind| {
        matches!(kind, Kind::Decision | Kind::Fact)
    }),
    about("at hand", -0.3, AT_HAND, |kind| kind == Kind::Goal),
    about(
        "of the text",
        -0.4,
        concat!(
            r"\b(?:this (?:paper|chapter|section|article|book|sentence|function|loop|word|variable)|",
            r"as follows|the reader|figure \d|table \d|section \d|the (?:picture|example|equation|loop|",
            r"sentence|variable|word|text|passage|answer)|line \d)\b",
            r"|^(?:answer|word|loop|variable|output|step|page|line|result|total|\d+) ",
        ),
        |kind| matches!(kind, Kind::Fact | Kind::Todo),
    ),
    // What everybody can look up is no fact of this user.
    about(
        "common knowledge",
        -0.35,
        concat!(
            r"^(?:an? |every |most |some |all |the human |the average |world |mount )",
            r"|\b(?:human body|of light|of sound|atomic|species|planets?|solar|on earth|the (?:earth|moon|sun|",
            r"universe|atlantic|pacific|heart|brain)|(?:metres?|meters?|m|km|miles|feet) (?:high|long|tall|",
            r"deep|wide)|celsius|per second|square root|century|revolution|founded by|invented by|",
            r"created by)\b",
            r"|^[\w ]+ (?:was|were|is|began|ended|became) (?:\w+ )*(?:in|since|on) (?:1\d{3}|200\d|201[0-4])\b",
        ),
        |kind| kind == Kind::Fact,
    ),
    // A hard rule has no due date; what has to be done by one is a task.
    about(
        "due once",
        -0.25,
        concat!(
            r"^[^,]*\b(?:by|before|until|this|next|on the|tomorrow|tonight)\b ?(?:the )?(?:end|week|month|",
            r"sprint|weekend|year|evening|monday|tuesday|wednesday|thursday|friday|saturday|sunday|january|",
            r"february|march|april|june|july|august|september|october|november|december|\d{1,2} \w+|",
            r"\d{1,2}(?:st|nd|rd|th)|first|second|third|fourth|fifth|ninth|tenth|release|deadline|demo|",
            r"meeting|exam)\b",
        ),
        |kind| kind == Kind::Constraint,
    ),
    about(
        "about the reader",
        -0.3,
        concat!(
            r"^(?:i (?:think|guess|suppose|believe|bet|assume) |maybe |perhaps |apparently |",
            r"probably )?(?:that )?(?:you|your|you are)\b",
            r"|^(?:也许|可能|大概|我想|我觉得|看来|好像)?[你您]",
        ),
        |kind| {
            matches!(kind, Kind::Hypothesis | Kind::Fact | Kind::Project | Kind::Note | Kind::Todo)
        },
    ),
    about(
        "a commonplace",
        -0.3,
        concat!(
            r"^(?:doctors|people|children|students|parents|teachers|men|women|humans|most|some|many|nobody|",
            r"everybody|one) (?:\w+ )?(?:should|must|need|needs|prefer|like|never|always|may|might|can|is|",
            r"are)\b",
            r"|\bmight say\b|会说",
        ),
        |kind| kind != Kind::Decision,
    ),
    about("of no thing", -0.25, r"^(?:please )?\w+ (?:it|this|that|them|these|those)\b", |kind| {
        kind == Kind::Todo
    }),
    about("please", -0.1, r"^please |, please\W*$", |kind| kind == Kind::Todo),
    // What the assistant can do at once is a request of this turn, unless it has a date.
    about(
        "a request",
        -0.2,
        r"^(?:please |then |now |finally,? |first,? )*{request_verbs}\b",
        |kind| kind == Kind::Todo,
    ),
];

static PATTERNS: LazyLock<Vec<Circumstance>> = LazyLock::new(|| {
    let ready = |adjuster: &'static Adjuster| {
        let unless =
            if adjuster.unless.is_empty() { None } else { Some(compile(adjuster.unless)?) };
        Some(Circumstance { adjuster, pattern: compile(adjuster.pattern)?, unless })
    };
    ADJUSTERS.iter().filter_map(ready).collect()
});

/// An adjuster that is compiled.
struct Circumstance {
    adjuster: &'static Adjuster,
    pattern: Regex,
    unless: Option<Regex>,
}

impl Circumstance {
    fn is_met(&self, clause: &Clause, kind: Kind) -> bool {
        (self.adjuster.concerns)(kind)
            && self.pattern.is_match(&clause.plain)
            && !self.unless.as_ref().is_some_and(|unless| unless.is_match(&clause.plain))
    }
}

/// Leads that ask to remember what follows.
const EXPLICIT: [&str; 9] = [
    "remember",
    "note",
    "keep in mind",
    "bear in mind",
    "for the record",
    "just so you know",
    "for your information",
    "from now on",
    "should know",
];

/// The adjustments for a rule of this kind, by name.
pub(crate) fn adjustments(clause: &Clause, kind: Kind) -> Vec<(&'static str, f64)> {
    let mut found: Vec<(&'static str, f64)> = PATTERNS
        .iter()
        .filter(|circumstance| circumstance.is_met(clause, kind))
        .map(|circumstance| circumstance.adjuster)
        .filter(|adjuster| adjuster.id != "common knowledge" || !clause.is_own())
        .filter(|adjuster| {
            adjuster.id != "due once"
                || !["every", "all", "each", "any"].iter().any(|word| clause.has(word))
        })
        .map(|adjuster| (adjuster.id, adjuster.by))
        .collect();
    if EXPLICIT.iter().any(|words| clause.lead.contains(words)) {
        found.push(("explicit", 0.06));
    }
    if kind == Kind::Todo && due::mentions(&clause.plain) {
        found.push(("dated", 0.06));
    }
    if clause.words() < 3 && kind != Kind::KeywordSet {
        found.push(("short", -0.15));
    }
    // A statement with so many words at once cannot stand alone.
    if clause.words() > 60 {
        found.push(("long", -0.15));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_circumstance_compiles() {
        assert_eq!(PATTERNS.len(), ADJUSTERS.len());
    }
}
