//! Guesses, tasks, lists of words and remarks in half sentences.

use crate::Rule;

pub(super) const HYPOTHESIS: &[Rule] = &[
    Rule::new(
        "hypothesis.chance",
        0.72,
        concat!(
            "chance chances could might may guess guessing theory suspect hunch feeling likely possible ",
            "possibly probably perhaps maybe hypothesize hypothesise prob reckon sure",
        ),
        concat!(
            r"\b(?:there is a|good|small) chance (?:that )?\w|^chances are\b",
            r"|^(?:it )?(?:could|might|may) (?:well |also |just )?(?:be|have been|have) \w",
            r"|^(?:it )?(?:could|might|may) be (?:that|caused|because|due)?",
            r"|^(?:i |we )?(?:am |are |would )?(?:just |kind of |really |strongly )*(?:guessing|guess|suspect|",
            r"hypothesi[sz]e|reckon|wonder|bet|assume|suppose|theori[sz]e)(?: that| if| whether)? (?:the|it|",
            r"that|they|he|she|my|our|most|someone|somebody|half|there|users?|people|shorter|[\w-]+ \w+)",
            r"|^(?:\w+ )?theory\s?:",
            r"|\b(?:fairly|pretty|not|almost) (?:\d+ ?% )?(?:completely |entirely )?sure,? (?:but|though)\b",
            r"|^not \w+% sure\b",
            r"|^(?:most |very )?(?:probably|likely|possibly|perhaps|maybe|presumably|",
            r"apparently)\b,? [\w'-]+ [\w'-]+",
        ),
    )
    .unless(concat!(
        r"\bcould be (?:worth|useful|nice)\b",
        r"|^(?:maybe|perhaps) (?:we|you|i|try|use|consider|later|add|let|not|could|you should)\b",
        r"|^(?:could|might|may) (?:you|i|we|as|the force)\b|\bguess (?:what|my|so)\b|\bworth\b",
        r"|^might as well\b|\bmight be a good idea\b|^might (?:use|try)|^could (?:use|try|do)\b",
        r"|\bapparently not\b|^i (?:guess|suppose) (?:so|you)\b|^could be (?:worse|better)\b",
    ))
    .tags(&["assumption"]),
    Rule::new(
        "hypothesis.is-perhaps",
        0.7,
        "probably likely possibly maybe perhaps prob presumably",
        concat!(
            r"^(?:the |this |it |they |he |she |user |my |our |[\w'-]+ ){1,6}(?:is |are |was |has |",
            r"will )?(?:most )?(?:probably|likely|possibly|maybe|perhaps|presumably)\b [\w'-]+",
            r"|\bsomeone (?:probably|maybe)\b",
        ),
    )
    .unless(r"^(?:i|we|you) |^(?:probably|maybe|perhaps) (?:not|later)\b")
    .tags(&["assumption"]),
];

