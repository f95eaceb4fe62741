//! An item, as it is stored and as it is returned.

use jiff::Timestamp;
use memhost_sdk::types::{Scope, Score, Snippet};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::bound::PROJECT;
use crate::kind::Kind;
use crate::pii;
use crate::place::{Place, Source};

/// How often and when an item was an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Use {
    pub(crate) count: u32,
    pub(crate) last: Timestamp,
}

/// The status of an item in the workflow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Status {
    /// Approved: the only status that is returned outside of review.
    Approved,
    /// It waits for a person.
    Pending,
    /// Rejected by a person. Its content is deleted; the id stays, so that it does not come back.
    Rejected,
}

/// The result of the rule that extracted an item.
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
    /// 0 to 1. 1 if a person approved it, or a caller wrote it without a confidence.
    pub(crate) confidence: f64,
    pub(crate) status: Status,
    /// The level of everything that is returned of it.
    pub(crate) pii_risk: u8,
    pub(crate) tags: Vec<String>,
    pub(crate) extracted: Option<Extracted>,
    pub(crate) place: Place,
    /// Whether it is its project's only, whatever its kind.
    #[serde(default)]
    pub(crate) is_bound: bool,
    pub(crate) source: Option<Source>,
    /// As the caller sent it.
    pub(crate) metadata: Option<Map<String, Value>>,
    /// The operation that wrote it. The same operation writes nothing the second time.
    pub(crate) operation: String,
    pub(crate) created_at: Timestamp,
    pub(crate) updated_at: Timestamp,
    /// When it was said, as the hook of the capture says. `None` if it was written, not said.
    #[serde(default)]
    pub(crate) triggered_at: Option<Timestamp>,
    /// After this time it is not returned.
    pub(crate) expires_at: Option<Timestamp>,
    /// A person's decision, to recognize the same decision when it is repeated.
    pub(crate) decision: Option<String>,
}

/// The document's band of a confidence. Below 0.60 an item waits, whatever the band is called.
const fn band(confidence: f64) -> &'static str {
    match confidence {
        0.85.. => "high",
        0.70.. => "good",
        0.60.. => "moderate",
        0.50.. => "low",
        _ => "very low",
    }
}

/// The longest evidence that is stored, in characters.
const EVIDENCE: usize = 600;

impl Item {
    /// From when it ages: when it was said, or else last written.
    pub(crate) fn ages_from(&self) -> Timestamp {
        self.triggered_at.unwrap_or(self.updated_at)
    }

    /// Whether it may be returned now.
    pub(crate) fn counts(&self, now: Timestamp) -> bool {
        self.status == Status::Approved && self.expires_at.is_none_or(|end| end > now)
    }

    /// The level of everything that is returned of it: text, summary, evidence, tags and the given
    /// metadata.
    pub(crate) fn judge_pii(&mut self) {
        let metadata =
            self.metadata.as_ref().map(|metadata| Value::Object(metadata.clone()).to_string());
        let evidence = self.extracted.as_ref().map(|extracted| extracted.evidence.as_str());
        let tags = self.tags.join("\n");
        let parts = [
            Some(self.text.as_str()),
            self.summary.as_deref(),
            metadata.as_deref(),
            evidence,
            Some(&tags),
        ];
        self.pii_risk = parts.into_iter().flatten().map(pii::level).max().unwrap_or_default();
    }

