//! Workspace memory: the words of a field, and remarks.

use crate::Rule;

/// Lists of words that name a field or focus.
pub(super) const KEYWORD_SET: &[Rule] = &[
    Rule::new(
        "keyword_set.label",
        0.93,
        "",
        concat!(
            r"^(?:{keyword_owners} ){0,3}(?:focus(?: areas?| topics?)?|areas? of (?:interest|focus|research)|",
            r"key ?words?(?: and phrases)?|key (?:terms?|phrases?|concepts?)|topics?(?: of interest)?|tags?|",
            r"themes?|research (?:areas?|interests?|topics?|fields?)|interests?|domains?|subjects?|fields?|",
            r"search terms|terms|terminology|glossary|vocabulary|concepts|hashtags|labels|scope|areas|",
            r"buzzwords|tech stack|stack|categories)(?: (?:for|of|in|this)(?: [\w-]+){1,4}?)?\s?(?::|",
            r" -) ?\w+.*(?:,|/|;| and |\w)",
        ),
    )
    .tags(&["keywords"]),
    Rule::new(
        "keyword_set.are",
        0.87,
        concat!(
            "areas keywords topics tags themes interests terms concepts topic keyword terms subjects ",
            "words fields",
        ),
        concat!(
            r"\b(?:my|our|the|its|this project's|project's|key|main|core|relevant|user's|",
            r"[\w-]+'s) (?:[\w'-]+ ){0,3}?(?:focus areas|areas of (?:interest|focus|research)|key ?words|",
            r"topics|tags|themes|research (?:areas|interests|topics|fields)|interests|search terms|terms|",
            r"concepts|subjects|fields of interest|focus topics)(?: (?:for|of|in|on|",
            r"to)(?: [\w'-]+){1,5}?)? (?:are|include|includes|cover|comprise|range|would be|should be|",
            r"will be)\b",
            r"|^key ?words? (?:include|are)\b",
            r"|^(?:key |main |core |relevant |important |our |my )*(?:topics|terms|themes|concepts|areas|",
            r"keywords|tags|fields)(?: of (?:interest|focus))? (?:include|are)\b",
        ),
    )
    .tags(&["keywords"]),
    Rule::new(
        "keyword_set.focus-list",
        0.85,
        concat!(
            "focus focuses focused focusing concentrate concentrates concentrating interested covers ",
            "cover revolves specialize specializes",
        ),
        concat!(
            r"\b(?:focus(?:es|ed|ing)?|focussed|concentrat\w+|centers|centres|revolves|",
            r"speciali[sz]\w*) (?:is |are |mainly |mostly |primarily |only |especially )*(?:on|in|",
            r"around) [\w'-]+(?: [\w'-]+){0,3}(?:, | and )[\w'-]+.*(?:, | and )",
            r"|\binterested in [\w'-]+(?: [\w'-]+){0,3}, .+(?:,| and ) ?\w",
            r"|\b(?:project|workspace|track|group|lab|team|paper|survey|reading list) (?:covers|",
            r"spans) [\w'-]+(?: [\w'-]+){0,3}, .*",
        ),
    )
    .tags(&["keywords"]),
    Rule::new(
        "keyword_set.track",
        0.83,
        concat!("track follow monitor watch tracking following monitoring search tagged tag filed under ", "tracks",),
        concat!(
            r"^(?:we |i |please |the \w+ )?(?:are |am )?(?:track|follow|monitor|watch|tracking|following|",
            r"monitoring|search for|tracks|collect|collecting|watching)\b.*\b{literature} (?:on|about|for|",
            r"around|with|in|tagged|mentioning|such as|like)\b",
            r"|\b(?:tagged|tag (?:this|it|these|them)|filed|labelled|labeled|categori[sz]ed) (?:as|with|",
            r"under) [\w'-]+(?: [\w'-]+){0,2}(?:,| and )",
        ),
    )
    .tags(&["keywords"]),
    Rule::new("keyword_set.hashtags", 0.85, "", r"#[a-z][\w-]+(?:,? | and )#[a-z][\w-]+").tags(&["keywords"]),
];