pub(super) const TODO: &[Rule] = &[
    Rule::new(
        "todo.plain-label",
        0.92,
        "todo next left pending open still remaining",
        concat!(
            r"^(?:todo|to do|to-do) \w|^next(?: up| step| task)?s?\s?: ?\w",
            r"|^(?:the )?next (?:task|step|thing)(?: to do)? is to\b|^left to do\b",
            r"|^still (?:open|to do|missing)\b|^(?:pending|outstanding)\s?:",
            r"|^(?:there is|there are) still\b.*\bto \w+",
        ),
    )
    .unless(r"^next (?:question|one|please)\b")
    .tags(&["task"]),
    Rule::new(
        "todo.dont-forget",
        0.86,
        "forget remember",
        concat!(
            r"^(?:please )?(?:do not|must not|i must not|cannot) (?:let me )?forget (?:to |about |the |my |",
            r"our |\w+'s )?\w+",
            r"|^(?:i )?(?:must|have to|need to|should) (?:remember|not forget)\b|^remember to \w+",
        ),
    )
    .unless(r"\bforget that\b|\bforget (?:the )?(?:[\w]+ ){1,3}(?:are|is|was)\b")
    .tags(&["task"]),
    Rule::new(
        "todo.i-will",
        0.74,
        "will must should have need going",
        concat!(
            r"^(?:i|we|someone|somebody|our team|the team) {will_do} (?:to )?(?:\w+ )*?.*\b(?:tomorrow|",
            r"tonight|today|this (?:week|weekend|month|sprint|evening|afternoon)|next (?:week|month|sprint)|",
            r"by (?:the )?{by_when}|before \w+|on (?:monday|tuesday|wednesday|thursday|friday|saturday|sunday|",
            r"sat|sun|mon|tue|wed|thu|fri)|at \d|soon)\b",
        ),
    )
    .unless(concat!(
        r"\b(?:want|goal|like|prefer|always|never|learn|support|decided|been|moved|retire|must (?:not|",
        r"never)|may not|we have to (?:comply|deploy)|have (?:\w+ )?(?:employees|users|testers)|marathon|",
        r"become)\b",
        r"|^we will (?:not|use|go|keep)\b|\b(?:deploy|only)\b.*\bbetween\b",
    ))
    .tags(&["task"]),
    Rule::new(
        "todo.must-be-done",
        0.86,
        "must has needs have",
        concat!(
            r"^(?:the |our |my )(?:[\w'-]+ ){1,8}(?:must|has to|needs to|have to|",
            r"need to) be (?:\w+ly )?{done_by_then}\b(?:.*\b(?:by|before|this|until|next|today|tomorrow)\b|",
            r"[.!]?$)",
        ),
    )
    .unless(r"\b(?:every|all|each|always)\b|\bmust be signed[.!]?$")
    .tags(&["task"]),
    Rule::new(
        "todo.have-to-finish",
        0.78,
        "homework promised reply yet supposed hw list",
        concat!(
            r"^i have (?:[\w-]+ ){1,3}to (?:finish|do|write|submit|hand in|complete|prepare)\b",
            r"|^(?:i|we) have yet to \w+|^i (?:promised|am supposed|ought) to \w+",
            r"|^i (?:should|must) (?:really |also |still )?(?:call|reply|write|email|answer|visit|send|book|",
            r"pay|hand in|renew|clean|buy|return|contact)\b",
            r"|\bon my list\b|^need an? (?:haircut|appointment|new|gift|present)\b|^(?:we|i) still need an?\b",
        ),
    )
    .unless(r"\bsay\b|\bask you\b")
    .tags(&["task"]),
    Rule::new(
        "todo.errand",
        0.7,
        "",
        concat!(
            r"^(?:then |also |and )?(?:book|buy|order|renew|submit|schedule|pick up|drop off|return the|",
            r"follow up|call|pay|register for|sign up for|set (?:a |up a )?reminder|hand in|clean up|back up|",
            r"email|reply to|send|water|prep|prepare|update the|finish the|fix the|review the|write the|",
            r"translate the)\b [\w' .-]*(?:\b(?:to|for|by|before|after|on|with|at|from|tonight|tomorrow|asap|",
            r"this|next|the|in)\b)? ?\w+",
        ),
    )
    .unless(concat!(
        r"\b(?:this (?:text|sentence|paragraph|function|code|file|list|table|line|time)|above|below|",
        r"following|failing|typo in|line \d|second|last|again|it|bug here|here|test|for me|me|spelling)\b",
        r"|^(?:call|book|order|pay|send|water|email) (?:is|was|are|of|and|stack|boils|it)\b|, please\W*$",
        r"|^update (?:me|the (?:text|code|function))\b",
    ))
    .tags(&["task"]),
    Rule::new(
        "todo.someone-contacts",
        0.7,
        "contacts needs action",
        concat!(
            r"^action items?\s?: ?\w",
            r"|^(?:the |our )?[\w' -]+ (?:needs|need) (?:fixing|renewing|replacing|cleaning|updating|testing|",
            r"to be (?:renewed|replaced|fixed|updated))\b",
        ),
    )
    .tags(&["task"]),
];

