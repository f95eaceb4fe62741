//! Lists of words in the rules for everyday speech.

/// Each with its name in patterns.
pub(super) const FRAGMENTS: &[(&str, &str)] = &[
    (
        "{conditions}",
        concat!(
            r"(?:new to|self[- ]taught|responsible for|in charge of|dyslexic|lactose|diabetic|deaf|blind|",
            r"vegan|vegetarian|pescatarian|colou?r[- ]?blind|left[- ]handed|retired|self[- ]employed|",
            r"unemployed|widowed|adopted|bilingual|finnish|an? native|originally from|half \w+|allergic|",
            r"autistic|disabled|not an? native|into my \w+ year)",
        ),
    ),
    (
        "{has_of_oneself}",
        concat!(
            r"(?:background|adhd|autism|asthma|diabetes|epilepsy|dyslexia|migraines?|allergy|allergies|",
            r"intolerance|degree|masters?|master's|bachelors?|phd|doctorate|diploma|licen[cs]e|kids?|children|",
            r"daughters?|sons?|twins|certificate|disability)",
        ),
    ),
    (
        "{with_feeling}",
        concat!(
            r"(?:really |rather |also |generally |do |very much |kind of |tend to |always |usually |strongly |",
            r"actually |honestly )",
        ),
    ),
    (
        "{wishing}",
        concat!(
            r"(?:want|would love|would like|hope|hoping|wish|aspire|aim|aiming|intend|trying|try|looking|plan|",
            r"planning|determined|dream|striving|working towards?|dying)",
        ),
    ),
    (
        "{no_answer}",
        concat!(
            r"(?:problem|idea|way|worries|one|results?|difference|need|clue|reason|thanks|wonder|pain|good|",
            r"new|such|more|other|answer|response|luck|doubt|luck|further|matter|big|chance|reply|output|",
            r"errors?|change)",
        ),
    ),
    (
        "{may_not_do}",
        concat!(
            r"(?:use|touch|rename|schedule|delete|share|store|push|commit|include|answer|send|write|add|",
            r"change|rely|depend|mention|expose|log|modify|edit|remove|deploy|merge|import|install|assume|",
            r"contact|publish|call any|make any|spend|book|hardcode|hard-code)",
        ),
    ),
    (
        "{cannot_do}",
        concat!(
            r"(?:be |have |use |access |hit |touch |contain |depend |exceed |call |leave |talk |reach |break |",
            r"block |need |write |change )",
        ),
    ),
    (
        "{bounds}",
        concat!(
            r"(?:at least|at most|under|over|more|less|min|max|backwards?|compatible|within|below|in|on|",
            r"compliant|accessible|\w+ compliant|ie)",
        ),
    ),
    (
        "{instead}",
        concat!(
            r"(?:instead|now|from now on|rather than|over|because|since|settled|no longer|decided|yesterday|",
            r"always|must|never|mondays?)",
        ),
    ),
    (
        "{software}",
        concat!(
            r"(?:tool|app|plugin|plug-in|library|cli|sensor|project|site|website|fork|game|bot|monorepo|",
            r"service|package|extension|framework|repo|repository|prototype|platform|device|system|library|",
            r"wrapper|firmware|simulator|dashboard)",
        ),
    ),
    (
        "{software_of_ours}",
        concat!(
            r"(?:tool|app|application|product|software|platform|service|shop|store|site|website|stack|system|",
            r"library|lib|plugin|bot|api|game|company|startup|engine|pipeline|project|robot|scheduler|",
            r"workspace|repository|repo|codebase|client|frontend|front end|backend|back end|app|server|team|",
            r"docs)",
        ),
    ),
    (
        "{made_how}",
        concat!(
            r"(?:built|written|made|implemented|based|organi[sz]ed|licensed|funded|open source|hosted|",
            r"deployed|run|called|event|\w+ driven|generated|powered|aimed|for|in|on|custom|about|an?|laravel|",
            r"handled|stored|done)",
        ),
    ),
    (
        "{software_made}",
        concat!(
            r"(?:app|application|site|website|tool|game|platform|plugin|bot|chatbot|system|extension|",
            r"documentary|course|product|software|service|drones?|robots?|device|sensor|store|shop|",
            r"marketplace|library|magazine|podcast|film|engine|dashboard|simulator)",
        ),
    ),
    (
        "{parts}",
        concat!(
            r"(?:app|backend|back end|frontend|front end|db|database|game|shop|api|auth|authentication|ci|",
            r"docs|documentation|server|website|site|codebase|code base|engine|firmware|pipeline|system|tests|",
            r"data|infra|hosting|everything|whole thing|code|repo|stack|lib|library|login|build|web shop|",
            r"mobile client|data pipeline|build system|architecture of the project)",
        ),
    ),
    (
        "{parts_are}",
        concat!(
            r"(?:all |mostly |currently |done |built |made |written |stored |hosted |deployed |generated |",
            r"handled |about |funded |called |like |github |a |an |the |in |on |with |by |for |from |as |of |",
            r"licensed |open |based |event )",
        ),
    ),
    (
        "{no_subject}",
        concat!(
            r"(?:it|that|this|he|she|there|here|what|which|who|i|my|our|everything|nothing|all|{tech}|berlin|",
            r"paris|water|gold|honey|deadline|rent|office|goal|plan|focus|idea|theory|user|everyone|speaker)",
        ),
    ),
    (
        "{kind_of}",
        concat!(
            r"(?:member|good|great|nice|kind|sort|type|lot|friend|city|capital|part|leader|city|number|symbol|",
            r"unit|chance|matter|question|student|language|protocol|format|framework)",
        ),
    ),
    (
        "{happens}",
        concat!(
            r"(?:is|are|was|were|has|have|had|got|went|left|ran|began|took|turned|turns|pays|paid|opens|",
            r"closes|starts|ends|leaves|expires|lasts|runs|gets|begins|takes|arrived|arrives|approved|moved|",
            r"changes|broke|reported|hired|raised|lost|crashed|bought|becomes|returns|visiting|celebrates|",
            r"joined|failed|works)",
        ),
    ),
    (
        "{amounts_to}",
        concat!(
            r"(?:has|have|had|got|contains?|contained|includes?|weighed|weighs|costs?|paid|took|takes|is|was|",
            r"are|were|holds?|received|runs|ran|lasted|raised|employs?|covers?|reached)",
        ),
    ),
    (
        "{no_amount}",
        concat!(
            r"(?:must|max|goal|target|at least|at most|should|answer|word|loop|letters|bones|square|light|sun|",
            r"earth|moon|human|heart|example|equation|picture|above|line|page|section|kids|children|packages?|",
            r"folders|services|developers|devs|folder|year old|years old|commit|text|leap|marathon|speed|file|",
            r"files|solution|angles|decided|agreed)",
        ),
    ),
    (
        "{relations}",
        concat!(
            r"(?:colleagues?|boss|wife|husband|partner|girlfriend|gf|boyfriend|bf|friend|brother|bro|sister|",
            r"sis|mother|mom|mum|father|dad|parents|son|daughter|kids?|doctor|dr|landlord|neighbou?r|cousin|",
            r"uncle|aunt|grandmother|grandma|grandfather|grandpa|professor|prof|teacher|dogs?|cats?|car|bike|",
            r"phone|laptop|train|flight|house|flat|apartment|mates?|roommate|address|bank)",
        ),
    ),
    (
        "{relation_is}",
        concat!(
            r"(?:is|are|was|were|works?|lives?|has|turns?|turned|goes|studies|plays|owns|died|changed|broke|",
            r"starts?|leaves|left|name)",
        ),
    ),
    (
        "{occasions}",
        concat!(
            r"(?:paper|wedding|office|release|deadline|exam|meeting|demo|interview|contract|warranty|lease|",
            r"rent|invoice|workshop|conference|conf|survey|beta|client|customer|landlord|boss|board|professor|",
            r"prof|course|appointment|appt|dentist appt|flight|package|holidays|backup|standup|stand-up|",
            r"migration|printer|budget|experiment|competitor|supplier|prototype|van|kitchen|station|dataset|",
            r"deployment|ceo|parents|library card|results?|insurance|merger|visa|audit|launch|bug|server|",
            r"laptop|office)",
        ),
    ),
    (
        "{occasion_is}",
        concat!(
            r"(?:is|are|was|were|has|had|got|gets?|starts?|ends?|runs?|pays?|comes?|takes?|leaves?|said|went|",
            r"crashed|closed|closes|expires?|opens?|moved|costs?|lasts?|begins?|rejected|came)",
        ),
    ),
    (
        "{deciders}",
        concat!(
            r"(?:management|board|group|committee|team|boss|family|council|jury|everyone|everybody|",
            r"together we|we all|all of us)",
        ),
    ),
    (
        "{will_do}",
        concat!(
            r"(?:will|must|should|have|need|still need|still have|have got|am going|are going|ought|",
            r"am supposed|are supposed|plan|have yet)",
        ),
    ),
    (
        "{by_when}",
        concat!(
            r"(?:end|\w+day|\d+|monday|mon|tue|tues|wed|thu|thurs|fri|sat|sun|january|february|march|april|",
            r"may|june|july|august|september|october|november|december)",
        ),
    ),
    (
        "{done_by_then}",
        concat!(
            r"(?:fixed|finished|done|sent|written|rewritten|submitted|renewed|replaced|booked|paid|updated|",
            r"cleaned|signed|delivered|repaired|ordered|translated|returned)",
        ),
    ),
    (
        "{other_labels}",
        concat!(
            r"(?:todo|to-do|to do|note|notes|important|warning|caution|tip|buy|shopping|hi|hello|result|",
            r"output|error|p\.?s|tool|dear|remember|reminder|idea|next|next steps?|action items?|decision|",
            r"left to do|pending|nb|fyi|goal|goals|deadline|in colou?r)",
        ),
    ),
    (
        "{keyword_heads}",
        concat!(
            r"(?:topics|key ?words|tags|interests|terms|themes|areas|areas of [\w ]+|fields|skills|concepts|",
            r"words|subjects|expertise|disciplines|categories|hashtags|kw)",
        ),
    ),
    (
        "{remark_heads}",
        concat!(
            r"(?:note|notes|memo|remark|insight|observation|finding|suggestion|detail|point|points|annotation|",
            r"comment|improvement|lesson|lessons learned|lesson learned|idea|ideas|thought|thoughts|tip|hint|",
            r"caveat|caution|warning|attention|heads[- ]?up|reminder|p\.?s\.?|nb|fyi|fun fact|imp|important|",
            r"interesting|noteworthy|good to know|something to remember|point to remember|",
            r"potential improvement|for later|trivia)",
        ),
    ),
    (
        "{perhaps}",
        concat!(
            r"(?:maybe |perhaps |we could |one could |might be |it might be |it may be |would be |",
            r"it would be |could |potential )",
        ),
    ),
];
