//! Why a caller may not do something.

use std::fmt;

use jiff::Timestamp;

use memhost_types::{Act, OperationErrorCode, Refusal, Role};

/// The caller may not do this. The message is the same whether or not the thing exists.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct Denied {
    /// The field that goes beyond the token, if it is one.
    pub field: Option<&'static str>,
    /// The permissions that the token's operations lack.
    pub beyond: Vec<Act>,
    /// The role that does not allow it, and what that is.
    pub role: Option<(Role, Act)>,
    /// The error of the field, as the rest of a sentence that begins with its name.
    pub why: Option<String>,
}

impl Denied {
    /// This field goes beyond the token.
    pub(crate) fn field(field: &'static str) -> Self {
        Self { field: Some(field), ..Self::without_reason() }
    }

    /// The same, with what is wrong with it.
    pub fn because(field: &'static str, why: impl Into<String>) -> Self {
        Self { why: Some(why.into()), ..Self::field(field) }
    }

    /// The event belongs to another run than the token.
    pub fn of_another_run() -> Self {
        Self::because(
            "hookId",
            "is that of an event of another run; give your event an id of its own",
        )
    }

    /// The token does not allow the request; what stops it is not said.
    pub(crate) fn without_reason() -> Self {
        Self { field: None, beyond: Vec::new(), role: None, why: None }
    }

    /// The token does not allow the request, for this reason.
    pub fn whole(why: impl Into<String>) -> Self {
        Self { why: Some(why.into()), ..Self::without_reason() }
    }

    /// The token would work after the caller's own has ended.
    pub(crate) fn ends_later(own: Timestamp) -> Self {
        Self::because("expiresAt", format!("is after the end of your own token, {own}"))
    }

    /// The reason, without the name of the field.
    pub fn reason(&self) -> String {
        const ASK: &str = "ask whoever gave it to you for one that does";
        let beyond: Vec<_> = self.beyond.iter().map(|act| format!("`{act}`")).collect();
        let beyond = Some(beyond.join(", ")).filter(|names| !names.is_empty());
        match (&self.why, beyond, self.role) {
            (Some(why), ..) => why.clone(),
            (None, Some(names), _) if self.field.is_some() => {
                format!("gives more than your own token has: its operations do not include {names}")
            }
            (None, Some(names), _) => {
                format!(
                    "this token does not allow that: its operations do not include {names}; {ASK}"
                )
            }
            (None, None, Some((role, act))) => {
                format!(
                    "this token does not allow that: its role `{role}` does not have the right \
                     `{act}`; {ASK}"
                )
            }
            (None, None, None) if self.field.is_some() => {
                format!("is not allowed with this token; {ASK}")
            }
            (None, None, None) => format!("this token does not allow that; {ASK}"),
        }
    }
}

impl fmt::Display for Denied {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.field {
            Some(field) => write!(f, "{field}: {}", self.reason()),
            None => f.write_str(&self.reason()),
        }
    }
}

impl From<&Denied> for Refusal {
    fn from(denied: &Denied) -> Self {
        let mut refusal = Self::new(OperationErrorCode::Forbidden, denied.reason());
        refusal.error.field = denied.field.map(str::to_owned);
        refusal
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use memhost_types::OperationKind;

    const QUERY: Act = Act::Operate(OperationKind::Query);

    #[test]
    fn a_denial_says_what_stops_it_and_what_to_do() {
        let ask = "; ask whoever gave it to you for one that does";
        let whole = Denied::without_reason();
        let beyond = Denied { beyond: vec![QUERY, Act::Emit], ..whole.clone() };
        let role = Denied { role: Some((Role::Agent, Act::View)), ..whole.clone() };
        for (denied, text) in [
            (whole, "this token does not allow that"),
            (
                beyond,
                "this token does not allow that: its operations do not include `query`, `events`",
            ),
            (
                role,
                "this token does not allow that: its role `agent` does not have the right `view`",
            ),
            (Denied::field("runId"), "runId: is not allowed with this token"),
        ] {
            assert_eq!(denied.to_string(), format!("{text}{ask}"));
        }
    }

    #[test]
    fn a_denied_field_says_what_is_wrong_with_it() {
        let beyond = Denied { beyond: vec![QUERY], ..Denied::field("operations") };
        assert_eq!(
            beyond.to_string(),
            "operations: gives more than your own token has: its operations do not include `query`"
        );
        let ends = Denied::ends_later(Timestamp::UNIX_EPOCH);
        assert_eq!(ends.field, Some("expiresAt"));
        assert!(ends.reason().contains("1970-01-01"), "{ends}");
        assert!(Denied::of_another_run().to_string().starts_with("hookId: is that of an event"));
    }

    #[test]
    fn a_refusal_names_the_field_apart_from_the_message() {
        let refusal = Refusal::from(&Denied::because("scope.runId", "is not yours"));
        assert_eq!(refusal.error.code, OperationErrorCode::Forbidden);
        assert_eq!(refusal.error.field.as_deref(), Some("scope.runId"));
        assert_eq!(refusal.error.message, "is not yours");
        assert_eq!(Refusal::from(&Denied::whole("no")).error.field, None);
    }
}
