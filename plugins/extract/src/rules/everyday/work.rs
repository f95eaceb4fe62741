//! How people speak of their work in passing: projects, facts, decisions.

use crate::Rule;

pub(super) const PROJECT: &[Rule] = &[
    Rule::new(
        "project.we-use",
        0.84,
        "use deploy run host have store build",
        concat!(
            r"^(?:in (?:this|our) \w+,? )?we (?:use [\w.+#-]+|deploy (?:with|to|on|via) \w|run (?:on|",
            r"our \w+ on) \w|host (?:on|with|everything) |store (?:our|all) |",
            r"have an? (?:[\w-]+ ){0,2}(?:architecture|architecure|monorepo|pipeline|backend|stack|cluster|",
            r"codebase))",
        ),
    )
    .unless(r"\b{instead}\b|\bwe use (?:it|this|that|the (?:first|second))\b")
    .tags(&["architecture"]),
    Rule::new(
        "project.it-is",
        0.8,
        "is",
        concat!(
            r"^(?:it|this) is (?:an? |our |the )(?:[\w-]+ ){0,5}?{software}\b(?: (?:for|of|with|that|to|in|on|",
            r"from|based)\b| ?[.,]?$)",
        ),
    )
    .unless(r"\b(?:great|nice|good|bad|cool|awesome|weird|the (?:second|first|same))\b")
    .tags(&["project"]),
    Rule::new(
        "project.our-does",
        0.84,
        "",
        concat!(
            r"^(?:our|this|the) (?:[\w-]+ )?{software_of_ours}(?:'s (?:[\w-]+ ){1,3})? (?:is {made_how}|",
            r"are (?:for|written|made)|uses?|turns|calculates|converts|handles|sends|stores?|helps|connects|",
            r"includes|consists|targets|talks|runs|provides|has|have|replaces|supports|contains|lets|tracks|",
            r"manages|processes|integrates|follows|works with|main)\b",
        ),
    )
    .unless(concat!(
        r"\b(?:yesterday|last (?:night|week|month)|tomorrow|next (?:week|month)|this week|today|",
        r"on (?:monday|tuesday|wednesday|thursday|friday|saturday|sunday)|in (?:january|february|march|",
        r"april|may|june|july|august|september|october|november|december)|crashed|\d+ (?:users|employees|",
        r"people|gb|members)|must|never|always|has to|have to|has \d|a bug|empty|broken|needs|runs at|",
        r"every night|runs every|keywords?|tags?|focus)\b",
        r"|, [\w ]+ and \w+[.!]?$",
    ))
    .tags(&["project"]),
    Rule::new(
        "project.we-make",
        0.84,
        "building making creating developing working build make writing",
        concat!(
            r"^we (?:are )?(?:currently |now )?(?:building|making|creating|developing|working on|designing|",
            r"writing|build|make|develop|create) (?:an? |the |our )?(?:[\w-]+ ){0,4}?{software_made}s?\b",
        ),
    )
    .tags(&["project"]),
    Rule::new(
        "project.part",
        0.8,
        "",
        concat!(
            r"^(?:the |our |its |all )?(?:project|(?:mobile |web |main |core )?{parts}) (?:is|are|lives?|has|",
            r"uses?|runs|started|targets?|talks) {parts_are}*[\w.+#-]+",
        ),
    )
    .unless(concat!(
        r"\b(?:down|broken|slow|red|green|failing|running|loading|empty|missing|still|not|back|yesterday|",
        r"tomorrow|friday|monday|wrong|easy|fine|crashed|great|delayed|over|late|done[.!]?$|must|due|",
        r"submitted|encrypted|required|always|never|delivered|above|below|rejected|has (?:finished|a bug)|",
        r"in ur|in your)\b",
        r"|{day}|\bis \d|\d+ (?:hours|minutes|min|gb)\b|^(?:everything) is\b",
    ))
    .tags(&["architecture"]),
    Rule::new(
        "project.called",
        0.84,
        "name code project called codename",
        concat!(
            r"\bis (?:the|our) (?:code ?name|internal name|internal \w+|working title|name) (?:of|for)\b",
            r"|\bis (?:our|the name of our|the name of the) (?:internal |new )?\w+",
            r"|^the (?:project|app|product|system|tool|repo) is (?:called|named)\b",
            r"|^project \w+ (?:replaces|is|aims|helps|turns)\b",
        ),
    )
    .unless(concat!(
        r"\b(?:biggest|only|main|first|last|favou?rite|choice|decision|goal|aim|turn|dog|cat)\b",
        r"|^(?:it|that|this|what|who|he|she|our|my)\b",
    ))
    .tags(&["project"]),
    Rule::new(
        "project.customer",
        0.82,
        "",
        concat!(
            r"^the (?:client|customer|sponsor)(?: for (?:this|the|our) \w+)? is an? ",
            r"|^(?:users of|the users of) (?:the|our) \w+ are\b",
            r"|^(?:the )?(?:project )?team (?:is|behind .* consists|consists)\b",
            r"|^(?:the |our )?(?:project|repo|codebase|app|product)\'s (?:[\w-]+ ){1,3}(?:is|are) \w",
            r"|^(?:the )?project (?:is funded|started|began|is about|includes|aims|targets|is open|",
            r"is licensed)\b",
        ),
    )
    .unless(r"\b(?:deadline|key ?words|tags|topics|themes|goal|aim|budget|main (?:topics|themes))\b")
    .tags(&["project"]),
    Rule::new(
        "project.does",
        0.78,
        "that for which is",
        r"^[\w-]+ is (?:an?|our) (?:[\w-]+ ){0,6}(?:for|that|which|of|to) (?:an? |the |our )?\w+",
    )
    .unless(r"^{no_subject}\b|\b{kind_of} (?:of|for|to|that|which)?\b|\bneed for\b")
    .tags(&["project"]),
];

