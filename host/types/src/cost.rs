//! What was spent: cost events for metered use that is billed directly, finance events for flat
//! charges, budgets. The columns are those of Paperclip's ledgers, so that a row here becomes a row
//! there.

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::bounds::check_context_id;
use super::named::named;
use super::usage::UNKNOWN;
use super::{
    AgentId, AttributionMode, BillingType, BindingId, BindingKey, CompanyId, FieldError,
    JsonObject, Microcents, Operation, OperationId, Principal, TextId as _,
};

named!(
    /// Whether an amount is known.
    CostStatus, "costStatus" {
        /// The provider reported it.
        Reported = "reported",
        /// The provider reported tokens and no amount.
        Unpriced = "unpriced",
    }
);

/// Metered use that is billed directly. Use that the run's own accounting has already makes none.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[allow(missing_docs, reason = "the names are those of Paperclip's columns")]
pub struct CostEvent {
    /// Follows from the operation: the same however often it is written.
    pub id: Uuid,
    pub company_id: CompanyId,
    /// The operation that used it.
    pub operation_id: OperationId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub binding_key: Option<BindingKey>,
    /// Its id: another binding may have had its key before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub binding_id: Option<BindingId>,
    /// The agent that it is for, or else who asked, such as `operator`.
    pub agent_id: AgentId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub issue_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub heartbeat_run_id: Option<String>,
    pub provider: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub biller: Option<String>,
    pub billing_type: BillingType,
    pub cost_status: CostStatus,
    /// `unknown` where the provider names none.
    pub model: String,
    pub input_tokens: u64,
    pub cached_input_tokens: u64,
    pub output_tokens: u64,
    pub embedding_tokens: u64,
    /// Exact. Round a sum to whole cents, never its parts.
    #[serde(rename = "costCents")]
    pub cost: Microcents,
    pub occurred_at: Timestamp,
}

named!(
    /// In which order a list is.
    #[derive(Default)]
    ListOrder, "order" {
        /// The operation that began last comes first.
        #[default]
        Newest = "newest",
        /// What ended first comes first. The cursor of the last page leads to what ends later.
        Oldest = "oldest",
    }
);

/// Which cost events to show, and in which order. Every other field that is set must match.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[allow(missing_docs, reason = "the names are those of the event's fields")]
pub struct CostEventFilter {
    pub binding_key: Option<BindingKey>,
    pub agent_id: Option<AgentId>,
    #[schemars(with = "Option<super::schema::OutsideId>")]
    pub issue_id: Option<String>,
    #[schemars(with = "Option<super::schema::OutsideId>")]
    pub project_id: Option<String>,
    #[schemars(with = "Option<super::schema::OutsideId>")]
    pub run_id: Option<String>,
    /// Occurred at this moment or later.
    pub since: Option<Timestamp>,
    /// Occurred before this moment.
    pub until: Option<Timestamp>,
    pub order: ListOrder,
}

impl CostEventFilter {
    /// Checks the length of ids.
    ///
    /// # Errors
    /// The first field at fault.
    pub fn check(&self) -> Result<(), FieldError> {
        check_context_id("issueId", self.issue_id.as_deref())?;
        check_context_id("projectId", self.project_id.as_deref())?;
        check_context_id("runId", self.run_id.as_deref())
    }

    /// Whether an event matches.
    pub fn matches(&self, event: &CostEvent) -> bool {
        self.binding_key.as_ref().is_none_or(|wanted| event.binding_key.as_ref() == Some(wanted))
            && self.agent_id.as_ref().is_none_or(|wanted| event.agent_id == *wanted)
            && self.issue_id.as_ref().is_none_or(|wanted| event.issue_id.as_ref() == Some(wanted))
            && self
                .project_id
                .as_ref()
                .is_none_or(|wanted| event.project_id.as_ref() == Some(wanted))
            && self
                .run_id
                .as_ref()
                .is_none_or(|wanted| event.heartbeat_run_id.as_ref() == Some(wanted))
            && self.since.is_none_or(|since| event.occurred_at >= since)
            && self.until.is_none_or(|until| event.occurred_at < until)
    }
}

