//! Callers, their permissions and their scopes.

mod acting;

use std::sync::LazyLock;

use jiff::Timestamp;

pub use self::acting::{ACT_AS_HEADERS, ActAs, ActingError};
use crate::denied::Denied;
use crate::rules::allows;
use memhost_types::{
    Act, ActsFor, AgentId, CompanyId, OperationKind, Principal, Role, Scope, Token, is_mcp,
};

/// The caller of a request, made by whoever authenticates it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    /// Identifies the caller.
    key: String,
    /// Its identity, and whom it acts for.
    principal: Principal,
    role: Role,
    company: Option<CompanyId>,
    run: Option<String>,
    /// All that its token may do. `None`: what the role may.
    operations: Option<Vec<Act>>,
    expires_at: Option<Timestamp>,
    /// The client that the caller uses, where operations show it.
    via: Option<String>,
}

impl Caller {
    /// The person who runs the host: may do everything.
    pub fn operator() -> Self {
        static OPERATOR: LazyLock<Caller> = LazyLock::new(|| Caller::host(Principal::Operator));
        OPERATOR.clone()
    }

    /// The host itself, when it works on deliveries and jobs.
    pub fn worker() -> Self {
        Self::host(Principal::Host)
    }

    /// The host itself, when it exports, imports or erases a company. No budget, rate limit or
    /// disabled binding stops it.
    pub fn system() -> Self {
        Self::host(Principal::System)
    }

    fn host(principal: Principal) -> Self {
        Self {
            key: principal.to_string(),
            principal,
            role: Role::Operator,
            company: None,
            run: None,
            operations: None,
            expires_at: None,
            via: None,
        }
    }

    /// Whether this is the host itself.
    pub fn is_host(&self) -> bool {
        matches!(self.principal, Principal::Host | Principal::System)
    }

    /// The bearer of a token.
    pub fn of(token: &Token) -> Self {
        Self {
            key: token.id.0.to_string(),
            principal: Principal::of(token),
            role: token.role,
            company: token.company_id.clone(),
            run: token.run_id.clone(),
            operations: token.operations.clone(),
            expires_at: token.expires_at,
            via: None,
        }
    }

    /// The same caller, through a client that its operations show, such as `mcp:claude-code/2.1`:
    /// at most 512 bytes without control characters.
    #[must_use]
    pub fn through(self, via: impl Into<String>) -> Self {
        Self { via: Some(via.into()), ..self }
    }

    /// The bearer of a value that is not accepted: its refusals are counted apart from those of the
    /// valid token.
    #[must_use]
    pub fn not_accepted(self, why: &str) -> Self {
        Self { key: format!("{} {why}", self.key), ..self }
    }

    /// The client that the caller uses, where operations show it.
    pub fn via(&self) -> Option<&str> {
        self.via.as_deref()
    }

    /// Whether the caller is a program that speaks MCP.
    pub fn is_mcp(&self) -> bool {
        is_mcp(self.via())
    }

