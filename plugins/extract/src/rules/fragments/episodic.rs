//! Lists of words in the rules for what happened and is to be done.

/// Each with its name in patterns.
pub(super) const FRAGMENTS: &[(&str, &str)] = &[
    (
        "{dated_things}",
        concat!(
            r"(?:deadline|due date|meeting|exam|interview|flight|train|appointment|presentation|demo|release|",
            r"launch|budget|submission|review|conference|workshop|trip|defen[sc]e|contract|subscription|",
            r"invoice|lease|warranty|sprint|standup|stand-up|call|talk|event|wedding|vacation|holiday|surgery|",
            r"delivery|shipment|payment|rent|domain|certificate|election|party|birthday|anniversary|class|",
            r"course|semester|term|season|audit|migration|kickoff|kick-off|offsite|retro|session|game|match|",
            r"concert|visit|hearing|webinar|deposit|quote|order|package|training|rehearsal|dinner|lunch|",
            r"exhibition|inspection|maintenance window|freeze|grant|fellowship|internship|visa)",
        ),
    ),
    (
        "{dated_how}",
        concat!(
            r"(?:on|at|due|set|scheduled|over|cancelled|canceled|postponed|moved|confirmed|sold out|delayed|",
            r"valid|booked|planned|from|until|by|after|before|{day}|in \d|in {day}|in the|\d|",
            r"[$€£]\d)",
        ),
    ),
    (
        "{done_to}",
        concat!(
            r"(?:\w{3,}ed|signed|shipped|sent|delivered|migrated|reverted|trained|collected|filed|opened|",
            r"reported|hired|fired|promoted|acquired|founded|updated|upgraded|rolled|paid|completed|finished|",
            r"moved|postponed|cancelled|canceled|delayed|renewed|raised|lowered|cut|increased|reduced|added|",
            r"removed|installed|replaced|built|written|created|recorded|measured|tested|born|awarded|granted|",
            r"denied|returned|stolen|lost|found|damaged|repaired|leaked|hacked|launched|presented|introduced|",
            r"announced|scheduled|rescheduled|booked|ordered|bought|sold|charged|refunded|assigned|",
            r"transferred|archived|deleted|renamed|invited|elected|appointed|diagnosed|admitted|discharged|",
            r"interviewed|evaluated|labelled|labeled|annotated|invented|discovered|extended|approved|blocked|",
            r"suspended|down|offline|out of|unavailable)",
        ),
    ),
    (
        "{not_done_to}",
        concat!(
            r"(?:decided|agreed|chosen|interested|bored|tired|excited|confused|surprised|supposed|used|",
            r"impressed|worried|pleased|disappointed|annoyed|scared|needed|required|allowed|permitted|based|",
            r"named|called|related|caused|wanted|embarrassed|ashamed|stored|hosted|cached)",
        ),
    ),
    (
        "{counts}",
        concat!(
            r"(?:has|have|contains|includes|takes|costs?|weighs|measures|reached|dropped|grew|increased|",
            r"decreased|achieved|scored|got|holds|uses|needs|is|are|was|were|serves|handles|processes|employs|",
            r"covers|spans|lasts|earns|charges|pays|received|averages?|totals?|supports|gets|runs at|",
            r"stands at|sits at)",
        ),
    ),
    (
        "{about}",
        concat!(
            r"(?:about |around |roughly |nearly |almost |over |more than |less than |only |up to |at |to |by |",
            r"exactly |approximately |currently |a total of |just |under |now )",
        ),
    ),
    (
        "{units}",
        concat!(
            r"(?:%|percent|k\b|m\b|gb|mb|tb|kb|ms|seconds?|minutes?|hours?|days?|weeks?|months?|years?|rows?|",
            r"users?|people|employees|images|samples|records|pages|lines|files|euros?|dollars?|pounds?|kg|km|",
            r"miles?|meters?|metres?|requests|queries|students|patients|participants|customers|members|nodes|",
            r"gpus?|cores|tests|items|points|words|tokens|parameters|layers|tickets|servers|square|degrees|",
            r"watts|volts|litres|liters|cups|grams|subscribers|downloads|stars|chapters|episodes|seats|tables|",
            r"rooms|beds|units|copies|articles|papers|million|billion|thousand|[\w-]+s\b)",
        ),
    ),
    (
        "{persons}",
        concat!(
            r"(?:colleagues?|boss|manager|advis[oe]r|supervisor|wife|husband|partner|co-?worker|co-?author|",
            r"friend|brother|sister|mother|mom|father|dad|parents|son|daughter|kids?|doctor|landlord|",
            r"neighbou?r|team ?mate|teammate|client|customer|contact|accountant|lawyer|roommate|flatmate|",
            r"cousin|uncle|aunt|grandmother|grandfather|professor|teacher|coach|assistant|intern|dog|cat|",
            r"designer|ceo|cto|vendor|supplier|reviewer|sponsor)",
        ),
    ),
    (
        "{person_does}",
        concat!(
            r"(?:is|are|was|works?|lives?|has|likes|prefers|wants|speaks|teaches|plays|owns|needs|uses|called|",
            r"named|said|told|asked|moved|comes|studies|runs|hates|loves|knows)",
        ),
    ),
    (
        "{is_in_charge}",
        concat!(
            r"(?:owns|maintains|leads|manages|is responsible for|is in charge of|handles|heads|",
            r"is the owner of|is our contact|is the contact|oversees|administers|is the point of contact|",
            r"is on call|takes care of|chairs)",
        ),
    ),
    (
        "{numbered_things}",
        concat!(
            r"(?:wifi|wi-fi|room|office|phone|account|order|invoice|ticket|flight|case|booking|confirmation|",
            r"license|licence|project|tracking|model|serial|version|door|gate|port|floor|zip|postal|building|",
            r"desk|table|locker)",
        ),
    ),
    (
        "{user_did}",
        concat!(
            r"(?:mentioned|reported|confirmed|asked for|has|was|had|said that|stated|submitted|uploaded|",
            r"created|changed|owns|uses|bought|visited|attended)",
        ),
    ),
    (
        "{going_with}",
        concat!(
            r"(?:going|go|sticking|stick|staying|stay|went|moving ahead|going ahead|proceeding|proceed|",
            r"moving forward|move forward|going forward)",
        ),
    ),
    (
        "{used_instead}",
        concat!(
            r"(?:use|used|are using|am using|took|take|keep|kept|prefer to use|switched to|moved to|",
            r"migrated to|replaced|dropped|adopted|rejected|ruled out|abandoned|discarded|scrapped|",
            r"standardi[sz]ed on|went for|will take|go)",
        ),
    ),
    (
        "{may_verbs}",
        concat!(
            r"(?:be|been|have|has|need|want|prefer|like|mean|come|depend|know|explain|cause|caused|work|lead|",
            r"indicate|suggest|improve|help|reduce|affect|make|live|use|leave|fail|run|stem|reflect|get|take|",
            r"happen|contain|struggle|switch|cancel|buy|speak|share|drop|increase|lack|forgotten|missed|",
            r"changed|moved|lost|left|gone|broken|confused|overestimate|underestimate|belong|benefit|interact|",
            r"expect|plan|suffer|relate|churn|become|go|plateau|perform|generalize|transfer|hide|delay|miss|",
            r"consider|find|try|think|feel|enjoy|correlate|result|trigger|lie|already|see)",
        ),
    ),
    (
        "{after_perhaps}",
        concat!(
            r"(?:caused|due|because|means?|meant|an?|the|from|wants?|needs?|has|have|is|are|was|were|works?|",
            r"lives?|uses?|prefers?|comes?|knows?|forgot|will|not|related|interested|did|thinks?|expects?|",
            r"runs?|depends?|happens?|explains?|belongs?|stems?|got|left|lost|lies|sits|reads?|speaks?|lacks?|",
            r"overfits?|correlates?|had|does|never|just|too|in|at|on|working|looking|based|still)",
        ),
    ),
    (
        "{seems_to}",
        concat!(
            r"(?:be|have|prefer|like|want|use|work|need|know|live|come|depend|cause|help|matter|struggle|",
            r"enjoy|fail|be|think|care|go|run|\w+)",
        ),
    ),
    (
        "{should_verbs}",
        concat!(
            r"(?:review|implement|fix|update|add|write|finish|prepare|schedule|book|email|call|buy|send|",
            r"submit|deploy|refactor|migrate|test|document|check|investigate|set up|clean|create|remove|",
            r"delete|rename|upgrade|merge|order|pay|renew|contact|draft|organi[sz]e|plan|publish|release|",
            r"verify|follow up|reach out|ask|rewrite|extend|complete|register|arrange|confirm|rotate|archive|",
            r"replace|configure|install|talk to|meet|revisit|tell|return|file|invite|hire|apply|get|start|",
            r"look|back up|run|measure|benchmark|print|clarify|discuss|revise|sign|read)",
        ),
    ),
    (
        "{remember_to}",
        concat!(
            r"(?:remember|do not forget|do not let me forget|must not forget|must remember|make a note|",
            r"i must not forget|i must remember|i should remember)",
        ),
    ),
    (
        "{later_verbs}",
        concat!(
            r"(?:follow up|circle back|get back|look into|take care of|handle|send|write|review|call|email|",
            r"fix|finish|prepare|schedule|book|submit|update|check|draft|contact|share|file|meet|order|pay|",
            r"renew|deliver|test|deploy|clean up|talk to|ask|merge|create|add|complete|organi[sz]e|set up|",
            r"present|pick up|bring|return|visit|confirm|revisit|investigate|document|translate|publish)",
        ),
    ),
    (
        "{documents}",
        concat!(
            r"(?:tests?|docs?|documentation|report|changelog|readme|release notes|minutes|migration|",
            r"introduction|abstract|paper|proposal|letter)",
        ),
    ),
    (
        "{task_verbs}",
        concat!(
            r"(?:order|plan|test|document|release|benchmark|profile|port|register|rotate|print|tag|file|",
            r"return|mail|ship|post|interview|measure|sign|tell|water|feed|mow|wash|polish|run|train|label|",
            r"compare|close|split|move|export|import|pull|push|audit|patch|bump|transfer|claim|cut|pack|learn|",
            r"study|read|try|debug|change|draft|remind|meet|draw|record|count|cook|paint|hang|fill|",
            r"finali[sz]e|negotiate|translate|approve|restart|restore|reset|backup|reserve|backfill|decide|",
            r"choose|discuss|clarify|pin|lock|secure|monitor|swap|sort|sand|oil|stock|list|trim|tidy|empty|",
            r"descale|insure|notify)",
        ),
    ),
    (
        "{task_objects}",
        concat!(
            r"(?:the|an?|our|my|with|to|for|on|all|some|new|two|three|missing|old|in|at|more|every|each|both|",
            r"his|her|their|whether)",
        ),
    ),
    (
        "{text_parts}",
        concat!(
            r"(?:sentence|paragraph|function|text|code|answer|line|article|file|word|question|equation|",
            r"snippet|poem|essay|email)",
        ),
    ),
    (
        "{labels}",
        concat!(
            r"(?:update|note|reminder|plan|order|report|release|test|review|draft|post|label|tag|file|patch|",
            r"call|study|profile|mail|book|text)",
        ),
    ),
    (
        "{needs_noun}",
        concat!(
            r"(?:fixing|testing|review|updating|work|rewriting|cleaning|attention|a second look|proofreading|",
            r"refactoring|replacing|documentation|follow-up|painting|repairing|new batteries|approval from)",
        ),
    ),
    (
        "{states}",
        concat!(
            r"(?:is|are|was|were|will|must|should|has|have|had|want|wants|hope|hopes|plan|plans|goal|may|",
            r"might|could|decided|prefer|always|never|goes|closes|opens|leaves|ends|runs)",
        ),
    ),
];
