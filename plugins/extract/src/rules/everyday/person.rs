//! How people speak of themselves and their taste in passing.

use crate::Rule;

pub(super) const PROFILE: &[Rule] = &[
    Rule::new("profile.i-am-a", 0.86, "am", r"^(?:\w+ )?i am {adv}(?:only |basically |actually )?an? [\w-]+")
        .unless(concat!(
            r"\bi am (?:\w+ )?an? (?:bit|little|lot|touch|tad|big fan|huge fan|fan|more|step|few|sucker|while|",
            r"minute|mess|wreck|genius|idiot|moron)\b",
            r"|\bfan of\b|\blanguage model\b",
        ))
        .tags(&["role"]),
    Rule::new(
        "profile.i-am-the",
        0.86,
        "am",
        r"^(?:\w+ )?i am {adv}the (?:[\w'-]+ ){1,5}(?:of|at|in|for|behind|here|there)\b",
    )
    .unless(r"\bthe (?:first|last|next|one) (?:of|in|at)?\b")
    .tags(&["role"]),
    Rule::new(
        "profile.i-am-like",
        0.86,
        "am intolerant allergic",
        r"\bi am {adv}(?:\w+ly )?{conditions}\b|^(?:lactose|gluten) intoleran|^allergic to \w",
    )
    .unless(r"\bso i (?:need|want)\b")
    .tags(&["background"]),
    Rule::new(
        "profile.i-have",
        0.86,
        "have got has",
        concat!(
            r"^i (?:have |do )?(?:have|got|had)? ?(?:an? |no |some |my |severe |mild |two |three |",
            r"\d )*(?:[\w'-]+ ){0,3}?{has_of_oneself}\b",
        ),
    )
    .unless(r"\bno (?:background|degree) (?:check|color|image)\b")
    .tags(&["background"]),
    Rule::new(
        "profile.i-do",
        0.85,
        "",
        concat!(
            r"^(?:and |but )?i (?:play the|play in|come from|hold an?|serve as|volunteer|coach|",
            r"joined .* as an?|do (?:[\w-]+ ){1,4}(?:for|at) (?:an?|the)|own an?|restore|head the|head an?|",
            r"maintain an?|maintain (?:some|several|\w+ (?:\w+ )?packages|\w+ libraries)|manage an?|",
            r"trained as|graduated|studied \w+|was born|grew up|moved here|have moved|earn my living|",
            r"work (?:in|as|for|at|nights|part)|translate|run (?:the|an?|my))\b",
        ),
    )
    .unless(concat!(
        r"\bproblem\b|\brun the (?:tests?|code|command|script|build|app|program)\b",
        r"|\bcome from the (?:log|file)",
    ))
    .tags(&["background"]),
    Rule::new(
        "profile.named",
        0.9,
        "name names call",
        concat!(
            r"^(?:my )?(?:first |last |full )?names? (?:is|are)? ?\w+(?:[,.!]|$| and\b)|^my names \w+",
            r"|^you can call me \w+|^everyone calls me \w+",
        ),
    )
    .unless(r"\bwhat|file")
    .tags(&["name"]),
    Rule::new(
        "profile.language",
        0.87,
        "language tongue speaker",
        concat!(
            r"\b(?:is|is not|are not) my (?:first|native|mother|second) (?:language|tongue)\b",
            r"|\bnot an? native speaker\b",
        ),
    )
    .tags(&["language"]),
    Rule::new(
        "profile.student",
        0.91,
        "degree phd master master's masters bachelor diploma apprenticeship thesis semester year",
        concat!(
            r"^i am {adv}(?:studying|doing|finishing|reading|in|into) (?:for )?(?:an?|my|",
            r"the)? ?(?:[\w'-]+ ){0,3}(?:degree|phd|masters?|master's|bachelors?|bachelor's|diploma|",
            r"apprenticeship|semester)\b",
            r"|^i study [\w ]+ in (?:my |the )?\w+ (?:semester|year)\b",
        ),
    )
    .tags(&["education"]),
    Rule::new(
        "profile.working",
        0.86,
        "working worked been was",
        concat!(
            r"^(?:i have |i am )?(?:been )?working (?:as|at|for|in) (?:an? |the )?[\w' -]+ (?:for|since) ",
            r"|^i (?:was|used to be|used to work as) (?:an? )(?:[\w-]+ ){0,3}\w+,? (?:before|and now|now|",
            r"until|for)",
            r"|^i have been [\w+# ]+ since (?:i|\d{4}|the)\b|^i (?:used to (?:be|work))\b",
        ),
    )
    .tags(&["experience"]),
    Rule::new(
        "profile.household",
        0.84,
        "we",
        concat!(
            r"^we are an? (?:family|couple|married)\b",
            r"|^(?:my \w+ and i|me and my \w+|we) live (?:in|on|near|at)\b",
        ),
    )
    .tags(&["background"]),
];

