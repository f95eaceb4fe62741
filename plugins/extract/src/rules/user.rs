//! User memory: who somebody is and how things are to be for them.

use crate::Rule;

/// Identity: explicit statements in the first person, which the taxonomy wants to be sure of
/// (0.85).
pub(super) const PROFILE: &[Rule] = &[
    Rule::new(
        "profile.name",
        0.93,
        "name call go",
        concat!(
            r"\b(?:my|the user's|user's) (?:full |first |last |given |real |middle |family )?name is \S",
            r"|^(?:you can |please )?call me \w+[.!]?$|\bi go by \w+",
        ),
    )
    .tags(&["name"]),
    Rule::new(
        "profile.i-am-role",
        0.9,
        "am is",
        r"{iam} {adv}(?:an? |the |one of the |your )(?:[\w'/&.-]+,? ){0,5}{role}s?\b",
    )
    .unless(r"\b(?:fan|bit|little|lot) (?:of|too)?\b|{iam} (?:not |the one|the only one)")
    .tags(&["role"]),
    Rule::new(
        "profile.i-am-named",
        0.9,
        "am is been",
        concat!(
            r"{iam} \w+(?: \w+)?, (?:an? |the |your )(?:[\w'/&-]+ ){0,4}{role}\b",
            r"|\bi have (?:{adv})been an? (?:[\w-]+ ){0,4}{role}\b",
        ),
    )
    .tags(&["name", "role"]),
    Rule::new(
        "profile.i-am-suffix",
        0.88,
        "am is",
        r"{iam} {adv}an? (?:[\w-]+ ){0,3}\w{3,}(?:ologist|ician|ographer|ist|wright)\b",
    )
    .unless(r"\b(?:list|twist|mist|waist|exist|optimist|pessimist)\b")
    .tags(&["role"]),
    Rule::new(
        "profile.i-am-state",
        0.88,
        "am is",
        concat!(
            r"{iam} {adv}(?:married|single|divorced|retired|self-employed|unemployed|left-handed|color-?blind|",
            r"colour-?blind|deaf|blind|dyslexic|autistic|pregnant|vegan|vegetarian|lactose intolerant|",
            r"gluten intolerant|celiac|diabetic|bilingual|trilingual|allergic to \w+|hard of hearing|",
            r"\d{1,3} years old|in my (?:early |mid|late )?-?\w+ies)\b",
        ),
    )
    .tags(&["background"]),
    Rule::new(
        "profile.i-work",
        0.9,
        "work works worked working",
        concat!(
            r"{i} {adv}(?:work|works|worked|have been working|am working|is working) (?:full[- ]time |",
            r"part[- ]time |remotely |nights |days |weekends |shifts |mostly |mainly |freelance )*(?:at|for|",
            r"as)\b",
        ),
    )
    .unless(concat!(
        r"\bwork(?:s|ed|ing)? (?:at|for) (?:night|home|the moment|me|it|this|that|once|now|all)\b",
        r"|\bwork(?:s|ed)? (?:\w+ )?as (?:expected|intended|well|usual|soon|long)",
    ))
    .tags(&["employment"]),
    Rule::new(
        "profile.i-work-in",
        0.88,
        "work works",
        r"{i} {adv}works? in (?:the )?(?:[\w-]+ ){0,2}{lines_of_work}\b",
    )
    .tags(&["employment"]),
    Rule::new(
        "profile.i-live",
        0.9,
        "live lives am is reside based from",
        concat!(
            r"{i} {adv}(?:live|lives|reside|resides) (?:in|near|on|outside)\b",
            r"|{iam} {adv}(?:based|located|living) (?:in|near|out of)\b|{iam} {adv}from (?:\w+)",
            r"|\bi (?:grew up|was born|was raised) (?:in|on|near)\b|\bi moved to \w+ (?:from|in|when)\b",
        ),
    )
    .unless(r"{iam} {adv}from (?:the future|here|now)|\blive in (?:fear|hope|the moment)")
    .tags(&["location"]),
    Rule::new(
        "profile.affiliation",
        0.9,
        "am is",
        concat!(
            r"{iam} {adv}(?:affiliated with|employed (?:at|by)|enrolled (?:at|in)|on the faculty|",
            r"on the board of|with the (?:\w+ ){0,3}(?:team|group|department|lab|university))\b",
        ),
    )
    .tags(&["affiliation"]),
    Rule::new(
        "profile.i-study",
        0.89,
        "study studies studied studying major majored majoring graduated minored",
        concat!(
            r"{i} {adv}(?:study|studies|studied|am studying|is studying|majored|major|graduated|minored|",
            r"am majoring) (?:\w+ ){0,4}(?:in|at|from)\b",
        ),
    )
    .tags(&["education"]),
    Rule::new(
        "profile.degree",
        0.9,
        concat!(
            "degree phd doctorate master's masters bachelor's mba diploma certificate certification ",
            "licence license ph.d msc bsc",
        ),
        concat!(
            r"{i} {adv}(?:have|has|hold|holds|got|earned|completed|did|received|finished|am doing|",
            r"am finishing|is doing) (?:an? |my |two |his |her )?(?:[\w.'-]+ ){0,3}(?:degrees?|phd|ph\.d|",
            r"doctorate|master'?s?|bachelor'?s?|mba|msc|bsc|diploma|certificat\w+|licen[cs]e)\b",
        ),
    )
    .tags(&["education"]),
    Rule::new(
        "profile.my-role",
        0.9,
        "my",
        r"(?:^|[^f] |\bthat )my (?:current |official |full |main |own )?{own_place} (?:is|are|was|were)\b",
    )
    .unless(r"\bmy {not_of_user} (?:is|was) {not_a_role}\b")
    .tags(&["background"]),
    Rule::new(
        "profile.i-speak",
        0.9,
        "speak speaks fluent native",
        concat!(
            r"{i} {adv}(?:speak|speaks) (?:\w+,? ){0,4}{lang}\b",
            r"|{iam} (?:{adv}fluent in|an? (?:native|fluent) )",
        ),
    )
    .tags(&["language"]),
    Rule::new(
        "profile.experience",
        0.89,
        "years year decade decades experience",
        concat!(
            r"{i} {adv}(?:(?:been |worked |taught |written |run |led |built |spent |",
            r"used )?(?:[\w+#'-]+ ){0,8}?(?:for|over|since|about|around|nearly|almost|",
            r"more than)? ?(?:\w+[ -]){0,3}(?:years?|decades?)\b)",
            r"|{i} {adv}(?:\w+ ){0,3}years? of experience",
        ),
    )
    .unless(concat!(
        r"\b(?:this|next|last|every|each|per|in|a few|ago) years?\b|\byears? ago\b|\bwant|\bplan|\bhope",
        r"|\bwould|\bdecided|\bchose|\blease|\bcontract",
    ))
    .tags(&["experience"]),
    Rule::new(
        "profile.i-lead",
        0.88,
        concat!(
            "lead leads manage manages run runs head heads supervise supervises teach teaches founded ",
            "own owns chair",
        ),
        concat!(
            r"{i} {adv}(?:lead|leads|manage|manages|head|heads|supervise|supervises|co-?founded|founded|chair|",
            r"chairs|teach|teaches) (?:an? |the |our |my |\w+ )?\w+",
            r"|{i} {adv}(?:run|runs|own|owns) (?:an? |the |our |my )(?:[\w-]+ ){0,3}{groups}\b",
        ),
    )
    .unless(r"\bmanage to\b|\blead(?:s)? to\b")
    .tags(&["role"]),
    Rule::new(
        "profile.family",
        0.87,
        "have has",
        concat!(
            r"{i} {adv}(?:have|has) (?:an? |\w+ )(?:\w+ )?(?:kids?|child|children|sons?|daughters?|twins|",
            r"dogs?|cats?|wife|husband|brothers?|sisters?|siblings|grandchildren|toddler|baby|disability|",
            r"dyslexia|adhd|diabetes|asthma|(?:\w+ )?allergy)\b",
        ),
    )
    .tags(&["background"]),
    Rule::new(
        "profile.as-a",
        0.87,
        "as",
        r"^as an? (?:[\w'-]+ ){0,5}{role}(?: (?:at|in|of|from|with|working)(?: [\w'-]+){1,4})?, (?:i|we)\b",
    )
    .tags(&["role"]),
    Rule::new(
        "profile.user-is",
        0.88,
        "user",
        concat!(
            r"^(?:the )?user (?:is|works|lives|studies|has|was|speaks|holds|teaches) (?:an? |the |at |in |as |",
            r"for |from |based |been |\d)",
        ),
    )
    .unless(r"\b(?:asking|question|problem|issue|error|deadline|meeting)\b")
    .tags(&["role"]),
];

