//! What was said, as the payload of an event: at most 100 messages of at most 100,000 characters.

use memhost_sdk::types::{SourcePayload, Turn};
use serde_json::{Value, json};

/// The most messages of one event, and the longest one, in characters.
const MESSAGES: usize = 100;
const LONGEST: usize = 100_000;

/// A message for each turn, and more for a long one. If there are more than an event takes, the
/// first turns become one text that says who said what, so that nothing is left out.
pub(crate) fn messages(turns: &[Turn]) -> Vec<Value> {
    let all: Vec<Value> = turns.iter().flat_map(message).collect();
    if all.len() <= MESSAGES {
        return all;
    }
    // A capture has at most 1 MiB, so the other half is enough for the beginning.
    let (first, last) = turns.split_at(turns.len().saturating_sub(MESSAGES / 2));
    let first = SourcePayload { turns: first.to_vec(), ..SourcePayload::default() }
        .text_or_turns()
        .unwrap_or_default();
    pieces(&first)
        .map(|text| conversational("OTHER", &text))
        .chain(last.iter().flat_map(message))
        .collect()
}

fn message(turn: &Turn) -> Vec<Value> {
    let role = match turn.role.as_str() {
        "user" => "USER",
        "assistant" => "ASSISTANT",
        "tool" => "TOOL",
        _ => "OTHER",
    };
    pieces(&turn.text).map(|text| conversational(role, &text)).collect()
}

fn conversational(role: &str, text: &str) -> Value {
    json!({"conversational": {"content": {"text": text}, "role": role}})
}

fn pieces(text: &str) -> impl Iterator<Item = String> {
    let mut rest = text.chars().peekable();
    std::iter::from_fn(move || rest.peek().is_some().then(|| rest.by_ref().take(LONGEST).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn turn(role: &str, text: String) -> Turn {
        Turn { role: role.to_owned(), name: None, text, at: None }
    }

    fn said(message: &Value) -> (&str, &str) {
        let message = &message["conversational"];
        (message["role"].as_str().unwrap(), message["content"]["text"].as_str().unwrap())
    }

    #[test]
    fn turns_are_messages_and_long_ones_are_cut() {
        let all =
            messages(&[turn("user", "é".repeat(LONGEST + 1)), turn("robot", "Yes.".to_owned())]);
        let lengths: Vec<_> =
            all.iter().map(said).map(|(role, text)| (role, text.chars().count())).collect();
        assert_eq!(lengths, [("USER", LONGEST), ("USER", 1), ("OTHER", 4)]);
    }

    #[test]
    fn of_a_long_conversation_nothing_is_left_out() {
        // As much as a capture may have.
        for (count, length) in [(100, 10), (101, 10), (1_000, 1_040), (1_000, 1)] {
            let turns: Vec<_> =
                (0..count).map(|n| turn("user", format!("{n:0length$}."))).collect();
            let all = messages(&turns);
            assert!(all.len() <= MESSAGES, "{count} turns, {} messages", all.len());
            assert!(
                all.iter().all(|message| (1..=LONGEST).contains(&said(message).1.chars().count()))
            );
            let whole: String = all.iter().map(|message| said(message).1).collect();
            let mut rest = whole.as_str();
            for turn in &turns {
                rest = rest.split_once(&turn.text).unwrap().1;
            }
            assert_eq!(said(all.last().unwrap()).0, "USER");
        }
    }
}