impl CostEvent {
    /// The cost events of an operation, one for each usage that is billed directly.
    pub fn of(operation: &Operation) -> Vec<Self> {
        let about = operation.about();
        let billed = operation
            .usage
            .iter()
            .filter(|usage| usage.attribution() == AttributionMode::BilledDirectly);
        billed
            .enumerate()
            .map(|(index, usage)| Self {
                id: event_id(operation.id, index),
                company_id: operation.company_id.clone(),
                operation_id: operation.id,
                binding_key: operation.binding_key.clone(),
                binding_id: operation.binding_id,
                agent_id: agent_of(operation),
                issue_id: about.issue().map(str::to_owned),
                project_id: about.project().map(str::to_owned),
                heartbeat_run_id: about.run().map(str::to_owned),
                provider: usage.provider.clone(),
                biller: usage.biller.clone(),
                billing_type: usage.billing_type.unwrap_or(BillingType::Unknown),
                cost_status: if usage.cost.is_some() {
                    CostStatus::Reported
                } else {
                    CostStatus::Unpriced
                },
                model: usage.model_name().to_owned(),
                input_tokens: usage.input_tokens.unwrap_or(0),
                cached_input_tokens: usage.cached_input_tokens.unwrap_or(0),
                output_tokens: usage.output_tokens.unwrap_or(0),
                embedding_tokens: usage.embedding_tokens.unwrap_or(0),
                cost: usage.cost.unwrap_or_default(),
                occurred_at: operation.started_at,
            })
            .collect()
    }
}

/// The agent that an operation is for, or else who asked: the ledger has no row without one.
pub(super) fn agent_of(operation: &Operation) -> AgentId {
    let asked =
        || AgentId::parse(&operation.principal.to_string()).or_else(|_| AgentId::parse(UNKNOWN));
    match operation.agent().or(operation.principal.agent()) {
        Some(agent) => agent.clone(),
        None => asked().unwrap_or_else(|_| unreachable!("`{UNKNOWN}` is an id")),
    }
}

fn event_id(operation: OperationId, index: usize) -> Uuid {
    let hash = blake3::hash(format!("memhost cost event {operation} {index}").as_bytes());
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&hash.as_bytes()[..16]);
    uuid::Builder::from_custom_bytes(bytes).into_uuid()
}

named!(
    /// Which way money goes.
    #[derive(Default)]
    Direction, "direction" {
        /// It is spent.
        #[default]
        Debit = "debit",
        /// It comes back.
        Credit = "credit",
    }
);

/// A request to enter a flat charge: a subscription, a storage invoice, a platform fee.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[allow(missing_docs, reason = "the names are those of Paperclip's columns")]
pub struct NewFinanceEvent {
    /// Such as `platform_fee` or `log_storage_charge`.
    #[schemars(with = "super::schema::OutsideId")]
    pub event_kind: String,
    #[serde(default)]
    pub direction: Direction,
    #[schemars(with = "super::schema::Reference")]
    pub biller: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<super::schema::Reference>")]
    pub provider: Option<String>,
    /// Which binding it is for, if it is for one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub binding_key: Option<BindingKey>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<AgentId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<super::schema::Reference>")]
    pub description: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<super::schema::Reference>")]
    pub billing_code: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<super::schema::OutsideId>")]
    pub issue_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<super::schema::OutsideId>")]
    pub project_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<super::schema::OutsideId>")]
    pub heartbeat_run_id: Option<String>,
    /// The cost event that it belongs to, such as one that it corrects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_event_id: Option<Uuid>,
    /// How many units were charged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quantity: Option<u64>,
    /// The unit, such as `gb_month`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<super::schema::OutsideId>")]
    pub unit: Option<String>,
    /// Whole cents.
    #[serde(rename = "amountCents")]
    #[schemars(with = "u64")]
    pub amount: Microcents,
    /// Three capital letters; `USD` where absent.
    #[serde(default = "usd")]
    #[schemars(regex(pattern = "^[A-Z]{3}$"))]
    pub currency: String,
    #[serde(default)]
    pub estimated: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<super::schema::Reference>")]
    pub external_invoice_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(transform = super::schema::free_json)]
    pub metadata_json: Option<JsonObject>,
    pub occurred_at: Timestamp,
}

fn usd() -> String {
    "USD".to_owned()
}

