//! Who speaks: a role or a model in the forms that transcripts have, or anybody by a name before a
//! colon.

use std::sync::LazyLock;

use regex_lite::Regex;

/// The speaker of a sentence, as far as its line shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Speaker {
    /// No speaker is named, or one who may be the user.
    Unknown,
    /// The assistant, a tool or its output: nothing that it says is about the user, and nothing it
    /// proposes is decided.
    Machine,
}

/// The start of a turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Turn<'a> {
    pub(super) name: &'a str,
    pub(super) who: Speaker,
    /// Where the statement begins, in bytes.
    pub(super) at: usize,
}

/// What may stand before a speaker: the time.
const TIME: &str = r"(?:\[?\d{1,2}:\d\d(?::\d\d)?(?: ?[AaPp][Mm])?\]?\s*)?";
/// Assistants that have no other meaning, in patterns that ignore case.
const ASSISTANT: &str = concat!(
    r"(?:the )?(?:(?:ai|coding|virtual|chat|smart|research)[ -])?assistant|ai[ -](?:agent|bot|model)",
    r"|chat-?gpt(?:[- ]?\d[\w.]*)?|gpt(?:[- ]?\d[\w.]*)?(?:[ -](?:turbo|mini|pro))?",
    r"|(?:ai|智能|语音|虚拟)? ?(?:助手|助理|机器人|智能体)",
);
/// Names that are also words or things: a dash behind one begins no turn.
const MODEL: &str = concat!(
    r"ai|(?:ai |chat ?)?bot|agent|(?:github |microsoft )?copilot|codex",
    r"|claude(?:[ -](?:code|opus|sonnet|haiku|\d[\d.]*)){0,3}|gemini(?:[ -](?:pro|flash|ultra|\d[\d.]*)){0,3}",
    r"|(?:llama|deepseek|qwen|grok|mistral|llm)(?:[ -]?\d[\w.]*)?",
);
/// Labels of what a machine gives out, which may also be labels of a person's remarks.
const OUTPUT: &str = "system|model|results?|output|tool|stdout|stderr|response|function|terminal|系统|结果|输出|工具|模型|回答";
/// The person who is spoken with.
const PERSON: &str = "user|human|用户|人类";
/// The same, by words that other lines have, too.
const SELF: &str = "me|you|我|你";

/// The forms in which a role begins its turn. `{..}` are lists of names, `{:}` is a colon of either
/// width.
const ROLES: &[&str] = &[
    // `Assistant: ...`, `**GPT-4:** ...`, `Claude (10:02): ...`, `Assistant said: ...`
    r"^ {0,3}{time}(?:[-*+] )?(?:\*\*|__)?({assistant}|{model}|{person}|{self})(?:\*\*|__)?(?: ?\([^()]{1,24}\))?(?: (?:said|says|replied|answered|responded|wrote)|说|回答|回复|答)? ?{:}(?:\*\*|__)?\s*",
    r"^ {0,3}{time}(?:\*\*)?({output})(?:\*\*)?(?:\u{FF1A}|:(?:\*\*)?\s+|:\*\*$)",
    // `系统:...`, where no blank is usual.
    r"^ {0,3}{time}(系统|结果|输出|工具|模型|回答){:}\s*",
    // `[assistant] ...`, `<assistant>`
    r"^ {0,3}{time}[\[\u{3010}<](?:\|)?({assistant}|ai|system|{person})(?:\|)?[\]\u{3011}>]{:}?\s*",
    // `assistant> ...`
    r"^ {0,3}{time}({assistant}|{model}|{person}|{self})> ?\s*",
    // `Assistant - ...`
    r"^ {0,3}{time}({assistant}|{person}) +[-\u{2013}\u{2014}]{1,2} +",
    // A line that is only the role: a heading, bold, or bare.
    r"^ {0,3}#{1,6} *(?:\*\*|__)?({assistant}|{model}|{person}|{self})(?:\*\*|__)?(?: (?:said|says))?{:}?(?:\*\*|__)?[ #]*$",
    r"^ {0,3}(?:\*\*|__)({assistant}|{model}|{person}|{self})(?:\*\*|__)\s*$",
    r"^ {0,3}(assistant|ai assistant|chatgpt|助手|助理|user|human|用户)\s*$",
];
/// Anybody: a name with a capital before a colon.
const NAMED: &str = r"^\s*{time}(?:\*\*)?([A-Z][\w.-]{0,20}(?: [A-Z][\w.-]{0,20})?)(?:\*\*)?(?: \(\d{1,2}:\d\d\))?{:}(?:\*\*)?\s+\S";
/// The end of what `<assistant>` began.
const CLOSED: &str = r"^ {0,3}</(?:{assistant}|ai|system|{person})>\s*";

