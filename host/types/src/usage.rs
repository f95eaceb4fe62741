//! What calls used and what they cost.

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::JsonObject;

/// The value of an unknown field of a cost event, and of the model of usage that names none.
pub(super) const UNKNOWN: &str = "unknown";

/// Millionths of a cent. Sums are exact; JSON shows cents, as the plan does.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, JsonSchema)]
#[schemars(transform = super::schema::cents)]
pub struct Microcents(#[schemars(with = "f64")] pub u64);

impl Serialize for Microcents {
    #[allow(
        clippy::cast_precision_loss,
        reason = "an amount that a f64 cannot hold exactly is 90 billion cents"
    )]
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.0.is_multiple_of(1_000_000) {
            serializer.serialize_u64(self.0 / 1_000_000)
        } else {
            serializer.serialize_f64(self.0 as f64 / 1e6)
        }
    }
}

impl<'de> Deserialize<'de> for Microcents {
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "checked just before"
    )]
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let cents = f64::deserialize(deserializer)?;
        let microcents = (cents * 1e6).round();
        if !(0.0..=9e15).contains(&microcents) {
            return Err(serde::de::Error::custom("an amount in cents from 0 to 9 billion"));
        }
        Ok(Self(microcents as u64))
    }
}

/// Whole microcents, for what is stored: any sum comes back as it was.
pub(super) mod whole {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use super::Microcents;

    pub(crate) fn serialize<S: Serializer>(
        amount: &Microcents,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        amount.0.serialize(serializer)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Microcents, D::Error> {
        u64::deserialize(deserializer).map(Microcents)
    }
}

/// How a metered call is billed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs, reason = "the plan's names say it")]
pub enum BillingType {
    MeteredApi,
    SubscriptionIncluded,
    SubscriptionOverage,
    Unknown,
}

/// Where the cost of a call is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AttributionMode {
    /// It becomes a cost event of its own.
    BilledDirectly,
    /// The run's own accounting has it already: no cost event.
    IncludedInRun,
    /// It comes with an invoice.
    ExternalInvoice,
    /// Nobody counts it.
    Untracked,
}

/// The usage of a call at a service that charges for it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[allow(missing_docs, reason = "the plan's names say it")]
pub struct Usage {
    pub provider: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub biller: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub billing_type: Option<BillingType>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attribution_mode: Option<AttributionMode>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_tokens: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cached_input_tokens: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_tokens: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub embedding_tokens: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none", rename = "costCents")]
    pub cost: Option<Microcents>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency_ms: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<JsonObject>,
}

impl Usage {
    /// Nothing yet, of this provider.
    pub fn of(provider: &str) -> Self {
        Self {
            provider: provider.to_owned(),
            biller: None,
            model: None,
            billing_type: None,
            attribution_mode: None,
            input_tokens: None,
            cached_input_tokens: None,
            output_tokens: None,
            embedding_tokens: None,
            cost: None,
            latency_ms: None,
            details: None,
        }
    }

    /// Its model; `unknown` if it names none.
    pub fn model_name(&self) -> &str {
        self.model.as_deref().filter(|model| !model.is_empty()).unwrap_or(UNKNOWN)
    }

    /// Where its cost is counted. A provider that does not say so works outside of the run's own
    /// accounting: what it is billed by the call is billed directly, anything else nobody counts.
    pub fn attribution(&self) -> AttributionMode {
        self.attribution_mode.unwrap_or(match self.billing_type {
            Some(BillingType::MeteredApi | BillingType::SubscriptionOverage) => {
                AttributionMode::BilledDirectly
            }
            Some(BillingType::SubscriptionIncluded | BillingType::Unknown) | None => {
                AttributionMode::Untracked
            }
        })
    }
}
