//! The status workflow: whether an item is approved or waits.
//!
//! An item is approved if its confidence reaches the threshold and it contains no raw personal
//! data. The document has a diagram with 0.60 for all kinds and a table with a threshold for each;
//! [`Workflow`] chooses.

use jiff::Timestamp;
use memhost_sdk::types::{Decision, Error};
use serde_json::Value;

use crate::config::{Config, Pii, Workflow};
use crate::described::described;
use crate::id;
use crate::item::{Item, Status};
use crate::pii;

/// Judges an item: its level of personal data and, by that and its confidence, its status. With
/// `pii: redact` raw data is redacted first.
pub(crate) fn judge(config: &Config, item: &mut Item) {
    item.judge_pii();
    if item.pii_risk == 2 && config.pii == Pii::Redact {
        item.redact();
    }
    let is_sure = item.confidence >= config.threshold(item.kind);
    item.status = if is_sure && item.pii_risk < 2 { Status::Approved } else { Status::Pending };
}

/// The item after an approval; the confidence is 1. The confidence of the rule stays in
/// `ruleConfidence`. Raw personal data is redacted unless the workflow is the document's, in which
/// a person's approval is the last word.
pub(crate) fn approved(config: &Config, item: &Item, now: Timestamp) -> Item {
    let mut item = item.clone();
    if item.pii_risk == 2 && is_redacting(config) {
        item.redact();
    }
    item.status = Status::Approved;
    item.confidence = 1.0;
    item.updated_at = now;
    item
}

fn is_redacting(config: &Config) -> bool {
    config.workflow == Workflow::Strict || config.pii == Pii::Redact
}

/// Applies a person's decision. A repeated decision answers the item unchanged.
///
/// # Errors
/// `invalid-request` for another decision on a decided item, and for an edit that still holds raw
/// personal data.
pub(crate) fn decide(
    config: &Config,
    item: &Item,
    decision: Decision,
    now: Timestamp,
) -> Result<Item, Error> {
    let fingerprint = match &decision {
        Decision::Approve => id::decision(&["approve"]),
        Decision::Reject => id::decision(&["reject"]),
        Decision::Edit(write) => {
            let part = |part: &Option<String>| {
                part.as_ref().map_or("-".to_owned(), |text| format!("+{text}"))
            };
            id::decision(&["edit", &write.text, &part(&write.summary), &part(&write.metadata)])
        }
    };
    if item.status != Status::Pending {
        let is_same = item.decision.as_ref() == Some(&fingerprint)
            // The workflow itself approved it.
            || (item.decision.is_none() && matches!(decision, Decision::Approve));
        let what = if item.status == Status::Approved { "approved" } else { "rejected" };
        return match is_same {
            true => Ok(item.clone()),
            false => Err(Error::invalid(
                "decision",
                format!("`{}` is {what} already; correct or forget it if that was wrong", item.id),
            )),
        };
    }
    let mut decided = match decision {
        Decision::Approve => approved(config, item, now),
        Decision::Reject => rejected(item, now),
        Decision::Edit(write) => {
            let mut edited = item.clone();
            edited.text = write.text;
            edited.summary = write.summary;
            if let Some(json) = &write.metadata {
                let members = serde_json::from_str::<Value>(json)
                    .ok()
                    .and_then(|value| value.as_object().cloned());
                let members = members.ok_or_else(|| {
                    Error::invalid("decision.metadata", "is not a JSON object; send an object")
                })?;
                edited = described(edited, members, "decision")?;
            }
            // The evidence is not the person's text, and may contain what the person removed.
            if let Some(extracted) = &mut edited.extracted {
                extracted.evidence = pii::redact(&extracted.evidence);
            }
            edited.judge_pii();
            if edited.pii_risk == 2 && is_redacting(config) {
                let all =
                    format!("{} {}", edited.text, edited.summary.as_deref().unwrap_or_default());
                return Err(Error::invalid(
                    "decision.text",
                    format!(
                        "the edited record still holds raw personal data ({}); take it out, or \
                         approve the record to \
                         keep it redacted",
                        pii::found(&all)
                    ),
                ));
            }
            approved(config, &edited, now)
        }
    };
    decided.decision = Some(fingerprint);
    Ok(decided)
}

/// Deletes the content and keeps the id.
fn rejected(item: &Item, now: Timestamp) -> Item {
    Item {
        text: String::new(),
        summary: None,
        tags: Vec::new(),
        extracted: None,
        metadata: None,
        source: None,
        pii_risk: 0,
        status: Status::Rejected,
        updated_at: now,
        expires_at: None,
        ..item.clone()
    }
}
