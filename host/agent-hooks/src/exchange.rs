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
    /// Empty if an error came instead of an answer.
    pub(super) answer: String,
    /// The tool's id of the turn, if it is known. It tells an exchange from an equal one later.
    pub(super) turn: Option<String>,
}

impl Exchange {
    /// What a person said before an error. It has no turn: whoever tries again in another one says
    /// nothing new.
    fn unanswered(words: String) -> Self {
        Self { asked: Asked::Words(words), answer: String::new(), turn: None }
    }
}

/// The exchanges of an event, in order: from the event itself, from what was noted when the person
/// asked, and from the transcript. Each of them counts only for what it says of this very turn.
pub(super) fn of_event(
    tool: &dyn AgentTool,
    event: &SessionEvent,
    prompts: &Prompts<'_>,
) -> Vec<Exchange> {
    // No hook runs when a person interrupts Claude Code. The next prompt tells, or its answer where
    // the transcript was not written yet.
    let interrupted = match &event.kind {
        EventKind::Prompted { .. }
        | EventKind::TurnEnded { prompt: None, .. }
        | EventKind::SessionEnded { .. } => read(tool, event, prompts, &Steps::interrupted),
        _ => None,
    };
    let failed = match &event.kind {
        EventKind::Prompted { .. } | EventKind::SessionEnded { .. } => {
            Steps::ask(tool, event, Steps::failed).and_then(|question| question.words)
        }
        _ => None,
    };
    let before = interrupted.into_iter().chain(failed.map(Exchange::unanswered));
    let mut all: Vec<Exchange> = before.collect();
    let own = of_its_turn(tool, event, prompts);
    all.extend(own.filter(|own| !all.contains(own)));
    all
}

/// The exchange of a pair of the transcript.
fn read(
    tool: &dyn AgentTool,
    event: &SessionEvent,
    prompts: &Prompts<'_>,
    pair: &dyn Fn(&Steps) -> Option<Pair>,
) -> Option<Exchange> {
    let found = Steps::ask(tool, event, |steps| match pair(steps) {
        Some((None, _)) if !steps.is_whole => None,
        other => Some(other),
    });
    // The question may be out of reach, and its answer is not.
    let (question, answer) = match found {
        Some(decided) => decided?,
        None => Steps::ask(tool, event, |steps| pair(steps))?,
    };
    let (asked, turn) = of_pair(question, &answer, event, prompts)?;
    Some(Exchange { asked, answer, turn })
}

fn of_its_turn(
    tool: &dyn AgentTool,
    event: &SessionEvent,
    prompts: &Prompts<'_>,
) -> Option<Exchange> {
    let turn = event.turn.clone();
    let read = |pair: &dyn Fn(&Steps) -> Option<Pair>| read(tool, event, prompts, pair);
    match &event.kind {
        EventKind::TurnEnded { prompt: Some(prompt), answer, .. } => {
            let asked = match prompt.as_str() {
                "" => Asked::Nobody,
                words => Asked::Words(words.to_owned()),
            };
            Some(Exchange { asked, answer: answer.clone()?, turn })
        }
        EventKind::TurnEnded { answer: Some(answer), .. } => {
            let asked = of_answer(tool, answer, event, prompts);
            Some(Exchange { asked, answer: answer.clone(), turn })
        }
        EventKind::TurnEnded { .. } => read(&|steps| steps.last_pair(true)),
        EventKind::TurnBroken { has_failed } => read(&|steps| steps.last_pair(false))
            .or_else(|| has_failed.then(|| of_failed_turn(tool, event, prompts))?),
        EventKind::Compacting | EventKind::SessionEnded { .. } => {
            read(&|steps| steps.last_pair(false))
        }
        // The program was killed in the turn.
        EventKind::SessionStarted { source, .. } if source == "resume" => {
            read(&|steps| steps.last_pair(false)).filter(|exchange| {
                exchange.turn.as_deref().is_some_and(|turn| prompts.waits_for_answer(turn))
            })
        }
        _ => None,
    }
}

/// What a person said in a turn that an error of the service ended. The person may never say it
/// again.
fn of_failed_turn(
    tool: &dyn AgentTool,
    event: &SessionEvent,
    prompts: &Prompts<'_>,
) -> Option<Exchange> {
    let turn = event.turn.as_deref();
    let open = || {
        let question = Steps::ask(tool, event, Steps::open_question)?;
        is_current(&question, turn, prompts).then_some(question.words)
    };
    let words = turn.and_then(|turn| prompts.of_turn(turn)).or_else(open)??;
    Some(Exchange::unanswered(words))
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
        Found::Further if noted.clone().flatten().is_none() => None,
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

/// What was asked, for a pair of the transcript, and in which turn; nothing if the pair is of
/// another turn.
fn of_pair(
    question: Option<Question>,
    answer: &str,
    event: &SessionEvent,
    prompts: &Prompts<'_>,
) -> Option<(Asked, Option<String>)> {
    let turn = event.turn.as_deref();
    let noted = || turn.and_then(|turn| prompts.of_turn(turn));
    let Some(question) = question else {
        let only = || turn.is_none().then(|| prompts.only(answer)).flatten();
        let asked = noted().or_else(only).map_or(Asked::Unknown, said);
        return Some((asked, event.turn.clone()));
    };
    let is_other = turn.is_some() && question.turn.is_some() && question.turn.as_deref() != turn;
    if is_other && matches!(event.kind, EventKind::TurnBroken { .. }) {
        return None;
    }
    // The turn of a prompt or of the end of a session is not that of the pair before it.
    let ends_turn =
        matches!(event.kind, EventKind::TurnBroken { .. } | EventKind::TurnEnded { .. });
    let own = question
        .turn
        .clone()
        .or_else(|| prompts.turn_of(question.words.as_deref()?))
        .or_else(|| event.turn.clone().filter(|_| ends_turn));
    if own.as_deref().is_some_and(|own| prompts.has_another_answer(own, answer)) {
        return Some((Asked::Nobody, own));
    }
    let asked = match question.turn {
        None if matches!(event.kind, EventKind::Prompted { .. }) => said(question.words),
        None => of_question(question, noted(), prompts),
        Some(_) => of_question(question, None, prompts),
    };
    Some((asked, own))
}

/// What was asked with a question of the transcript. A person can add words during the turn: Codex
/// runs a hook, so they are noted; Claude Code runs none, so only the transcript has them.
fn of_question(question: Question, noted: Option<Option<String>>, prompts: &Prompts<'_>) -> Asked {
    let Some(words) = question.words else { return Asked::Nobody };
    let own = question.turn.as_deref().and_then(|turn| prompts.of_turn(turn));
    Asked::Words(match own.or(noted).flatten() {
        Some(noted) if !words.contains(&noted) => noted,
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
