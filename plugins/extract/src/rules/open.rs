//! Episodic memory: what is guessed and what is to be done.

use crate::Rule;

/// What is only assumed.
pub(super) const HYPOTHESIS: &[Rule] = &[
    Rule::new(
        "hypothesis.may",
        0.66,
        "may might could",
        concat!(
            r"^(?:the |this |that |a |an |his |her |their |our |my |these |those |some |",
            r"most )?(?:[\w'./-]+ ){1,8}?(?:may|might|could) (?:also |just |well |already |actually |simply |",
            r"soon |still |not |even |really |only |eventually |have )*{may_verbs}\b",
        ),
    )
    .unless(concat!(
        r"^(?:you|i|we) (?:may|might|could) (?:also )?(?:use|try|want|need|find|like|go|take|make|get|",
        r"have|see|help|consider|run)\b",
        r"|^could (?:you|we|i)\b|\b(?:could|may|might) be worth\b",
        r"|\bit (?:would|could|might) be (?:nice|good|great|useful|helpful|worth)\b",
        r"|\bas (?:fast|soon|much|well) as .* could\b",
        r"|\bmay not (?:use|share|be (?:used|shared|changed|removed))\b",
    ))
    .tags(&["assumption"]),
    Rule::new(
        "hypothesis.adverb-first",
        0.66,
        "likely probably possibly perhaps maybe presumably apparently seemingly conceivably",
        concat!(
            r"^(?:most |very |quite )?(?:likely|probably|possibly|perhaps|maybe|presumably|apparently|",
            r"seemingly|conceivably|chances are|odds are),? \w+ \w+",
        ),
    )
    .unless(concat!(
        r"^(?:maybe|perhaps|possibly) (?:we|you|i|let us|use|try|add|consider|later|next time|",
        r"tomorrow) ?(?:should|could|can|might|would|need)?\b",
        r"|^(?:maybe|probably|perhaps) (?:not|so|yes|no|just|later|a bit)\b",
    ))
    .tags(&["assumption"]),
    Rule::new(
        "hypothesis.adverb",
        0.65,
        "likely probably possibly presumably apparently perhaps maybe supposedly",
        concat!(
            r"\b(?:is|are|was|were|has|have|does|do|did|will|would|must|comes?|had|means?) (?:most |very |",
            r"quite |more |also )?(?:likely|probably|possibly|presumably|apparently|perhaps|maybe|",
            r"supposedly)\b",
            r"|\b(?:probably|presumably|apparently|possibly|likely) {after_perhaps}\b",
            r"|\bit is (?:likely|possible|plausible|probable|conceivable) that\b|\blikely to\b",
            r"|\b(?:is|are) unlikely\b|\bunlikely (?:to|that)\b",
        ),
    )
    .unless(r"^(?:i|we) (?:will|would|should) (?:probably|likely|maybe|perhaps)\b")
    .tags(&["assumption"]),
    Rule::new(
        "hypothesis.seems",
        0.64,
        "seems seem appears appear looks look suggests suggest implies points hints indicates",
        concat!(
            r"\b(?:seems?|appears?) (?:to {seems_to}|like|that|as if|as though)\b",
            r"|\blooks? (?:like|as if|as though) (?:the|a|an|he|she|they|it|we|there|\w+ (?:is|are|was|has|",
            r"have))\b",
            r"|\b(?:suggests?|implies|hints?|indicates?|points? to)(?: that)? (?:the|a|an|it|that|he|she|they|",
            r"there|\w+ (?:is|are|was|may|might))\b",
            r"|\bthe (?:user|client|customer|team|problem|issue) (?:seems?|appears?|sounds?) \w+",
        ),
    )
    .unless(concat!(
        r"\bseems? to (?:work|be (?:fine|ok|okay|working))\b",
        r"|\b(?:seems?|looks?|sounds?) (?:good|fine|great|ok|okay|right|nice|like (?:a plan|fun|it worked|",
        r"it is working))\b",
    ))
    .tags(&["assumption"]),
    Rule::new(
        "hypothesis.suspect",
        0.72,
        concat!(
            "suspect guess assume suppose bet believe think imagine hunch reckon hypothesize theory ",
            "hypothesis assumption suspicion wonder assuming feeling figure speculate gut doubt presume",
        ),
        concat!(
            r"\b(?:i|we) (?:strongly |also |would |can only |have to |now |still |just |kind of |sort of |",
            r"really )*(?:suspect|guess|assume|suppose|bet|believe|think|imagine|reckon|hypothesi[sz]e|",
            r"speculate|presume|figure|doubt) (?:that |it |the |this |a |an |he |she |they |there |users? |",
            r"most |our |my |we |you are |some |[\w'-]+)",
            r"|\b(?:my|our|the|one|a) (?:\w+ )?(?:guess|hunch|hypothesis|theory|assumption|suspicion|",
            r"gut feeling|intuition) (?:is|was|here|being)\b",
            r"|^(?:working )?(?:hypothesis|assumption|guess|theory|hypotheses|assumptions|conjecture|",
            r"speculation)\s?(?:\d+ ?)?[:-]",
            r"|\bi (?:have|had|get) (?:a|the) (?:hunch|feeling|suspicion|impression|theory) that\b",
            r"|\bi wonder (?:if|whether)\b|\bworking (?:hypothesis|assumption|theory)\b",
            r"|\bwe (?:are|have been) assuming\b|\bi would not be surprised if\b",
        ),
    )
    .unless(concat!(
        r"\bi (?:think|guess|suppose|believe) (?:so|not|we should|you should|i will|we can|you can|",
        r"that is (?:fine|ok|all|right|it)|it is (?:fine|ok|time|good|great)|this is (?:fine|good|great)|",
        r"i|about|of)\b",
        r"|\blet me think\b|\bi do not (?:think|believe|suppose) so\b",
    ))
    .tags(&["assumption"]),
    Rule::new(
        "hypothesis.must-be",
        0.58,
        "must",
        concat!(
            r"^(?:it|this|that|he|she|they|the (?:problem|issue|bug|cause|user|error|customer|",
            r"client)) must (?:have been|be|have) ",
        ),
    )
    .tags(&["assumption"]),
    Rule::new(
        "hypothesis.not-sure",
        0.62,
        "sure certain unclear confirmed unconfirmed unverified rumor rumour tentative tentatively",
        concat!(
            r"\bnot (?:entirely |completely |yet |fully |quite )?(?:sure|certain|confirmed),? but\b",
            r"|\b(?:not (?:yet )?(?:confirmed|verified|proven)|unconfirmed|unverified|rumou?r has it|",
            r"tentative(?:ly)?)\b",
        ),
    )
    .tags(&["assumption"]),
    Rule::new(
        "hypothesis.if-then",
        0.6,
        "if",
        concat!(
            r"^if .*\b(?:might|may|could|should|would) (?:also )?(?:explain|mean|suggest|indicate|",
            r"be (?:because|due|the (?:reason|cause)))\b",
        ),
    )
    .tags(&["assumption"]),
];

