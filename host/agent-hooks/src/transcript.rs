//! A session's transcript: who said what, in order, and which question an answer is for. Only the
//! file that the tool names is read, no link is followed, and of a long one only the end.

use std::collections::HashSet;

use serde_json::Value;

use super::agent_tool::{AgentTool, CallEnd, Message};
use super::json;
use super::machine_text::{Author, Said};
use super::payload::SessionEvent;
use super::recall;
use super::transcript_file::{length, tail};

/// How much of the end of a transcript is read, in bytes.
const USUAL_READ: u64 = 512 << 10;
/// How much is read where the end of a tool call is further back.
const CALL_READ: u64 = 4 << 20;
/// How much is read where the beginning of the turn is further back.
const MAX_READ: u64 = 32 << 20;

/// What happened in a session, as far as it matters for who said what.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Somebody asked for something.
    Asked(Question),
    /// The agent said something. The parts of one message are one step.
    Answered {
        text: String,
        /// The id of the message.
        id: Option<String>,
        /// Whether the tool says that it was interrupted.
        is_partial: bool,
    },
    /// The person interrupted the agent.
    Interrupted,
    /// An error of the service ended the turn.
    Failed,
}

/// The beginning of a turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Question {
    /// What a person said. `None`: nobody asked; the tool itself did.
    pub(super) words: Option<String>,
    /// The tool's id of the turn.
    pub(super) turn: Option<String>,
}

/// A question with its answer. `None` for the question: it is not in what was read.
pub(super) type Pair = (Option<Question>, String);

/// What a transcript knows of the question of an answer.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Found {
    Question(Question),
    /// The answer is there, and its question further back.
    Further,
    /// The answer is not there, or not yet.
    Nothing,
}

/// The end of a transcript.
#[derive(Debug)]
pub(super) struct Steps {
    all: Vec<Step>,
    /// Whether nothing was left out before it.
    pub(super) is_whole: bool,
}

impl Steps {
    #[cfg(test)]
    fn of(tool: &str, text: &str) -> Self {
        let tool = crate::tools::find(tool).unwrap_or(crate::tools::TOOLS[0]);
        Self { all: steps(tool, text), is_whole: true }
    }

    /// Reads the transcript that an event names, and asks about it. While it has no answer, more is
    /// read.
    pub(super) fn ask<T>(
        tool: &dyn AgentTool,
        event: &SessionEvent,
        question: impl Fn(&Self) -> Option<T>,
    ) -> Option<T> {
        let path = event.transcript.as_deref()?;
        for max in [USUAL_READ, MAX_READ] {
            let (text, is_whole) = tail(path, max)?;
            let steps = Self { all: steps(tool, &text), is_whole };
            let found = question(&steps);
            if found.is_some() || is_whole {
                return found;
            }
        }
        None
    }

    /// The question of an answer.
    pub(super) fn question_of(&self, answer: &str, turn: Option<&str>) -> Found {
        let wanted = without_spaces(answer);
        let at = self.all.iter().rposition(
            |step| matches!(step, Step::Answered { text, .. } if without_spaces(text) == wanted),
        );
        let end = self.all.len();
        // The turn tells equal answers apart.
        let of_turn = |until: usize| self.last_question(until, |found| found.is_of(turn));
        let by_turn = turn.and_then(|_| of_turn(at.unwrap_or(end)).or_else(|| of_turn(end)));
        let by_place = || self.last_question(at?, |_| true);
        match (by_turn.or_else(by_place), at) {
            (Some(question), _) => Found::Question(question),
            (None, Some(_)) if !self.is_whole => Found::Further,
            (None, _) => Found::Nothing,
        }
    }

    /// What was said last, with its question. With `skips`, questions without an answer behind it
    /// do not count: the person has asked them meanwhile.
    pub(super) fn last_pair(&self, skips: bool) -> Option<Pair> {
        let at = self.all.iter().rposition(|step| matches!(step, Step::Answered { .. }))?;
        let is_open = self.all[at..].iter().any(|step| matches!(step, Step::Asked(_)));
        let Step::Answered { text, .. } = &self.all[at] else { return None };
        (skips || !is_open).then(|| (self.last_question(at, |_| true), text.clone()))
    }