impl NewFinanceEvent {
    /// Checks names and lengths.
    ///
    /// # Errors
    /// The first field at fault.
    pub fn check(&self) -> Result<(), FieldError> {
        super::check_id("eventKind", &self.event_kind)?;
        for (field, id) in [
            ("issueId", &self.issue_id),
            ("projectId", &self.project_id),
            ("heartbeatRunId", &self.heartbeat_run_id),
            ("unit", &self.unit),
        ] {
            id.as_ref().map_or(Ok(()), |id| super::check_id(field, id))?;
        }
        if self.unit.is_some() != self.quantity.is_some() {
            let (field, other) =
                if self.unit.is_some() { ("quantity", "unit") } else { ("unit", "quantity") };
            return Err(FieldError::new(field, format!("is missing; `{other}` needs it")));
        }
        if !self.amount.0.is_multiple_of(1_000_000) {
            return Err(FieldError::new(
                "amountCents",
                "is a fraction of a cent; an invoice has whole cents",
            ));
        }
        for (field, text) in [
            ("biller", Some(&self.biller)),
            ("provider", self.provider.as_ref()),
            ("description", self.description.as_ref()),
            ("billingCode", self.billing_code.as_ref()),
            ("externalInvoiceId", self.external_invoice_id.as_ref()),
        ] {
            if let Some(text) = text
                && (text.is_empty() || text.len() > 512 || text.chars().any(char::is_control))
            {
                return Err(FieldError::new(field, "is not 1 to 512 printable bytes"));
            }
        }
        super::bounds::check_json("metadataJson", self.metadata_json.as_ref())?;
        match self.currency.len() == 3
            && self.currency.bytes().all(|byte| byte.is_ascii_uppercase())
        {
            true => Ok(()),
            false => Err(FieldError::new("currency", "is not three capital letters, such as USD")),
        }
    }
}

/// A flat charge. It is no operation's, and no budget stops it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FinanceEvent {
    /// Orders them by when they were entered.
    pub id: Uuid,
    /// The company.
    pub company_id: CompanyId,
    /// The event as it was entered.
    #[serde(flatten)]
    pub entered: NewFinanceEvent,
    /// The principal that entered it.
    pub created_by: Principal,
    /// When.
    pub created_at: Timestamp,
}

named!(
    /// Over which time a budget goes. Periods begin at midnight UTC.
    Period, "period" {
        /// A day.
        Day = "day",
        /// A calendar month.
        Month = "month",
    }
);

impl Period {
    /// The first day of the period that a moment is in.
    pub fn start(self, moment: Timestamp) -> Date {
        let day = TimeZone::UTC.to_datetime(moment).date();
        match self {
            Self::Day => day,
            Self::Month => day.first_of_month(),
        }
    }

    /// When the next period begins.
    pub fn end(self, moment: Timestamp) -> Timestamp {
        let start = self.start(moment);
        let next = match self {
            Self::Day => start.tomorrow(),
            Self::Month => start.last_of_month().tomorrow(),
        };
        let next = next.ok().and_then(|day| day.to_zoned(TimeZone::UTC).ok());
        next.map_or(moment, |next| next.timestamp())
    }
}

/// A request to set a budget.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SetBudget {
    /// The most that may be spent in a period.
    #[serde(rename = "limitCents")]
    pub limit: Microcents,
    /// The share of the limit at which a warning is sent, from 0 to 1.
    #[serde(default = "warn_share")]
    #[schemars(transform = super::schema::share)]
    pub warn_share: f64,
}

fn warn_share() -> f64 {
    0.8
}

/// How much a company, or one of its bindings, may spend in a period.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Budget {
    /// The company.
    pub company_id: CompanyId,
    /// The binding; absent: all bindings together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub binding_key: Option<BindingKey>,
    /// Its id: a budget ends with its binding, and no other binding of the same key has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub binding_id: Option<BindingId>,
    /// Over which time.
    pub period: Period,
    /// The limit, and the share at which a warning is sent.
    #[serde(flatten)]
    pub set: SetBudget,
    /// When it was last set.
    pub set_at: Timestamp,
}

named!(
    /// How a budget stands.
    BudgetState, "state" {
        /// There is enough.
        Open = "open",
        /// The share for a warning is reached.
        Warning = "warning",
        /// Nothing more is spent in this period.
        Stopped = "stopped",
    }
);

/// A budget and what is spent of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BudgetView {
    /// The budget.
    #[serde(flatten)]
    pub budget: Budget,
    /// The spending of the present period.
    #[serde(rename = "spentCents")]
    pub spent: Microcents,
    /// How it stands.
    pub state: BudgetState,
    /// When the next period begins.
    pub resets_at: Timestamp,
}
