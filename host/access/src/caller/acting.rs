//! Integrations: gateways that act for somebody else.

use super::Caller;
use crate::denied::Denied;
use memhost_types::{ActsFor, AgentId, FieldError, Principal, Role, check_id};

/// For whom one request of an integration acts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ActAs {
    /// An agent of the company; then the role is `agent`.
    pub agent_id: Option<AgentId>,
    /// The run of that agent.
    pub run_id: Option<String>,
    /// A person: a user of the system behind the integration, as the scope's `subjectId` names it.
    pub person_id: Option<String>,
    /// The role that limits the request; absent: `agent`.
    pub role: Option<Role>,
}

/// The names of the fields of [`ActAs`] at the surfaces: the headers of a request.
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

    /// The same caller, acting for whom the request names. In the role of an agent the request is
    /// confined to that one's own scope.
    ///
    /// # Errors
    /// Where this caller is no integration and the request names somebody, or a field is not valid.
    pub fn acting(self, whom: ActAs) -> Result<Self, ActingError> {
        if whom.is_empty() {
            return Ok(self);
        }
        let (Principal::Token { role: Role::Integration, name }
        | Principal::Integration { name, .. }) = self.principal
        else {
            let why = "is for tokens of the role `integration` only; leave it out";
            return Err(Denied::because(whom.first(), why).into());
        };
        whom.check()?;
        let ActAs { agent_id, run_id, person_id, role } = whom;
        let role = role.unwrap_or(Role::Agent);
        let acts_for = match (agent_id, person_id) {
            (Some(agent), _) => ActsFor::Agent(agent),
            (None, Some(id)) => ActsFor::Person { id, role },
            (None, None) => ActsFor::Role(role),
        };
        // What one of them sent with an idempotency key is not the answer for another.
        let key = format!("{} as {acts_for}", self.key);
        Ok(Self { key, principal: Principal::Integration { name, acts_for }, run: run_id, ..self })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::caller;

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

    #[test]
    fn only_an_integrations_token_names_whom_it_acts_for() {
        let whom = ActAs { agent_id: Some("ada".parse().unwrap()), ..ActAs::default() };
        for role in [Role::Operator, Role::CompanyAdministrator, Role::Agent, Role::Auditor] {
            let Err(ActingError::Denied(denied)) = caller(role).acting(whom.clone()) else {
                panic!("{role}")
            };
            assert_eq!(denied.field, Some(AGENT), "{role}");
        }
        let run = ActAs { run_id: Some("r1".to_owned()), ..ActAs::default() };
        let Err(ActingError::Denied(denied)) = caller(Role::Agent).acting(run) else { panic!() };
        assert_eq!(denied.field, Some(RUN), "the first that is there");
    }

    #[test]
    fn a_request_that_names_nobody_is_its_tokens() {
        for role in Role::ALL {
            assert_eq!(caller(*role).acting(ActAs::default()).unwrap(), caller(*role), "{role}");
        }
    }

    #[test]
    fn what_is_not_valid_is_a_field_of_the_request() {
        let whom = ActAs { person_id: Some("a/b".to_owned()), ..ActAs::default() };
        let Err(ActingError::Field(error)) = caller(Role::Integration).acting(whom) else {
            panic!()
        };
        assert_eq!(error.field, PERSON);
    }

    #[test]
    fn whom_a_request_acts_for_is_who_asked() {
        let named = |whom| caller(Role::Integration).acting(whom).unwrap().principal().to_string();
        let person_id = || Some("u1".to_owned());
        let admin = Some(Role::CompanyAdministrator);
        for (whom, text) in [
            (ActAs { agent_id: "ada".parse().ok(), ..ActAs::default() }, "agent:ada"),
            (ActAs { person_id: person_id(), ..ActAs::default() }, "person:u1, agent"),
            (
                ActAs { person_id: person_id(), role: admin, ..ActAs::default() },
                "person:u1, company_administrator",
            ),
            (ActAs { role: Some(Role::Auditor), ..ActAs::default() }, "auditor"),
        ] {
            assert_eq!(named(whom), format!("integration:t as {text}"));
        }
    }
}
