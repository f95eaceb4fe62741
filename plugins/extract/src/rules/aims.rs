//! User memory: what somebody wants and what has to hold.

use crate::Rule;

/// What somebody wants to reach over more than one session.
pub(super) const GOAL: &[Rule] = &[
    Rule::new(
        "goal.my-goal",
        0.87,
        concat!("goal goals aim objective ambition dream mission plan intention resolution target ", "aspiration",),
        concat!(
            r"\b(?:my|our|the|user's) (?:[\w-]+ ){0,3}?(?:goals?|aims?|objectives?|ambitions?|dreams?|",
            r"missions?|intention|resolution|aspirations?|plan|target)(?: (?:for|this|in|with|here|",
            r"of)(?: [\w-]+){1,5}?)? (?:is|are|remains) (?:to|an?|for|getting|becoming|having|that)\b",
            r"|\b(?:my|our) (?:[\w-]+ ){0,2}(?:goals?|aims?|objectives?|ambition|dream) (?:is|are)\b",
            r"|^(?:goals?|objectives?|aims?|mission)\s?[:-]",
        ),
    )
    .tags(&["goal"]),
    Rule::new(
        "goal.working-on",
        0.77,
        "working work",
        concat!(
            r"(?:^{adv}|{weare} {adv}|{i} have been |\bspend my \w+ )working (?:on|towards?) (?:an?|my|our|",
            r"the|\w+)\b",
        ),
    )
    .unless(concat!(
        r"\bworking on (?:it|this|that|these|them|the (?:bug|issue|ticket|fix|problem|error|task|pr|same)|",
        r"a (?:bug|fix|ticket|laptop|mac|pc))\b",
        r"|\bworking (?:on|towards?) \w+[.!]?$",
    ))
    .tags(&["work"]),
    Rule::new(
        "goal.researching",
        0.78,
        concat!(
            "researching investigating studying exploring developing building learning pursuing aiming ",
            "writing preparing training saving applying trying hoping looking striving planning ",
            "compiling",
        ),
        concat!(
            r"(?:^{adv}|{weare} {adv}|{i} have been )(?:researching|investigating|studying|exploring|",
            r"developing|learning|teaching myself|pursuing|aiming|striving|writing (?:an?|my|",
            r"the) (?:[\w-]+ ){0,3}(?:paper|thesis|book|dissertation|novel|proposal|grant|textbook|memoir|",
            r"screenplay|article|survey|play)|preparing (?:for|to)|training (?:for|to)|saving (?:up )?(?:for|",
            r"to)|applying (?:to|for)|hoping to|looking to|planning (?:to|on)|building (?:an?|my) |",
            r"on track to)\b",
        ),
    )
    .unless(concat!(
        r"\b(?:learning|exploring|investigating|building|studying) (?:this|that|it|the (?:issue|bug|crash|",
        r"error|problem))\b",
        r"|\bstudying (?:\w+ ){1,4}at\b",
        r"|^(?:learning|building|writing|developing|exploring|investigating|",
        r"studying) (?:[\w-]+ ){1,4}(?:is|was|can|will|takes|requires)\b",
        r"|\bplanning (?:to|on) (?:go|eat|leave|call|have) ",
    ))
    .tags(&["work"]),
    Rule::new(
        "goal.trying-to",
        0.7,
        "trying",
        concat!(
            r"{weare} {adv}trying to (?:become|learn|build|publish|finish|master|get better|improve|reach|",
            r"break into|find a (?:\w+ )?job|quit|lose|save|grow|cut|reduce|understand how|write|raise|",
            r"develop|prove|show that|establish|create)\b",
        ),
    )
    .tags(&["goal"]),
    Rule::new(
        "goal.want-to",
        0.76,
        "want wants like hope hopes intend intends plan plans aim aims aspire aspires love wish",
        concat!(
            r"{we} {adv}(?:eventually |ultimately |one day |someday )?(?:want|wants|like|hope|hopes|intend|",
            r"intends|plan|plans|aim|aims|aspire|aspires|love|wish|wishes) to (?:eventually |ultimately |",
            r"one day |really |be able to )?(?:become|learn|publish|finish|build|write|master|understand|",
            r"get (?:better|into|a|my|an|fluent|promoted|certified|fit)|start|launch|ship|run (?:a|my|the)|",
            r"improve|reach|achieve|create|develop|move (?:to|into|in)|switch|find|graduate|be|earn|study|",
            r"work (?:at|in|for|as|on)|open|found|grow|reduce|cut|save|buy|retire|complete|speak|read|",
            r"contribute|make|raise|expand|apply|pursue|specialize|prove|compete|qualify|replace|submit|give|",
            r"double|travel|visit|translate|release|have|turn|bring|help|automate|teach|climb|walk|win|quit|",
            r"sell|scale|increase|establish|train|record|design|use|explore|transition|lose)\b",
        ),
    )
    .unless(concat!(
        r"\b(?:want|like|love) to (?:make sure|be clear|be sure|be able to see|start by|start with|",
        r"be honest|use (?:this|that|it)|have a look|help you|give you)\b",
    ))
    .tags(&["goal"]),
    Rule::new(
        "goal.long-term",
        0.76,
        "eventually someday long-term ultimately",
        concat!(
            r"(?:{we}|\bmy \w+) .*\b(?:eventually|ultimately|someday|some day|one day|in the long (?:run|",
            r"term)|long[- ]term|in the next \w+ years|within \w+ years)\b",
            r"|\b(?:eventually|ultimately|someday|some day|one day|in the long (?:run|term)|long[- ]term|",
            r"over the next \w+ (?:months|years)),? {we} ",
        ),
    )
    .unless(r"\b(?:eventually|ultimately) (?:\w+ed|found|got)\b")
    .tags(&["goal"]),
    Rule::new(
        "goal.by-date",
        0.75,
        "by before",
        concat!(
            r"{we} (?:will |want |plan |hope |aim |intend |expect |would like )(?:to )?.*\b(?:by|",
            r"before) (?:the end of (?:the |this |next )?(?:year|decade|quarter|summer|degree)|20\d\d|",
            r"next (?:year|summer|spring|fall|autumn|winter)|i turn)\b",
        ),
    )
    .tags(&["goal"]),
    Rule::new(
        "goal.my-research",
        0.8,
        "research thesis dissertation phd study paper book work",
        concat!(
            r"\b(?:my|our) (?:\w+ )?(?:research|thesis|dissertation|phd|doctoral work|study|book|",
            r"novel)(?: \w+)? {research_is}\b",
            r"|\b(?:my|our) (?:research|work|phd|thesis) (?:is )?(?:focused|centered|centred) on\b",
            r"|\b(?:my|our) (?:main |central |core )?research (?:question|direction|focus|agenda) (?:is|",
            r"concerns)\b",
        ),
    )
    .tags(&["research"]),
    Rule::new(
        "goal.interested",
        0.72,
        "interested curious passionate",
        concat!(
            r"{iam} {adv}(?:interested in|passionate about|curious about) (?:learning|understanding|building|",
            r"becoming|working|pursuing|studying|researching|getting|starting|how|why)\b",
        ),
    )
    .tags(&["goal"]),
];

