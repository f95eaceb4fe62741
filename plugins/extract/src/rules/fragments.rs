//! Fragments that several patterns share, by name.

/// Each with its name in patterns. None contains one before it.
pub(crate) const FRAGMENTS: &[(&str, &str)] = &[
    // What everybody can look up: a sentence that says what it is says nothing about a project.
    (
        "{tech}",
        r"(?:rust|python|java|javascript|js|typescript|go|golang|kotlin|swift|ruby|php|perl|scala|haskell|elixir|c|c\+\+|c#|zig|sql|mysql|postgres|postgresql|sqlite|mariadb|mongodb|mongo|redis|kafka|rabbitmq|elasticsearch|docker|kubernetes|k8s|terraform|ansible|nginx|apache|linux|unix|windows|macos|android|ios|git|github|gitlab|svn|http|https|tcp|udp|ip|dns|tls|ssh|ftp|grpc|rest|graphql|json|yaml|toml|xml|html|css|markdown|react|vue|angular|svelte|node|nodejs|deno|django|flask|fastapi|rails|laravel|spring|express|numpy|pandas|pytorch|tensorflow|jupyter|aws|azure|gcp|firebase|wasm|webassembly|bash|vim|emacs|unicode|utf-8|regex|oauth|jwt|a monorepo|a microservice|a queue|a compiler)",
    ),
    ("{iam}", r"\b(?:i am|i was|the user is|user is)"),
    ("{i}", r"\b(?:i|the user|user)"),
    ("{weare}", r"\b(?:we are|i am|the team is|our team is|the user is|user is)"),
    ("{we}", r"\b(?:we|i|the team|our team|the user|user|management|the board|the group|the committee)"),
    (
        "{adv}",
        r"(?:(?:really|strongly|much|generally|usually|always|definitely|also|still|currently|now|just|actually|absolutely|already|finally|recently|particularly|especially|very|so|quite|mostly|originally|primarily|mainly|have|has|had|do|does|would|all|both|both of us|collectively|unanimously|jointly|officially|pretty|totally|completely|fairly|rather|fully|kind of|a hundred percent) )*",
    ),
    (
        "{role}",
        r"(?:student|engineer|developer|programmer|coder|researcher|scientist|professor|lecturer|teacher|tutor|designer|manager|lead|architect|analyst|consultant|doctor|physician|surgeon|dentist|nurse|pharmacist|lawyer|attorney|paralegal|judge|founder|co-founder|cofounder|owner|ceo|cto|cfo|coo|director|president|head|chief|officer|administrator|admin|sysadmin|operator|technician|mechanic|electrician|plumber|carpenter|builder|farmer|gardener|chef|cook|baker|barista|waiter|waitress|driver|pilot|soldier|veteran|firefighter|police officer|accountant|auditor|bookkeeper|banker|broker|trader|economist|statistician|mathematician|physicist|chemist|biologist|geologist|historian|linguist|philosopher|psychologist|psychiatrist|therapist|counselor|librarian|journalist|reporter|editor|writer|author|novelist|poet|blogger|translator|interpreter|copywriter|marketer|salesperson|recruiter|secretary|assistant|receptionist|artist|illustrator|painter|photographer|filmmaker|musician|composer|singer|actor|actress|dancer|athlete|coach|trainer|postdoc|intern|fellow|apprentice|trainee|freelancer|contractor|entrepreneur|volunteer|mother|father|mom|dad|parent|grandparent|widow|retiree|pensioner|immigrant|citizen|native|vegan|vegetarian|beginner|undergraduate|undergrad|graduate|sophomore|freshman|junior|senior|major|maintainer|contributor|tester|scrum master|product owner|investigator|veterinarian|vet|paramedic|midwife|clerk|cashier|planner|surveyor|sailor|captain|hobbyist|expert|specialist|member|employee|novice|newcomer|minor|diabetic|insomniac|introvert|extrovert)",
    ),
    (
        "{day}",
        r"(?:monday|tuesday|wednesday|thursday|friday|saturday|sunday|mon|tue|wed|thu|fri|january|february|march|april|may|june|july|august|september|october|november|december|jan|feb|mar|apr|jun|jul|aug|sept?|oct|nov|dec|today|tonight|tomorrow|yesterday|next (?:week|month|year|quarter|spring|summer|fall|autumn|winter)|last (?:week|month|year|night|spring|summer|fall|autumn|winter)|this (?:week|month|year|morning|afternoon|evening)|noon|midnight|christmas|easter|20\d\d|\d{1,2}(?::\d\d)? ?(?:am|pm|o'clock)|\d{1,2}:\d\d|\d{4}-\d\d-\d\d|\d{1,2}(?:st|nd|rd|th)|the \d{1,2}(?:st|nd|rd|th)|q[1-4]|(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve) (?:o'clock|in the (?:morning|evening)))",
    ),
    (
        "{lang}",
        r"(?:english|chinese|mandarin|cantonese|spanish|french|german|italian|portuguese|russian|japanese|korean|arabic|hebrew|hindi|urdu|bengali|turkish|dutch|swedish|norwegian|danish|finnish|polish|czech|greek|ukrainian|hungarian|romanian|vietnamese|thai|indonesian|malay|tagalog|swahili|farsi|persian|catalan|latin|welsh|irish|tamil|telugu|british english|american english)",
    ),
    (
        "{output}",
        r"(?:answers?|responses?|reply|replies|explanations?|output|outputs|summary|summaries|messages|emails|comments|docstrings|examples?|snippets?|suggestions|feedback|reports?|code|commit messages?|wording|prose|sentences|paragraphs|lists?|bullets?|bullet points?|tables?|headings|headers|diagrams|charts|links|citations|references|sources|formatting|markdown|emojis?|emoticons|jargon|acronyms|abbreviations|exclamation marks|formulas|equations|footnotes|preambles?|disclaimers|apologies|pleasantries|small talk|filler|introductions|conclusions|step by step|steps)",
    ),
    (
        "{style}",
        r"(?:concise|brief|short|shorter|succinct|terse|detailed|thorough|verbose|long|longer|formal|informal|casual|friendly|polite|direct|blunt|honest|simple|plain|technical|non-technical|professional|neutral|minimal|minimalist|readable|structured|to the point|critical|gentle|playful|serious|conversational)",
    ),
    ("{means}", r"(?:means?|stands? for|refers? to|is short for|are short for|denotes?|is code for)"),
    ("{zhus}", "(?:我|我们|咱们)(?:和[^,。]{1,6}|跟[^,。]{1,6})?(?:公司|团队|小组|实验室|组|部门)?"),
    ("{zhnow}", "(?:最近|目前|现在|一直|还|也|正|们|都|这几天|这阵子)*"),
    (
        "{zhsoftware}",
        "(?:应用|软件|小程序|程序|网站|系统|平台|工具|框架|插件|游戏|app|机器人|服务|爬虫|脚本|项目|产品|数据库|引擎|编辑器|编译器|\
         模块|接口|客户端|后台|后端|前端|商城|看板|组件|仓库|数据管道|助手|模型)",
    ),
    // What somebody who asks for help has in front of them.
    (
        "{athand}",
        r"(?:(?:this|that|these|those|it|they)\b|(?:the|my|our|your|an?) (?:[\w-]+ ){0,2}(?:builds?|tests?|code|scripts?|quer(?:y|ies)|functions?|methods?|class|errors?|exceptions?|warnings?|messages?|bug|loop|program|app|page|server|command|output|logs?|button|list|array|string|columns?|rows?|brackets|regex|pattern|variables?|arguments?|parameters?|files?|lines?|calls?|snippet|example|page|form|request|response|endpoint|import|commit|branch|deployment|container|notebook|formula|cell|plot|chart)\b)",
    ),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_fragment_contains_an_earlier_fragment() {
        for (at, (_, text)) in FRAGMENTS.iter().enumerate() {
            assert!(FRAGMENTS[..at].iter().all(|(name, _)| !text.contains(name)), "{text}");
        }
    }
}
