//! What people want and must do, in passing.

use crate::Rule;

pub(super) const GOAL: &[Rule] = &[
    Rule::new(
        "goal.want-to-in-passing",
        0.72,
        concat!(
            "want would love like hope hoping wish aspire aim aiming intend trying looking plan ",
            "planning determined dream striving",
        ),
        concat!(
            r"^(?:[\w' -]{3,40},? )?(?:i|we)? ?(?:am |are |have been )?(?:really |still |also |just |",
            r"ultimately |eventually |one day |someday |some day )*{wishing} (?:to|on|for|",
            r"of) (?:[\w'-]+ ?){2,}",
        ),
    )
    .unless(concat!(
        r"\bto (?:see|ask|know|thank|sort|say|show|tell|check|open|run|hear|talk|look|point|add that|",
        r"mention|confirm|understand (?:this|the problem|it|that|what|why)|go (?:home|to bed|out|now)|",
        r"find out|use (?:this|it|the)|send|sleep|eat|merge|have this|fix|do (?:this|that|it)|debug|print|",
        r"install|access|click|load|reproduce|start (?:the|it)|call the|finish the (?:presentation|slides|",
        r"report)|make (?:it|this)|be clear|clarify|be sure)\b",
        r"|\bhope (?:that|you)\b",
        r"|\b(?:tomorrow|tonight|this weekend|today|next week|by (?:monday|tuesday|wednesday|thursday|",
        r"friday|saturday|sunday))\b",
        r"|\b(?:you|she|he|they|princess|hero|robot) (?:want|hope|wish)|^want to (?:see|go)|\bmust\b",
        r"|\blooking for (?:an? |the )?(?:word|file|way|bug|button)|\blooking for\b|\btry (?:to|for|on)\b",
    ))
    .tags(&["goal"]),
    Rule::new(
        "goal.doing",
        0.74,
        concat!(
            "learning training preparing prepping studying building writing exploring researching ",
            "investigating saving pursuing journey mastering working investigating",
        ),
        concat!(
            r"^(?:i am |we are )?(?:currently |now |still |also |slowly )*(?:learning|training for|",
            r"preparing for|prepping for|studying for|building up|saving (?:up )?(?:for|to)|pursuing|",
            r"researching|mastering|on (?:an?|my) journey|working (?:on becoming|on getting|",
            r"on an? (?:[\w-]+ ){0,2}(?:novel|book|paper|thesis|dissertation|degree|album|black belt|",
            r"certification)|towards?)|writing (?:my|an?) (?:[\w-]+ ){0,2}(?:novel|book|paper|thesis|",
            r"dissertation|memoir)|exploring (?:how|what|whether|[\w -]+ for my)|investigating (?:how|why|",
            r"whether))\b",
        ),
    )
    .unless(r"\blearning (?:is|rate|curve)\b|\b(?:this|that) (?:bug|error|issue)\b")
    .tags(&["work"]),
    Rule::new(
        "goal.named",
        0.85,
        "goal goals target aim plan dream ambition research focus objective mission",
        concat!(
            r"^(?:my|our|the|one of my|one of our|main|long[- ]term|",
            r"this year's)? ?(?:[\w'-]+ ){0,3}?(?:goals?|targets?|aims?|plan|dream|ambition|objective|mission|",
            r"research)(?: (?:for|of|this|in|right now|now) ?(?:[\w'-]+ ?){0,4}?)? (?:is|are|focuses on|",
            r"focus on|is on) (?:to |on |for |about |getting |becoming |opening |passing |reading |running |",
            r"\d|\w)",
        ),
    )
    .unless(concat!(
        r"\b(?:research|plan|target) is (?:done|over|wrong|broken|missing|not|needed)\b|^the plan\b",
        r"|\bareas?\b|\btopics?\b|, .*,|\bplan is (?:good|fine)",
    ))
    .tags(&["goal"]),
    Rule::new(
        "goal.long-run",
        0.87,
        "over long run eventually someday year gonna plan switch",
        concat!(
            r"^(?:in the long run|long[- ]term|over the next (?:few|\w+) (?:years|months)|eventually|",
            r"some ?day|one day|this year|next year|within \w+ years|ultimately),? (?:i|we) (?:want|would|",
            r"plan|hope|will|aim|intend)\b",
            r"|^(?:i am |we are )?going to (?:switch|change|retire|learn|become|start my|",
            r"move)\b.*\b(?:next year|year|years|one day|some ?day)\b",
            r"|^what i (?:\w+ )?want is\b|^(?:my )?plan is (?:to|for)\b",
        ),
    )
    .tags(&["goal"]),
];

