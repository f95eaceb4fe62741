//! Who calls.

mod acting;

use jiff::Timestamp;

pub use self::acting::{ACT_AS_HEADERS, ActAs, ActingError};
use crate::access::denied::Denied;
use crate::access::rules::allows;
use memhost_types::{Act, ActsFor, AgentId, CompanyId, Principal, Role, Scope, Token};

/// Who calls. Whoever authenticates a request makes one for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    /// Identifies the caller.
    key: String,
    principal: Principal,
    role: Role,
    company: Option<CompanyId>,
    agent: Option<AgentId>,
    run: Option<String>,
    /// The permissions that limit its token. `None`: those of its role.
    operations: Option<Vec<Act>>,
    expires_at: Option<Timestamp>,
    /// What an integration may do at most for the one that its request names.
    acting_role: Option<Role>,
    /// Whether this request of an integration names for whom it acts.
    is_acting: bool,
    /// The person that an integration acts for, in the person's own scope.
    person: Option<String>,
    /// The client that the caller uses, where operations show it.
    via: Option<String>,
}

impl Caller {
    /// The person who runs the host: may do everything.
    pub fn operator() -> Self {
        Self::host(Principal::Operator)
    }

    /// The host itself, when it works on deliveries and jobs.
    pub(crate) fn worker() -> Self {
        Self::host(Principal::Host)
    }

    /// The host itself, when it exports, imports or erases a company. No budget, rate limit or
    /// disabled binding stops it.
    pub(crate) fn system() -> Self {
        Self::host(Principal::System)
    }

    fn host(principal: Principal) -> Self {
        Self {
            key: principal.to_string(),
            principal,
            role: Role::Operator,
            company: None,
            agent: None,
            run: None,
            operations: None,
            expires_at: None,
            acting_role: None,
            is_acting: false,
            person: None,
            via: None,
        }
    }

    /// Whether this is the host itself.
    pub(crate) fn is_host(&self) -> bool {
        *self == Self::worker() || *self == Self::system()
    }

    /// The bearer of a token.
    pub(crate) fn of(token: &Token) -> Self {
        Self {
            key: token.id.0.to_string(),
            principal: Principal::of(token),
            role: token.role,
            company: token.company_id.clone(),
            agent: token.agent_id.clone(),
            run: token.run_id.clone(),
            operations: token.operations.clone(),
            expires_at: token.expires_at,
            acting_role: (token.role == Role::Integration).then_some(Role::Agent),
            is_acting: false,
            person: None,
            via: None,
        }
    }

    /// The same caller, through a client that its operations show, such as `mcp:claude-code/2.1`:
    /// at most 512 bytes without control characters.
    #[must_use]
    pub fn through(self, via: impl Into<String>) -> Self {
        Self { via: Some(via.into()), ..self }
    }

    /// The same caller for whom a checked request names. In the role of an agent the request is
    /// confined to that one's own scope.
    pub(crate) fn on_behalf(self, whom: ActAs) -> Self {
        let ActAs { agent_id, run_id, person_id, role } = whom;
        let role = role.unwrap_or(Role::Agent);
        let acts_for = match (&agent_id, &person_id) {
            (Some(agent), _) => ActsFor::Agent(agent.clone()),
            (None, Some(person)) => ActsFor::Person { id: person.clone(), role },
            (None, None) => ActsFor::Role(role),
        };
        // What one of them sent with an idempotency key is not the answer for another.
        let key = format!("{} as {acts_for}", self.key);
        let principal = match self.principal {
            Principal::Token { name, .. } | Principal::Integration { name, .. } => {
                Principal::Integration { name, acts_for }
            }
            other => other,
        };
        Self {
            key,
            principal,
            agent: agent_id,
            run: run_id,
            acting_role: Some(role),
            is_acting: true,
            person: person_id.filter(|_| role == Role::Agent),
            ..self
        }
    }

    /// The bearer of a value that is not accepted: its refusals are counted apart from those of the
    /// valid token.
    #[must_use]
    pub(crate) fn not_accepted(self, why: &str) -> Self {
        Self { key: format!("{} {why}", self.key), ..self }
    }

    /// The client that the caller uses, where operations show it.
    pub fn via(&self) -> Option<&str> {
        self.via.as_deref()
    }

    /// Whether the caller is a program that speaks MCP.
    pub(crate) fn is_mcp(&self) -> bool {
        is_mcp(self.via())
    }

    /// Whether the caller is answered records that are private to others, in the scope of a whole
    /// company: whoever may view the company. A program that speaks MCP reads for an agent, and the
    /// host reads for whom it works.
    pub(crate) fn sees_private(&self, company: &CompanyId) -> bool {
        if self.is_mcp() || *self == Self::worker() {
            return false;
        }
        match self.acting_role {
            // What it acts as is narrower than what the token may do with memory.
            Some(role) => self.may_use_memory(company).is_ok() && allows(role, Act::View),
            None => self.may(Act::View, Some(company)).is_ok(),
        }
    }