/// Labels before a statement that are not names.
const NO_SPEAKERS: &str = "todo to-do task tasks note notes important warning caution caveat attention tip hint idea goal goals \
    decision decisions decided fact facts constraint constraints rule rules requirement requirements hypothesis assumption \
    theory guess keywords keyword topics topic tags tag interests focus areas domain domains themes preference preferences \
    profile project fyi nb reminder observation remark interesting update background action objective objectives summary \
    deadline remember next insight insights suggestion suggestions memo finding findings lesson lessons comment comments \
    detail details point annotation improvement thought thoughts trivia p.s ps imp kw field fields subject subjects skill \
    skills terms term words word concepts concept categories category disciplines discipline descriptors specialities \
    specialties label labels vocabulary glossary expertise technologies tech stack hashtags pillars scope venue budget date";

static ROLE: LazyLock<Vec<Regex>> =
    LazyLock::new(|| ROLES.iter().filter_map(|form| compile(form, "(?i)")).collect());
static NAME: LazyLock<Option<Regex>> = LazyLock::new(|| compile(NAMED, ""));
static CLOSE: LazyLock<Option<Regex>> = LazyLock::new(|| compile(CLOSED, "(?i)"));
static PERSONS: LazyLock<Option<Regex>> =
    LazyLock::new(|| compile("^(?:{person}|{self})$", "(?i)"));
static MACHINES: LazyLock<Option<Regex>> =
    LazyLock::new(|| compile("^(?:{assistant}|{model}|{output}|developer)$", "(?i)"));

fn compile(pattern: &str, flags: &str) -> Option<Regex> {
    let lists = [("time", TIME), ("assistant", ASSISTANT), ("model", MODEL), ("output", OUTPUT)];
    let mut whole = format!("{flags}{pattern}").replace("{:}", r"[:\u{FF1A}]");
    for (name, list) in lists.into_iter().chain([("person", PERSON), ("self", SELF)]) {
        whole = whole.replace(&format!("{{{name}}}"), list);
    }
    Regex::new(&whole).ok()
}

/// Whether a speaker's name or a role is that of an assistant, a tool or its output.
pub fn is_machine(name: &str) -> bool {
    // `Coding Helper Bot`: whatever it is called, it says what it is.
    let last = name.rsplit(' ').next().unwrap_or_default();
    MACHINES.as_ref().is_some_and(|names| names.is_match(name))
        || ["assistant", "bot", "chatbot"].iter().any(|word| last.eq_ignore_ascii_case(word))
}

/// The turn of a role that begins with this line.
pub(super) fn role(line: &str) -> Option<Turn<'_>> {
    if let Some(end) = CLOSE.as_ref().and_then(|close| close.find(line)) {
        return Some(Turn { name: "", who: Speaker::Unknown, at: end.end() });
    }
    let found = ROLE.iter().find_map(|form| form.captures(line))?;
    let (name, at) = (found.get(1)?.as_str(), found.get(0)?.end());
    let is_person = PERSONS.as_ref().is_some_and(|names| names.is_match(name));
    // `AI: agents, memory, retrieval` is a list with its label.
    let is_label =
        !is_person && !name.to_lowercase().ends_with("assistant") && is_list(&line[at..]);
    let who = if is_person { Speaker::Unknown } else { Speaker::Machine };
    (!is_label).then_some(Turn { name, who, at })
}

/// The turn of somebody who is named before a colon.
pub(super) fn named(line: &str) -> Option<Turn<'_>> {
    let found = NAME.as_ref()?.captures(line)?;
    let (whole, name) = (found.get(0)?, found.get(1)?.as_str());
    let words = name.to_lowercase();
    let is_label =
        words.split(' ').any(|word| NO_SPEAKERS.split_whitespace().any(|label| label == word));
    let at = whole.end() - whole.as_str().chars().next_back().map_or(0, char::len_utf8);
    // A name before a mere list is a label, too: `Descriptors: avant-garde, brutalism`.
    let who = if is_machine(name) { Speaker::Machine } else { Speaker::Unknown };
    (!is_label && !is_list(&line[at..])).then_some(Turn { name, who, at })
}

/// The name of the speaker, and where the statement begins, in bytes.
pub fn speaker(line: &str) -> Option<(&str, usize)> {
    let turn = role(line).or_else(|| named(line))?;
    (!turn.name.is_empty()).then_some((turn.name, turn.at))
}

