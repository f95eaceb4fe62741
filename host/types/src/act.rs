//! What a caller may be allowed to do: one vocabulary for roles, for the limits of tokens and for
//! the permissions of routes.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{IdError, OperationKind};

/// Something that a caller may be allowed to do. A token's `operations` are names of these.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Act {
    /// A memory operation.
    Operate(OperationKind),
    /// Delivering a hook.
    Deliver,
    /// Sending events of sessions and tools.
    Emit,
    /// Asking which binding answers.
    Resolve,
    /// Reading anything of a company.
    View,
    /// Changing bindings, targets, secrets, budgets, reviews, jobs, deliveries and tokens of a
    /// company.
    Administer,
    /// Setting grants and limits.
    Grant,
    /// Exporting or importing a company as a whole.
    Move,
    /// Erasing a company.
    Erase,
    /// Reading the health and the metrics of the host, and nothing of a company.
    Monitor,
    /// Everything else that belongs to no company: plugins, the store, operators' tokens.
    Host,
}

/// Permissions that a token can be limited to, beside the memory operations.
const OTHERS: &[Act] = &[
    Act::Deliver,
    Act::Emit,
    Act::Resolve,
    Act::View,
    Act::Administer,
    Act::Grant,
    Act::Move,
    Act::Erase,
    Act::Monitor,
    Act::Host,
];

/// The operations that nobody asks for: the host's own, and refusals.
const OWN: usize = 3;

const fn is_own(kind: OperationKind) -> bool {
    matches!(kind, OperationKind::Extraction | OperationKind::Health | OperationKind::Control)
}

/// A number of [`OWN`] that is not that of [`is_own`] does not compile.
const ALL: [Act; OperationKind::ALL.len() - OWN + OTHERS.len()] = {
    let mut all = [Act::Deliver; OperationKind::ALL.len() - OWN + OTHERS.len()];
    let (mut next, mut from) = (0, 0);
    while from < OperationKind::ALL.len() {
        if !is_own(OperationKind::ALL[from]) {
            all[next] = Act::Operate(OperationKind::ALL[from]);
            next += 1;
        }
        from += 1;
    }
    assert!(next + OTHERS.len() == all.len());
    from = 0;
    while from < OTHERS.len() {
        all[next + from] = OTHERS[from];
        from += 1;
    }
    all
};

impl Act {
    /// Everything that a token can be limited to. Extraction, health and refusals are the host's
    /// own operations.
    pub const ALL: &'static [Self] = &ALL;

    /// The name in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Operate(kind) => kind.as_str(),
            Self::Deliver => "hooks",
            Self::Emit => "events",
            Self::Resolve => "resolve",
            Self::View => "view",
            Self::Administer => "administer",
            Self::Grant => "grant",
            Self::Move => "move",
            Self::Erase => "erase",
            Self::Monitor => "monitor",
            Self::Host => "host",
        }
    }

    /// Whether this is memory traffic, below `/runtime/v1` and at `/mcp`.
    pub fn is_runtime(self) -> bool {
        matches!(self, Self::Operate(_) | Self::Deliver | Self::Emit)
    }
}

impl fmt::Display for Act {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for Act {
    type Err = IdError;

    fn from_str(text: &str) -> Result<Self, IdError> {
        Self::ALL.iter().copied().find(|act| act.as_str() == text).ok_or_else(|| {
            let all: Vec<_> = Self::ALL.iter().map(|act| act.as_str()).collect();
            let near = super::nearest(text, all.iter().copied());
            let near = near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
            IdError { what: "operation", problem: format!("is none of {}{near}", all.join(", ")) }
        })
    }
}

impl Serialize for Act {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for Act {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Cow::<'de, str>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

impl JsonSchema for Act {
    fn schema_name() -> Cow<'static, str> {
        "Act".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let names: Vec<_> = Self::ALL.iter().map(|act| act.as_str()).collect();
        json_schema!({
            "description": "Something that a caller may be allowed to do: a memory operation, or a \
                            part of a plane.",
            "type": "string",
            "enum": names,
        })
    }
}
