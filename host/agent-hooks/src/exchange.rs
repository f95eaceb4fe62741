//! The exchange that an event is about: what was asked, and what the agent answered. Nothing is
//! paired that was not said one to the other.

use super::agent_tool::AgentTool;
use super::payload::{EventKind, SessionEvent};
use super::prompts::Prompts;
use super::transcript::{Found, Pair, Question, Steps};

/// What was asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Asked {
    /// A person said it.
    Words(String),
    /// Nobody asked: the tool began the turn itself.
    Nobody,
    /// Nothing says which question it was.
    Unknown,
}

/// A question and its answer.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Exchange {
    pub(super) asked: Asked,
    pub(super) answer: String,
}

/// The exchange of an event: from the event itself, from what was noted when the person asked, and
/// from the transcript. Each of them counts only for what it says of this very turn.
pub(super) fn of_event(
    tool: &dyn AgentTool,
    event: &SessionEvent,
    prompts: &Prompts<'_>,
) -> Option<Exchange> {
    let read = |pair: &dyn Fn(&Steps) -> Option<Pair>| {
        let found = Steps::ask(tool, event, |steps| match pair(steps) {
            Some((None, _)) if !steps.is_whole => None,
            other => Some(other),
        });
        // The question may be out of reach, and its answer is not.
        let (question, answer) = match found {
            Some(decided) => decided?,
            None => Steps::ask(tool, event, |steps| pair(steps))?,
        };
        Some(Exchange { asked: of_pair(question, &answer, event, prompts)?, answer })
    };
    match &event.kind {
        EventKind::TurnEnded { prompt: Some(prompt), answer, .. } => {
            let asked = match prompt.as_str() {
                "" => Asked::Nobody,
                words => Asked::Words(words.to_owned()),
            };
            Some(Exchange { asked, answer: answer.clone()? })
        }
        EventKind::TurnEnded { answer: Some(answer), .. } => Some(Exchange {
            asked: of_answer(tool, answer, event, prompts),
            answer: answer.clone(),
        }),
        EventKind::TurnEnded { .. } => read(&|steps| steps.last_pair(true)),
        EventKind::TurnBroken | EventKind::Compacting | EventKind::SessionEnded { .. } => {
            read(&|steps| steps.last_pair(false))
        }
        // No hook runs when a person interrupts Claude Code. The next prompt tells.
        EventKind::Prompted { .. } => read(&Steps::interrupted),
        _ => None,
    }
}

/// What was asked, for an answer that the event has.
fn of_answer(
    tool: &dyn AgentTool,
    answer: &str,
    event: &SessionEvent,
    prompts: &Prompts<'_>,
) -> Asked {
    let turn = event.turn.as_deref();
    if turn.is_some_and(|turn| prompts.has_another_answer(turn, answer)) {
        return Asked::Nobody;
    }
    let noted = turn.and_then(|turn| prompts.of_turn(turn));
    let found = Steps::ask(tool, event, |steps| match steps.question_of(answer, turn) {
        Found::Further if noted.is_none() => None,
        other => Some(other),
    });
    match (found, noted) {
        // The transcript has an equal answer of an earlier turn, and not this one yet.
        (Some(Found::Question(Question { turn: Some(other), .. })), Some(noted))
            if turn.is_some_and(|turn| turn != other) =>
        {
            said(noted)
        }
        (Some(Found::Question(question)), noted) => of_question(question, noted, prompts),
        (_, Some(noted)) => said(noted),
        // The tool has not written the answer into the transcript yet.
        (_, None) => {
            let only = turn.is_none().then(|| prompts.only(answer)).flatten();
            let open = || {
                let question = Steps::ask(tool, event, Steps::open_question)?;
                is_current(&question, turn, prompts).then_some(question.words)
            };
            only.or_else(open).map_or(Asked::Unknown, said)
        }
    }
}

/// What was asked, for a pair of the transcript; nothing if the pair is of another turn.
fn of_pair(
    question: Option<Question>,
    answer: &str,
    event: &SessionEvent,
    prompts: &Prompts<'_>,
) -> Option<Asked> {
    let turn = event.turn.as_deref();
    let noted = || turn.and_then(|turn| prompts.of_turn(turn));
    match question {
        Some(Question { turn: Some(other), .. })
            if event.kind == EventKind::TurnBroken && turn.is_some_and(|turn| turn != other) =>
        {
            None
        }
        Some(question) if question.turn.is_some() => Some(of_question(question, None, prompts)),
        // A prompt that is submitted has another turn than the one before.
        Some(question) if matches!(event.kind, EventKind::Prompted { .. }) => {
            Some(said(question.words))
        }
        Some(question) => Some(of_question(question, noted(), prompts)),
        None => {
            let only = || turn.is_none().then(|| prompts.only(answer)).flatten();
            Some(noted().or_else(only).map_or(Asked::Unknown, said))
        }
    }
}

/// What was asked with a question of the transcript. A person can add words during the turn: Codex
/// runs a hook, so they are noted; Claude Code runs none, so only the transcript has them.
fn of_question(question: Question, noted: Option<Option<String>>, prompts: &Prompts<'_>) -> Asked {
    let Some(words) = question.words else { return Asked::Nobody };
    let own = question.turn.as_deref().and_then(|turn| prompts.of_turn(turn));
    Asked::Words(match own.or(noted).flatten() {
        Some(noted) if !words.starts_with(&noted) => noted,
        _ => words,
    })
}

/// Whether the last question of a transcript can be that of the event: no other one was noted
/// since.
fn is_current(question: &Question, turn: Option<&str>, prompts: &Prompts<'_>) -> bool {
    match (turn, question.turn.as_deref()) {
        (Some(turn), Some(other)) => turn == other,
        // The question of a known turn would have been noted.
        (Some(_), None) => prompts.last().is_none(),
        (None, _) => prompts.last().is_none_or(|last| last == question.words),
    }
}

fn said(words: Option<String>) -> Asked {
    words.map_or(Asked::Nobody, Asked::Words)
}