pub(super) const FACT: &[Rule] = &[
    Rule::new(
        "fact.own-dated",
        0.7,
        "",
        concat!(
            r"^(?:the|my|our|their|his|her|this year's|yesterday's|last \w+'s|[\w-]+'s|we|i|a|",
            r"[\w]+)\b [\w' .,-]*?\b{happens}\b.*(?:\b(?:on|by|until|till|from|in|at|since|for|within|of|to|",
            r"over)(?: the)? (?:early |late |mid-?|\d{1,2} )?(?:{day}|spring|summer|autumn|fall|winter|",
            r"\d{1,2}(?:st|nd|rd|th)?\b|\w+ (?:days|weeks|months|hours|minutes|years)\b)|\b(?:yesterday|",
            r"last (?:night|week|weekend|month|year)|next (?:week|weekend|month|year)|this (?:morning|week|",
            r"year|quarter|summer|spring)|every (?:day|week|month|night|year)|tomorrow|today|twice|once|tues|",
            r"thurs|mondays|fridays)\b)",
        ),
    )
    .unless(concat!(
        r"\b(?:must|should|need|needs|have to|has to|want|wants|hope|plan|goal|aim|would|could|may (?:be|",
        r"have|not|also|well)|might|maybe|perhaps|probably|let us|decided|agreed|chose|always|never|",
        r"prefer|like|if|remember|will|trying|studying|learning|target|dream|research|intend|remind|",
        r"cannot|experience|mission)\b",
        r"|^(?:i|it|that|this|what|there|you|do|please|today|one)\b",
        r"|\b(?:line|page|step|figure|table|section|example|output|above|below|code)\b",
        r"|^(?:world|the (?:french|sun|speed|nile|heart|moon|earth|euro|stock)|linux|python|we (?:are|",
        r"will|use))\b",
        r"|\bjust now\b",
    ))
    .tags(&["date"]),
    Rule::new(
        "fact.own-number",
        0.72,
        "",
        concat!(
            r"^(?:the|my|our|this|their|we) (?:[\w'-]+ ){0,5}?{amounts_to} (?:about |around |over |more than |",
            r"almost |only |so far |exactly )*[$\u{20ac}]?(?:\d[\d,.]*k?|two|three|four|five|six|seven|eight|",
            r"nine|ten|twelve|twenty|thirty|ninety)\b",
        ),
    )
    .unless(r"\b{no_amount}\b|^we have (?:\d+|two|three|four) (?:options|choices)\b|\bteam (?:is|consists)\b")
    .tags(&["number"]),
    Rule::new("fact.relation", 0.72, "", r"^my (?:[\w-]+ )?{relations}'?s? (?:[\w'-]+ )*?{relation_is}\b")
        .unless(r"\b(?:prefers?|great|broken again|just|rn|keyboard|right now)\b|\b(?:hurts|cold)\b")
        .tags(&["person"]),
    Rule::new(
        "fact.event",
        0.7,
        "",
        concat!(
            r"^(?:the |our |my |a |an )?(?:[\w'-]+ ){0,3}?{occasions} (?:for [\w ]+ |with [\w ]+ |in [\w ]+ |",
            r"of [\w ]+ |to [\w ]+ )?{occasion_is}\b [\w$\u{20ac}]",
        ),
    )
    .unless(concat!(
        r"\b(?:must|should|need|needs|has to|have to|want|may|might|maybe|probably|cannot|perhaps|always|",
        r"never|if|could|down again|empty|wrong|broken|decided|agreed|voted|chose|said yes|resolved|",
        r"deployed|built|made|written|in (?:go|rust|python)|running|waiting|above|below|missing|a big|",
        r"an? (?:public|regional|large|small)|mostly|max|loading|read-only|affected|due to|caused)\b",
        r"|\b(?:has|have) (?:finished|it)\b|^(?:the )?(?:result|bug|server) is\b|\bhotel chain\b",
    ))
    .tags(&["event"]),
    Rule::new(
        "fact.person-left",
        0.7,
        "",
        concat!(
            r"^[a-z]+ (?:is on (?:parental|sick|maternity|holiday|annual)|is in charge of|is responsible for|",
            r"left the|joined the|moved to|works at|got promoted|quit|resigned|is away|is out)\b",
        ),
    )
    .unless(r"^(?:i|he|she|it|they|we|you|who|that|this|everyone|nobody)\b")
    .tags(&["person"]),
];

