//! Requests about tokens, and their checks.

use jiff::{SignedDuration, Timestamp};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::rules::allows;
use memhost_types::{Act, AgentId, CompanyId, FieldError, Role, check_token_name};

/// The longest time for which a value works after the token has another one, in seconds: 30 days.
const MAX_OVERLAP: u32 = 30 * 24 * 3_600;

/// A request to make a token.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CreateToken {
    /// Its name: 1 to 64 printable characters.
    #[schemars(length(min = 1, max = 64), regex(pattern = r"^[^\u0000-\u001f\u007f-\u009f]+$"))]
    pub name: String,
    /// The role of its bearer.
    pub role: Role,
    /// Which agent; needed for an agent, and for nobody else.
    #[serde(default)]
    pub agent_id: Option<AgentId>,
    /// The only run that an agent may act in.
    #[serde(default)]
    #[schemars(with = "Option<memhost_types::schema::OutsideId>")]
    pub run_id: Option<String>,
    /// All that it may do, on both planes; absent: what its role may.
    #[serde(default)]
    #[schemars(transform = memhost_types::schema::few)]
    pub operations: Option<Vec<Act>>,
    /// From when on it is good for nothing.
    #[serde(default)]
    pub expires_at: Option<Timestamp>,
}

/// A request to give a token another value.
#[derive(Debug, Clone, Copy, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RotateToken {
    /// For how long the value before works, too: 0 to 2,592,000 seconds, 30 days. 0 where absent.
    #[serde(default)]
    #[schemars(range(max = 2_592_000))]
    pub overlap_seconds: Option<u32>,
}

impl RotateToken {
    /// For how long the value before works, too.
    pub(crate) fn overlap(self) -> Result<SignedDuration, FieldError> {
        match self.overlap_seconds.unwrap_or(0) {
            overlap @ 0..=MAX_OVERLAP => Ok(SignedDuration::from_secs(overlap.into())),
            overlap => {
                let message =
                    format!("is {overlap} seconds; at most {MAX_OVERLAP}, which are 30 days");
                Err(FieldError::new("overlapSeconds", message))
            }
        }
    }
}