/// What must or must not be.
pub(super) const CONSTRAINT: &[Rule] = &[
    Rule::new(
        "constraint.never",
        0.87,
        "never",
        concat!(
            r"^(?:please )?(?:you (?:must|should|may|can) )?never (?:ever )?\w+",
            r"|\b(?:must|should|may|can|shall|will|to) never\b|\b(?:is|are) never (?:to be |allowed)",
        ),
    )
    .unless(concat!(
        r"^never mind|^never (?:seen|heard|been|knew|thought|had|got|worked|again[.!])",
        r"|\b(?:i|he|she|they) (?:can|will|should) never\b",
    ))
    .tags(&["rule"]),
    Rule::new(
        "constraint.always",
        0.84,
        "always",
        r"^(?:please )?(?:you (?:must|should) )?always \w+|\b(?:must|should|shall|has to|have to) always\b",
    )
    .unless(r"^always (?:fun|nice|good|happy|the same|a pleasure|been|has|had|happens)\b")
    .tags(&["rule"]),
    Rule::new(
        "constraint.do-not",
        0.74,
        "not",
        r"^(?:please )?(?:you )?(?:must not|may not|shall not|should not|cannot|do not(?: ever)?) \w+",
    )
    .unless(r"^(?:please )?do not {soothing}\b|^(?:you )?(?:cannot|should not) (?:be|believe|have|miss)\b")
    .tags(&["rule"]),
    Rule::new("constraint.avoid", 0.7, "avoid refrain", r"^(?:please )?(?:avoid|refrain from) \w+").tags(&["rule"]),
    Rule::new(
        "constraint.must",
        0.78,
        "must shall",
        concat!(
            r"^(?:all |every |any |each |no |the |our |my |this |these |it |its |they |you |your |we |",
            r"[\w-]+ )(?:[\w'/-]+ ){0,9}(?:must|shall)(?: not| never| always| only| all| also)? {must_verbs}\b",
        ),
    )
    .unless(concat!(
        r"\b(?:i|we|he|she|they) must (?:have|be)\b",
        r"|\bmust (?:be|have) (?:been|a (?:bug|mistake|typo|reason)|something|missing|wrong|because|due|",
        r"the (?:reason|cause|problem|wind))\b",
        r"|^(?:it|this|that|there|you) must (?:be|have)\b",
    ))
    .tags(&["rule"]),
    Rule::new(
        "constraint.may-not",
        0.74,
        "may cannot can not",
        concat!(
            r"\bmay not (?:be|appear|contain|include|leave|share|use|store|exceed|touch|change|access|run|",
            r"enter|see|go|have|take)\b",
            r"|^we (?:cannot|can not|may not|are not allowed to) {may_not_verbs}\b",
        ),
    )
    .unless(r"\bmay not be (?:the|true|right|enough|correct|possible|because|able|worth|a good|so|sure)\b")
    .tags(&["rule"]),
    Rule::new(
        "constraint.ask-first",
        0.76,
        "ask check consult confirm notify tell run",
        concat!(
            r"^(?:please )?(?:always )?(?:ask|check with|consult|notify|tell|warn|confirm with|",
            r"run it by) (?:me|us|\w+) (?:first|before|prior|whenever|every time|if you|for (?:approval|",
            r"permission))\b",
        ),
    )
    .tags(&["rule"]),
    Rule::new(
        "constraint.required",
        0.8,
        concat!(
            "required mandatory forbidden prohibited allowed permitted banned off-limits non-negotiable ",
            "limits compulsory obligatory essential acceptable",
        ),
        concat!(
            r"\b(?:is|are|be) (?:strictly |absolutely |completely |explicitly |legally |always |never |",
            r"only )?(?:required(?: to| by| for| in| on| at|[.!]|$)|mandatory|compulsory|obligatory|forbidden|",
            r"prohibited|not allowed|not permitted|not acceptable|unacceptable|never allowed|only allowed|",
            r"only permitted|allowed only|permitted only|banned|off[- ]limits|non-negotiable|not negotiable|",
            r"not an option|out of the question)",
        ),
    )
    .tags(&["rule"]),
    Rule::new(
        "constraint.only",
        0.74,
        "only",
        concat!(
            r"^(?:please )?only (?:ever )?{only_verbs}\b",
            r"|\b(?:can|may|must|should|shall|to|are to|is to) only (?:be |use |run |have |contain |include |",
            r"access |\w+)",
        ),
    )
    .unless(concat!(
        r"\b(?:i|we|he|she|it|one) (?:can|could|may) only (?:hope|guess|assume|imagine|say|see|tell|find|",
        r"speak|come|think)\b",
    ))
    .tags(&["rule"]),
    Rule::new(
        "constraint.limit",
        0.77,
        concat!(
            "than exceed limit limited maximum minimum most least capped cap within budget under above ",
            "below over longer larger",
        ),
        concat!(
            r"\b(?:no|not|never)(?: be| go| take| use| cost| spend| have| get)? (?:more|longer|later|less|",
            r"fewer|larger|bigger|higher|earlier|lower|older|slower|heavier) than\b",
            r"|\b(?:cannot|must not|may not|should not|never|can not|not to|do not) exceed\b",
            r"|\b(?:is|are|be) (?:limited|capped|restricted) (?:to|at)\b",
            r"|\b(?:must|should|has to|have to|needs to|need to|keep|stay|limit|stays?|fit|",
            r"fits)\b.*\b(?:at most|at least|under|below|within|a maximum of|no more than|up to|less than|",
            r"fewer than)\b.*\d",
            r"|\b(?:hard|strict|firm|upper|word|character|page|budget|time|size|memory) (?:limit|cap|",
            r"ceiling) (?:is|of)\b",
            r"|\b(?:the |a |our )?(?:maximum|minimum) (?:\w+ ){1,3}is \d",
        ),
    )
    .unless(r"^(?:it|this|that|he|she) (?:was|is) (?:no|not) (?:more|less)\b")
    .tags(&["limit"]),
    Rule::new(
        "constraint.have-to-be",
        0.72,
        "has have needs need",
        concat!(
            r"^(?:all |every |any |each |the |our |my |this |these |its |your |it |they |",
            r"[\w-]+ )(?:[\w'/-]+ ){0,7}(?:has|have|needs|need) to (?:be (?:\w+ ){0,2}{have_to_be}|run|work|",
            r"stay|remain|support|comply|pass|fit|respect|follow|include|contain|meet|match|carry|end|start|",
            r"arrive|handle|conform|adhere|last|cite|go through|happen)\b",
        ),
    )
    .unless(concat!(
        r"^(?:i|he|she) (?:still )?(?:have|need|has|needs) to (?:run|pass|go|start|work|follow|include|",
        r"meet|arrive|stay|remain|end)\b",
        r"|^we (?:still )?(?:have|need) to (?:run|start|include|meet|go|pass|work)\b",
    ))
    .tags(&["rule"]),
    Rule::new(
        "constraint.comply",
        0.76,
        concat!("comply complies gdpr hipaa compliance adhere conform law legally regulation policy ", "regulations",),
        concat!(
            r"\b(?:we|i|you|it|everything|\w+) (?:must|need to|have to|has to|needs to|should|",
            r"shall) (?:\w+ )?(?:comply|adhere|conform)\b",
            r"|\b(?:law|policy|regulations?|contract|gdpr|hipaa|licen[cs]e|agreement|rules?) (?:requires?|",
            r"forbids?|prohibits?|demands?|says? that|does not (?:allow|permit)|states? that|mandates?)\b",
        ),
    )
    .tags(&["rule"]),
    Rule::new(
        "constraint.make-sure",
        0.7,
        "sure ensure certain careful",
        r"^(?:please )?(?:always )?(?:make sure|ensure|be sure|make certain)(?: that| to)? \w+",
    )
    .unless(r"\b(?:by|before|on) {day}|^(?:please )?be sure to (?:check|see|read|watch|visit)\b")
    .tags(&["rule"]),
    Rule::new(
        "constraint.all-should",
        0.72,
        "should",
        r"^(?:all|every|each|any|no|everything|nothing|nobody|anyone|everyone) (?:[\w'/-]+ ){0,8}should\b",
    )
    .tags(&["rule"]),
    Rule::new(
        "constraint.without",
        0.76,
        "without unless until",
        concat!(
            r"\b(?:not|never|no|nothing|nobody|cannot|no one)\b.*\b(?:without (?:my|our|prior|explicit|",
            r"written|their|his|her|asking|first|a|the|checking)|unless i|until i|before i)\b",
        ),
    )
    .tags(&["rule"]),
    Rule::new(
        "constraint.rule",
        0.86,
        "rule rules requirement requirements constraint constraints condition policy hard",
        concat!(
            r"\b(?:hard|strict|golden|firm|ground|absolute) (?:rule|requirement|constraint|limit|line)s?\b",
            r"|^(?:hard |strict )?(?:rule|requirement|constraint|restriction|limitation|guideline|",
            r"must-have)s?(?: \d+)?\s?[:-]",
            r"|\bmy (?:one|only|first|main|biggest|number one) (?:rule|requirement|condition|constraint)\b",
            r"|\b(?:the|our|my|team|company|house) (?:rule|policy|requirement) is\b",
            r"|\bis a (?:hard )?(?:requirement|must|dealbreaker|deal-breaker|no-go)\b",
        ),
    )
    .tags(&["rule"]),
    Rule::new(
        "constraint.under-no",
        0.87,
        "under no at",
        concat!(
            r"\bunder no circumstances\b|^at no (?:point|time)\b",
            r"|^no \w+(?: \w+){0,4} (?:is|are|may|can|must|should|shall|will) (?:be |ever )?(?:allowed|",
            r"\w+ed\b)",
            r"|^(?:strictly )?no (?:[\w-]+ ){1,5}(?:before|after|without|during|on|in|at|except|unless|inside|",
            r"outside|allowed|ever|whatsoever)\b",
        ),
    )
    .unless(r"^no (?:one|problem|idea|worries|need|way|wonder|doubt|luck|rush|thanks)\b")
    .tags(&["rule"]),
];
