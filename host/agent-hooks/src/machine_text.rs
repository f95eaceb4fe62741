//! Text that a program put into a person's message, or in its place. Each tool has one table of its
//! marks; memory keeps the person's words without them.

/// Who wrote a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Author {
    Person,
    Tool,
    /// Only the text can tell.
    Unknown,
}

/// What a tool's table says of its messages.
#[derive(Debug)]
pub(crate) struct MachineText {
    /// The origins of messages that people wrote, where the tool names an origin. A message of
    /// another one is the tool's.
    pub(crate) people: &'static [&'static str],
    pub(crate) marks: &'static [Mark],
}

/// How a piece of such a text begins and ends.
#[derive(Debug)]
pub(crate) struct Mark {
    pub(crate) open: &'static str,
    pub(crate) close: &'static str,
    pub(crate) what: What,
    /// The version of the tool in which it was seen, for those who look whether it still is so.
    #[allow(dead_code, reason = "it is for readers of the table")]
    pub(crate) seen: &'static str,
}

/// What stands between the marks, and what is done with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum What {
    /// Something beside the person's words: it is cut off before and behind them.
    Beside,
    /// Something in front of the person's words, which begin behind `close`.
    Before,
    /// The person's words: only the marks go.
    Around,
    /// A message of the tool as a whole. The agent answers it, and no person asked.
    Message,
    /// A command that the person typed, in parts.
    Command,
    /// A sign that the person ended the turn.
    Interrupt,
}

/// A message of the role `user`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Said {
    /// What a person said, without the tool's additions.
    Person(String),
    /// The tool asked for something by itself.
    Tool,
    /// The turn was interrupted.
    Interrupt,
    /// Nothing that begins a turn.
    Nothing,
}

/// A mark for an element `<name …>…</name>`.
macro_rules! element {
    ($name:literal, $what:ident, $seen:literal) => {
        Mark {
            open: concat!("<", $name),
            close: concat!("</", $name, ">"),
            what: What::$what,
            seen: $seen,
        }
    };
}
pub(crate) use element;

impl MachineText {
    /// Whether a message of this origin is a person's.
    pub(crate) fn is_person(&self, origin: Option<&str>) -> bool {
        origin.is_none_or(|origin| self.people.contains(&origin))
    }

    /// Reads the text of a message. A person can begin one with what would mark it as the tool's.
    pub(crate) fn read(&self, text: &str, author: Author) -> Said {
        let mut rest = text.trim();
        let mut was_interrupted = false;
        let counts = |mark: &&Mark| {
            let is_beside = matches!(mark.what, What::Beside | What::Before | What::Around);
            author != Author::Person || is_beside
        };
        while let Some(mark) = self.marks.iter().filter(counts).find(|mark| mark.begins(rest)) {
            match mark.what {
                What::Message => return Said::Tool,
                What::Command => return command(rest),
                What::Interrupt => was_interrupted = true,
                What::Before if !rest.contains(mark.close) => break,
                What::Around => {
                    let Some(words) = mark.inner(rest) else { break };
                    rest = words;
                    continue;
                }
                What::Before | What::Beside => {}
            }
            // What has no end goes on to the end of the message.
            rest = rest.split_once(mark.close).map_or("", |(_, rest)| rest).trim_start();
        }
        while let Some(before) = self.marks.iter().find_map(|mark| mark.before_last(rest)) {
            rest = before;
        }
        match rest {
            "" if was_interrupted => Said::Interrupt,
            "" => Said::Nothing,
            words => Said::Person(words.to_owned()),
        }
    }

    /// A person's words in a text that may have marks.
    pub(crate) fn words(&self, text: &str) -> Option<String> {
        match self.read(text, Author::Unknown) {
            Said::Person(words) => Some(words),
            Said::Tool | Said::Interrupt | Said::Nothing => None,
        }
    }
}

impl Mark {
    /// Whether a text begins with it. `<skill>` is no `<skills>`.
    fn begins(&self, text: &str) -> bool {
        text.strip_prefix(self.open).is_some_and(|rest| {
            let is_name = self.open.starts_with('<') && !self.open.ends_with(['>', '-']);
            !is_name || rest.starts_with(|c: char| c == '>' || c == '/' || c.is_whitespace())
        })
    }

    /// What is between the marks, where they are around the whole text.
    fn inner<'a>(&self, text: &'a str) -> Option<&'a str> {
        let (_, rest) = text.strip_suffix(self.close)?.split_once('>')?;
        Some(rest.trim())
    }

    /// The text before a piece that stands behind all else, on lines of its own. A person can write
    /// about a mark within a sentence.
    fn before_last<'a>(&self, text: &'a str) -> Option<&'a str> {
        if self.what != What::Beside || self.close.is_empty() || !text.ends_with(self.close) {
            return None;
        }
        let at = text.rfind(&format!("\n{}", self.open))?;
        self.begins(&text[at + 1..]).then(|| text[..at].trim_end())
    }
}

