//! Integrations: gateways that act for somebody else.

use crate::access::caller::Caller;
use crate::access::denied::Denied;
use memhost_types::{AgentId, FieldError, Role, check_id};

/// For whom one request of an integration acts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ActAs {
    /// An agent of the company; then the role is `agent`.
    pub agent_id: Option<AgentId>,
    /// The run of that agent.
    pub run_id: Option<String>,
    /// A person: a user of the system behind the integration, as the scope's `subjectId` names it.
    pub person_id: Option<String>,
    /// What the request may do at most; absent: what an agent may.
    pub role: Option<Role>,
}

/// What surfaces call the fields of [`ActAs`]: the headers of a request.
pub const ACT_AS_HEADERS: [&str; 4] = [AGENT, RUN, PERSON, ROLE];
const AGENT: &str = "x-memhost-act-as-agent";
const RUN: &str = "x-memhost-act-as-run";
const PERSON: &str = "x-memhost-act-as-person";
const ROLE: &str = "x-memhost-act-as-role";

/// Why a request does not act for somebody. A field is one of [`ACT_AS_HEADERS`].
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum ActingError {
    #[error(transparent)]
    Field(#[from] FieldError),
    #[error(transparent)]
    Denied(#[from] Denied),
}

impl ActAs {
    /// Whether the request names nobody.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    fn first(&self) -> &'static str {
        match self {
            Self { agent_id: Some(_), .. } => AGENT,
            Self { person_id: Some(_), .. } => PERSON,
            Self { role: Some(_), .. } => ROLE,
            _ => RUN,
        }
    }

    fn check(&self) -> Result<(), FieldError> {
        if self.agent_id.is_some() && self.person_id.is_some() {
            return Err(FieldError::new(PERSON, "is there beside an agent; act for one of them"));
        }
        if let Some(person) = &self.person_id {
            check_id(PERSON, person)?;
        }
        if let Some(run) = &self.run_id {
            check_id(RUN, run)?;
            if self.agent_id.is_none() {
                return Err(FieldError::new(
                    RUN,
                    "is there without an agent; name the agent whose run it is",
                ));
            }
        }
        match self.role {
            None | Some(Role::Agent) => Ok(()),
            Some(Role::CompanyAdministrator | Role::Auditor) if self.agent_id.is_none() => Ok(()),
            Some(role) if self.agent_id.is_some() => {
                Err(FieldError::new(ROLE, format!("is `{role}`; an agent acts as `agent` only")))
            }
            Some(role) => {
                let message = format!("is `{role}`; use agent, auditor or company_administrator");
                Err(FieldError::new(ROLE, message))
            }
        }
    }
}

impl Caller {
    /// Whether requests of this caller name for whom they act.
    pub fn is_integration(&self) -> bool {
        self.role() == Role::Integration
    }

    /// The same caller, acting for whom the request names.
    ///
    /// # Errors
    /// Where this caller is no integration and the request names somebody, or a field is not valid.
    pub fn acting(self, whom: ActAs) -> Result<Self, ActingError> {
        if whom.is_empty() {
            return Ok(self);
        }
        if !self.is_integration() {
            let why = "is for tokens of the role `integration` only; leave it out";
            return Err(Denied::because(whom.first(), why).into());
        }
        whom.check()?;
        Ok(self.on_behalf(whom))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whom_a_request_names_is_checked() {
        let ada = || "ada".parse().ok();
        let field = |whom: ActAs| whom.check().map_err(|error| error.field);
        let fine = [
            ActAs { agent_id: ada(), run_id: Some("r1".to_owned()), ..ActAs::default() },
            ActAs { agent_id: ada(), role: Some(Role::Agent), ..ActAs::default() },
            ActAs {
                person_id: Some("u1".to_owned()),
                role: Some(Role::Auditor),
                ..ActAs::default()
            },
            ActAs { role: Some(Role::CompanyAdministrator), ..ActAs::default() },
        ];
        for whom in fine {
            assert_eq!(field(whom.clone()), Ok(()), "{whom:?}");
        }
        for (whom, wrong) in [
            (
                ActAs { agent_id: ada(), person_id: Some("u1".to_owned()), ..ActAs::default() },
                PERSON,
            ),
            (ActAs { person_id: Some(String::new()), ..ActAs::default() }, PERSON),
            (ActAs { run_id: Some("r1".to_owned()), ..ActAs::default() }, RUN),
            (ActAs { agent_id: ada(), role: Some(Role::Auditor), ..ActAs::default() }, ROLE),
            (ActAs { role: Some(Role::Operator), ..ActAs::default() }, ROLE),
            (ActAs { role: Some(Role::Integration), ..ActAs::default() }, ROLE),
        ] {
            assert_eq!(field(whom.clone()), Err(wrong.to_owned()), "{whom:?}");
        }
    }
}