/// Checks a request to make a token.
pub(crate) fn check(
    company: Option<&CompanyId>,
    request: &CreateToken,
    now: Timestamp,
) -> Result<(), FieldError> {
    check_token_name(&request.name)?;
    match (request.role, company) {
        (Role::Operator, Some(_)) => {
            return Err(FieldError::new(
                "role",
                "is `operator`, and an operator belongs to no company; leave it out",
            ));
        }
        (Role::Monitor, Some(_)) => {
            return Err(FieldError::new(
                "role",
                "is `monitor`, and a monitor belongs to no company; leave it out",
            ));
        }
        (Role::CompanyAdministrator | Role::Agent | Role::Auditor | Role::Integration, None) => {
            return Err(FieldError::new(
                "role",
                format!("is `{}`, which belongs to a company; name it", request.role),
            ));
        }
        (Role::Operator | Role::Monitor, None) | (_, Some(_)) => {}
    }
    let is_agent = request.role == Role::Agent;
    match (is_agent, &request.agent_id) {
        (true, None) => {
            return Err(FieldError::new(
                "agentId",
                "is missing; the role `agent` needs it: name the agent",
            ));
        }
        (false, Some(_)) => {
            return Err(FieldError::new(
                "agentId",
                "belongs to the role `agent` only; leave it out",
            ));
        }
        (true, Some(_)) | (false, None) => {}
    }
    if let Some(run) = &request.run_id {
        if !is_agent {
            return Err(FieldError::new("runId", "belongs to the role `agent` only; leave it out"));
        }
        memhost_types::check_id("runId", run)?;
    }
    if let Some(operations) = &request.operations {
        if operations.is_empty() {
            return Err(FieldError::new(
                "operations",
                "is empty; name some, or leave it out for all of the role's",
            ));
        }
        if let Some(twice) =
            (1..operations.len()).find(|last| operations[..*last].contains(&operations[*last]))
        {
            let message = format!("names `{}` twice; name each once", operations[twice]);
            return Err(FieldError::new("operations", message));
        }
        if let Some(act) = operations.iter().find(|act| !allows(request.role, **act)) {
            let role = request.role;
            return Err(FieldError::new(
                "operations",
                format!("has `{act}`, which the role `{role}` may not do"),
            ));
        }
    }
    if request.expires_at.is_some_and(|expires_at| expires_at <= now) {
        return Err(FieldError::new("expiresAt", "is over already; name a time to come"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::testing::{BEGIN, asks, company};

    /// The field at fault.
    fn wrong(role: Role, of: Option<&str>, more: Value) -> Option<String> {
        let of = of.map(company);
        check(of.as_ref(), &asks(role, more), BEGIN).err().map(|error| error.field)
    }

    fn field(name: &str) -> Option<String> {
        Some(name.to_owned())
    }

    #[test]
    fn a_token_has_a_name_that_can_be_printed() {
        for name in ["x".repeat(64), "é".repeat(64), "eve as agent:bob".to_owned()] {
            assert_eq!(wrong(Role::Auditor, Some("acme"), json!({"name": name})), None, "{name}");
        }
        for name in [String::new(), "x".repeat(65), "a\nb".to_owned(), "\u{7f}".to_owned()] {
            assert_eq!(wrong(Role::Auditor, Some("acme"), json!({"name": name})), field("name"));
        }
    }

    #[test]
    fn operators_and_monitors_belong_to_no_company_and_all_others_to_one() {
        for role in Role::ALL {
            let is_hosts = matches!(role, Role::Operator | Role::Monitor);
            let (fine, not) = if is_hosts { (None, Some("acme")) } else { (Some("acme"), None) };
            assert_eq!(wrong(*role, fine, json!({})), None, "{role}");
            assert_eq!(wrong(*role, not, json!({})), field("role"), "{role}");
        }
    }

    #[test]
    fn an_agents_token_names_the_agent_and_no_other_does() {
        assert_eq!(wrong(Role::Agent, Some("acme"), json!({"agentId": null})), field("agentId"));
        for role in [Role::Auditor, Role::CompanyAdministrator, Role::Integration] {
            assert_eq!(wrong(role, Some("acme"), json!({"agentId": "ada"})), field("agentId"));
        }
    }

    #[test]
    fn only_an_agents_token_names_a_run() {
        assert_eq!(wrong(Role::Agent, Some("acme"), json!({"runId": "r1"})), None);
        assert_eq!(wrong(Role::Agent, Some("acme"), json!({"runId": "a/b"})), field("runId"));
        assert_eq!(wrong(Role::Auditor, Some("acme"), json!({"runId": "r1"})), field("runId"));
    }

    #[test]
    fn operations_are_some_of_the_roles_each_once() {
        let wrong = |operations: Value| {
            wrong(Role::Auditor, Some("acme"), json!({"operations": operations}))
        };
        assert_eq!(wrong(json!(["query", "view"])), None);
        for operations in [json!([]), json!(["query", "view", "query"]), json!(["capture"])] {
            assert_eq!(wrong(operations.clone()), field("operations"), "{operations}");
        }
    }

    #[test]
    fn a_token_ends_in_the_time_to_come() {
        let ends = |at: Timestamp| wrong(Role::Operator, None, json!({"expiresAt": at}));
        assert_eq!(ends(BEGIN + SignedDuration::from_secs(1)), None);
        assert_eq!(ends(BEGIN), field("expiresAt"));
    }

    #[test]
    fn a_value_works_for_thirty_days_at_most_after_its_token_has_another() {
        let overlap = |seconds| RotateToken { overlap_seconds: seconds }.overlap();
        assert_eq!(overlap(None).unwrap(), SignedDuration::ZERO);
        assert_eq!(overlap(Some(2_592_000)).unwrap(), SignedDuration::from_hours(30 * 24));
        assert_eq!(overlap(Some(2_592_001)).unwrap_err().field, "overlapSeconds");
    }

    #[test]
    fn a_request_has_no_unknown_field() {
        let body = json!({"name": "t", "role": "auditor", "scope": "all"});
        assert!(serde_json::from_value::<CreateToken>(body).is_err());
        assert!(serde_json::from_value::<RotateToken>(json!({"overlap": 5})).is_err());
    }
}