/// How the user wants things: said of oneself, or told to the machine in the plural, which is more
/// than one request.
pub(super) const PREFERENCE: &[Rule] = &[
    Rule::new(
        "preference.prefer",
        0.86,
        "prefer prefers preferred preference favor favour",
        concat!(
            r"{i} {adv}(?:prefers?|favou?rs?)\b|\bmy (?:\w+ )?preference is\b|\bmy preferred\b",
            r"|\bpreferred (?:\w+ )?(?:language|format|style|tone|editor|tool|way)\b|^(?:please )?prefer \w",
        ),
    )
    .unless(r"\bprefer not to {keep_back}\b")
    .tags(&["preference"]),
    Rule::new(
        "preference.favourite",
        0.86,
        "favorite favourite go-to",
        r"\bmy (?:\w+ )?(?:favou?rite|go-to)\b|\b(?:is|are) my (?:favou?rites?|go-to)\b",
    )
    .tags(&["preference"]),
    Rule::new("preference.rather", 0.82, "rather", r"\b(?:i|user|the user) would (?:much |far )?rather\b")
        .unless(r"\brather not (?:go|{keep_back})\b")
        .tags(&["preference"]),
    Rule::new(
        "preference.like",
        0.77,
        concat!(
            "like likes love loves enjoy enjoys hate hates dislike dislikes appreciate adore despise ",
            "detest stand mind",
        ),
        concat!(
            r"{i} {adv}(?:not )?(?:likes?|loves?|enjoys?|hates?|dislikes?|appreciates?|adores?|despises?|",
            r"detests?|cannot stand|can not stand) \w",
        ),
    )
    .unless(concat!(
        r"\b(?:would|should|could) (?:\w+ )?(?:like|love|hate|appreciate|enjoy) (?:to|you|if|some|an?\b)",
        r"|\bappreciate (?:it|your|the|you|that)\b",
        r"|\b(?:like|love|hate|enjoy|dislike|loved|liked) (?:it[.!]|it$|that[.!]|this[.!]|you|",
        r"your (?:idea|help)|the (?:idea|way|look|sound|new|first|second|last)|what|how (?:you|it|this)|",
        r"to (?:ask|say|be that)|that (?:idea|one)|this (?:idea|one|version|song))",
    ))
    .tags(&["taste"]),
    Rule::new(
        "preference.would-like-output",
        0.78,
        "like want appreciate need love wants likes",
        concat!(
            r"{i} {adv}(?:want|wants|like|likes|love|appreciate|need) (?:my |your |all |the |more |less |",
            r"fewer |very )?(?:[\w-]+,? ){0,4}{output}\b",
        ),
    )
    .unless(concat!(
        r"\b(?:want|like|love|need|appreciate) (?:to|you|an?|some|one|two|three|another|this|that|these|",
        r"the (?:first|last|following|above|answer|output|result|code))\b",
    ))
    .tags(&["style"]),
    Rule::new(
        "preference.be-style",
        0.78,
        "be keep stay sound",
        concat!(
            r"^(?:please )?(?:always )?(?:be|stay|sound) (?:more |as |very |less )?{style}\b",
            r"|^(?:please )?(?:always )?keep (?:it|things|everything|your|the|all|",
            r"my)?\W*(?:[\w-]+ ){0,3}(?:{style}|under|below|to \w+ (?:lines?|sentences?|words?|paragraphs?))\b",
        ),
    )
    .unless(r"\bbe (?:honest with|direct with|short with)\b")
    .asks()
    .tags(&["style"]),
    Rule::new(
        "preference.tell-output",
        0.79,
        concat!(
            "use write answer respond reply keep make give format explain default avoid skip include ",
            "show present phrase structure start end put omit limit drop leave add prefer wrap indent ",
            "name address call spell stick",
        ),
        concat!(
            r"^(?:please )?(?:always |when \w+ing,? |whenever possible,? |for me,? )?{tell_verbs} (?:me |it |",
            r"out |with |in |your |all |the |any |every |my |more |fewer |less |shorter |",
            r"longer )*(?:[\w-]+,? ){0,3}(?:answers|responses|replies|explanations|summaries|messages|emails|",
            r"comments|docstrings|commit messages|bullets|bullet points|tables|headings|diagrams|links|",
            r"citations|emojis?|jargon|plain text|markdown|plain english|plain language|metric units|metric|",
            r"imperial|celsius|fahrenheit|kilometers|kilometres|24-hour|iso dates?|iso 8601|tabs|spaces|",
            r"snake_case|camelcase|camel case|type hints|type annotations|dark mode|light mode|first name|",
            r"british spelling|american spelling|oxford comma|active voice|passive voice|first person|tone|",
            r"step by step|latex|examples|pleasantries|small talk|preamble|(?:complete|full|short|long|",
            r"simple) sentences|(?:short|long) paragraphs|lower ?case|upper ?case|capital letters|dates|",
            r"numbers|currencies|measurements|variable names|prose|rhymes?|haiku)\b",
        ),
    )
    .unless(concat!(
        r"\b(?:this|these|those|following|above|attached|below)\b",
        r"|^(?:please )?(?:give|show|make|write|include|put) (?:me )?(?:an?|two|three|four|five|six|ten|",
        r"some|the) ",
    ))
    .asks()
    .tags(&["style"]),
    Rule::new(
        "preference.language",
        0.8,
        "in use speak talk answer reply respond write",
        concat!(
            r"^(?:please )?(?:always )?(?:use|answer|respond|reply|speak|talk|communicate|write)(?: (?:to me|",
            r"me|back|your \w+|everything|all \w+|only))?(?: in| to me in| only in)? (?:only |simple |",
            r"simplified |plain )?{lang}\b",
        ),
    )
    .unless(r"\bthis\b")
    .asks()
    .tags(&["language"]),
    Rule::new(
        "preference.no-thing",
        0.76,
        "no less more fewer without skip",
        concat!(
            r"^(?:please,? )?(?:no|less|more|fewer|without|skip(?: the)?) (?:[\w-]+ )?{output}(?:,? please|",
            r" when .*| in .*| for me)?[.!]?$",
        ),
    )
    .tags(&["style"]),
    Rule::new(
        "preference.when-you",
        0.78,
        "when whenever if",
        concat!(
            r"^(?:when|whenever|if|every time) (?:you|i ask you to|i ask|",
            r"you are) (?:\w+ ){1,8}?[^,]*, (?:please )?{when_verbs}\b",
        ),
    )
    .tags(&["style"]),
    Rule::new(
        "preference.comfortable",
        0.78,
        "comfortable fan fond partial used allergic into keen",
        concat!(
            r"{iam} {adv}(?:more comfortable|most comfortable|(?:not )?(?:a |an )?(?:\w+ )?fan of|partial to|",
            r"fond of|keen on|not keen on|used to \w+ing|accustomed to|picky about|a sucker for|not into)\b",
        ),
    )
    .tags(&["taste"]),
    Rule::new(
        "preference.works-best",
        0.8,
        "works work suits easier find better like prefer helps help best",
        concat!(
            r"\b(?:works?|is|are|reads?) (?:best|better|easiest|easier|most comfortable|nicest) for me\b",
            r"|\bi find [\w-]+ (?:[\w-]+ )?(?:easier|clearer|nicer|better|more \w+|distracting|annoying|",
            r"helpful|confusing)",
            r"|\bis (?:what|how|the way) i (?:like|prefer|want)\b|\bsuits? me\b",
            r"|\beasier for me to (?:read|follow|understand|work)\b|\bhelps? me (?:\w+ )?(?:most|best)\b",
            r"|^for me,? .*\bworks? (?:best|better)\b",
        ),
    )
    .tags(&["taste"]),
    Rule::new("preference.default-to", 0.76, "default defaults", r"^(?:please )?(?:by default,? |default to )\w+")
        .tags(&["style"]),
    Rule::new(
        "preference.habit",
        0.75,
        "usually normally typically tend tends always mostly rarely never",
        concat!(
            r"{i} (?:usually|normally|typically|mostly|always|rarely|almost always|almost never|",
            r"never) {habit_verbs}\b",
            r"|{i} tends? to \w+",
        ),
    )
    .unless(r"\btends? to (?:fail|crash|break|forget|get|be)\b")
    .tags(&["habit"]),
];