/// What is to be done by somebody.
pub(super) const TODO: &[Rule] = &[
    Rule::new(
        "todo.label",
        0.92,
        "todo to-do task action fixme next ai tbd open to",
        concat!(
            r"^(?:todo|to-do|to do|action item|action|task|next steps?|follow[- ]?ups?|fixme|ai|tbd|",
            r"open (?:item|task|point|issue)|still to do|remaining(?: work)?|pending|",
            r"outstanding)s?\s?(?:\(.{1,30}\))?\s?[:-] ?\w",
        ),
    )
    .unless(r"^(?:ai|pending|outstanding|remaining|task|action|next)-\w")
    .tags(&["task"]),
    Rule::new("todo.checkbox", 0.9, "", r"^\[ ?\] \w").tags(&["task"]),
    Rule::new(
        "todo.need-to",
        0.77,
        "need needs have has got ought",
        concat!(
            r"^(?:(?:i|we|you|someone|somebody|the user|user|the team|[a-z]\w+) )?(?:still |also |really |",
            r"just |then |first |will |now )*(?:need|needs|have|has|ought|have got) to (?:also |still |first |",
            r"quickly |finally )?\w+",
        ),
    )
    .unless(concat!(
        r"\b(?:need|have|has|needs) to (?:stop|go$|go[.!]|know|say|admit|agree|be (?:honest|clear|fair|",
        r"able|careful)|go now|ask|comply|think|wait|see|understand|remember that|disagree|laugh)\b",
        r"|^(?:it|this|that|there|everything|all|any|every|the|each|they) ",
        r"|\bdo(?:es)? not (?:need|have) to\b|\bif you\b|^you (?:need|have) to\b",
    ))
    .tags(&["task"]),
    Rule::new(
        "todo.should",
        0.66,
        "should must",
        concat!(
            r"^(?:i|we|the team|someone|somebody) (?:really |also |still |probably )?(?:should|must) (?:also |",
            r"still |really |probably |definitely )?{should_verbs}\b",
        ),
    )
    .tags(&["task"]),
    Rule::new(
        "todo.remember-to",
        0.84,
        "remember forget remind reminder make",
        concat!(
            r"^(?:please )?{remember_to} to \w+",
            r"|^(?:please )?(?:can you |could you )?remind (?:me|us|\w+) (?:to|about|that|on|in|at|of|next|",
            r"tomorrow)\b",
            r"|^reminder(?: to self)?\s?[:-] ?\w+|^reminder to \w+|^do not forget (?:about|my|our)\b",
            r"|\bto self\s?:",
        ),
    )
    .unless(r"\bto (?:always|never) ")
    .asks()
    .tags(&["task"]),
    Rule::new(
        "todo.will-later",
        0.68,
        "will going",
        r"^(?:i|we|[a-z]\w+) (?:will|are going to|am going to|is going to) {later_verbs}\b",
    )
    .unless(r"\b(?:in a (?:minute|second|moment|sec|bit)|now|right away|immediately|shortly)\b|^it ")
    .tags(&["task"]),
    Rule::new(
        "todo.imperative",
        0.68,
        "",
        concat!(
            r"^(?:please )?(?:then |also |first |finally )?(?:(?:review|implement|fix|add|write (?:tests?|",
            r"docs?|documentation|unit tests|a (?:test|blog post|report|proposal|script|migration|guide|",
            r"letter|summary for)|the {documents})|finish|prepare|schedule|reschedule|buy|send|submit|",
            r"resubmit|deploy|refactor|migrate|investigate|create|remove|rename|upgrade|renew|organi[sz]e|",
            r"publish|verify|sync|rewrite|extend|complete|arrange|confirm|collect|rerun|re-run|archive|",
            r"replace|configure|install|revisit|revise|proofread|invite|cancel|repair|announce|hire|apply|",
            r"delete|merge|disable|enable|vacuum|annotate|analy[sz]e|evaluate|resolve|triage|purge|dispute|",
            r"sell|practi[cs]e|convert|reply to|respond to|look into|follow up|reach out|set up|write up|",
            r"clean up|back up|pick up|drop off|talk to|meet with|find (?:an?|the|out)|get (?:the|an?|quotes?|",
            r"approval|feedback|in touch)|ask|call|email|e-mail|book|pay|contact|update|clean|check|phone|",
            r"text) (?:[\w'#-]+)|{task_verbs} (?:up |out |back |down |off |on )?{task_objects}\b)",
        ),
    )
    .unless(concat!(
        r"^(?:please )?(?:\w+ ){1,2}(?:me|us|to me|for me)\b",
        r"|^(?:please )?(?:call me|run away|move on|try again|try to|try it|test test|check out|read on|",
        r"ask away|tell|close enough|post-|plan (?:is|was)|test (?:is|was)|order (?:is|was)|change (?:is|",
        r"was)|study (?:is|was|shows)|profile (?:is|was)|release \d|version)\b",
        r"|^(?:\w+) (?:is|are|was|were|has|have|had|will|can|of|and)\b",
        r"|\b(?:second|first|last|previous|following|above) (?:sentence|paragraph|line|word|part|version|",
        r"answer|one)\b",
        r"|\bthis {text_parts}\b|, please\W*$|\b(?:again|now)\W*$",
        r"|^(?:please )?(?:write|compare|analy[sz]e|find|explain) .*\b(?:for me|step by step)\b",
        r"|^{labels}s?\s?[:,-]",
    ))
    .tags(&["task"]),
    Rule::new(
        "todo.needs-doing",
        0.74,
        concat!("needs need requires require remains still left missing pending outstanding overdue waiting ", "open",),
        concat!(
            r"\b(?:needs?|need) (?:to be |to get )(?:\w+ )?(?:\w+ed|\w+t|done|written|rewritten|sent|built|",
            r"redone|set up|paid|drawn|taken|chosen|bought|found|shown|begun)\b",
            r"|\b(?:needs?|requires?) (?:a |an |some |another |more )?{needs_noun}\b",
            r"|\b(?:remains?|still) (?:to be|has to be|have to be|needs to be|need to be) \w+",
            r"|\b(?:is|are) (?:still )?(?:left to|yet to be|outstanding|overdue|waiting (?:for|on) (?:me|us|",
            r"my|our|a reply|review|approval))\b",
            r"|\bstill needs? (?:an?|some|more|the|\w+ing)\b",
            r"|\bstill (?:missing|pending|open|outstanding|waiting (?:for|on))\b",
        ),
    )
    .unless(r"^(?:all|every|any|each|no) |\bdo(?:es)? not need\b")
    .tags(&["task"]),
    Rule::new(
        "todo.on-my-list",
        0.74,
        "list plate plan",
        concat!(
            r"\b(?:on my (?:to-?do )?(?:list|plate)|on the (?:to-?do )?list|on our backlog|in the backlog|",
            r"to-do list)\b",
            r"|\bit is on (?:me|us|\w+) to\b",
            r"|\b(?:i|we) (?:promised|agreed|committed) to (?:send|write|call|deliver|review|finish|prepare|",
            r"help|fix|give)\b",
            r"|\b(?:i|we) owe \w+ (?:a|an|the)\b|\bwaiting on me\b",
        ),
    )
    .tags(&["task"]),
    Rule::new(
        "todo.due",
        0.72,
        "due by",
        concat!(
            r"^(?:[\w'-]+ ){1,8}(?:by|before|until|no later than) (?:the end of |end of |next |",
            r"this )?(?:{day}|the week|the month|eod|eow|cob)\W*$",
        ),
    )
    .unless(r"\b{states}\b")
    .tags(&["task"]),
];
