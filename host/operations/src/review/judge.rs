//! Whether a record may be returned without a person's approval. It is a function of the record and
//! the policy, so that a record is judged wherever it is read first.

use crate::privacy::risk_of_record;
use memhost_types::{JsonObject, ReviewPolicy};

/// The policy's verdict on a record.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Verdict {
    /// `kind` of its metadata.
    pub(crate) kind: Option<String>,
    /// `confidence` of its metadata.
    pub(crate) confidence: Option<f64>,
    /// The level of personal data in its text and metadata: 0 to 2.
    pub(crate) pii_risk: u8,
    /// Why it waits; empty: it need not.
    pub(crate) reasons: Vec<String>,
}

/// Judges a record.
pub(crate) fn judge(policy: &ReviewPolicy, text: &str, metadata: Option<&JsonObject>) -> Verdict {
    let field = |name: &str| metadata.and_then(|metadata| metadata.get(name));
    let kind =
        field("kind").or_else(|| field("type")).and_then(|kind| kind.as_str()).map(str::to_owned);
    let confidence = field("confidence").and_then(serde_json::Value::as_f64);
    let pii_risk = risk_of_record(text, metadata).level();
    let mut reasons = Vec::new();
    if policy.all {
        reasons.push("the binding holds everything".to_owned());
    }
    let threshold = kind
        .as_ref()
        .and_then(|kind| policy.thresholds.get(kind))
        .copied()
        .unwrap_or(policy.threshold);
    // Without a confidence, the provider wrote the record as it came.
    if let Some(confidence) = confidence.filter(|confidence| *confidence < threshold) {
        let kind = kind.as_deref().unwrap_or("record");
        reasons.push(format!(
            "the confidence of this {kind} is {confidence}, and {threshold} is needed"
        ));
    }
    if pii_risk >= policy.pii_risk {
        reasons.push(format!(
            "its risk of personal data is {pii_risk}, and {} waits",
            policy.pii_risk
        ));
    }
    Verdict { kind, confidence, pii_risk, reasons }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn verdict(metadata: &serde_json::Value, text: &str) -> usize {
        judge(&ReviewPolicy::default(), text, metadata.as_object()).reasons.len()
    }

    #[test]
    fn the_taxonomys_thresholds_hold() {
        assert_eq!(verdict(&json!({"kind": "profile", "confidence": 0.84}), "x"), 1);
        assert_eq!(verdict(&json!({"kind": "profile", "confidence": 0.85}), "x"), 0);
        assert_eq!(verdict(&json!({"kind": "hypothesis", "confidence": 0.55}), "x"), 0);
        assert_eq!(verdict(&json!({"kind": "unheard of", "confidence": 0.59}), "x"), 1);
        assert_eq!(verdict(&json!({}), "x"), 0);
        assert_eq!(verdict(&json!({"confidence": 0.9}), "write to jerry@mit.edu"), 1);
        assert_eq!(
            verdict(&json!({"confidence": 0.9}), "write to [EMAIL]"),
            0,
            "level 1 is flagged and counts"
        );
    }
}
