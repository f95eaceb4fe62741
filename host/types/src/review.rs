//! What waits for a person before it counts.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::bounds::check_bytes;
use super::named::named;
use super::{
    BindingId, BindingKey, CompanyId, CorrectionPatch, DeliveryId, FieldError, JsonObject,
    OperationId, RecordHandle, RecordWrite, SourceRef, Visibility, limits,
};

/// A review item's identity.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(transparent)]
pub struct ReviewId(pub Uuid);

impl ReviewId {
    /// Another id with the same place in the order of time.
    #[must_use]
    pub fn beside(self, random: u128) -> Self {
        Self(Uuid::from_u128(self.0.as_u128() ^ (random & u128::from(u32::MAX) | 1)))
    }
}

named!(
    /// The decision.
    ReviewStatus, "status" {
        /// Nothing yet. A record is not returned, a capture is not delivered.
        Pending = "pending",
        /// It counts.
        Approved = "approved",
        /// It does not count, and the provider was told to forget it.
        Rejected = "rejected",
    }
);

/// The subject of a review.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ReviewSubject {
    /// A record that the provider extracted.
    Record(RecordHandle),
    /// A capture that has not left for the provider.
    Delivery(DeliveryId),
}

named!(
    /// The side that keeps a record from being returned.
    ReviewHolder, "holder" {
        /// The host, by the binding's policy.
        Host = "host",
        /// The provider itself, which exports `review`: it is told what was decided.
        Provider = "provider",
    }
);

/// Something that waits for a person, or waited.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReviewItem {
    /// Orders them by time.
    pub id: ReviewId,
    /// The company.
    pub company_id: CompanyId,
    /// At which binding.
    pub binding_id: BindingId,
    /// Its key when the item came.
    pub binding_key: BindingKey,
    /// The subject of the review.
    pub subject: ReviewSubject,
    /// The side that holds it back.
    #[serde(default = "by_host")]
    pub holder: ReviewHolder,
    /// The record's metadata where the provider holds it: what it was made of and by which rule.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<JsonObject>,
    /// What it would make of a record that is there and stays as it is until then; absent: the
    /// record itself waits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub change: Option<HeldChange>,
    /// The operation that brought it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operation_id: Option<OperationId>,
    /// `kind` of the record's metadata.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// `confidence` of the record's metadata.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confidence: Option<f64>,
    /// 0: none found, 1: possible, 2: raw personal data.
    pub pii_risk: u8,
    /// Why it waits, a sentence each.
    pub reasons: Vec<String>,
    /// The text, at most 16 KiB of it. Empty once it was rejected, or the record was forgotten or
    /// replaced.
    pub text: String,
    /// BLAKE3 of the whole text, in hex: a record whose text changes is reviewed again.
    pub digest: String,
    /// The decision.
    pub status: ReviewStatus,
    /// When it came.
    pub created_at: Timestamp,
    /// The principal that decided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decided_by: Option<String>,
    /// When.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decided_at: Option<Timestamp>,
}

/// A change of a record that has not been made. The provider gets it after the approval.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum HeldChange {
    /// A correction.
    Correction(Box<CorrectionPatch>),
    /// A record under the same id.
    Record(Box<HeldRecord>),
    /// It was made, rejected or forgotten, and nothing of it is kept.
    Gone,
}

/// A record that is to take the place of another one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HeldRecord {
    /// The record as it is to be.
    pub write: RecordWrite,
    /// Where it comes from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<SourceRef>,
    /// The readers of the record, if the request named them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub visibility: Option<Visibility>,
}

impl ReviewItem {
    /// The item without the record's text: once it was rejected, forgotten or replaced.
    #[must_use]
    pub fn without_text(self) -> Self {
        let change = self.change.map(|_| HeldChange::Gone);
        Self { text: String::new(), metadata: None, change, ..self }
    }

    /// Whether it has no text of the record.
    pub fn is_without_text(&self) -> bool {
        let has_change = self.change.as_ref().is_some_and(|change| *change != HeldChange::Gone);
        self.text.is_empty() && self.metadata.is_none() && !has_change
    }

    /// Whether it says if its record may be returned. A change does so once it was made.
    pub fn stands(&self) -> bool {
        self.change.is_none() || self.status == ReviewStatus::Approved
    }

    /// Where the change comes from that it is about, if it is about one that says so.
    pub fn source(&self) -> Option<&SourceRef> {
        match self.change.as_ref()? {
            HeldChange::Record(held) => held.write.source.as_ref().or(held.source.as_ref()),
            HeldChange::Correction(_) | HeldChange::Gone => None,
        }
    }
}

impl ReviewSubject {
    /// The record, if it is one.
    pub fn record(&self) -> Option<&RecordHandle> {
        match self {
            Self::Record(handle) => Some(handle),
            Self::Delivery(_) => None,
        }
    }
}

/// The value for entries from before providers could hold records.
fn by_host() -> ReviewHolder {
    ReviewHolder::Host
}

/// A decision. With a text it is an approval in that form.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ReviewDecision {
    /// The decision.
    pub decision: Decision,
    /// The text as it should be; for `edit`, and needed there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = super::limits::MAX_TEXT_BYTES))]
    pub text: Option<String>,
}

impl ReviewDecision {
    /// Checks the size of the text.
    ///
    /// # Errors
    /// If it is longer than the text of a record may be.
    pub fn check(&self) -> Result<(), FieldError> {
        self.text.as_ref().map_or(Ok(()), |text| check_bytes("text", text, limits::MAX_TEXT_BYTES))
    }
}

named!(
    /// The decision of a person.
    Decision, "decision" {
        /// It counts as it is.
        Approve = "approve",
        /// It does not count.
        Reject = "reject",
        /// It counts in another form.
        Edit = "edit",
    }
);

/// Which items to show. Every field that is set must match.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[allow(missing_docs, reason = "the names are those of the item's fields")]
pub struct ReviewFilter {
    pub status: Option<ReviewStatus>,
    pub binding_key: Option<BindingKey>,
    pub kind: Option<String>,
    pub pii_risk: Option<u8>,
}

impl ReviewFilter {
    /// Whether an item matches.
    pub fn matches(&self, item: &ReviewItem) -> bool {
        self.status.is_none_or(|wanted| item.status == wanted)
            && self.binding_key.as_ref().is_none_or(|wanted| item.binding_key == *wanted)
            && self.kind.as_ref().is_none_or(|wanted| item.kind.as_ref() == Some(wanted))
            && self.pii_risk.is_none_or(|wanted| item.pii_risk == wanted)
    }
}
