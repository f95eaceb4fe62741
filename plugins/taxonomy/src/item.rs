//! An item of memory as it is stored, and as it is answered.

use jiff::Timestamp;
use memhost_sdk::types::{Scope, Score, Snippet};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::kind::{Group, Kind};
use crate::pii;
use crate::place::{Place, Source};

/// Where an item stands in the workflow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Status {
    /// It counts: the only status that is ever answered outside of review.
    Approved,
    /// It waits for a person.
    Pending,
    /// A person said no. Its content is gone; what is left keeps it from coming back.
    Rejected,
}

/// What the rules said of an item that was extracted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Extracted {
    pub(crate) rule: String,
    pub(crate) confidence: f64,
    pub(crate) adjustments: Vec<(String, f64)>,
    pub(crate) subject: String,
    pub(crate) evidence: String,
}

/// An item.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Item {
    pub(crate) id: String,
    pub(crate) kind: Kind,
    pub(crate) text: String,
    pub(crate) summary: Option<String>,
    /// 0 to 1. 1 where a person approved it or a caller wrote it without saying how sure it is.
    pub(crate) confidence: f64,
    pub(crate) status: Status,
    /// The level of everything that would be answered of it.
    pub(crate) pii_risk: u8,
    pub(crate) tags: Vec<String>,
    pub(crate) extracted: Option<Extracted>,
    pub(crate) place: Place,
    pub(crate) source: Option<Source>,
    /// As its writer gave it.
    pub(crate) metadata: Option<Map<String, Value>>,
    /// The operation that wrote it: the same one again writes nothing.
    pub(crate) operation: String,
    pub(crate) created_at: Timestamp,
    pub(crate) updated_at: Timestamp,
    /// Behind this time it is not answered.
    pub(crate) expires_at: Option<Timestamp>,
    /// What a person decided, so that the same decision can be told from another.
    pub(crate) decision: Option<String>,
}

/// The largest evidence that is kept, in characters.
const EVIDENCE: usize = 600;

impl Item {
    /// Whether it may be answered now.
    pub(crate) fn counts(&self, now: Timestamp) -> bool {
        self.status == Status::Approved && self.expires_at.is_none_or(|end| end > now)
    }

    /// The level of everything that would be answered of it: text, summary, evidence, tags and the given metadata.
    pub(crate) fn judge_pii(&mut self) {
        let metadata = self.metadata.as_ref().map(|metadata| Value::Object(metadata.clone()).to_string());
        let evidence = self.extracted.as_ref().map(|extracted| extracted.evidence.as_str());
        let tags = self.tags.join("\n");
        let parts = [Some(self.text.as_str()), self.summary.as_deref(), metadata.as_deref(), evidence, Some(&tags)];
        self.pii_risk = parts.into_iter().flatten().map(pii::level).max().unwrap_or_default();
    }

    /// Takes raw personal data out of everything that would be answered. Never of level 2 afterwards.
    pub(crate) fn redact(&mut self) {
        self.text = pii::redact(&self.text);
        self.summary = self.summary.as_deref().map(pii::redact);
        for tag in &mut self.tags {
            *tag = pii::redact(tag);
        }
        if let Some(extracted) = &mut self.extracted {
            extracted.evidence = pii::redact(&extracted.evidence);
        }
        self.metadata = self.metadata.take().map(redacted);
        self.judge_pii();
        // Members that are harmless alone and not beside each other: what cannot be cleaned is not kept.
        if self.pii_risk == 2 {
            self.metadata = None;
            self.tags.clear();
            self.judge_pii();
        }
    }

    /// The evidence of a candidate: the sentence, without what it says beside the statement that would be too much.
    pub(crate) fn evidence(sentence: &str) -> String {
        sentence.chars().take(EVIDENCE).collect()
    }

    /// Metadata as it is answered: what was given, and above it what this provider knows.
    pub(crate) fn shown(&self) -> Map<String, Value> {
        let mut shown = self.metadata.clone().unwrap_or_default();
        let mut set = |name: &str, value: Value| drop(shown.insert(name.to_owned(), value));
        set("kind", self.kind.name().into());
        set("confidence", self.confidence.into());
        set("status", serde_json::to_value(self.status).unwrap_or_default());
        set("piiRisk", self.pii_risk.into());
        if !self.tags.is_empty() {
            set("tags", self.tags.clone().into());
        }
        if let Some(end) = self.expires_at {
            set("expiresAt", end.to_string().into());
        }
        if let Some(extracted) = &self.extracted {
            let adjustments = extracted.adjustments.iter().map(|(name, by)| (name.clone(), Value::from(*by)));
            set("rule", extracted.rule.clone().into());
            set("ruleConfidence", extracted.confidence.into());
            set("adjustments", Value::Object(adjustments.collect()));
            set("subject", extracted.subject.clone().into());
            set("evidence", extracted.evidence.clone().into());
        }
        shown
    }

    /// As an answer.
    pub(crate) fn snippet(&self, score: Score, company: &str) -> Snippet {
        Snippet {
            score,
            summary: self.summary.clone(),
            source: self.source.as_ref().map(|source| source.shown(company)),
            metadata: Some(Value::Object(self.shown()).to_string()),
            created_at: Some(self.created_at.to_string()),
            updated_at: Some(self.updated_at.to_string()),
            ..Snippet::new(self.id.clone(), self.text.clone())
        }
    }

    /// Whether a scope may see it: the contract's partitions, and beside them the project for what is project-scoped.
    /// User memory with a subject follows that subject where the binding says so.
    pub(crate) fn is_visible(&self, scope: &Scope, share_user_memory: bool) -> bool {
        let fits = |of_item: &Option<String>, of_scope: &Option<String>| {
            of_item.is_none() || of_scope.is_none() || of_item == of_scope
        };
        let follows_subject = share_user_memory && self.kind.group() == Group::User && self.place.subject.is_some();
        (follows_subject || fits(&self.place.agent, &scope.agent_id))
            && fits(&self.place.subject, &scope.subject_id)
            && fits(&self.place.namespace, &scope.namespace)
            && (!self.kind.is_project_scoped() || fits(&self.place.project, &scope.project_id))
    }
}

fn redacted(metadata: Map<String, Value>) -> Map<String, Value> {
    let one = |(name, value): (String, Value)| {
        let value = redacted_value(value);
        // Some values are raw only behind their names: `{"password": "abc123"}`.
        let together = value.as_str().is_some_and(|text| pii::level(&format!("{name}: {text}")) == 2);
        (pii::redact(&name), if together { Value::from("[REDACTED]") } else { value })
    };
    metadata.into_iter().map(one).collect()
}

fn redacted_value(value: Value) -> Value {
    match value {
        Value::String(text) => Value::String(pii::redact(&text)),
        // A number can be a card: as a text it is looked at, and stays a number if it is none.
        Value::Number(number) if pii::level(&number.to_string()) == 2 => {
            Value::String(pii::redact(&number.to_string()))
        }
        Value::Array(all) => all.into_iter().map(redacted_value).collect(),
        Value::Object(members) => Value::Object(redacted(members)),
        other => other,
    }
}