    /// Whether the caller is answered records that are private to others, in the scope of a whole
    /// company: whoever may view the company. A program that speaks MCP reads for an agent, and the
    /// host reads for whom it works.
    pub fn sees_private(&self, company: &CompanyId) -> bool {
        if self.is_mcp() || self.principal == Principal::Host {
            return false;
        }
        match self.acting_role() {
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

    /// The agent that the caller is, or acts for.
    pub fn agent(&self) -> Option<&AgentId> {
        self.principal.agent()
    }

    /// The person in whose scope the caller acts: one without another role than an agent's.
    pub fn person(&self) -> Option<&str> {
        match &self.principal {
            Principal::Integration {
                acts_for: ActsFor::Person { id, role: Role::Agent }, ..
            } => Some(id),
            _ => None,
        }
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
    pub fn reaches_companies(&self) -> bool {
        self.company.is_some() || self.acts().any(|act| !matches!(act, Act::Monitor | Act::Host))
    }

    /// Whether this request of an integration names for whom it acts.
    pub fn is_acting(&self) -> bool {
        matches!(self.principal, Principal::Integration { .. })
    }

    /// What an integration may do at most in this request: an agent's, where it names nobody.
    fn acting_role(&self) -> Option<Role> {
        match &self.principal {
            Principal::Integration { acts_for, .. } => Some(acts_for.role()),
            _ => (self.role == Role::Integration).then_some(Role::Agent),
        }
    }

    /// Whether the token's role and `operations` allow this, in a company that the caller reaches.
    fn has(&self, act: Act) -> bool {
        let is_listed = self.operations.as_ref().is_none_or(|operations| operations.contains(&act));
        is_listed && allows(self.role, act)
    }

    /// Everything that the caller can do, at most: an integration may name another role in its next
    /// request.
    fn acts(&self) -> impl Iterator<Item = Act> {
        Act::ALL.iter().copied().filter(|act| self.has(*act))
    }

    /// Checks whether the caller may do something in a company, or with the host.
    ///
    /// # Errors
    /// Where it may not.
    pub fn may(&self, act: Act, company: Option<&CompanyId>) -> Result<(), Denied> {
        let reaches = self.company.is_none() || company == self.company.as_ref();
        if reaches && self.has(act) && self.acting_role().is_none_or(|role| allows(role, act)) {
            return Ok(());
        }
        // The operation is named where the token's own list is what stops it.
        let is_unlisted =
            self.operations.as_ref().is_some_and(|operations| !operations.contains(&act));
        let beyond = if is_unlisted && allows(self.role, act) { vec![act] } else { Vec::new() };
        let acting = [Some(self.role), self.acting_role()].into_iter().flatten();
        let role =
            acting.filter(|_| reaches).find(|role| !allows(*role, act)).map(|role| (role, act));
        Err(Denied { beyond, role, ..Denied::without_reason() })
    }

    /// Checks whether the caller may do any memory operation in a company.
    ///
    /// # Errors
    /// Where it may not.
    pub fn may_use_memory(&self, company: &CompanyId) -> Result<(), Denied> {
        let any = Act::ALL.iter().filter(|act| matches!(act, Act::Operate(_)));
        let mut tried = any.map(|act| self.may(*act, Some(company)));
        match tried.any(|may| may.is_ok()) {
            true => Ok(()),
            false => Err(Denied::without_reason()),
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
    ///
    /// # Errors
    /// The field that has another value.
    pub fn confine(&self, scope: &mut Scope) -> Result<(), Denied> {
        let text = |id: &str| Some(id.to_owned());
        if self.person().is_some() && scope.agent_id.is_some() {
            let why = "names an agent, and this request acts for a person; leave it out";
            return Err(Denied::because("scope.agentId", why));
        }
        self.own("scope.agentId", Fixed::Agent, &mut scope.agent_id, |id| id.parse().ok())?;
        self.own("scope.runId", Fixed::Run, &mut scope.run_id, text)?;
        self.own("scope.subjectId", Fixed::Person, &mut scope.subject_id, text)
    }

    /// A replacement takes records away, so it needs the right to forget.
    ///
    /// # Errors
    /// Where it may not forget.
    pub fn may_replace(&self, company: &CompanyId) -> Result<(), Denied> {
        let may = self.may(Act::Operate(OperationKind::Forget), Some(company));
        may.map_err(|denied| {
            Denied::because("replacesSource", format!("forgets records: {}", denied.reason()))
        })
    }

    /// Whether what the caller forgets of a source goes for everybody: it is neither confined to an
    /// agent nor to a person.
    pub fn is_for_everybody(&self) -> bool {
        self.agent().is_none() && self.person().is_none()
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
        if self.agent().is_some() && self.agent() != other.agent() {
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
            Fixed::Agent => (self.agent().map(AgentId::as_str), "agent"),
            Fixed::Run => (self.run.as_deref(), "run"),
            Fixed::Person => (self.person(), "person"),
        };
        let Some(own) = own else { return Ok(()) };
        match asked {
            Some(asked) if asked.as_ref() == own => Ok(()),
            Some(_) if self.is_acting() => {
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

/// The part of a scope that a token, or the headers of an integration's request, fix.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Fixed {
    Agent,
    Run,
    Person,
}

#[cfg(test)]
mod tests;
