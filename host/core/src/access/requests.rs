//! Requests about tokens, and their checks.

use jiff::{SignedDuration, Timestamp};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::access::rules::allows;
use memhost_types::{Act, AgentId, CompanyId, FieldError, Role};

/// The longest time for which a value works after the token has another one, in seconds: 30 days.
const MAX_OVERLAP: u32 = 30 * 24 * 3_600;

/// A request to make a token.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CreateToken {
    /// What to call it: 1 to 64 printable characters.
    #[schemars(length(min = 1, max = 64), regex(pattern = r"^[^\u0000-\u001f\u007f-\u009f]+$"))]
    pub name: String,
    /// What its bearer is.
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
    let name = &request.name;
    if name.is_empty() || name.chars().count() > 64 || name.chars().any(char::is_control) {
        return Err(FieldError::new("name", "is not 1 to 64 printable characters"));
    }
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
