//! User memory: what somebody works on.

use crate::Rule;

/// What a project is and what it is made of.
pub(super) const PROJECT: &[Rule] = &[
    Rule::new(
        "project.is-a",
        0.77,
        "is are",
        concat!(
            r"^(?:the |our |my )?[\w.+/-]+(?: [\w.+/-]+){0,2} is (?:an? |the |our |",
            r"my )(?:[\w'/,&.-]+ ){0,8}?{things_made}\b",
        ),
    )
    .unless(concat!(
        r"^(?:this|that|it|there|he|she|here|what|which|who|the {no_project})\b",
        r"|\bis (?:an? |the )(?:very |really |so |pretty )?{praise}\b|^(?:i|we|you|they|user|{tech})\b",
    ))
    .tags(&["project"]),
    Rule::new(
        "project.this-project",
        0.83,
        concat!(
            "project app application tool product repo repository codebase site website platform ",
            "library system startup service package study game course survey podcast newsletter ",
            "initiative plugin dashboard bot",
        ),
        r"\b(?:this|the|our|my) (?:[\w-]+ )?{this_project}(?: [\w-]+)? {project_does}\b",
    )
    .tags(&["project"]),
    Rule::new(
        "project.codebase",
        0.82,
        concat!(
            "codebase repo repository project app application backend back-end frontend front-end stack ",
            "api service server client database site website system pipeline platform product ",
            "infrastructure monorepo library cli module package services data logs deployment bot ",
            "firmware ui game plugin tool engine compiler extension parser framework editor dashboard ",
            "script portal worker simulation crawler scraper builds tests docs documentation auth ",
            "authentication layer schema models clusters cluster code",
        ),
        concat!(
            r"\b(?:the|our|this|my|its|all|both|most)?\s?(?:[\w-]+ )?{code_parts}(?: [\w-]+)? (?:{adv})",
            r"(?:uses?|runs (?:on|in|under|inside|as|every)|(?:is|are) (?:\w+ )?{code_is}|consists|contains|",
            r"depends on|relies on|targets|supports|lives (?:in|on|under|at)|follows|talks to|connects to|",
            r"serves|exposes|requires|integrates|comprises|is an? (?:monorepo|monolith|fork|collection|set)|",
            r"has (?:an? |two |three |four |five |six |\d+ |separate |no )(?:[\w-]+ ){0,3}{code_has})",
        ),
    )
    .unless(r"\b(?:uses? (?:too|so|up|all)|crashe[sd]|failed|failing|broken)\b")
    .tags(&["architecture"]),
    Rule::new(
        "project.we-build",
        0.8,
        concat!(
            "building developing making creating maintaining porting maintain maintains build builds ",
            "develop develops designing make rewriting",
        ),
        concat!(
            r"\b(?:we|our team|the team|my team|(?:my|our) (?:\w+ )?(?:company|startup|group|lab|studio|",
            r"organi[sz]ation|agency|non-?profit|team)) (?:are |is )?{adv}{we_build} (?:an?|the|our|software|",
            r"tools|apps|web|mobile|\w+) ?\w*",
        ),
    )
    .unless(concat!(
        r"\b(?:making|build|building|make|develop) (?:progress|sense|sure|it|this|that|a decision|on|up|",
        r"a mistake)\b",
    ))
    .tags(&["project"]),
    Rule::new(
        "project.stored-in",
        0.76,
        "stored kept cached hosted served deployed written built",
        concat!(
            r"^(?:the |our |all |its |user )?(?:[\w-]+ ){0,3}?{stored_things} (?:is|are|live|",
            r"lives) (?:\w+ )?(?:stored|kept|cached|hosted|served|deployed|written|built|generated|managed|in|",
            r"under)\b",
        ),
    )
    .unless(r"\b(?:yesterday|today|last week|good|bad|trouble|progress)\b")
    .tags(&["architecture"]),
    Rule::new(
        "project.architecture",
        0.78,
        "architecture stack structure environment production staging license licence",
        concat!(
            r"\b(?:the|our|its|project|my) (?:[\w-]+ )?{architecture} (?:is|are|consists|uses|includes|runs|",
            r"has|follows|lives)\b",
        ),
    )
    .unless(r"\b(?:is|are) (?:down|broken|slow|great|bad|good|failing|red|green)\b")
    .tags(&["architecture"]),
    Rule::new(
        "project.audience",
        0.79,
        "audience users customers stakeholders client sponsor market clients",
        concat!(
            r"\b(?:the|our|its) (?:target |main |primary |intended |typical |end )+(?:audience|users?|",
            r"customers?|market|clients?|stakeholders?|readers|group) (?:is|are|consists?|will be)\b",
            r"|\b(?:our|the project's) (?:clients?|customers|users|sponsor|funder) (?:is|are) (?:mostly |",
            r"mainly |primarily |an? |the )?\w+",
        ),
    )
    .unless(r"\b(?:are|is) (?:angry|happy|unhappy|complaining|waiting|asking|reporting|having|not|very|so)\b")
    .tags(&["project"]),
    Rule::new(
        "project.named",
        0.8,
        "called named codenamed project",
        concat!(
            r"\b(?:project|codebase|repo|repository|product|app|tool|startup|library) (?:is )?(?:called|named|",
            r"code-?named|known as)\b",
            r"|^(?:the )?project(?: name| title)?\s?[:-] ?\w",
        ),
    )
    .tags(&["project"]),
    Rule::new(
        "project.in-project",
        0.74,
        "in",
        concat!(
            r"^(?:in|for|on|within) (?:this|our|the) (?:[\w-]+ )?(?:project|codebase|repo|repository|app|",
            r"application|system|product|team)(?: [\w-]+)?,? (?:we |the |all |every |each |it |tests |errors |",
            r"configuration |modules )",
        ),
    )
    .unless(r"\b(?:must|never|always|should|decided|chose|need to|have to)\b")
    .tags(&["project"]),
    Rule::new(
        "project.phase",
        0.74,
        "phase phases milestone milestones consists work packages part",
        concat!(
            r"\b(?:the|our|this) (?:project|study|programme|program|work|thesis) (?:has|consists of|",
            r"is divided into|is split into|runs|ends|lasts|started|began|is funded by|is in) ",
        ),
    )
    .tags(&["project"]),
];