/// A command as the person typed it. Claude Code writes its name and its arguments apart.
fn command(text: &str) -> Said {
    let part = |name: &str| {
        let (_, rest) = text.split_once(&format!("<{name}>"))?;
        rest.split_once(&format!("</{name}>")).map(|(part, _)| part.trim())
    };
    let Some(name) = part("command-name").filter(|name| !name.is_empty()) else {
        return Said::Nothing;
    };
    let slash = if name.starts_with('/') { "" } else { "/" };
    let arguments = part("command-args").unwrap_or_default();
    Said::Person(format!("{slash}{name} {arguments}").trim_end().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tools::find;

    fn read(tool: &str, text: &str) -> Said {
        find(tool).unwrap().machine_text().read(text, Author::Unknown)
    }

    fn person(words: &str) -> Said {
        Said::Person(words.to_owned())
    }

    #[test]
    fn a_persons_words_are_kept_without_what_claude_code_adds() {
        for (text, said) in [
            ("  explain this ", person("explain this")),
            (
                "<ide_opened_file>The user opened /a/b.md</ide_opened_file>\nexplain",
                person("explain"),
            ),
            (
                "<ide_selection>a\nb</ide_selection>\n<ide_opened_file>x</ide_opened_file> why?",
                person("why?"),
            ),
            ("why?\n<system-reminder>\nBe nice.\n</system-reminder>\n", person("why?")),
            ("<local-command-stdout>ok</local-command-stdout>", Said::Nothing),
            ("<bash-stdout>a</bash-stdout><bash-stderr></bash-stderr>", Said::Nothing),
            ("<local-command-caveat>Caveat: …</local-command-caveat>\nnow go", person("now go")),
            ("<system-reminder>never closed", Said::Nothing),
            ("[Request interrupted by user]", Said::Interrupt),
            ("[Request interrupted by user for tool use]", Said::Interrupt),
            ("[Request interrupted by user]\nno, the other one", person("no, the other one")),
            ("<task-notification>\n<status>x</status>\n</task-notification>\nRead /x", Said::Tool),
            ("<teammate-message teammate_id=\"a\">hello</teammate-message>", Said::Tool),
            (
                "<command-message>rev</command-message>\n<command-name>/rev</command-name>\n\
                 <command-args>main.rs --all</command-args>",
                person("/rev main.rs --all"),
            ),
            ("<command-name>clear</command-name><command-args></command-args>", person("/clear")),
            ("<command-contents>x</command-contents>", Said::Nothing),
            // What a person writes about marks stays.
            (
                "why does <system-reminder>x</system-reminder> appear?",
                person("why does <system-reminder>x</system-reminder> appear?"),
            ),
            ("<system-reminders> are odd", person("<system-reminders> are odd")),
            ("<div> is what?", person("<div> is what?")),
            ("", Said::Nothing),
        ] {
            assert_eq!(read("claude", text), said, "{text}");
        }
    }

    #[test]
    fn what_a_person_typed_is_theirs_however_it_begins() {
        let text = "<channel> tags: how do I escape them?";
        let table = find("claude").unwrap().machine_text();
        assert_eq!(table.read(text, Author::Unknown), Said::Tool);
        assert_eq!(table.read(text, Author::Person), person(text));
    }

    #[test]
    fn a_persons_words_are_kept_without_what_codex_adds() {
        for (text, said) in [
            ("<environment_context>\n<cwd>/x</cwd>\n</environment_context>", Said::Nothing),
            (
                "# AGENTS.md instructions for /x\n<INSTRUCTIONS>\nTabs.\n</INSTRUCTIONS>\n\
                 rename foo",
                person("rename foo"),
            ),
            (
                "# Context from my IDE setup:\n\n- a.rs\n\n## My request for Codex:\nrename foo\n",
                person("rename foo"),
            ),
            (
                "# Context from my IDE setup: how do I give it?",
                person("# Context from my IDE setup: how do I give it?"),
            ),
            ("<turn_aborted>\nThe user interrupted …\n</turn_aborted>", Said::Interrupt),
            ("<user_shell_command>\n<command>ls</command>\n</user_shell_command>", Said::Nothing),
            ("<subagent_notification>{}</subagent_notification>", Said::Tool),
            ("<skills_are> what?", person("<skills_are> what?")),
        ] {
            assert_eq!(read("codex", text), said, "{text}");
        }
    }

    #[test]
    fn every_mark_says_where_it_was_seen() {
        for tool in crate::tools::TOOLS {
            for mark in tool.machine_text().marks {
                assert!(!mark.open.is_empty() && mark.seen.contains('.'), "{mark:?}");
                let needs_end = !matches!(mark.what, What::Message | What::Command);
                assert!(!needs_end || !mark.close.is_empty(), "{mark:?}");
            }
        }
    }
}
