//! Fragments of patterns, by name: those that several patterns share, and long lists of words.

mod adjust;
mod chinese;
mod episodic;
mod everyday;
mod user;
mod workspace;

/// The tables, each fragment with its name in patterns.
const TABLES: [&[(&str, &str)]; 7] = [
    FRAGMENTS,
    user::FRAGMENTS,
    episodic::FRAGMENTS,
    workspace::FRAGMENTS,
    everyday::FRAGMENTS,
    chinese::FRAGMENTS,
    adjust::FRAGMENTS,
];

/// A pattern with its fragments filled in. A fragment may contain others.
pub(crate) fn filled(pattern: &str) -> String {
    let (mut whole, mut rest) = (String::with_capacity(pattern.len()), pattern);
    while let Some(at) = rest.find('{') {
        whole.push_str(&rest[..at]);
        rest = &rest[at..];
        // `{0,3}` is a count.
        let end = rest.find('}').map_or(1, |end| end + 1);
        match fragment(&rest[..end]) {
            Some(text) => whole.push_str(&filled(text)),
            None => whole.push_str(&rest[..end]),
        }
        rest = &rest[end..];
    }
    whole.push_str(rest);
    whole
}

fn fragment(name: &str) -> Option<&'static str> {
    let found = TABLES.into_iter().flatten().find(|(known, _)| *known == name);
    found.map(|(_, text)| *text)
}

