//! Episodic memory: what happened and what was decided.

use crate::Rule;

/// Something specific: an event, a date, a number, what somebody else is or does.
pub(super) const FACT: &[Rule] = &[
    Rule::new(
        "fact.dated-thing",
        0.8,
        "",
        concat!(
            r"\b(?:the|my|our|their|his|her|user's|this|[\w-]+'s) (?:[\w'-]+ ){0,4}?{dated_things}(?: (?:with|",
            r"for|at|in|of|to|on|from)(?: [\w'.-]+){1,4}?)? (?:(?:is|are|was|were|",
            r"will be) (?:\w+ )?{dated_how}|takes|took|starts?|ends?|began|begins?|has been|have been|got|",
            r"moved|falls|runs|lasts?|costs?|expires?|leaves|departs|arrives|closes|opens|happens|slipped|",
            r"went)\b",
        ),
    )
    .unless(concat!(
        r"\b(?:is|was|were|are) (?:to|about|on|going|great|good|fun|bad|boring|long|important|nice|",
        r"terrible|not)\b.{0,12}$",
        r"|\bneeds? to\b|\bmust\b",
    ))
    .tags(&["event"]),
    Rule::new(
        "fact.passive",
        0.77,
        "was were been got is are",
        concat!(
            r"^(?:the |our |my |their |a |an |this |all |both |two |three |\d+ )?(?:[\w'./#-]+ ){1,7}?(?:was|",
            r"were|has been|have been|got|had been) (?:{adv})(?:not )?(?:\w+ly )?{done_to}\b",
        ),
    )
    .unless(r"^(?:it|that|this|what|which|who|there) (?:was|were|got)\b|\b{not_done_to}\b")
    .anchored()
    .tags(&["event"]),
    Rule::new(
        "fact.did",
        0.73,
        "",
        concat!(
            r"^(?:we|i|the user|user|[\w.'-]+|(?:the |my |our |their |a )(?:[\w-]+ ){0,2}[\w'-]+|",
            r"[\w.-]+ and [\w.-]+|(?:dr|mr|mrs|ms|prof)\.? \w+) (?:has |have |had |just |already |finally |",
            r"recently |also |only |now )*(?:submitted|finished|completed|published|released|deployed|",
            r"launched|merged|shipped|presented|signed|received|bought|sold|passed|failed|hired|fired|joined|",
            r"moved|visited|attended|met|won|lost|booked|sent|reported|migrated|upgraded|measured|trained|",
            r"collected|raised|lowered|left|quit|resigned|retired|arrived|returned|ordered|paid|cancelled|",
            r"canceled|postponed|renewed|announced|delivered|replaced|installed|reviewed|wrote|called|emailed|",
            r"confirmed|defended|graduated|started (?:at|as|in|on|working|using|a|her|his|their|last)|ended|",
            r"closed|opened|crashed|dropped|grew|rose|fell|increased|decreased|doubled|tripled|reached|scored|",
            r"took (?:over|the|place|\w+ (?:hours|minutes|days|weeks))|gave|got (?:a|the|an|accepted|promoted|",
            r"married|rejected|back|\d)|spent|earned|saved|ran (?:for|out|on|the|a)|broke|fixed|introduced|",
            r"acquired|changed|rolled back|went (?:live|down|to|on)|came|found|discovered|counted|recorded|",
            r"interviewed|invited|handed|submitted|accepted|rejected|sponsored|borrowed|donated|planted|",
            r"adopted|flew|drove|slept|ate|cooked|baked|ran|swam|hurt|injured|recovered|asked for|requested|",
            r"promised|offered|expired|shut|celebrated|tested|downloaded|uploaded|transferred|withdrew|",
            r"deposited|cost|saw)\b",
        ),
    )
    .unless(concat!(
        r"^(?:it|that|this|he|she|they|what|which|who|there|you|nothing|something|everything) ",
        r"|^the [\w-]+ (?:\w+ )?(?:you|i|we|they|he|she)\b",
        r"|^\w+ (?:got|took|found|fixed|left|lost|changed|sent|wrote|ran|saw|finished|met|came|",
        r"tested) (?:it|that|this|them)\b",
        r"|^(?:i|we) (?:got|found|saw|asked|changed|fixed|ran|tested|wrote|gave|came|left) (?:it|that|",
        r"this|them|an error|the error|the same|you|a bug|nothing|out|up|across|lost)\b",
        r"|\b(?:he|she) (?:left the room)|^turn (?:left|right)|^\d",
    ))
    .anchored()
    .tags(&["event"]),
    Rule::new(
        "fact.number",
        0.75,
        "",
        concat!(
            r"^(?:the |our |my |this |a |their |each |every |user's )?(?:[\w'./-]+ ){1,7}?{counts} ",
            r"{about}*[$€£]?\d[\d,.]*\s?{units}?",
        ),
    )
    .unless(concat!(
        r"^(?:it|that|this|he|she|they|what|which|i|we|there|you) ",
        r"|\b(?:must|should|cannot|at most|no more|never|need to|have to|has to)\b",
        r"|\b(?:uses|runs|needs|supports|requires|is|are) (?:python|java|node|version|v)\b|^\d",
        r"|\bversion\b.*\brequired\b|^the (?:answer|output|solution|correct \w+) is\b",
    ))
    .anchored()
    .tags(&["number"]),
    Rule::new(
        "fact.when",
        0.77,
        "",
        concat!(
            r"^(?:the |our |my |their |a |this |user's )?(?:[\w'.-]+ ){1,6}?(?:is|are|was|were|starts?|ends?|",
            r"begins?|happens?|takes place|is scheduled|are scheduled|was scheduled|is due|are due|was due|",
            r"happened|opens?|closes?|arrives?|leaves?|expires?|departs?|is closed|is open|is out|is away|",
            r"is on (?:vacation|holiday|leave)|are on (?:vacation|holiday|leave)|lands?|launched|meets?|",
            r"visits?|returns?|comes|retires?) (?:back |out |up |again |only |every )*(?:on |at |for |in |by |",
            r"until |from |between |since |early |late |this |around |before |after |the |next )*{day}\b",
        ),
    )
    .unless(concat!(
        r"^(?:it|that|this|what|which|who|there|today|tomorrow|yesterday|i|we) ",
        r"|\b(?:must|should|need to|have to|has to|let us)\b",
    ))
    .tags(&["date"]),
    Rule::new(
        "fact.third-person",
        0.73,
        "",
        concat!(
            r"\b(?:my|our|the user's|user's|the|his|her|[\w-]+'s) (?:[\w-]+ )?{persons} (?:\w+ ",
            r")?{person_does} ?\w",
        ),
    )
    .unless(concat!(
        r"\b(?:is|are|was) (?:great|nice|good|bad|annoying|awesome|mean|cool|funny|the best|right|wrong|",
        r"happy|sad|angry)\W*$",
        r"|\b(?:probably|maybe|might|may|likely|seems?)\b",
    ))
    .tags(&["person"]),
    Rule::new(
        "fact.person-is",
        0.74,
        "is was became",
        concat!(
            r"^(?:[a-z][\w.'-]+|(?:dr|mr|mrs|ms|prof)\.? \w+|[a-z][\w'-]+ [a-z][\w'-]+) (?:is|was|",
            r"became) (?:now |currently )?(?:the |our |my |his |her )(?:new |current |former |main |only |",
            r"first |acting |interim |next )?(?:[\w-]+ ){0,3}{role}\b",
        ),
    )
    .unless(r"^(?:it|that|this|he|she|they|there|what|which|who|here|user|the user|one of) ")
    .anchored()
    .tags(&["person"]),
    Rule::new(
        "fact.owns",
        0.73,
        concat!(
            "owns maintains leads manages responsible charge handles runs heads owner contact chairs ",
            "oversees administers",
        ),
        concat!(
            r"^(?:[a-z][\w.'-]*|[\w'-]+ [\w'-]+|(?:the |our )[\w-]+ (?:team|group|department|office)) (?:now |",
            r"currently |also )?{is_in_charge}\b",
        ),
    )
    .unless(r"^(?:i|we|it|that|this|what|which|who|he|she|they|user|the user) ")
    .tags(&["person"]),
    Rule::new(
        "fact.where",
        0.72,
        "stored located kept available saved lives sits hosted found headquartered",
        concat!(
            r"^(?:the |our |my |all |user's )?(?:[\w'.-]+ ){1,6}?(?:is|are|was|were) (?:stored|located|kept|",
            r"available|saved|found|headquartered|parked|hidden|documented|listed) (?:in|at|on|under|behind|",
            r"near)\b",
            r"|^(?:the |our |my )(?:[\w'.-]+ ){1,4}?(?:lives|sits) (?:in|at|on|under|behind)\b",
        ),
    )
    .unless(r"^(?:it|that|this) ")
    .tags(&["place"]),
    Rule::new(
        "fact.reads",
        0.7,
        "is",
        concat!(
            r"\b(?:the|our|my) (?:[\w-]+ ){0,3}{numbered_things}(?: (?:number|code|id|name|key|version|",
            r"address|reference))? (?:is|was) (?:[\w-]*\d[\w-]*|[a-z]+-?\d+)\b",
        ),
    )
    .tags(&["number"]),
    Rule::new(
        "fact.label",
        0.82,
        "fact facts deadline",
        r"^(?:fact|facts|deadline|due date|venue|date|location|status)\s?: ?\w",
    )
    .tags(&["event"]),
    Rule::new("fact.user-said", 0.7, "user", r"^(?:the )?user {user_did}\b").tags(&["event"]),
];