pub(super) const CONSTRAINT: &[Rule] = &[
    Rule::new(
        "constraint.no-plural",
        0.74,
        "no nothing strictly",
        concat!(
            r"^(?:strictly )?no (?:[\w-]+ ){1,4}(?:[\w-]+)(?:,? (?:please|ever|allowed|company rule|",
            r"that is .*|[\w ]*rule|it is .*|on \w+|in \w+[\w ]*))*[.!]?$",
            r"|^nothing (?:with|that|from|in)\b",
        ),
    )
    .unless(concat!(
        r"^no {no_answer}\b|{output}\b.*\bi\b",
        r"|^no [\w]+ (?:why|what|how|between|in sight|found|yet|again)\b|\bfan\b",
    ))
    .tags(&["rule"]),
    Rule::new(
        "constraint.do-not-more",
        0.7,
        "not",
        concat!(
            r"^(?:please |whatever happens,? |in any case,? |under no \w+,? )*(?:do not|",
            r"you are not (?:allowed|permitted) to|we are not (?:allowed|permitted) to|",
            r"not allowed to) (?:ever )?{may_not_do}\b",
        ),
    )
    .unless(r"\bthis time\b|\bso many\b")
    .tags(&["rule"]),
    Rule::new(
        "constraint.cannot",
        0.72,
        "cannot not",
        concat!(
            r"^(?:the |our |all |any |my )?(?:[\w'-]+ ){1,5}(?:cannot|can not|may not|must not|should not|",
            r"shall not) {cannot_do}",
            r"|^i (?:cannot|must not|may not) (?:eat|drink|take|have|travel|work on|use|lift)\b",
            r"|^cannot (?:use|exceed|change|be|have|store|spend|touch|go over)\b",
        ),
    )
    .unless(concat!(
        r"\bcannot be (?:right|true|serious|found|opened|it|that|reached)\b",
        r"|^(?:it|this|that|you|he|she|they) (?:cannot|may not) (?:be|have)\b",
        r"|\bmay not be (?:right|true|enough)|\b(?:maybe|perhaps|probably)\b|\bcannot have (?:been)",
    ))
    .tags(&["rule"]),
    Rule::new(
        "constraint.has-to",
        0.84,
        "has have must needs need requires require should",
        concat!(
            r"^(?:has to|must|needs to|should always|must always) (?:be|work|run|fit|stay|support|have|look|",
            r"load|compile|use|include|handle|pass|comply|only)\b",
            r"|\b(?:every|each|all|any|anything|everything|everyone|no)\b.{0,60}\b(?:needs? (?:\d|an?|to|two|",
            r"at least)|requires?|require|has to|have to|must|should|can only|may only|need to)\b",
            r"|^(?:the |our |passwords?|all |files?|it |this |we )(?:[\w'-]+ ){0,6}(?:has to|have to|must|",
            r"needs to) (?:have|be|load|stay|support|work|remain|run|use|fit|comply|last) {bounds}",
            r"|\bwe have to (?:support|comply|stay)\b",
        ),
    )
    .unless(concat!(
        r"\b(?:fixed|finished|done|sent|written|submitted)\b.*\b(?:by|this|today|tomorrow|next|before)\b",
        r"|^must (?:be|have) (?:been|the|an?|something|joking|because)\b",
        r"|\b(?:should|must) (?:be|have) (?:enough|fine|ok|joking|been)\b",
        r"|\b(?:children?|kids?|doctors|students|people) (?:needs?|should)\b|\bchild\b",
    ))
    .tags(&["rule"]),
    Rule::new(
        "constraint.ceiling",
        0.82,
        "max maximum min minimum most under below over limit than bigger larger",
        concat!(
            r"\b(?:budget|size|length|limit|time|memory|cost|price)s? (?:max|min|maximum|",
            r"limit)?(?:imum)? ?(?:is|of|:) (?:max )?[$\u{20ac}]?\d.*",
            r"|\b(?:max|min|maximum|minimum) (?:is |of |\d)|\bkeep .* (?:under|below|within) \d",
            r"|\b(?:cannot|must not|should not|never) be (?:bigger|larger|longer|more|greater|older) than\b",
        ),
    )
    .unless(r"\b(?:was|were|this quarter)\b|^(?:our|the) budget (?:is|for)\b")
    .tags(&["limit"]),
    Rule::new(
        "constraint.rule-word",
        0.84,
        concat!(
            "rule mandatory allowed policy required forbidden law whatever happens circumstances cost ",
            "costs exception",
        ),
        concat!(
            r"\b(?:company|client|house|team|hard|fixed|strict|security) (?:rule|policy)\b",
            r"|\b(?:is|that is|it is|are) (?:mandatory|forbidden|prohibited|not allowed|a must|a fixed rule|",
            r"compulsory)\b",
            r"|\bnot allowed (?:here|to)\b|^whatever happens",
            r"|\bunder (?:our|the|no|company) (?:policy|rules|circumstances|contract|law)\b|\bat all costs?\b",
            r"|\bwithout exceptions?\b|\boff[- ]limits\b",
        ),
    )
    .tags(&["rule"]),
    Rule::new(
        "constraint.never-short",
        0.86,
        "never always only",
        r"^(?:please )?(?:never|never ever|always|only) (?:[\w-]+) \w+",
    )
    .unless(concat!(
        r"^never (?:mind|seen|heard|been|say never|had|knew|slept|look a)",
        r"|^always (?:happy|look on|good|nice|fun)",
        r"|^only (?:today|one|then|a|the|you|i|if|works?|when|two)\b|\b(?:for me|sleep)\b",
    ))
    .tags(&["rule"]),
    Rule::new(
        "constraint.make-sure-in-passing",
        0.76,
        "sure",
        concat!(
            r"^(?:please )?make sure (?:it is |that |the |every |all |no |you ).*\b(?:always|never|every|all|",
            r"accessible|compatible|encrypted|works?|uses?|parameters)\b",
        ),
    )
    .unless(r"\b(?:by|before) {day}")
    .tags(&["rule"]),
];