    /// Redacts raw personal data in everything that is returned. The level is below 2 afterwards.
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
        // Members that are raw data only together cannot be redacted one by one, so they are
        // removed.
        if self.pii_risk == 2 {
            self.metadata = None;
            self.tags.clear();
            self.judge_pii();
        }
    }

    /// The evidence of a candidate: the sentence, shortened and redacted.
    pub(crate) fn evidence(sentence: &str) -> String {
        sentence.chars().take(EVIDENCE).collect()
    }

    /// The metadata that is returned: the caller's, and over it the provider's own members.
    pub(crate) fn shown(&self, used: Option<Use>) -> Map<String, Value> {
        let mut shown = self.metadata.clone().unwrap_or_default();
        let mut set = |name: &str, value: Value| drop(shown.insert(name.to_owned(), value));
        set("kind", self.kind.name().into());
        set("confidence", self.confidence.into());
        set("confidenceBand", band(self.confidence).into());
        set("status", serde_json::to_value(self.status).unwrap_or_default());
        set("piiRisk", self.pii_risk.into());
        if !self.tags.is_empty() {
            set("tags", self.tags.clone().into());
        }
        if let Some(end) = self.expires_at {
            set("expiresAt", end.to_string().into());
        }
        if let Some(at) = self.triggered_at {
            set("triggeredAt", at.to_string().into());
        }
        if self.is_bound {
            set("scopeType", PROJECT.into());
            set("scopeId", self.place.project.clone().into());
        }
        // Uses are counted for what ages.
        if self.kind == Kind::Fact {
            set("useCount", used.map_or(0, |used| used.count).into());
        }
        if let Some(used) = used {
            set("lastUsedAt", used.last.to_string().into());
        }
        if let Some(extracted) = &self.extracted {
            let adjustments =
                extracted.adjustments.iter().map(|(name, by)| (name.clone(), Value::from(*by)));
            set("rule", extracted.rule.clone().into());
            set("ruleConfidence", extracted.confidence.into());
            set("adjustments", Value::Object(adjustments.collect()));
            set("subject", extracted.subject.clone().into());
            set("evidence", extracted.evidence.clone().into());
        }
        shown
    }

    /// The item as a snippet.
    pub(crate) fn snippet(&self, score: Score, company: &str, used: Option<Use>) -> Snippet {
        Snippet {
            score,
            summary: self.summary.clone(),
            source: self.source.as_ref().map(|source| source.shown(company)),
            metadata: Some(Value::Object(self.shown(used)).to_string()),
            created_at: Some(self.created_at.to_string()),
            updated_at: Some(self.updated_at.to_string()),
            expires_at: self.expires_at.map(|end| end.to_string()),
            ..Snippet::new(self.id.clone(), self.text.clone())
        }
    }

    /// Whether a scope may see it: by the contract's partitions, and by the project where its kind
    /// is project-scoped or it is bound.
    pub(crate) fn is_visible(&self, scope: &Scope) -> bool {
        let fits = |of_item: &Option<String>, of_scope: &Option<String>| {
            of_item.is_none() || of_scope.is_none() || of_item == of_scope
        };
        fits(&self.place.agent, &scope.agent_id)
            && fits(&self.place.subject, &scope.subject_id)
            && fits(&self.place.namespace, &scope.namespace)
            && (!(self.is_bound || self.kind.is_project_scoped())
                || fits(&self.place.project, &scope.project_id))
    }
}

fn redacted(metadata: Map<String, Value>) -> Map<String, Value> {
    let one = |(name, value): (String, Value)| {
        let value = redacted_value(value);
        // Some values are raw data only together with their names: `{"password": "abc123"}`.
        let together =
            value.as_str().is_some_and(|text| pii::level(&format!("{name}: {text}")) == 2);
        (pii::redact(&name), if together { Value::from("[REDACTED]") } else { value })
    };
    metadata.into_iter().map(one).collect()
}

fn redacted_value(value: Value) -> Value {
    match value {
        Value::String(text) => Value::String(pii::redact(&text)),
        // A number can be a card number, so it is checked as text. Otherwise it stays a number.
        Value::Number(number) if pii::level(&number.to_string()) == 2 => {
            Value::String(pii::redact(&number.to_string()))
        }
        Value::Array(all) => all.into_iter().map(redacted_value).collect(),
        Value::Object(members) => Value::Object(redacted(members)),
        other => other,
    }
}