    /// What the agent had said when it was interrupted, with its question, if that is how the turn
    /// before the last question ended, or the last turn itself.
    pub(super) fn interrupted(&self) -> Option<Pair> {
        let at = self.before_end(&Step::Interrupted)?;
        let Step::Answered { text, .. } = &self.all[at] else { return None };
        Some((self.last_question(at, |_| true), text.clone()))
    }

    /// What was asked before an error of the service came instead of an answer, if that is how the
    /// turn before the last question ended, or the last turn itself.
    pub(super) fn failed(&self) -> Option<Question> {
        match &self.all[self.before_end(&Step::Failed)?] {
            Step::Asked(question) => Some(question.clone()),
            _ => None,
        }
    }

    /// The place of the step before the last end of this kind, if it ended the turn before the last
    /// question, or the last turn itself.
    fn before_end(&self, end: &Step) -> Option<usize> {
        let at = self.all.iter().rposition(|step| step == end)?;
        let later = self.all[at..].iter().filter(|step| matches!(step, Step::Asked(_))).count();
        at.checked_sub(1).filter(|_| later <= 1)
    }

    /// The last question, if it can only be that of an answer that is not in the transcript yet:
    /// the one before has an answer.
    pub(super) fn open_question(&self) -> Option<Question> {
        let mut back = self.all.iter().rev();
        let last = back.find_map(|step| match step {
            Step::Asked(question) => Some(question.clone()),
            _ => None,
        })?;
        let is_clear = match back.next() {
            Some(Step::Answered { .. } | Step::Interrupted | Step::Failed) => true,
            Some(Step::Asked(_)) => false,
            None => self.is_whole,
        };
        is_clear.then_some(last)
    }

    fn last_question(&self, until: usize, is_it: impl Fn(&Question) -> bool) -> Option<Question> {
        self.all[..until].iter().rev().find_map(|step| match step {
            Step::Asked(question) if is_it(question) => Some(question.clone()),
            _ => None,
        })
    }
}

impl Question {
    fn is_of(&self, turn: Option<&str>) -> bool {
        self.turn.is_some() && self.turn.as_deref() == turn
    }
}

/// The length of the transcript, in bytes, as a text. It tells one moment of a session from
/// another, so that two equal prompts are two events.
pub(super) fn moment_of(event: &SessionEvent) -> String {
    event.transcript.as_deref().map_or(0, length).to_string()
}

/// How a tool call ended, by the end of the transcript.
pub(super) fn call_end(tool: &dyn AgentTool, event: &SessionEvent, id: &str) -> Option<CallEnd> {
    // What a call printed is in the line of its end, which can be long.
    [USUAL_READ, CALL_READ].into_iter().find_map(|max| {
        let (text, _) = tail(event.transcript.as_deref()?, max)?;
        // Lines of other calls are not parsed.
        let lines = text.lines().rev().filter(|line| line.contains(id));
        let mut lines = lines.filter_map(|line| json::parse::<Value>(line.as_bytes()).ok());
        lines.find_map(|line| tool.call_end(&line, id))
    })
}