/// What was decided by `we` or `I`.
pub(super) const DECISION: &[Rule] = &[
    Rule::new(
        "decision.chose",
        0.88,
        concat!(
            "chose chosen decided decide picked selected agreed settled opted concluded resolved voted ",
            "committed finalized finalised elected ended turned made signed",
        ),
        concat!(
            r"{we} {adv}(?:chose|chosen|decided|picked|selected|agreed|settled on|settled for|opted|",
            r"resolved to|voted|committed to|finali[sz]ed|concluded (?:that|to)|made (?:the|a) (?:decision|",
            r"call)|ended up (?:choosing|going|picking|using|taking|buying|hiring|with)|turned down|",
            r"elected to|signed off on)\b",
            r"|^(?:chose|decided|picked|selected|agreed|settled on|opted|voted)\b",
            r"|^[\w'.-]+(?: and [\w'.-]+)? {adv}(?:decided|agreed|chose|opted|voted) (?:to|on|that|for|not|",
            r"against)\b",
            r"|^(?:both|all|everyone|everybody|the \w+(?: \w+)?|my \w+ and i) {adv}(?:decided|agreed|chose|",
            r"opted|voted)\b",
        ),
    )
    .unless(concat!(
        r"\b(?:not|never|yet to|have not|has not) (?:yet )?(?:decided|agreed|chosen|settled|decide)\b",
        r"|\b(?:once|after|when|before|until) (?:we|i|they) (?:have )?(?:decided|agreed|chosen|decide)\b",
    ))
    .tags(&["decision"]),
    Rule::new(
        "decision.passive",
        0.86,
        "decided agreed settled chosen selected picked decision verdict decisions outcome",
        concat!(
            r"\b(?:it was|has been|have been|was|were|is|it is|been) (?:{adv})(?:decided|agreed|settled|",
            r"chosen|selected|picked)\b",
            r"|\b(?:the|our|my|final) (?:final )?(?:decision|verdict|choice|call|consensus|",
            r"plan of record) (?:is|was)\b",
            r"|^(?:final )?(?:decision|decisions|decided|agreed|resolution|verdict|outcome)\s?[:-]",
            r"|\bmade the (?:decision|call) to\b",
        ),
    )
    .unless(concat!(
        r"\b(?:not|never) (?:been )?(?:yet )?(?:decided|agreed|settled|chosen)\b|\bnot final\b",
        r"|\bis (?:hard|difficult|pending|still|not|up to)\b",
    ))
    .tags(&["decision"]),
    Rule::new(
        "decision.going-with",
        0.84,
        "going go stick sticking staying stay went sticking proceed",
        r"\b(?:we|i|let us|the team) (?:{adv})(?:are |am |will |is )?(?:be )?{going_with} (?:with|for)\b",
    )
    .tags(&["decision"]),
    Rule::new(
        "decision.we-will",
        0.8,
        "will going",
        concat!(
            r"\b(?:we|the team|i) (?:will|are going to|am going to|is going to|shall) (?:not |no longer |",
            r"only |all |always |now |also |just )*(?:use|adopt|switch|move|migrate|drop|keep|host|store|",
            r"deploy|skip|postpone|replace|build (?:on|the|it)|start with|stay|stick|go|support|outsource|",
            r"rely|standardi[sz]e|rewrite|target|cancel|hire|rent|sell|publish|split|charge|offer|launch|",
            r"focus on|delay|retire|deprecate|freeze|license|require|run (?:it|the|on|our)|hold|meet|ship|buy|",
            r"phase|stop|continue|limit|accept|ignore|treat|name|call it)\b",
        ),
    )
    .unless(concat!(
        r"\b(?:go|move|stay|meet|call|buy|run) (?:home|out|there|now|to (?:the (?:store|shop|doctor|gym|",
        r"beach)|bed|lunch|sleep))\b",
        r"|\b(?:tomorrow|tonight|later|next week|soon|in a (?:minute|moment|bit))\b",
    ))
    .tags(&["decision"]),
    Rule::new(
        "decision.using-for",
        0.78,
        "using switching moving migrating adopting dropping going replacing standardizing keeping",
        concat!(
            r"^(?:{weare} {adv})?(?:using|switching (?:from \S+ )?to|moving (?:from \S+ )?to|",
            r"migrating (?:from \S+ )?to|adopting|dropping|replacing|standardi[sz]ing on|keeping|",
            r"going) (?:[\w.+/#-]+ ){1,4}?(?:for|as|instead of|over|rather than|to|from|with|in favou?r of|",
            r"by default|everywhere)\b",
            r"|^(?:{weare} {adv})?(?:switching|moving|migrating) (?:over )?(?:from [\w.+-]+(?: [\w.+-]+)? ",
            r")?to \w+",
        ),
    )
    .unless(concat!(
        r"^(?:going to|moving to (?:the )?(?:next|new (?:flat|house|apartment|city)))",
        r"|^i am (?:going|moving|keeping) |^(?:using|keeping|replacing) (?:it|this|that) (?:for|as)\b",
    ))
    .tags(&["decision"]),
    Rule::new(
        "decision.lets",
        0.78,
        "let",
        concat!(
            r"^let us (?:use|adopt|switch|drop|keep|host|store|skip|postpone|replace|standardi[sz]e|",
            r"make (?:it|the|\w+) (?:the|our|a)|call (?:it|the)|not|stay|move|rename|default|settle|pick|",
            r"choose|name|stick|target|support|cancel)\b",
        ),
    )
    .unless(concat!(
        r"^let us (?:not (?:worry|forget|panic)|move on|keep going|stay in touch|use this|keep (?:it|",
        r"this) (?:simple|short))\b",
    ))
    .tags(&["decision"]),
    Rule::new(
        "decision.instead",
        0.76,
        "",
        concat!(
            r"\b(?:we|i|the team) (?:{adv}){used_instead} .*\b(?:instead of|over|rather than|in favou?r of|",
            r"because|due to|since|for (?:all|the|our|now))\b",
            r"|\b(?:we|i|the team) (?:have |has )?(?:switched (?:from .* )?to|adopted|rejected|ruled out|",
            r"abandoned|scrapped|standardi[sz]ed on|moved away from|migrated from|dropped (?:support|",
            r"the (?:idea|plan|feature))|approved the|rejected the|postponed the|called off)\b",
        ),
    )
    .tags(&["decision"]),
    Rule::new(
        "decision.from-now",
        0.8,
        "we",
        r"^we (?:deploy|use|meet|release|write|review|ship|run|store|keep|only|no longer|do|will)\b.*",
    )
    .unless(concat!(
        r"^we (?:use|store|keep|run|write|do|meet|will|deploy|release|review|ship|only) .*(?:\?|",
        r"yesterday)$",
    ))
    .tags(&["decision"]),
];
