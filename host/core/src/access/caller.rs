//! Who calls.

use crate::access::rules::{Act, allows};
use memhost_types::{AgentId, CompanyId, OperationKind, Role, Scope, Token};

/// Who calls. Whoever authenticates a request makes one for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    /// Identifies the caller.
    key: String,
    principal: String,
    role: Role,
    company: Option<CompanyId>,
    agent: Option<AgentId>,
    run: Option<String>,
    operations: Option<Vec<OperationKind>>,
    /// The client that the caller uses, where operations show it.
    via: Option<String>,
}

/// The caller may not do this. The message is the same whether or not the thing exists.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("this token does not allow that{}; ask whoever gave it to you for one that does", field.map(|field| format!(" with this `{field}`")).unwrap_or_default())]
pub struct Denied {
    /// The field that goes beyond the token, if it is one.
    pub field: Option<&'static str>,
}

const DENIED: Denied = Denied { field: None };

impl Caller {
    /// The person who runs the host: may do everything.
    pub fn operator() -> Self {
        Self::host("operator")
    }

    /// The host itself, when it works on deliveries and jobs.
    pub(crate) fn worker() -> Self {
        Self::host("host")
    }

    /// The host itself, when it exports, imports or erases a company. No budget, rate limit or disabled binding stops it.
    pub(crate) fn system() -> Self {
        Self::host("host:system")
    }

    fn host(principal: &str) -> Self {
        let principal = principal.to_owned();
        Self {
            key: principal.clone(),
            principal,
            role: Role::Operator,
            company: None,
            agent: None,
            run: None,
            operations: None,
            via: None,
        }
    }

    /// Whether this is the host itself.
    pub(crate) fn is_host(&self) -> bool {
        *self == Self::worker() || *self == Self::system()
    }

    /// The bearer of a token.
    pub(crate) fn of(token: &Token) -> Self {
        let principal = match &token.agent_id {
            Some(agent) => format!("{}:{agent}", token.role),
            None => format!("{}:{}", token.role, token.name),
        };
        Self {
            key: token.id.0.to_string(),
            principal,
            role: token.role,
            company: token.company_id.clone(),
            agent: token.agent_id.clone(),
            run: token.run_id.clone(),
            operations: token.operations.clone(),
            via: None,
        }
    }

    /// The same caller, through a client that its operations show, such as `mcp:claude-code/2.1`: at most 512 bytes without
    /// control characters.
    #[must_use]
    pub fn through(self, via: impl Into<String>) -> Self {
        Self { via: Some(via.into()), ..self }
    }

    /// The client that the caller uses, where operations show it.
    pub fn via(&self) -> Option<&str> {
        self.via.as_deref()
    }

    /// Identifies the caller. The principal does not: two tokens may have one name.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// The name under which operations are recorded.
    pub fn principal(&self) -> &str {
        &self.principal
    }

    /// The caller's role.
    pub fn role(&self) -> Role {
        self.role
    }

    /// The agent that the caller is; none where it is no agent.
    pub fn agent(&self) -> Option<&AgentId> {
        self.agent.as_ref()
    }

    /// The only company that the caller reaches; none: all of them.
    pub fn company(&self) -> Option<&CompanyId> {
        self.company.as_ref()
    }

    /// Checks whether the caller may do something in a company, or with the host.
    ///
    /// # Errors
    /// Where it may not.
    pub fn may(&self, act: Act, company: Option<&CompanyId>) -> Result<(), Denied> {
        let reaches = self.company.is_none() || company == self.company.as_ref();
        let is_listed = match (&self.operations, act) {
            (Some(operations), Act::Operate(kind)) => operations.contains(&kind),
            // A hook may capture or query, and so it needs both.
            (Some(operations), Act::Deliver) => {
                [OperationKind::Capture, OperationKind::Query].iter().all(|kind| operations.contains(kind))
            }
            _ => true,
        };
        if reaches && is_listed && allows(self.role, act) { Ok(()) } else { Err(DENIED) }
    }

    /// The same for something that has a scope. An agent acts as itself and in its own run: missing fields of the scope are
    /// filled in, and other values are denied.
    ///
    /// # Errors
    /// Where it may not.
    pub fn may_in(&self, act: Act, scope: &mut Scope) -> Result<(), Denied> {
        self.may(act, Some(&scope.company_id))?;
        own("scope.agentId", self.agent.as_ref().map(AgentId::as_str), &mut scope.agent_id, |id| id.parse().ok())?;
        own("scope.runId", self.run.as_deref(), &mut scope.run_id, |id| Some(id.to_owned()))
    }
}

fn own<T: AsRef<str>>(
    field: &'static str,
    own: Option<&str>,
    asked: &mut Option<T>,
    make: impl FnOnce(&str) -> Option<T>,
) -> Result<(), Denied> {
    let Some(own) = own else { return Ok(()) };
    match asked {
        Some(asked) if asked.as_ref() != own => Err(Denied { field: Some(field) }),
        Some(_) => Ok(()),
        None => {
            *asked = make(own);
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use memhost_types::TokenId;

    fn agent(run: Option<&str>, operations: Option<Vec<OperationKind>>) -> Caller {
        Caller::of(&Token {
            id: TokenId(uuid::Uuid::nil()),
            name: "t".to_owned(),
            role: Role::Agent,
            company_id: Some("acme".parse().unwrap()),
            agent_id: Some("ada".parse().unwrap()),
            run_id: run.map(str::to_owned),
            operations,
            expires_at: None,
            created_at: jiff::Timestamp::UNIX_EPOCH,
            created_by: "operator".to_owned(),
            rotated_at: None,
            revoked_at: None,
        })
    }

    #[test]
    fn an_agent_acts_as_itself_and_in_its_run() {
        let query = Act::Operate(OperationKind::Query);
        let mut scope = Scope::company("acme".parse().unwrap());
        agent(Some("r1"), None).may_in(query, &mut scope).unwrap();
        assert_eq!((scope.agent_id.as_ref().unwrap().as_str(), scope.run_id.as_deref()), ("ada", Some("r1")));
        scope.run_id = Some("r2".to_owned());
        let denied = agent(Some("r1"), None).may_in(query, &mut scope).unwrap_err();
        assert_eq!(denied.field, Some("scope.runId"));
        assert!(agent(None, None).may_in(query, &mut scope).is_ok());
        scope.agent_id = Some("bob".parse().unwrap());
        assert_eq!(agent(None, None).may_in(query, &mut scope).unwrap_err().field, Some("scope.agentId"));
        assert!(agent(None, None).may_in(query, &mut Scope::company("other".parse().unwrap())).is_err());
    }

    #[test]
    fn a_token_for_some_operations_is_good_for_no_other() {
        let acme = "acme".parse().unwrap();
        let caller = agent(None, Some(vec![OperationKind::Query]));
        assert!(caller.may(Act::Operate(OperationKind::Query), Some(&acme)).is_ok());
        assert!(caller.may(Act::Operate(OperationKind::Get), Some(&acme)).is_err());
        assert!(caller.may(Act::Deliver, Some(&acme)).is_err());
    }
}