/// What happened in these lines.
pub(super) fn steps(tool: &dyn AgentTool, text: &str) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    let mut dialogs = HashSet::new();
    for line in text.lines() {
        // A line that holds no message is not parsed: it can have megabytes.
        let may_be = ["\"user\"", "\"assistant\"", "\"queued_command\"", "\"task_complete\""];
        let may_be = may_be.into_iter().any(|kind| line.contains(kind));
        let Some(line) = may_be.then(|| json::parse::<Value>(line.as_bytes()).ok()).flatten()
        else {
            continue;
        };
        if let Some(content) = tool.added(&line) {
            add(tool, content, &mut steps);
            continue;
        }
        dialogs.extend(tool.dialogs(&line));
        // Another tool's result can look like an answer.
        if let Some((_, said)) = tool.dialog_words(&line).filter(|(id, _)| dialogs.contains(id)) {
            add_words(&mut steps, &said);
            continue;
        }
        if tool.is_failure(&line) {
            steps.push(Step::Failed);
            continue;
        }
        let Some(message) = tool.message(&line) else { continue };
        match (step(tool, &message), steps.last_mut()) {
            (
                Some(Step::Answered { text: more, id: Some(id), .. }),
                Some(Step::Answered { text, id: Some(same), .. }),
            ) if id == *same => {
                text.push('\n');
                text.push_str(&more);
            }
            // What was typed meanwhile is asked together.
            (
                Some(Step::Asked(Question { words: Some(more), turn: Some(turn) })),
                Some(Step::Asked(Question { words: Some(words), turn: Some(same) })),
            ) if turn == *same => {
                words.push('\n');
                words.push_str(&more);
            }
            (Some(step), _) => steps.push(step),
            (None, _) => {}
        }
    }
    // Claude Code writes other things in the same way, such as `No response requested.`
    let next = steps.iter().skip(1).map(|next| *next == Step::Interrupted);
    let mut was_interrupted = next.chain([false]).collect::<Vec<bool>>().into_iter();
    steps.retain(|step| {
        let is_partial = matches!(step, Step::Answered { is_partial: true, .. });
        was_interrupted.next() == Some(true) || !is_partial
    });
    steps
}

/// Adds what the person said during a turn to the turn's question.
fn add(tool: &dyn AgentTool, content: &Value, steps: &mut [Step]) {
    let message = Message {
        role: "user",
        content,
        id: None,
        turn: None,
        author: Author::Unknown,
        is_partial: false,
        kinds: None,
    };
    let Some(Step::Asked(Question { words: Some(more), .. })) = step(tool, &message) else {
        return;
    };
    add_words(steps, &more);
}

fn add_words(steps: &mut [Step], more: &str) {
    let question = steps.iter_mut().rev().find_map(|step| match step {
        Step::Asked(question) => Some(question),
        _ => None,
    });
    if let Some(Question { words: Some(words), .. }) = question {
        words.push('\n');
        words.push_str(more);
    }
}

/// What a message is; nothing for tool calls, thoughts and what belongs to a turn without beginning
/// it.
fn step(tool: &dyn AgentTool, message: &Message<'_>) -> Option<Step> {
    let texts = texts_of(message)?;
    let turn = message.turn.map(str::to_owned);
    match message.role {
        "assistant" => {
            let all: Vec<&str> = texts.into_iter().map(|(text, _)| text).collect();
            let text = recall::without(&all.join("\n")).trim().to_owned();
            let id = message.id.map(str::to_owned);
            let is_partial = message.is_partial;
            (!text.is_empty()).then_some(Step::Answered { text, id, is_partial })
        }
        "user" if message.author == Author::Tool || texts.is_empty() && is_shown(message) => {
            Some(Step::Asked(Question { words: None, turn }))
        }
        "user" if texts.is_empty() => None,
        "user" => {
            // A tool puts what it adds into parts of their own, or before the words.
            let (mut words, mut said) = (Vec::new(), Said::Nothing);
            for (text, kind) in texts {
                if !tool.machine_text().is_person(kind) {
                    continue;
                }
                match tool.machine_text().read(&recall::without(text), message.author) {
                    Said::Person(text) => words.push(text),
                    Said::Nothing => {}
                    other => said = other,
                }
            }
            match (words.is_empty(), said) {
                (false, _) => Some(Step::Asked(Question { words: Some(words.join("\n")), turn })),
                (true, Said::Tool) => Some(Step::Asked(Question { words: None, turn })),
                (true, Said::Interrupt) => Some(Step::Interrupted),
                (true, _) if is_shown(message) => Some(Step::Asked(Question { words: None, turn })),
                (true, Said::Person(_) | Said::Nothing) => None,
            }
        }
        _ => None,
    }
}

/// Whether somebody shows the agent something, such as an image. The result of a tool call is not
/// shown by anybody.
fn is_shown(message: &Message<'_>) -> bool {
    let kinds = message.content.as_array().into_iter().flatten();
    let mut kinds = kinds.filter_map(|part| part.get("type")?.as_str());
    kinds.any(|kind| matches!(kind, "image" | "input_image" | "document"))
}