pub(super) const DECISION: &[Rule] = &[
    Rule::new(
        "decision.casual",
        0.86,
        concat!(
            "went going go decided picked chose settled concluded made mind final said sticking keep ",
            "will keeping using dropped moving switching determined taking support",
        ),
        concat!(
            r"^(?:so |ok |okay |in the end |eventually )*(?:i|we|let us|the team|boss|management)? ?(?:have |",
            r"are |am |will |is |all )?(?:finally |now |then )?(?:went (?:with|for)|going (?:with|to go with)|",
            r"going to (?:outsource|go with|use|drop|keep|switch|self host|buy|hire|adopt)|go (?:with|for)|",
            r"sticking (?:with|to)|concluded|made up (?:my|our) minds?|said (?:yes|no) to|determined (?:to|",
            r"that)|came to the conclusion|decided|settled|picked|chose|choosing|ended up|opted|ruled out|",
            r"resolved|rejected his|rejected the|agreed|voted|not (?:doing|support)|taking the job|keep the|",
            r"dropped the|dropped support)\b",
        ),
    )
    .unless(concat!(
        r"\b(?:going to (?:bed|get|grab|be|the)|yet|let us go (?:to|home)|will go (?:now|home|to)|",
        r"decided (?:yet|on a))\b",
        r"|^(?:going|taking|keep|picked|chose) (?:it|that|on)\b|\bwe agreed on nothing\b|\bnot decided\b",
        r"|\bdetermined to (?:quit|become|learn|win|succeed)\b",
    ))
    .tags(&["decision"]),
    Rule::new(
        "decision.is",
        0.86,
        "choice decision decided settled final",
        concat!(
            r"\b(?:our|my|the) (?:final |last )?(?:choice|decision) (?:is|was|fell|:)",
            r"|\bit is (?:decided|settled)\b",
            r"|, (?:decided|final|that is settled|thats settled|it is final)[.!]?$|^(?:final )?decision\s?:",
            r"|\bthe choice fell\b|^(?:okay |ok )?,?decided:",
        ),
    )
    .tags(&["decision"]),
    Rule::new(
        "decision.replacing",
        0.82,
        "moving switching replacing dropping keeping support using instead",
        concat!(
            r"^we (?:are |will )(?:moving|switching|migrating|replacing|dropping|keeping|not support|",
            r"no longer|self host|use [\w.-]+ (?:for|from|now)|go with|keep)\b",
            r"|\binstead of [\w -]+,? we (?:will |now )?(?:use|go|take|\w+)|\bwe use [\w]+ now\b",
            r"|^we (?:will )?(?:not|no longer) (?:support|use|offer|do)\b",
        ),
    )
    .unless(r"\bkeeping (?:an eye|track)\b")
    .tags(&["decision"]),
    Rule::new(
        "decision.group",
        0.84,
        "decided agreed voted chose selected resolved approved settled picked committed committee",
        concat!(
            r"^(?:the |our |my )?{deciders} (?:has |have |all |finally |just )*(?:decided|agreed|voted|chose|",
            r"chosen|selected|resolved|settled|picked|committed|determined|opted)\b",
        ),
    )
    .tags(&["decision"]),
];