    /// Identifies the caller. The principal does not: two tokens may have one name.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// The name under which operations are recorded.
    pub fn principal(&self) -> &Principal {
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

    /// The person in whose scope the caller acts.
    pub fn person(&self) -> Option<&str> {
        self.person.as_deref()
    }

    /// The only run that the caller acts in.
    pub fn run(&self) -> Option<&str> {
        self.run.as_deref()
    }

    /// The only company that the caller reaches. `None`: all companies.
    pub fn company(&self) -> Option<&CompanyId> {
        self.company.as_ref()
    }

    /// Whether the caller may do anything in any company.
    pub(crate) fn reaches_companies(&self) -> bool {
        self.company.is_some() || self.acts().any(|act| !matches!(act, Act::Monitor | Act::Host))
    }

    /// Whether this request of an integration names for whom it acts.
    pub fn is_acting(&self) -> bool {
        self.is_acting
    }

    /// Whether role, `operations` and what the request acts as allow this, in a company that the
    /// caller reaches.
    fn is_good_for(&self, act: Act) -> bool {
        let is_listed = self.operations.as_ref().is_none_or(|operations| operations.contains(&act));
        is_listed && allows(self.role, act) && self.acting_role.is_none_or(|role| allows(role, act))
    }

    /// Everything that the caller can do, at most: an integration may name another role in its next
    /// request.
    fn acts(&self) -> impl Iterator<Item = Act> {
        let widest = Self { acting_role: None, ..self.clone() };
        Act::ALL.iter().copied().filter(move |act| widest.is_good_for(*act))
    }

    /// Checks whether the caller may do something in a company, or with the host.
    ///
    /// # Errors
    /// Where it may not.
    pub fn may(&self, act: Act, company: Option<&CompanyId>) -> Result<(), Denied> {
        let reaches = self.company.is_none() || company == self.company.as_ref();
        if reaches && self.is_good_for(act) {
            return Ok(());
        }
        // The operation is named where the token's own list is what stops it.
        let is_unlisted =
            self.operations.as_ref().is_some_and(|operations| !operations.contains(&act));
        let beyond = if is_unlisted && allows(self.role, act) { vec![act] } else { Vec::new() };
        let acting = [Some(self.role), self.acting_role].into_iter().flatten();
        let role =
            acting.filter(|_| reaches).find(|role| !allows(*role, act)).map(|role| (role, act));
        Err(Denied { field: None, beyond, role, why: None })
    }

    /// Checks whether the caller may do any memory operation in a company.
    ///
    /// # Errors
    /// Where it may not.
    pub(crate) fn may_use_memory(&self, company: &CompanyId) -> Result<(), Denied> {
        let any = Act::ALL.iter().filter(|act| matches!(act, Act::Operate(_)));
        let mut tried = any.map(|act| self.may(*act, Some(company)));
        match tried.any(|may| may.is_ok()) {
            true => Ok(()),
            false => Err(Denied { field: None, beyond: Vec::new(), role: None, why: None }),
        }
    }

    /// The same for something that has a scope. An agent acts as itself and in its own run: missing
    /// fields of the scope are filled in, and other values are denied. So are those of a person
    /// that an integration acts for.
    ///
    /// # Errors
    /// Where it may not.
    pub fn may_in(&self, act: Act, scope: &mut Scope) -> Result<(), Denied> {
        self.may(act, Some(&scope.company_id))?;
        self.confine(scope)
    }

    /// Fills in what the token fixes of a scope, and denies other values. A person is no agent: the
    /// scope of one names none, because whoever is in an agent's scope has the agent's private
    /// records.
    pub(crate) fn confine(&self, scope: &mut Scope) -> Result<(), Denied> {
        let text = |id: &str| Some(id.to_owned());
        if self.person.is_some() && scope.agent_id.is_some() {
            let why = "names an agent, and this request acts for a person; leave it out";
            return Err(Denied::because("scope.agentId", why));
        }
        self.own("scope.agentId", Fixed::Agent, &mut scope.agent_id, |id| id.parse().ok())?;
        self.own("scope.runId", Fixed::Run, &mut scope.run_id, text)?;
        self.own("scope.subjectId", Fixed::Person, &mut scope.subject_id, text)
    }

    /// Checks that a token gives nothing that this caller does not have. Every value that a caller
    /// can get hold of is checked by this: a new token's, and that of a token that it rotates.
    ///
    /// # Errors
    /// The first field that goes beyond.
    pub(crate) fn covers(&self, token: &Token) -> Result<(), Denied> {
        let other = Self::of(token);
        if self.company.is_some() && self.company != other.company {
            return Err(Denied::because("companyId", "is not your own token's company"));
        }
        let beyond: Vec<Act> =
            other.acts().filter(|act| !self.acts().any(|own| own == *act)).collect();
        if !beyond.is_empty() {
            let field = if other.operations.is_some() { "operations" } else { "role" };
            return Err(Denied { beyond, ..Denied::field(field) });
        }
        if self.agent.is_some() && self.agent != other.agent {
            return Err(Denied::because("agentId", "is not your own token's agent"));
        }
        if self.run.is_some() && self.run != other.run {
            return Err(Denied::because("runId", "is not your own token's run"));
        }
        match (self.expires_at, other.expires_at) {
            (None, _) => Ok(()),
            (Some(own), Some(end)) if end <= own => Ok(()),
            (Some(own), Some(_)) => Err(Denied::ends_later(own)),
            (Some(own), None) => {
                let why = format!(
                    "is missing, and your own token ends at {own}; name that time or an earlier one"
                );
                Err(Denied::because("expiresAt", why))
            }
        }
    }

    /// Fills in a field that the caller fixes, and denies another value.
    ///
    /// # Errors
    /// Where it has another value.
    pub(crate) fn own<T: AsRef<str>>(
        &self,
        field: &'static str,
        what: Fixed,
        asked: &mut Option<T>,
        make: impl FnOnce(&str) -> Option<T>,
    ) -> Result<(), Denied> {
        let (own, what) = match what {
            Fixed::Agent => (self.agent.as_ref().map(AgentId::as_str), "agent"),
            Fixed::Run => (self.run.as_deref(), "run"),
            Fixed::Person => (self.person.as_deref(), "person"),
        };
        let Some(own) = own else { return Ok(()) };
        match asked {
            Some(asked) if asked.as_ref() == own => Ok(()),
            Some(_) if self.is_acting => {
                let why =
                    format!("is not the {what} that this request acts for, `{own}`; leave it out");
                Err(Denied::because(field, why))
            }
            Some(_) => Err(Denied::because(
                field,
                format!("is not this token's {what}, `{own}`; leave it out"),
            )),
            None => {
                *asked = make(own);
                Ok(())
            }
        }
    }
}

/// Whether a client is a program that speaks MCP: what it writes, a model wrote.
pub fn is_mcp(client: Option<&str>) -> bool {
    client.is_some_and(|client| client == "mcp" || client.starts_with("mcp:"))
}

/// What a token, or the headers of an integration's request, fix of a scope.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Fixed {
    Agent,
    Run,
    Person,
}

