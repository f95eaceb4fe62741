//! Definitions of terms: what a word means among those who speak. What it means to everybody is no
//! memory.

use crate::Rule;
use crate::kind::Kind;

/// The rules of a kind.
pub(super) const fn of(kind: Kind) -> &'static [Rule] {
    match kind {
        Kind::Fact => FACT,
        _ => &[],
    }
}

/// A definition without a word about who uses it: not of what everybody knows, nor of what was just
/// said.
const KNOWN: &str = concat!(
    r"^(?:the )?(?:{tech}|it|that|this|which|what|he|she|they|there|here|you|i|we)\b",
    r"|^(?:nasa|nato|un|eu|usa?|uk|who|fifa|ibm|dna|rna|cpus?|gpus?|ram|rom|usb|pdf|html|css|url|lol|btw|asap|am|pm|gps)\b",
);

const FACT: &[Rule] = &[
    Rule::new(
        "fact.term-means",
        0.84,
        concat!(
"means mean refers stands short denotes code word name term abbreviation acronym nickname ",
"shorthand slang",
),
        concat!(
            // `In our office, "the aquarium" means …`
            r"^(?:in|at|on|within|for|among|inside) (?:our|this|the|my) (?:[\w-]+ ){0,3}?[\w-]+,? ",
            r#"(?:(?:an?|the) )?(?:"[^"]+"|[\w-]+(?: [\w-]+){0,2}) (?:always |usually |just |only )?{means}\b"#,
            // `Here "owner" means …`
            r#"|^(?:(?:around |over )?here|internally|locally|for us|with us|among us|at (?:work|our \w+)),? (?:(?:an?|the) )?"#,
            r#"(?:"[^"]+"|[\w-]+(?: [\w-]+){0,2}) {means}\b"#,
            // `"Harvest" is our word for …`
            r#"|^(?:an? |the )?(?:"[^"]+"|[\w-]+(?: [\w-]+){0,3}) (?:is|are|was) (?:our|my|the team's|the company's|a local|"#,
            r"an internal|the internal) (?:own |internal |\w+ )?",
            r"(?:word|name|term|abbreviation|acronym|nickname|shorthand|slang|code|jargon|code ?word|code ?name|label) for\b",
            // `Our nickname for the old mail server is …`
            r"|^(?:our|my|the (?:team|company|\w+)'s|the (?:local|internal)) (?:own |internal |\w+ )?",
            r"(?:word|name|term|abbreviation|acronym|nickname|shorthand|slang|code ?word|code ?name) for .+ (?:is|was) ",
            // `"Gold" in our reports means …`, `TBR means … in our tracker`
            r#"|^(?:an? )?(?:"[^"]+"|[\w-]+(?: [\w-]+)?) (?:(?:in|at|on|for) (?:our|my|us)\b(?: [\w-]+){0,2}? {means}|"#,
            r"{means} .*\b(?:in|at|on|for) (?:our|my|us)\b)",
            // `The term "drop" refers to …`
            r#"|^(?:the |our |my )?(?:term|word|name|phrase|abbreviation|acronym|expression|label) "[^"]+" {means}\b"#,
        ),
    )
    .unless(concat!(
r"^(?:it|this|that|what|which|he|she|they)\b",
r"|\b(?:function|loop|sentence|text|example|equation|formula|code|file|line|paragraph|poem|story|",
r"article),? .*{means}",
))
    .tags(&["term"]),
    Rule::new(
        "fact.term-we-mean",
        0.84,
        "mean means",
        concat!(
            r#"^(?:by|with|under) (?:"[^"]+"|(?:the |an? |our )?[\w-]+(?: [\w-]+){0,2}),? (?:i|we|people|they|our \w+) "#,
            r"(?:\w+ )?(?:mean|understand|refer to)\b",
            r"|^(?:when|whenever|if) (?:i|we|people|they|somebody|someone|our \w+)(?: here)? (?:say|says|write|writes|speak of|",
            r"speaks of|talk about|talks about|mention|mentions) .{2,60},? (?:i|we|it|this|that|they|he or she) (?:\w+ )?means?\b",
        ),
    )
    .unless(r"\bmean (?:that|to|it|well|business|nothing)\b|\byou mean\b")
    .tags(&["term"]),
    Rule::new(
        "fact.term-called",
        0.8,
        "call calls refer refers known called nickname nicknamed dubbed",
        concat!(
            r#"^(?:an? |the |our )?(?:"[^"]+"|[\w-]+(?: [\w-]+)?) is what (?:we|i|people here|our \w+) (?:\w+ )?calls?\b"#,
            r"|^(?:we|our \w+|the \w+ team|people here|everybody here|everyone here) (?:\w+ly |all |always )?refers? to ",
            r"(?:the|our|an?|this|that) .+ as (?:the |an? )?[\w-]+",
            r"|\b(?:is|are) (?:known|referred to) (?:internally|here|in-?house|to us|among us|by us|in (?:our|the) \w+|at \w+) as ",
            r"|\b(?:is|are) (?:internally|locally|here) (?:known as|called|referred to as) ",
        ),
    )
    .tags(&["term"]),
    Rule::new(
        "fact.term-we-call",
        0.8,
        "call calls nickname nicknamed dubbed",
        concat!(
            r"^(?:we|our \w+|the \w+ team|my \w+|(?:people|every(?:body|one))(?: here| (?:at|in|on) (?:[\w-]+ )?[\w-]+)?) (?:\w+ly |all |always |also |just )?",
            r"(?:calls?|nicknamed?|dubbed) (?:the|our|an?|this|that|any|every|such an?) (?:[\w'-]+ ){1,8}\S+",
        ),
    )
    // The name is in quotes, has a capital after a word without one, or has an article of its own.
    .written(concat!(
r#"(?:["“”'‘][^"”]+["”'’]|\b[a-z][\w-]* (?:the )?[A-Z][a-z][\w-]*(?: [A-Z][a-z][\w-]*)*|"#,
r"\b[a-z]\w+ (?:the|a|an) [\w-]+(?: [\w-]+)?)[.!]*$",
))
    .unless(concat!(
r"\b(?:every|each|once|twice|again|when|before|after|if|on (?:\w+day|the phone)|with|from|at|for|",
r"the (?:next|same|other|first|last)(?: \w+)?[.!]*$)\b",
))
    .tags(&["term"]),
    // Who tells the assistant what letters stand for, tells what they stand for here.
    Rule::new(
        "fact.term-letters",
        0.74,
        "stands short",
        concat!(
r#"^(?:the )?(?:abbreviation |acronym |letters )?"?[\w./&-]+"? (?:stands for|"#,
r"is short for)(?: [\w'-]+)+",
),
    )
    .unless(KNOWN)
    .tags(&["term"]),
    // `At work, a "blue ticket" is a complaint from a hospital.`
    Rule::new(
        "fact.term-is",
        0.78,
        "",
        concat!(
            r"^(?:(?:(?:around |over )?here|internally|at work|with us|for us|among us|(?:in|at|on) (?:our|this|my) (?:[\w-]+ ){0,2}[\w-]+),? )",
            r#"(?:an? |the |our )?"[^"]{2,40}" (?:is|are|was) (?:an? |the |our |somebody |someone |something |when |[\w-]+)"#,
            r"|^(?:for|with|among) us,? an? [\w-]+(?: [\w-]+)? (?:is|counts as) ",
        ),
    )
    .unless(concat!(
r"\b(?:function|loop|sentence|text|example|equation|code|file|line|paragraph|poem|story|article|",
r"word)s?\b,? ",
))
    .tags(&["term"]),
];
