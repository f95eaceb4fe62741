//! The file format of LoCoMo (Maharana et al. 2024): conversations of sessions of turns, and
//! questions with the turns that hold the evidence.

use std::collections::{BTreeMap, HashSet};

use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use jiff::{Timestamp, fmt::strtime};
use serde::Deserialize;
use serde_json::Value;

use super::EvalError;

/// One turn of a conversation.
#[derive(Debug, Clone)]
pub struct Turn {
    /// Such as `D3:12`.
    pub id: String,
    /// The speaker.
    pub speaker: String,
    /// The words, with the caption of a shared image.
    pub text: String,
    /// Which session, from 1.
    pub session: u32,
    /// When the session took place.
    pub at: Timestamp,
}

/// One question with its evidence.
#[derive(Debug, Clone)]
pub struct Question {
    /// Its place in the file's list.
    pub index: usize,
    /// The question.
    pub text: String,
    /// 1 multi-hop, 2 temporal, 3 open-domain, 4 single-hop.
    pub category: u8,
    /// Ids of the turns that answer it; never empty.
    pub evidence: Vec<String>,
}

/// One conversation with its questions.
#[derive(Debug, Clone)]
pub struct Conversation {
    /// The file's name for it.
    pub sample_id: String,
    /// In the order in which they were said.
    pub turns: Vec<Turn>,
    /// Those that can be scored.
    pub questions: Vec<Question>,
}

#[derive(Deserialize)]
struct Sample {
    sample_id: String,
    conversation: BTreeMap<String, Value>,
    qa: Vec<RawQuestion>,
}

#[derive(Deserialize)]
struct RawQuestion {
    question: String,
    #[serde(default)]
    evidence: Vec<String>,
    category: u8,
}

#[derive(Deserialize)]
struct RawTurn {
    dia_id: String,
    speaker: String,
    #[serde(default)]
    text: String,
    blip_caption: Option<String>,
}

/// Questions of category 5 ask for things that nobody said, so they have no evidence.
const ADVERSARIAL: u8 = 5;

/// Reads a file's text.
///
/// # Errors
/// Where and why it is not of this format.
pub fn read(path: &str, text: &str) -> Result<Vec<Conversation>, EvalError> {
    let format = |message: String| EvalError::Format { path: path.to_owned(), message };
    let samples: Vec<Sample> =
        serde_json::from_str(text).map_err(|error| format(error.to_string()))?;
    samples.into_iter().map(|sample| conversation(sample).map_err(format)).collect()
}

fn conversation(sample: Sample) -> Result<Conversation, String> {
    let mut turns = Vec::new();
    for session in 1.. {
        let Some(raw) = sample.conversation.get(&format!("session_{session}")) else {
            // Sessions are numbered without gaps, but a date may stand without its session at the
            // end.
            break;
        };
        let date_key = format!("session_{session}_date_time");
        let at = sample.conversation.get(&date_key).and_then(Value::as_str).unwrap_or_default();
        let at = date(at)
            .ok_or_else(|| format!("{}.{date_key}: `{at}` is not a date", sample.sample_id))?;
        let raw: Vec<RawTurn> = serde_json::from_value(raw.clone())
            .map_err(|error| format!("{}.session_{session}: {error}", sample.sample_id))?;
        turns.extend(raw.into_iter().map(|turn| Turn {
            id: turn.dia_id,
            speaker: turn.speaker,
            text: match turn.blip_caption {
                Some(caption) => format!("{} [shares image: {caption}]", turn.text),
                None => turn.text,
            },
            session,
            at,
        }));
    }
    let known: HashSet<&str> = turns.iter().map(|turn| turn.id.as_str()).collect();
    let questions = sample
        .qa
        .into_iter()
        .enumerate()
        .filter(|(_, raw)| raw.category != ADVERSARIAL)
        .filter_map(|(index, raw)| {
            let evidence = evidence(&raw.evidence, &known);
            let question = Question { index, text: raw.question, category: raw.category, evidence };
            (!question.evidence.is_empty()).then_some(question)
        })
        .collect();
    Ok(Conversation { sample_id: sample.sample_id, turns, questions })
}

/// An entry may hold several ids, and some are written `D:3:12` for `D3:12`.
fn evidence(entries: &[String], known: &HashSet<&str>) -> Vec<String> {
    let mut ids: Vec<String> = Vec::new();
    for part in entries.iter().flat_map(|entry| entry.split([';', ',', ' '])) {
        let id = part.trim().replacen("D:", "D", 1);
        if known.contains(id.as_str()) && !ids.contains(&id) {
            ids.push(id);
        }
    }
    ids
}

/// Such as `1:56 pm on 8 May, 2023`.
fn date(text: &str) -> Option<Timestamp> {
    let parsed = strtime::parse("%I:%M %p on %d %B, %Y", text).ok()?;
    let civil: DateTime = parsed.to_datetime().ok()?;
    Some(civil.to_zoned(TimeZone::UTC).ok()?.timestamp())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_file_is_read() {
        let text = r#"[{"sample_id":"s","conversation":{"speaker_a":"A",
            "session_1_date_time":"1:56 pm on 8 May, 2023",
            "session_1":[{"dia_id":"D1:1","speaker":"A","text":"hello","blip_caption":"a cat"},
                         {"dia_id":"D1:2","speaker":"B","text":"hi"}],
                             "session_2_date_time":"1:00 am on 9 May, 2023"},
            "qa":[{"question":"q1","evidence":["D:1:1; D1:2","D9:9"],"category":1},
                  {"question":"q2","evidence":["D9:9"],"category":2},
                  {"question":"q3","evidence":["D1:1"],"category":5}]}]"#;
        let all = read("file", text).unwrap();
        let conversation = &all[0];
        assert_eq!(conversation.turns[0].text, "hello [shares image: a cat]");
        assert_eq!(conversation.turns[1].at.to_string(), "2023-05-08T13:56:00Z");
        assert_eq!(conversation.questions.len(), 1);
        assert_eq!(conversation.questions[0].evidence, ["D1:1", "D1:2"]);
    }

    #[test]
    fn a_file_of_another_kind_is_refused_with_its_place() {
        let error = read("x.json", r#"[{"sample_id":"s"}]"#).unwrap_err().to_string();
        assert!(error.contains("x.json") && error.contains("conversation"), "{error}");
        let error = read(
            "x.json",
            r#"[{"sample_id":"s","conversation":{"session_1":[],"session_1_date_time":"now"},
                "qa":[]}]"#,
        );
        assert!(error.unwrap_err().to_string().contains("session_1_date_time"));
    }
}