pub(super) const PREFERENCE: &[Rule] = &[
    Rule::new(
        "preference.more-of",
        0.82,
        "more fan happiest favorite favourite rather partial",
        concat!(
            r"\bi am (?:more of an?|happiest|most productive|most at home|not an? fan|no fan|not into)\b",
            r"|^(?:not an?|no|big|huge) fan of\b|^(?:my )?favou?rite [\w ]+ (?:is|are) \w",
            r"|^(?:i )?(?:would )?rather (?:use|have|see|read|get|take|not)\b",
        ),
    )
    .unless(r"\b(?:rather|prefer) not (?:to )?{keep_back}\b")
    .tags(&["taste"]),
    Rule::new(
        "preference.taste",
        0.8,
        "like love enjoy hate dislike prefer stand",
        concat!(
            r"^(?:i )?{with_feeling}*(?:not )?(?:like|love|enjoy|hate|dislike|prefer|cannot stand|",
            r"could not stand)\b [\w'-]+ [\w'-]+",
            r"|, i (?:like|prefer|love|hate|do not like|dislike)\b|\bi (?:do )?not like them\b",
        ),
    )
    .unless(concat!(
        r"\b(?:like|love|hate|enjoy|dislike) (?:it|that|this|you|your|the (?:idea|way|new|first|second|",
        r"last)|mondays|what)\b",
        r"|\bwould (?:like|love) (?:to|an?)\b|^like\b|\bprefer not to {keep_back}\b",
    ))
    .tags(&["taste"]),
    Rule::new(
        "preference.prefer-you",
        0.84,
        "prefer like want appreciate",
        concat!(
            r"\bi (?:would )?(?:prefer|like|appreciate|want|love) (?:it )?(?:if|when|that) (?:you|there|code|",
            r"things|stuff|answers?|the)\b",
            r"|\bi (?:would )?(?:prefer|like|want) you to (?:be|speak|talk|use|ask|write|answer|keep|show|",
            r"explain|avoid|give|call|address|treat|challenge)\b",
            r"|\bi (?:would )?(?:prefer|like) (?:not )?(?:to be|being) (?:asked|called|contacted|reminded|",
            r"addressed|told)\b",
        ),
    )
    .unless(concat!(
        r"\bi want you to (?:run|fix|do|show me the|write an?|give me (?:an?|the))\b",
        r"|\bwhen you (?:are done|finish)\b",
    ))
    .tags(&["style"]),
    Rule::new(
        "preference.not-me",
        0.84,
        "not",
        concat!(
            r"^(?:please )?do not (?:ever )?(?:call|flatter|lecture|praise|patroni[sz]e|interrupt|",
            r"apologi[sz]e|sugarcoat|address|bore|spam) (?:me|to me|at me|so|all)?\b",
            r"|^(?:please )?do not bother (?:me )?with \w",
            r"|^do not use so many\b|\bwhen you (?:write|talk|speak|answer) (?:to|me)?\b.*\bdo not\b",
        ),
    )
    .tags(&["style"]),
    Rule::new(
        "preference.to-the-point",
        0.8,
        "point",
        r"^(?:please |just |always )*(?:get|come|stick|cut) (?:straight |right )?to the point\b",
    )
    .unless(r"\bthis time\b")
    .tags(&["style"]),
    // A form of the answers to this person is a wish, however firmly it is put.
    Rule::new(
        "preference.always-me",
        0.86,
        "me",
        r"^(?:please )?always (?:answer|reply|respond|talk|speak|explain|write)\b(?: \w+){0,3}? (?:to )?me\b.*\b(?:in|with|as|like|using)\b",
    )
    .tags(&["style"]),
    Rule::new(
        "preference.for-me",
        0.86,
        "me",
        concat!(
            r"^(?:please )?(?:always )?(?:use|take|choose|pick|show|write|speak|talk|explain)\b.*\b(?:for me|",
            r"to me|with me)(?: (?:like|as if|as though|in|always|please)\b.*)?[.!]?$",
            r"|^(?:please )?(?:explain|talk|speak)\b.*\bto me (?:like|as if|as though)\b",
            r"|^(?:please )?(?:be|stay) (?:more |less )?(?:honest|formal|informal|direct|blunt|brief|friendly|",
            r"casual|polite)\b",
        ),
    )
    .unless(r"\bthis\b|\bfor me (?:once|now)\b")
    .tags(&["style"]),
    Rule::new(
        "preference.always-lead",
        0.8,
        "first better always unless",
        concat!(
            r"^(?:please )?(?:give|show|tell|send|start) (?:me )?(?:with )?(?:the |",
            r"an? )?[\w ]+ first(?:\b.*\b(?:then|afterwards|after that|and)\b.*)?[.!]?$",
            r"|^better (?:give|show|use|write|make)\b|^unless i (?:say|tell|ask)\b",
        ),
    )
    .unless(r"\bthis\b|^first\b")
    .tags(&["style"]),
    Rule::new(
        "preference.in-language",
        0.84,
        "in",
        concat!(
            r"^(?:please )?(?:answers?|responses?|replies|everything|explanations?|comments|always answer|",
            r"write) (?:only )?(?:in )(?:\w+ )?{lang}(?: only)?(?: please)?\b",
            r"|^{lang} only\b",
        ),
    )
    .unless(r"\bthis\b|\bmust\b")
    .tags(&["language"]),
    Rule::new(
        "preference.short",
        0.8,
        "keep no less",
        concat!(
            r"^(?:please )?keep (?:it|things|answers|your \w+|explanations|everything) (?:\w+ )?(?:short|",
            r"brief|simple|concise|casual|formal)\b.*\b(?:future|always|on|general|me|please)\b",
            r"|^no (?:[\w-]+ ){0,2}{output}(?: (?:please|for me))*,? (?:please )?(?:i|they)\b",
            r"|\b(?:is|are|works?) (?:better|best|fine) for me\b",
        ),
    )
    .tags(&["style"]),
    Rule::new(
        "preference.daily",
        0.76,
        "always usually",
        concat!(
            r"^i (?:always|usually|generally|mostly) (?:like|want|fly|drink|eat|have|take|use|order|choose|",
            r"go for|need)\b",
            r"|, always[.!]?$|\bfor me (?:not|and not|instead of)\b|^use [\w ]+ for me\b",
        ),
    )
    .unless(r"\b(?:must|forget|fail)")
    .tags(&["habit"]),
];