/// Remarks in free form.
pub(super) const NOTE: &[Rule] = &[
    Rule::new(
        "note.label",
        0.89,
        concat!(
            "important note notes nb notice caution warning attention heads-up heads caveat tip hint ",
            "observation remark idea fyi comment interesting side gotcha reminder pro lesson insight ",
            "quick annotation p.s ps aside thought suggestion",
        ),
        concat!(
            r"^{note_kinds}?(?:important(?:ly)?|notes?|n\.?b\.?|notice|caution|warning|attention|heads[- ]?up|",
            r"caveat|tip|hint|observation|remark|idea|fyi|comment|interesting(?:ly)?|side ?note|gotcha|",
            r"nota bene|lesson(?:s)?(?: learned)?|insight|annotation|p\.?s\.?|aside|thought|suggestion|memo|",
            r"finding)(?: (?:for|to|on|about)(?: [\w-]+){1,4}?)?\s?(?:[:!,]| -) ?\w",
        ),
    )
    .unless(concat!(
        r"\bto self\b.*\b(?:buy|call|send|email|book|renew|pay|ask|check)\b|^tip [^:]",
        r"|^(?:note|notes|comment|idea|thought|finding|warning|notice|hint|caution), ",
    ))
    .tags(&["note"]),
    Rule::new(
        "note.consider",
        0.76,
        concat!(
            "consider worth maybe perhaps could possibly think would how might idea helpful ",
            "alternatively useful revisit",
        ),
        concat!(
            r"^(?:maybe |perhaps |possibly |we (?:should|could|might) |also |might |could |you (?:could|",
            r"might) )*consider(?:ing)? \w+",
            r"|^(?:it |this |that |might |may |could |would |is |be |[\w-]+ )*(?:be )?worth (?:a (?:look|try|",
            r"shot|read)|\w+ing)\b",
            r"|^(?:maybe|perhaps|possibly) (?:we|you|i) (?:should|could|can|might|would)\b",
            r"|^we (?:could|might) (?:also |instead |always |just |even )?\w+",
            r"|^(?:maybe|perhaps|possibly) {perhaps_verbs}\b",
            r"|\bit (?:would|could|might) be (?:nice|good|great|useful|helpful|interesting|better|wise|",
            r"smart) (?:to|if)\b",
            r"|^(?:could|might) (?:use|try|also)\b|^think about \w+ing\b",
            r"|^an? (?:alternative|option|idea) (?:would|could|might|is)\b",
            r"|\bone (?:option|idea|possibility|alternative) (?:is|would be)\b",
            r"|^potential (?:issue|problem|improvement)\b",
        ),
    )
    .unless(concat!(
        r"\bwe could not\b|^(?:maybe|perhaps|possibly) (?:you|try)\b",
        r"|^consider (?:the following|this|example|an? [\w ]*(?:triangle|function|graph|set|number|line|",
        r"sequence|case))\b",
        r"|\bconsider(?:ed|ing) \w+ (?:done|closed)\b|^think about it\b",
    ))
    .tags(&["idea"]),
    Rule::new(
        "note.worth-noting",
        0.76,
        concat!(
            "interesting curious remarkable funny worth noting noteworthy aware mind eye know ",
            "surprisingly notable noticed noticing notice observed turns lesson hindsight interestingly ",
            "strange odd curiously watch beware careful",
        ),
        concat!(
            r"\bworth (?:noting|remembering|mentioning|knowing|pointing out|keeping in mind)\b",
            r"|\b(?:keep|bear|have) in mind\b|\bkeep an eye on\b",
            r"|\b(?:good|useful|handy|interesting|important|helpful) to (?:know|note|remember|see|keep)\b",
            r"|\b(?:be|beware) (?:aware|of|careful (?:with|when|about))\b",
            r"|^(?:interesting|curious|odd|strange|notable|remarkable|funny),? (?:that|how) ",
            r"|^(?:surprisingly|interestingly|curiously|strangely|oddly|notably|oddly enough|funnily enough|",
            r"strange|odd|curious),? \w",
            r"|\b(?:i|we|she|he|they) (?:have |also |just |recently )*(?:noticed|observed|realized|realised|",
            r"noted|found out|learned|learnt|discovered|find)(?: that)? (?:the|that|a|an|it|there|our|most|",
            r"users?|how|some|this|my|when|all|many|\w+ (?:is|are|was|were|only|often|never|always|tend|",
            r"\w+s))\b",
            r"|\b(?:it )?turns? out\b|\blesson learned\b|\bin hindsight\b|\bwatch out (?:for|that)\b|^beware\b",
            r"|\bcould be useful\b|\bmight come in handy\b",
            r"|\bmight be (?:useful|helpful|relevant|interesting) (?:for|to|later|in)\b",
            r"|\bgood (?:read|reference|starting point|resource|overview)\b|\bsee also\b",
            r"|\bfor (?:future )?reference\b",
        ),
    )
    .tags(&["observation"]),
    Rule::new(
        "note.lead",
        0.72,
        "",
        r"\b(?:an? (?:interesting|useful|good|promising|important|relevant|nice) {worth_noting})\b",
    )
    .unless(concat!(
        r"^(?:that is|this is|it is|thanks|what) an? (?:interesting|good|nice) (?:point|idea|question)\W*$",
        r"|\b(?:i|we) (?:need|want|prefer|like|read|found)\b",
    ))
    .tags(&["observation"]),
];
