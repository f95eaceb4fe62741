//! Lists of words in the rules about the user.

/// Each with its name in patterns.
pub(super) const FRAGMENTS: &[(&str, &str)] = &[
    (
        "{lines_of_work}",
        concat!(
            r"(?:finance|banking|insurance|healthcare|health care|education|marketing|sales|hr|it|law|media|",
            r"advertising|logistics|retail|publishing|research|academia|government|engineering|manufacturing|",
            r"construction|hospitality|biotech|pharma|tech|consulting|security|support|industry|sector|",
            r"department|team|lab|office|field|hospital|factory)",
        ),
    ),
    (
        "{own_place}",
        concat!(
            r"(?:role|job|job title|title|position|profession|occupation|background|major|affiliation|",
            r"employer|native language|native tongue|mother tongue|first language|second language|pronouns|",
            r"time ?zone|home ?town|nationality|birthday|age|department|university|school|alma mater|field|",
            r"specialty|speciality|area of expertise|expertise|day job|degree|phd|handle|github handle|",
            r"username|advisor|supervisor|boss|manager|wife|husband|partner|company)",
        ),
    ),
    (
        "{not_of_user}",
        concat!(
            r"(?:background|title|field|company|manager|boss|advisor|supervisor|partner|wife|husband|position|",
            r"school|university|department|job)",
        ),
    ),
    (
        "{not_a_role}",
        concat!(
            r"(?:not|being|going|on|out|asking|waiting|late|sick|away|very|so|too|really|quite|un\w+|blocked|",
            r"broken|empty|missing|wrong|null|happy|angry|traveling|travelling|coming|great|good|boring|hard|",
            r"safe|done|closed|hiring|moving|closing|paying)",
        ),
    ),
    (
        "{groups}",
        concat!(
            r"(?:company|business|shop|store|lab|team|group|agency|studio|startup|restaurant|bakery|farm|",
            r"clinic|practice|blog|podcast|newsletter|channel|bookshop|bookstore|caf[eé]|gym|school|salon|",
            r"garage|firm|nonprofit|charity)",
        ),
    ),
    (
        "{tell_verbs}",
        concat!(
            r"(?:use|write|answer|respond|reply|keep|make|give|format|explain|default|skip|include|show|",
            r"present|phrase|structure|start|end|put|omit|drop|leave out|wrap|indent|spell|stick to|address|",
            r"limit)",
        ),
    ),
    (
        "{when_verbs}",
        concat!(
            r"(?:use|give|start|show|write|explain|keep|include|add|put|answer|prefer|make|skip|list|begin|",
            r"mention|tell|provide|do not|don't|be|just|avoid|stick|format|quote|link)",
        ),
    ),
    (
        "{habit_verbs}",
        concat!(
            r"(?:use|uses|write|writes|work|works|code|codes|start|starts|read|reads|run|runs|drink|drinks|",
            r"eat|eats|take|takes|do|does|test|tests|prefer|book|fly|listen|order|commit|sleep|cook|travel|",
            r"sit|check|watch|buy|wear|pay)",
        ),
    ),
    (
        "{research_is}",
        concat!(
            r"(?:is about|is on|concerns|focuses|centers|centres|looks|deals|revolves|examines|explores|",
            r"investigates|studies|aims|asks|is titled|covers|will)",
        ),
    ),
    (
        "{soothing}",
        concat!(
            r"(?:worry|get|know|forget|bother|think|get me wrong|mind|panic|be|care|remember|understand|see|",
            r"have|want|like|need|feel|stop|give up|hesitate|laugh|move|go|run away|look|believe|lose|miss)",
        ),
    ),
    // `I prefer not to say`: an answer that is refused is no taste.
    ("{keep_back}", r"(?:say|tell|talk|answer|disclose|discuss|comment|share|reveal|specify)"),
    (
        "{must_verbs}",
        concat!(
            r"(?:be|have|use|run|stay|remain|include|contain|follow|pass|support|work|fit|comply|keep|come|go|",
            r"take|meet|match|exceed|cite|mention|end|start|begin|return|respect|conform|happen|carry|sign|",
            r"leave|wear|cost|get|reach|store|log|encrypt|live|finish|share|touch|talk|call|depend|reveal|ask|",
            r"write|say|provide|ship|compile|load|target|respond|answer|handle|approve|sit|build|cover|land|",
            r"accept|last|arrive|send|rely|name|require|preserve|expose|validate|allow|complete|state|read|",
            r"show|do|make)",
        ),
    ),
    (
        "{may_not_verbs}",
        concat!(
            r"(?:use|ship|store|share|exceed|spend|rely|deploy|change|break|send|publish|host|process|move|",
            r"hire|accept|depend|touch|serve|charge|mention|record|work|start)",
        ),
    ),
    (
        "{only_verbs}",
        concat!(
            r"(?:use|include|send|write|deploy|show|answer|call|accept|suggest|recommend|merge|change|edit|",
            r"cite|quote|run|access|store|work|give|touch|rely|install|propose|book|buy|add|commit|publish|",
            r"email|import|pick|choose|read|return|reply|respond)",
        ),
    ),
    (
        "{have_to_be}",
        concat!(
            r"(?:able|accessible|available|compatible|compliant|reproducible|readable|encrypted|approved|",
            r"signed|open source|free|vegetarian|vegan|kosher|halal|private|anonymous|deterministic|fast|",
            r"small|offline|wheelchair|backwards?|in|under|within|at least)",
        ),
    ),
    (
        "{things_made}",
        concat!(
            r"(?:tool|app|application|platform|library|framework|service|microservice|system|website|",
            r"web ?site|site|package|plugin|extension|bot|chatbot|pipeline|cli|api|sdk|dashboard|project|",
            r"engine|database|game|prototype|monorepo|repo|repository|product|startup|crate|module|client|",
            r"server|backend|frontend|compiler|parser|marketplace|portal|toolkit|editor|wrapper|simulator|",
            r"newsletter|podcast|experiment|assistant|middleware|store|tracker|scheduler|workflow|browser|",
            r"course|web app|suite|program|proxy|gateway|interface|network|initiative|study|model|agent|",
            r"archive|visualizer|scraper|crawler|generator|manager|planner|reader|viewer|host|daemon|driver|",
            r"firmware|device|kit|template|fork|rewrite|port|successor|component|benchmark|dataset|corpus|",
            r"solution|software|catalog|catalogue|index|wiki|blog|forum|exchange)",
        ),
    ),
    (
        "{no_project}",
        concat!(
            r"(?:problem|issue|bug|first|second|last|error|best|worst|only|question|answer|idea|point|goal|",
            r"user|client|customer|weather|food)",
        ),
    ),
    (
        "{praise}",
        concat!(
            r"(?:great|nice|good|bad|terrible|awesome|cool|lovely|fun|silly|big|small|better|worse|wonderful|",
            r"horrible|useful|decent|mess|problem|known|fine|solid|beautiful|perfect|mistake|pain)",
        ),
    ),
    (
        "{this_project}",
        concat!(
            r"(?:project|app|application|tool|product|platform|library|startup|site|website|service|package|",
            r"system|study|game|course|survey|podcast|newsletter|initiative|plugin|dashboard|bot)",
        ),
    ),
    (
        "{project_does}",
        concat!(
            r"(?:is about|looks at|is for|is meant|is called|is named|is aimed|is intended|aims|helps|lets|",
            r"allows|enables|targets|involves|concerns|studies|tracks|exists|covers|provides|serves|collects|",
            r"analy[sz]es|compares|measures|investigates|examines|explores|started as|began as|consists|",
            r"started in|began in|is funded|is a collaboration|is run|is led|is part of|is open[- ]source|",
            r"will be)",
        ),
    ),
    (
        "{code_parts}",
        concat!(
            r"(?:code ?base|repo|repository|project|app|application|backend|back-end|frontend|front-end|stack|",
            r"api|services?|server|client|database|website|site|system|pipeline|platform|product|",
            r"infrastructure|monorepo|library|cli|package|bot|firmware|ui|docs|documentation|deployment|",
            r"schema|cluster|auth|code|game|plugin|tool|engine|compiler|extension|parser|framework|editor|",
            r"dashboard|script|portal|worker|authentication|simulation|crawler|scraper)",
        ),
    ),
    (
        "{code_is}",
        concat!(
            r"(?:handled by|written|built|implemented|hosted|deployed|based on|structured|organi[sz]ed|split|",
            r"licensed|maintained|open[- ]source|divided|generated|managed by|powered by|backed by|made of|",
            r"made up|served|packaged)",
        ),
    ),
    (
        "{code_has}",
        concat!(
            r"(?:module|component|service|package|layer|part|table|endpoint|crate|frontend|backend|user|",
            r"dependenc|stage|test|repo|branch|environment|api|tenant)",
        ),
    ),
    (
        "{we_build}",
        concat!(
            r"(?:building|developing|creating|maintaining|porting|designing|maintain|maintains|build|builds|",
            r"develop|develops|making|rewriting)",
        ),
    ),
    (
        "{stored_things}",
        concat!(
            r"(?:data|logs?|state|configuration|config|settings|assets|images|files|secrets|sessions?|metrics|",
            r"events|documents|records|uploads|backups|artifacts|migrations|tests|docs|documentation|",
            r"translations|models|builds)",
        ),
    ),
    (
        "{architecture}",
        concat!(
            r"(?:architecture|tech stack|technology stack|production environment|staging environment|",
            r"licen[cs]e|build system|main branch|default branch|coding style|directory layout|",
            r"folder structure|data model|package manager|test suite|minimum supported version)",
        ),
    ),
];