/// Whether a text is two or more short items with commas between them and no sentence.
fn is_list(text: &str) -> bool {
    let items: Vec<&str> = text.trim().trim_end_matches('.').split(',').collect();
    items.len() >= 3 && items.iter().all(|item| item.split_whitespace().count() <= 4)
}

#[cfg(test)]
mod tests {
    use super::super::lines::sentences;
    use super::*;

    #[test]
    fn every_form_compiles() {
        assert_eq!(ROLE.len(), ROLES.len());
        assert!(NAME.is_some() && CLOSE.is_some() && PERSONS.is_some() && MACHINES.is_some());
    }

    #[test]
    fn speakers_are_distinguished_from_labels() {
        let text =
            "Jerry: I like tea.\nassistant: I prefer prose.\nTODO: buy milk\nUser: hello there";
        let told = sentences(text);
        assert_eq!(told[0], ("I like tea.".to_owned(), Speaker::Unknown));
        assert_eq!(told[1], ("I prefer prose.".to_owned(), Speaker::Machine));
        assert_eq!(told[2].0, "TODO: buy milk");
        assert_eq!(told[3], ("hello there".to_owned(), Speaker::Unknown));
    }

    #[test]
    fn a_turn_of_a_machine_is_known_in_every_form() {
        for start in [
            "Assistant: ",
            "Assistant:",
            "assistant:",
            "ASSISTANT: ",
            "**Assistant:** ",
            "**Assistant**: ",
            "Assistant\u{FF1A}",
            "AI\u{FF1A}",
            "助手\u{FF1A}",
            "助手:",
            "助理\u{FF1A}",
            "机器人\u{FF1A}",
            "AI助手\u{FF1A}",
            "助手说\u{FF1A}",
            "系统\u{FF1A}",
            "Assistant - ",
            "Assistant \u{2014} ",
            "assistant> ",
            "### Assistant\n",
            "## AI\n\n",
            "**Assistant**\n",
            "Assistant\n",
            "Assistant:\n",
            "AI assistant: ",
            "[assistant] ",
            "[Assistant]: ",
            "\u{3010}助手\u{3011}",
            "<assistant>",
            "<assistant>\n",
            "<|assistant|>\n",
            "GPT-4: ",
            "GPT-4o: ",
            "ChatGPT: ",
            "Claude 3.5 Sonnet: ",
            "Assistant said: ",
            "ChatGPT said:\n\n",
            "Assistant (GPT-4): ",
            "[10:02] Assistant: ",
            "Travel Bot: ",
            "Result: ",
            "Tool: ",
        ] {
            let said = sentences(&format!("{start}We decided to use Redis.\n\nI prefer tea."));
            assert!(
                said.len() == 2 && said.iter().all(|(_, who)| *who == Speaker::Machine),
                "{start}: {said:?}"
            );
            assert_eq!(said[0].0, "We decided to use Redis.", "{start}");
        }
    }

    #[test]
    fn a_person_takes_the_turn_back() {
        for start in [
            "User: ",
            "user:",
            "用户\u{FF1A}",
            "我\u{FF1A}",
            "[user] ",
            "User - ",
            "human> ",
            "### User\n",
            "You said:\n",
            "</assistant>\n",
            "<user>",
        ] {
            let said = sentences(&format!("Assistant: We use Redis.\n{start}I prefer tea."));
            assert_eq!(
                said.last(),
                Some(&("I prefer tea.".to_owned(), Speaker::Unknown)),
                "{start}"
            );
        }
        // A heading or a label of the answer does not end it, and a name does where nobody has a
        // role.
        let said = sentences(
            "User: hi\nAssistant: A plan.\n## Storage\nDatabase: We decided to use Redis.",
        );
        assert_eq!(said.last().map(|(_, who)| *who), Some(Speaker::Machine));
        let said = sentences("Assistant: A plan.\nJerry: I like tea.");
        assert_eq!(said.last().map(|(_, who)| *who), Some(Speaker::Unknown));
    }

    #[test]
    fn what_names_a_machine_without_speaking_is_no_turn() {
        for text in [
            "AI is what I work on.",
            "Assistant professors are paid badly.",
            "Claude - please always answer briefly.",
            "[bot] need to fix the login",
            "The assistant is slow.",
            "AI: agents, memory, retrieval",
            "GPT-4 was too expensive.",
            "output:json is what I use",
            "# Assistant professors\nI teach there.",
            "机器人学是我的专业",
        ] {
            assert!(sentences(text).iter().all(|(_, who)| *who == Speaker::Unknown), "{text}");
        }
    }
}