#[cfg(test)]
mod tests {
    use super::*;
    use memhost_types::OperationKind;
    use memhost_types::TokenId;

    fn agent(run: Option<&str>, operations: Option<Vec<Act>>) -> Caller {
        Caller::of(&Token {
            id: TokenId(uuid::Uuid::nil()),
            name: "t".to_owned(),
            role: Role::Agent,
            company_id: Some("acme".parse().unwrap()),
            agent_id: Some("ada".parse().unwrap()),
            run_id: run.map(str::to_owned),
            operations,
            expires_at: None,
            created_at: Timestamp::UNIX_EPOCH,
            created_by: Principal::Operator,
            rotated_at: None,
            previous_value_until: None,
            last_used_at: None,
            revoked_at: None,
        })
    }

    #[test]
    fn an_agent_acts_as_itself_and_in_its_run() {
        let query = Act::Operate(OperationKind::Query);
        let mut scope = Scope::company("acme".parse().unwrap());
        agent(Some("r1"), None).may_in(query, &mut scope).unwrap();
        assert_eq!(
            (scope.agent_id.as_ref().unwrap().as_str(), scope.run_id.as_deref()),
            ("ada", Some("r1"))
        );
        scope.run_id = Some("r2".to_owned());
        let denied = agent(Some("r1"), None).may_in(query, &mut scope).unwrap_err();
        assert_eq!(denied.to_string(), "scope.runId: is not this token's run, `r1`; leave it out");
        assert!(agent(None, None).may_in(query, &mut scope).is_ok());
        scope.agent_id = Some("bob".parse().unwrap());
        assert_eq!(
            agent(None, None).may_in(query, &mut scope).unwrap_err().field,
            Some("scope.agentId")
        );
        assert!(
            agent(None, None).may_in(query, &mut Scope::company("other".parse().unwrap())).is_err()
        );
    }

    #[test]
    fn a_person_is_no_agent() {
        let whom = ActAs { person_id: Some("u1".to_owned()), ..ActAs::default() };
        let person = Caller { agent: None, ..agent(None, None) }.on_behalf(whom);
        let mut scope = Scope::company("acme".parse().unwrap());
        person.confine(&mut scope).unwrap();
        assert_eq!(scope.subject_id.as_deref(), Some("u1"));
        scope.agent_id = Some("ada".parse().unwrap());
        assert_eq!(person.confine(&mut scope).unwrap_err().field, Some("scope.agentId"));
    }

    #[test]
    fn a_token_for_some_operations_is_good_for_no_other() {
        let acme = "acme".parse().unwrap();
        let caller = agent(None, Some(vec![Act::Operate(OperationKind::Query)]));
        assert!(caller.may(Act::Operate(OperationKind::Query), Some(&acme)).is_ok());
        assert!(caller.may(Act::Operate(OperationKind::Get), Some(&acme)).is_err());
        for other in [Act::Deliver, Act::Emit, Act::Resolve] {
            assert_eq!(caller.may(other, Some(&acme)).unwrap_err().beyond, [other]);
        }
    }
}