pub(super) const KEYWORD_SET: &[Rule] = &[
    Rule::new(
        "keyword_set.any-label",
        0.84,
        "",
        concat!(
            r#"^(?:[\w'&/-]+ ){0,5}[\w'&/-]+\s?(?::| -) ?["'#]?[\w.+/#-]+(?: [\w.+/'-]+){0,3}["']?(?:, "#,
            r#"?["'#]?[\w.+/#-]+(?: [\w.+/'-]+){0,3}["']?)+(?:,? and [\w.+/-]+(?: [\w.+/-]+){0,3})?[.]?$"#,
        ),
    )
    .unless(r"^{other_labels}\b")
    .tags(&["keywords"]),
    Rule::new(
        "keyword_set.bare",
        0.84,
        concat!(
            "topics keywords tags interests terms themes areas fields skills concepts focus words ",
            "keyword topic kw subjects expertise disciplines categories hashtags tag",
        ),
        concat!(
            r"^(?:my |our |the |main |key |core |research |project |this |project's |content |related |",
            r"central ){0,3}(?:[\w'-]+ )?{keyword_heads}(?: (?:here|for [\w ]+|of [\w ]+|we [\w]+|i am into|",
            r"to \w+))? ?(?:are |is |include |:|- )?[\w.+/'-]+(?: [\w.+/'-]+){0,3}(?:, [\w.+/'-]+(?: ",
            r"[\w.+/'-]+){0,3})+",
            r"|^(?:please )?(?:tag|label|file|categori[sz]e) (?:this|it)?(?: \w+)? ?(?:with|as|",
            r"under) [\w-]+(?: [\w-]+)?,",
            r"|^(?:track|follow|watch|monitor) (?:these|this|the following)(?: \w+)?(?: for me)?\s?:",
            r"|^(?:stuff|things|terms|topics|keywords?) (?:to|we|i)\b.*: ?\w+.*,",
        ),
    )
    .tags(&["keywords"]),
    Rule::new(
        "keyword_set.covers",
        0.86,
        "covers about focus concentrate glossary cover",
        concat!(
            r"\b(?:workspace|track|project|group|lab|glossary|list|field|literature|course|review) (?:covers|",
            r"is about|focuses on|has the terms|includes|spans|is on) [\w-]+(?: [\w-]+){0,3}, .*(?:,| and )",
            r"|^(?:i|we) (?:concentrate|focus|work) (?:on|in) (?:\w+ )?(?:\w+ )?(?:fields|themes|things|",
            r"topics|areas)?\s?:?.*, .*",
            r"|^(?:the )?focus(?: of [\w ]+)? is on [\w-]+(?: [\w-]+){0,3},",
        ),
    )
    .tags(&["keywords"]),
];

pub(super) const NOTE: &[Rule] = &[
    Rule::new(
        "note.any-label",
        0.9,
        "",
        concat!(
            r"^(?:[\w'-]+ ){0,3}?{remark_heads}(?: (?:to|for|on|about|idea|learned|",
            r"from)(?: [\w'-]+){1,5}?)?\s?(?::| -|,) ?\w+",
        ),
    )
    .unless(concat!(
        r"\bto self\b.*\b(?:buy|call|send|email|book|renew|pay|ask|check)\b",
        r"|^(?:todo|next|reminder:? (?:buy|call|pay|send|book))|^comment, ",
        r"|^(?:good|nice|great) (?:idea|point|suggestion)\b|\bkeyword|\btopics?\b",
        r"|^reminder: \w+ (?:the|a|an|my)\b",
    ))
    .tags(&["note"]),
    Rule::new(
        "note.lead-in",
        0.88,
        concat!(
            "note fyi nb remember mind forget aware know record reference careful beware attention ",
            "noticed noting remark ps caution warning heads",
        ),
        concat!(
            r"^(?:and |also |oh |btw |just |please |side |quick |random )*(?:note|take note|nb|fyi|ps|p\.s\.?|",
            r"heads up|attention|careful|remember|keep in mind|bear in mind|be aware|beware|mind the|noticed|",
            r"i noticed|do not forget|for (?:the record|future reference|later|your information)|so you know|",
            r"just so you know|good to know|worth (?:noting|knowing|a note)|a (?:small |quick )?(?:note|",
            r"remark|thought|reminder)|as a (?:note|reminder)|remark|warning|caution|imp)\b[,:]? (?:that |of |",
            r"about |on )?(?:[\w'-]+ ){2,}",
        ),
    )
    .unless(concat!(
        r"^(?:remember|note|notes|do not forget|careful) (?:to|the alamo|me|when)\b",
        r"|^note (?:the difference|down)|\b(?:pictures?|figures?) above\b",
        r"|^do not forget (?:to |about |my )|^(?:remember|do not forget) \w+'s\b",
    ))
    .tags(&["note"]),
    Rule::new(
        "note.maybe",
        0.8,
        "consider could worth idea maybe might use cache",
        concat!(
            r"^{perhaps}+(?:also |maybe |be )*(?:consider|use|think about|worth|a good idea|good idea|cache|",
            r"add|adding|switch|split|log|try)\b",
            r"|^worth (?:a look|looking|checking|trying|considering)|\bcould be enough\b",
            r"|\b(?:maybe|perhaps) we could\b",
            r"|^an? (?:idea|thought|suggestion) (?:for later )?(?:would be|is|could be)\b|^idea for\b",
        ),
    )
    .unless(r"^(?:maybe|perhaps) (?:try|use) (?:it|that|this|once)\b")
    .tags(&["idea"]),
    Rule::new(
        "note.trailing",
        0.82,
        "mind fyi note",
        concat!(
            r"(?:, | - )(?:keep (?:that |this )?in mind|just (?:fyi|a note|so you know)|fyi|for the record|",
            r"worth noting)[.!]?$",
        ),
    )
    .tags(&["note"]),
];
