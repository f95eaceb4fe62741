//! Captures that a service extracts from.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Tag, without_recall};
use crate::types::{CaptureMode, RecordId, Scope, SourcePayload, Turn};

/// The material that a service extracts from, in a configuration: `residue`, `always` or `never`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Infer {
    /// Captures of raw material.
    #[default]
    Residue,
    /// Every capture.
    Always,
    /// Nothing: every capture is a record.
    Never,
}

impl Infer {
    /// Whether it extracts from a capture of this mode.
    pub fn is_for(self, mode: CaptureMode) -> bool {
        match self {
            Self::Residue => mode == CaptureMode::CaptureResidue,
            Self::Always => true,
            Self::Never => false,
        }
    }
}

/// A capture that a service is to extract from.
#[derive(Debug)]
pub struct Capture<'a> {
    /// The key of the capture, here and at the service: its operation.
    pub key: &'a str,
    /// The scope that it is in.
    pub scope: &'a Scope,
    /// The material as one text, not empty and without recalled text.
    pub text: &'a str,
    /// The same as turns, at least one, without what was recalled and those that say nothing. What
    /// was not said by turns is one of the role `user`.
    pub turns: &'a [Turn],
    /// The data that the service does not keep.
    pub tag: &'a Tag,
}

/// The turns of a [`Capture`] with this text.
pub(super) fn turns(payload: &SourcePayload, text: &str) -> Vec<Turn> {
    let user = || Turn { role: "user".to_owned(), name: None, text: text.to_owned(), at: None };
    let said = |turn: &Turn| Turn { text: without_recall(&turn.text), ..turn.clone() };
    let turns: Vec<Turn> = if payload.turns.is_empty() {
        vec![user()]
    } else {
        payload.turns.iter().map(said).collect()
    };
    turns.into_iter().filter(|turn| !turn.text.trim().is_empty()).collect()
}

/// The result of a capture at a service: records, a job that will make some, or both.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Learnt {
    /// The records.
    pub records: Vec<RecordId>,
    /// The id of the job, which [`Elsewhere`](super::Elsewhere) asks for.
    pub job: Option<String>,
    /// Further details of the job, as [`Work::details`](super::Work).
    pub details: Value,
}

impl Learnt {
    /// Nothing yet: the service works on it as this job.
    pub fn job(id: impl Into<String>) -> Self {
        Self { job: Some(id.into()), ..Self::default() }
    }
}