/// What several patterns share.
const FRAGMENTS: &[(&str, &str)] = &[
    // What everybody can look up: a sentence that says what it is says nothing about a project.
    (
        "{tech}",
        concat!(
            r"(?:rust|python|java|javascript|js|typescript|go|golang|kotlin|swift|ruby|php|perl|scala|haskell|",
            r"elixir|c|c\+\+|c#|zig|sql|mysql|postgres|postgresql|sqlite|mariadb|mongodb|mongo|redis|kafka|",
            r"rabbitmq|elasticsearch|docker|kubernetes|k8s|terraform|ansible|nginx|apache|linux|unix|windows|",
            r"macos|android|ios|git|github|gitlab|svn|http|https|tcp|udp|ip|dns|tls|ssh|ftp|grpc|rest|graphql|",
            r"json|yaml|toml|xml|html|css|markdown|react|vue|angular|svelte|node|nodejs|deno|django|flask|",
            r"fastapi|rails|laravel|spring|express|numpy|pandas|pytorch|tensorflow|jupyter|aws|azure|gcp|",
            r"firebase|wasm|webassembly|bash|vim|emacs|unicode|utf-8|regex|oauth|jwt|a monorepo|",
            r"a microservice|a queue|a compiler)",
        ),
    ),
    ("{iam}", r"\b(?:i am|i was|the user is|user is)"),
    ("{i}", r"\b(?:i|the user|user)"),
    ("{weare}", r"\b(?:we are|i am|the team is|our team is|the user is|user is)"),
    (
        "{we}",
        r"\b(?:we|i|the team|our team|the user|user|management|the board|the group|the committee)",
    ),
    (
        "{adv}",
        concat!(
            r"(?:(?:really|strongly|much|generally|usually|always|definitely|also|still|currently|now|just|",
            r"actually|absolutely|already|finally|recently|particularly|especially|very|so|quite|mostly|",
            r"originally|primarily|mainly|have|has|had|do|does|would|all|both|both of us|collectively|",
            r"unanimously|jointly|officially|pretty|totally|completely|fairly|rather|fully|kind of|",
            r"a hundred percent) )*",
        ),
    ),
    (
        "{role}",
        concat!(
            r"(?:student|engineer|developer|programmer|coder|researcher|scientist|professor|lecturer|teacher|",
            r"tutor|designer|manager|lead|architect|analyst|consultant|doctor|physician|surgeon|dentist|nurse|",
            r"pharmacist|lawyer|attorney|paralegal|judge|founder|co-founder|cofounder|owner|ceo|cto|cfo|coo|",
            r"director|president|head|chief|officer|administrator|admin|sysadmin|operator|technician|mechanic|",
            r"electrician|plumber|carpenter|builder|farmer|gardener|chef|cook|baker|barista|waiter|waitress|",
            r"driver|pilot|soldier|veteran|firefighter|police officer|accountant|auditor|bookkeeper|banker|",
            r"broker|trader|economist|statistician|mathematician|physicist|chemist|biologist|geologist|",
            r"historian|linguist|philosopher|psychologist|psychiatrist|therapist|counselor|librarian|",
            r"journalist|reporter|editor|writer|author|novelist|poet|blogger|translator|interpreter|",
            r"copywriter|marketer|salesperson|recruiter|secretary|assistant|receptionist|artist|illustrator|",
            r"painter|photographer|filmmaker|musician|composer|singer|actor|actress|dancer|athlete|coach|",
            r"trainer|postdoc|intern|fellow|apprentice|trainee|freelancer|contractor|entrepreneur|volunteer|",
            r"mother|father|mom|dad|parent|grandparent|widow|retiree|pensioner|immigrant|citizen|native|vegan|",
            r"vegetarian|beginner|undergraduate|undergrad|graduate|sophomore|freshman|junior|senior|major|",
            r"maintainer|contributor|tester|scrum master|product owner|investigator|veterinarian|vet|",
            r"paramedic|midwife|clerk|cashier|planner|surveyor|sailor|captain|hobbyist|expert|specialist|",
            r"member|employee|novice|newcomer|minor|diabetic|insomniac|introvert|extrovert)",
        ),
    ),
    (
        "{day}",
        concat!(
            r"(?:monday|tuesday|wednesday|thursday|friday|saturday|sunday|mon|tue|wed|thu|fri|january|",
            r"february|march|april|may|june|july|august|september|october|november|december|jan|feb|mar|apr|",
            r"jun|jul|aug|sept?|oct|nov|dec|today|tonight|tomorrow|yesterday|next (?:week|month|year|quarter|",
            r"spring|summer|fall|autumn|winter)|last (?:week|month|year|night|spring|summer|fall|autumn|",
            r"winter)|this (?:week|month|year|morning|afternoon|evening)|noon|midnight|christmas|easter|",
            r"20\d\d|\d{1,2}(?::\d\d)? ?(?:am|pm|o'clock)|\d{1,2}:\d\d|\d{4}-\d\d-\d\d|\d{1,2}(?:st|nd|rd|th)|",
            r"the \d{1,2}(?:st|nd|rd|th)|q[1-4]|(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|",
            r"twelve) (?:o'clock|in the (?:morning|evening)))",
        ),
    ),
    (
        "{lang}",
        concat!(
            r"(?:english|chinese|mandarin|cantonese|spanish|french|german|italian|portuguese|russian|japanese|",
            r"korean|arabic|hebrew|hindi|urdu|bengali|turkish|dutch|swedish|norwegian|danish|finnish|polish|",
            r"czech|greek|ukrainian|hungarian|romanian|vietnamese|thai|indonesian|malay|tagalog|swahili|farsi|",
            r"persian|catalan|latin|welsh|irish|tamil|telugu|british english|american english)",
        ),
    ),
    (
        "{output}",
        concat!(
            r"(?:answers?|responses?|reply|replies|explanations?|output|outputs|summary|summaries|messages|",
            r"emails|comments|docstrings|examples?|snippets?|suggestions|feedback|reports?|code|",
            r"commit messages?|wording|prose|sentences|paragraphs|lists?|bullets?|bullet points?|tables?|",
            r"headings|headers|diagrams|charts|links|citations|references|sources|formatting|markdown|emojis?|",
            r"emoticons|jargon|acronyms|abbreviations|exclamation marks|formulas|equations|footnotes|",
            r"preambles?|disclaimers|apologies|pleasantries|small talk|filler|introductions|conclusions|",
            r"step by step|steps)",
        ),
    ),
    (
        "{style}",
        concat!(
            r"(?:concise|brief|short|shorter|succinct|terse|detailed|thorough|verbose|long|longer|formal|",
            r"informal|casual|friendly|polite|direct|blunt|honest|simple|plain|technical|non-technical|",
            r"professional|neutral|minimal|minimalist|readable|structured|to the point|critical|gentle|",
            r"playful|serious|conversational)",
        ),
    ),
    (
        "{means}",
        r"(?:means?|stands? for|refers? to|is short for|are short for|denotes?|is code for)",
    ),
    (
        "{zhus}",
        "(?:我|我们|咱们)(?:和[^,。]{1,6}|跟[^,。]{1,6})?(?:公司|团队|小组|实验室|组|部门)?",
    ),
    ("{zhnow}", "(?:最近|目前|现在|一直|还|也|正|们|都|这几天|这阵子)*"),
    (
        "{zhsoftware}",
        "(?:应用|软件|小程序|程序|网站|系统|平台|工具|框架|插件|游戏|app|机器人|服务|爬虫|脚本|项目|产品|数据库|引擎|编辑器|编译器|\
         模块|接口|客户端|后台|后端|前端|商城|看板|组件|仓库|数据管道|助手|模型)",
    ),
    // What somebody who asks for help has in front of them.
    (
        "{athand}",
        concat!(
            r"(?:(?:this|that|these|those|it|they)\b|(?:the|my|our|your|an?) (?:[\w-]+ ){0,2}(?:builds?|",
            r"tests?|code|scripts?|quer(?:y|ies)|functions?|methods?|class|errors?|exceptions?|warnings?|",
            r"messages?|bug|loop|program|app|page|server|command|output|logs?|button|list|array|string|",
            r"columns?|rows?|brackets|regex|pattern|variables?|arguments?|parameters?|files?|lines?|calls?|",
            r"snippet|example|page|form|request|response|endpoint|import|commit|branch|deployment|container|",
            r"notebook|formula|cell|plot|chart)\b)",
        ),
    ),
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_fragment_has_one_name_and_is_whole() {
        let mut names = BTreeSet::new();
        for (name, text) in TABLES.into_iter().flatten() {
            assert!(names.insert(*name), "{name} is there twice");
            assert!(regex_lite::Regex::new(&filled(text)).is_ok(), "{name}");
            assert!(!filled(text).contains(&**name), "{name} contains itself");
        }
    }

    #[test]
    fn counts_stay_and_fragments_in_fragments_are_filled() {
        assert_eq!(filled(r"a{0,3}{iam}{2}"), r"a{0,3}\b(?:i am|i was|the user is|user is){2}");
        assert_eq!(filled("{"), "{");
    }
}