/// The texts of a message, each with who it is from, if the tool says so.
fn texts_of<'a>(message: &Message<'a>) -> Option<Vec<(&'a str, Option<&'a str>)>> {
    Some(match message.content {
        Value::String(text) => vec![(text, None)],
        Value::Array(parts) => {
            let is_text = |part: &Value| {
                let kind = part.get("type").and_then(Value::as_str).unwrap_or_default();
                matches!(kind, "text" | "input_text" | "output_text")
            };
            let kind = |at: usize| message.kinds?.get(at)?.as_str();
            let texts = parts.iter().enumerate().filter(|(_, part)| is_text(part));
            texts.filter_map(|(at, part)| Some((part.get("text")?.as_str()?, kind(at)))).collect()
        }
        _ => return None,
    })
}

/// A text by its letters: a hook and a transcript put parts together in different ways.
fn without_spaces(text: &str) -> String {
    text.chars().filter(|c| !c.is_whitespace()).collect()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::tools::find;

    const CLAUDE: &str = r#"
            {"type":"user","message":{"role":"user","content":"an older question"}}
            {"type":"assistant","message":{"content":[{"type":"text","text":"an older answer"}]}}
            {"type":"user","promptId":"p2","message":{"role":"user","content":"why is it slow?"}}
            {"type":"user","isMeta":true,"message":{"role":"user","content":"Caveat"}}
            {"type":"assistant","message":{"content":[{"type":"thinking","thinking":"hm"}]}}
            {"type":"assistant","message":{"content":[{"type":"text","text":"I look."},{"type":"tool_use","name":"Bash"}]}}
            {"type":"user","promptId":"p2","message":{"role":"user","content":[{"type":"tool_result","content":"12 s"}]}}
            {"type":"assistant","isSidechain":true,"message":{"content":[{"type":"text","text":"of a subagent"}]}}
            {"type":"assistant","message":{"id":"m","content":[{"type":"text","text":"The index"}]}}
            {"type":"assistant","message":{"id":"m","content":[{"type":"text","text":"was missing."}]}}
            {"type":"assistant","isApiErrorMessage":true,"message":{"content":[{"type":"text","text":"API Error: 529"}]}}
            {"type":"assistant","message":{"model":"<synthetic>","content":[{"type":"text","text":"No response requested."}]}}
            not JSON at all"#;

    fn found(words: Option<&str>, turn: Option<&str>) -> Found {
        Found::Question(Question { words: words.map(str::to_owned), turn: turn.map(str::to_owned) })
    }

    #[test]
    fn what_a_person_answers_in_a_dialog_belongs_to_the_question() {
        let dialog = |name: &str| {
            let line = [
                r#"{"type":"user","promptId":"p","message":{"role":"user","content":"Plan it"}}"#,
                &r#"{"type":"assistant","message":{"content":[{"type":"tool_use","id":"t","name":"NAME"}]}}"#
                    .replace("NAME", name),
                r#"{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"t","content":"Your questions"}]},"toolUseResult":{"answers":{"Which database?":"MariaDB"}}}"#,
                r#"{"type":"assistant","message":{"content":[{"type":"text","text":"Planned."}]}}"#,
            ];
            Steps::of("claude", &line.join("\n")).question_of("Planned.", Some("p"))
        };
        let said = found(Some("Plan it\nWhich database? MariaDB"), Some("p"));
        assert_eq!(dialog("AskUserQuestion"), said);
        assert_eq!(dialog("mcp__other__ask"), found(Some("Plan it"), Some("p")));
    }

    #[test]
    fn what_a_person_adds_during_a_turn_belongs_to_its_question() {
        let queued = |kind: &str, text: &str| {
            format!(
                r#"{{"type":"attachment","attachment":{{"type":"queued_command","prompt":"{text}","origin":{{"kind":"{kind}"}}}}}}"#
            )
        };
        let text = [
            r#"{"type":"user","promptId":"p","message":{"role":"user","content":"rename foo"}}"#,
            &queued("task-notification", "of the tool"),
            &queued("human", "and bar"),
            r#"{"type":"assistant","message":{"content":[{"type":"text","text":"Both."}]}}"#,
        ];
        let steps = Steps::of("claude", &text.join("\n"));
        let both = found(Some("rename foo\nand bar"), Some("p"));
        assert_eq!(steps.question_of("Both.", Some("p")), both);
    }

    #[test]
    fn an_answer_has_the_question_of_its_own_turn() {
        let steps = Steps::of("claude", CLAUDE);
        let why = || found(Some("why is it slow?"), Some("p2"));
        assert_eq!(steps.question_of("The index\n\nwas missing.", None), why());
        assert_eq!(
            steps.question_of("an older answer", None),
            found(Some("an older question"), None)
        );
        assert_eq!(steps.question_of("not written yet", None), Found::Nothing);
        assert_eq!(steps.question_of("not written yet", Some("p2")), why());
        assert_eq!(steps.question_of("not written yet", Some("p3")), Found::Nothing);
        let pair = steps.last_pair(false).unwrap();
        assert_eq!(pair.1, "The index\nwas missing.");
        assert_eq!(pair.0.unwrap().words.as_deref(), Some("why is it slow?"));
        let codex = Steps::of(
            "codex",
            r#"
            {"type":"session_meta","payload":{"id":"s"}}
            {"type":"response_item","payload":{"type":"message","role":"developer","content":[{"type":"input_text","text":"rules"}]}}
            {"type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"<environment_context>x</environment_context>"}]}}
            {"type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"list"},{"type":"input_text","text":"rename foo"}],"internal_chat_message_metadata_passthrough":{"turn_id":"t1","content_item_kinds":["skills.list","user.text"]}}}
            {"type":"response_item","payload":{"type":"function_call","name":"shell"}}
            {"type":"response_item","payload":{"type":"message","role":"assistant","content":[{"type":"output_text","text":"Renamed."}]}}"#,
        );
        assert_eq!(codex.question_of("Renamed.", None), found(Some("rename foo"), Some("t1")));
    }

    #[test]
    fn equal_answers_are_told_apart_by_their_turns() {
        let steps = Steps::of(
            "claude",
            r#"
            {"type":"user","promptId":"p1","message":{"content":"one"}}
            {"type":"assistant","message":{"content":[{"type":"text","text":"Done."}]}}
            {"type":"user","promptId":"p2","message":{"content":"two"}}
            {"type":"assistant","message":{"content":[{"type":"text","text":"Done."}]}}"#,
        );
        assert_eq!(steps.question_of("Done.", Some("p1")), found(Some("one"), Some("p1")));
        assert_eq!(steps.question_of("Done.", Some("p2")), found(Some("two"), Some("p2")));
        assert_eq!(steps.question_of("Done.", None), found(Some("two"), Some("p2")));
    }

    #[test]
    fn what_no_person_said_is_no_question() {
        for (line, words) in [
            (
                r#"{"type":"user","origin":{"kind":"task-notification"},"message":{"content":"see /x"}}"#,
                None,
            ),
            (
                r#"{"type":"user","isMeta":true,"origin":{"kind":"channel"},"message":{"content":"ping"}}"#,
                None,
            ),
            (
                r#"{"type":"user","message":{"content":"<task-notification>x</task-notification>"}}"#,
                None,
            ),
            (
                r#"{"type":"user","origin":{"kind":"human"},"message":{"content":"mine"}}"#,
                Some("mine"),
            ),
            (
                r#"{"type":"user","message":{"content":"<command-name>/rev</command-name><command-args>a b</command-args>"}}"#,
                Some("/rev a b"),
            ),
            (
                r#"{"type":"user","message":{"content":[{"type":"text","text":"<ide_opened_file>x</ide_opened_file>"},{"type":"text","text":"explain"}]}}"#,
                Some("explain"),
            ),
        ] {
            let text =
                format!("{}\n{line}\n{}", says("user", "before"), says("assistant", "Good."));
            assert_eq!(
                Steps::of("claude", &text).question_of("Good.", None),
                found(words, None),
                "{line}"
            );
        }
    }

    fn says(role: &str, text: &str) -> String {
        serde_json::json!({"type": role, "message": {"content": [{"type": "text", "text": text}]}})
            .to_string()
    }

    #[test]
    fn an_interrupted_turn_has_said_what_stands_before_the_mark() {
        let mark = says("user", "[Request interrupted by user for tool use]");
        let lines = |lines: &[String]| Steps::of("claude", &lines.join("\n"));
        let (ask, part) = (says("user", "do it"), says("assistant", "Half."));
        let is_half = |steps: &Steps| {
            let (question, text) = steps.interrupted()?;
            Some(text == "Half." && question?.words? == "do it")
        };
        assert_eq!(is_half(&lines(&[ask.clone(), part.clone(), mark.clone()])), Some(true));
        let next = says("user", "no, this");
        let then = [ask.clone(), part.clone(), mark.clone(), next.clone()];
        assert_eq!(is_half(&lines(&then)), Some(true));
        assert_eq!(is_half(&lines(&[ask.clone(), part, next])), None, "it ended by itself");
        assert_eq!(is_half(&lines(&[ask, mark])), None, "it had said nothing");
    }

    #[test]
    fn a_question_without_an_answer_is_open_if_the_one_before_has_one() {
        let open = |lines: &[String]| {
            Steps::of("claude", &lines.join("\n")).open_question().and_then(|found| found.words)
        };
        let (one, two) = (says("user", "one"), says("user", "two"));
        assert_eq!(open(std::slice::from_ref(&one)).as_deref(), Some("one"));
        assert_eq!(
            open(&[one.clone(), says("assistant", "1"), two.clone()]).as_deref(),
            Some("two")
        );
        assert_eq!(open(&[one, two]), None);
        assert_eq!(open(&[]), None);
    }

    fn event(path: &Path) -> SessionEvent {
        let payload = serde_json::json!({
            "session_id": "s", "transcript_path": path, "hook_event_name": "Stop",
        });
        find("claude").unwrap().parse(&payload).unwrap()
    }

    #[test]
    fn only_the_file_that_was_named_is_read() {
        let tool = find("claude").unwrap();
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("t.jsonl");
        let text = format!("{}\n{}", says("user", "here"), says("assistant", "Good \u{1f600}."));
        std::fs::write(&file, &text).unwrap();
        let read = |path: &Path| {
            Steps::ask(tool, &event(path), |steps| steps.last_pair(false)).map(|pair| pair.1)
        };
        assert_eq!(read(&file).as_deref(), Some("Good \u{1f600}."));
        assert_eq!(length(&file), text.len() as u64);
        let link = directory.path().join("link.jsonl");
        std::os::unix::fs::symlink(&file, &link).unwrap();
        assert_eq!(read(&link), None);
        assert_eq!(read(directory.path()), None);
        assert_eq!(read(Path::new("t.jsonl")), None);
        // Half a character in a line does not make the line unreadable.
        std::fs::write(&file, text.replace('\u{1f600}', "\\ud83d")).unwrap();
        assert_eq!(read(&file).as_deref(), Some("Good \u{fffd}."));
    }

    #[test]
    fn the_question_of_a_long_turn_is_found_however_far_back_it_is() {
        let tool = find("claude").unwrap();
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("t.jsonl");
        let ask = |text: &str| {
            std::fs::write(&file, text).unwrap();
            Steps::ask(tool, &event(&file), |steps| match steps.question_of("Good.", None) {
                Found::Further => None,
                other => Some(other),
            })
        };
        let (before, after) = (says("user", "why?"), says("assistant", "Good."));
        let filler =
            |size: usize| format!("{{\"type\":\"user\",\"x\":\"{}\"}}\n", "x".repeat(size));
        let of = |filler: &str| format!("{before}\n{filler}{after}\n");
        assert_eq!(ask(&of(&filler(56 << 10).repeat(10))), Some(found(Some("why?"), None)));
        assert_eq!(ask(&of(&filler(5 << 20))), Some(found(Some("why?"), None)), "one long line");
        assert_eq!(ask(&of(&filler(33 << 20))), None, "the question is not known then");
    }
}
