//! What a binding does with what passes: hooks it takes, what a person must see first, what may
//! leave, what is kept.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::named::named;
use super::{AttributionMode, FieldError, HookKind};

/// A kind of hook that a binding takes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct HookSubscription {
    /// Which kind. Kinds that the plan does not name are taken by name.
    #[schemars(with = "super::schema::OutsideId")]
    pub kind: HookKind,
    /// For which events.
    #[serde(default)]
    pub when: SubscribedWhen,
}

named!(
    /// For which events of its kind a binding is called.
    #[derive(Default)]
    SubscribedWhen, "when" {
        /// Where it is the binding that the event's scope resolves to.
        #[default]
        Active = "active",
        /// For every event of the company.
        Always = "always",
    }
);

/// What a new binding takes: the plan's low-risk hooks. Comments and documents are for who asks for
/// them.
pub fn default_hooks() -> Vec<HookSubscription> {
    [HookKind::PreRunHydrate, HookKind::PostRunCapture, HookKind::ManualCapture]
        .into_iter()
        .map(|kind| HookSubscription { kind, when: SubscribedWhen::Active })
        .collect()
}

/// What a provider extracts and a person must approve before it is returned. The defaults are those
/// of the PaperBot memory taxonomy, "Status Workflow" and its table of kinds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct ReviewPolicy {
    /// Confidence below this waits, from 0 to 1. A record without `confidence` in its metadata
    /// counts as certain.
    #[schemars(transform = super::schema::share)]
    pub threshold: f64,
    /// The same for records whose metadata has this `kind`.
    #[schemars(transform = super::schema::thresholds)]
    pub thresholds: BTreeMap<String, f64>,
    /// A PII risk of this level or more waits: 1 or 2; 3 for none.
    #[schemars(range(min = 1, max = 3))]
    pub pii_risk: u8,
    /// Everything waits.
    pub all: bool,
}

impl Default for ReviewPolicy {
    fn default() -> Self {
        let kinds = [
            ("profile", 0.85),
            ("preference", 0.72),
            ("goal", 0.68),
            ("constraint", 0.62),
            ("project", 0.70),
            ("fact", 0.65),
            ("decision", 0.70),
            ("hypothesis", 0.50),
            ("todo", 0.58),
            ("keyword_set", 0.75),
            ("note", 0.60),
        ];
        let thresholds =
            kinds.into_iter().map(|(kind, threshold)| (kind.to_owned(), threshold)).collect();
        Self { threshold: 0.60, thresholds, pii_risk: 2, all: false }
    }
}

named!(
    /// The treatment of personal data before it leaves for a provider that may send it on.
    #[derive(Default)]
    PiiPolicy, "pii" {
        /// It is left unchanged.
        #[default]
        Allow = "allow",
        /// Recognized data is replaced by its kind in brackets.
        Redact = "redact",
        /// Writes wait for a person; queries are redacted.
        Hold = "hold",
    }
);

named!(
    /// How much of what was asked is kept in operations.
    #[derive(Default)]
    Snapshots, "snapshots" {
        /// Nothing.
        #[default]
        Off = "off",
        /// The first 2 KiB.
        Bounded = "bounded",
        /// All of it.
        Full = "full",
    }
);

named!(
    /// The treatment of a capture when a budget is used up.
    #[derive(Default)]
    OnBudget, "onBudget" {
        /// It is refused.
        #[default]
        Refuse = "refuse",
        /// It is kept, and delivered when there is budget again.
        Queue = "queue",
    }
);

/// Whom what is written belongs to, where a write does not say it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Sharing {
    /// The company: all its agents read it.
    #[default]
    Shared,
    /// The agent that writes it.
    PerAgent,
}

/// The retention of a binding.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct BindingRetention {
    /// How much of requests is kept in operations.
    pub snapshots: Snapshots,
}

/// How a binding is shown to agents over MCP.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct McpPolicy {
    /// Whether `save_memory` and `remove_memory` are tools beside `memory_note` and
    /// `memory_forget`: for agents whose instructions name those.
    pub aliases: bool,
}

/// A binding's rules for the data that passes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct BindingPolicy {
    /// Which hooks it takes.
    #[schemars(transform = super::schema::few)]
    pub hooks: Vec<HookSubscription>,
    /// The records that a person must approve; null: none.
    pub review: Option<ReviewPolicy>,
    /// The treatment of personal data before it leaves.
    pub pii: PiiPolicy,
    /// The treatment of captures when a budget is used up.
    pub on_budget: OnBudget,
    /// The retention of the binding.
    pub retention: BindingRetention,
    /// How it is shown to agents.
    pub mcp: McpPolicy,
    /// Where the cost of its calls is counted, whatever the provider says; null: where the provider
    /// says.
    pub attribution: Option<AttributionMode>,
    /// Whom records belong to.
    pub sharing: Sharing,
    /// Whether only operators and company administrators may change or forget what one of them
    /// wrote.
    pub protect_administrators: bool,
}

impl Default for BindingPolicy {
    fn default() -> Self {
        Self {
            hooks: default_hooks(),
            review: None,
            pii: PiiPolicy::default(),
            on_budget: OnBudget::default(),
            retention: BindingRetention::default(),
            mcp: McpPolicy::default(),
            attribution: None,
            sharing: Sharing::default(),
            protect_administrators: false,
        }
    }
}

impl BindingPolicy {
    /// Checks ranges and names.
    ///
    /// # Errors
    /// The first field at fault.
    pub fn check(&self) -> Result<(), FieldError> {
        const MOST: usize = super::limits::MAX_FEW;
        let wrong =
            |field: &str, message: String| Err(FieldError::new(format!("policy.{field}"), message));
        if self.hooks.len() > MOST {
            return wrong(
                "hooks",
                format!("has {} entries; at most {MOST} are allowed", self.hooks.len()),
            );
        }
        for (index, subscription) in self.hooks.iter().enumerate() {
            super::check_id(&format!("policy.hooks.{index}.kind"), subscription.kind.as_str())?;
            if self.hooks[..index].iter().any(|other| other.kind == subscription.kind) {
                return wrong(
                    &format!("hooks.{index}.kind"),
                    "is there twice; name a kind once".to_owned(),
                );
            }
        }
        let Some(review) = &self.review else { return Ok(()) };
        if review.thresholds.len() > MOST {
            return wrong("review.thresholds", format!("has more than {MOST} entries"));
        }
        for kind in review.thresholds.keys() {
            // The kind is not part of the field before it is known to be short.
            super::check_id("policy.review.thresholds", kind)?;
        }
        let all = review
            .thresholds
            .iter()
            .map(|(kind, share)| (format!("review.thresholds.{kind}"), *share));
        for (field, share) in all.chain([("review.threshold".to_owned(), review.threshold)]) {
            if !(0.0..=1.0).contains(&share) {
                return wrong(&field, format!("is {share}; 0 to 1 is allowed"));
            }
        }
        match review.pii_risk {
            1..=3 => Ok(()),
            level => {
                wrong("review.piiRisk", format!("is {level}; 1 or 2 is allowed, or 3 for never"))
            }
        }
    }

    /// How the binding takes a kind of hook, if it does.
    pub fn takes(&self, kind: &HookKind) -> Option<SubscribedWhen> {
        self.hooks
            .iter()
            .find(|subscription| subscription.kind == *kind)
            .map(|subscription| subscription.when)
    }
}
