//! Authentication, authorization, and the management of tokens.

use crate::Tenancy;
use crate::error::ServiceError;
use async_recursion::async_recursion as boxed;
use memhost_access::{
    AccessError, Act, ActAs, ActingError, Caller, CreateToken, Denied, Known, RotateToken,
};
use memhost_oplog::OplogError;
use memhost_registry::{BindingError, NewActivity};
use memhost_store::Change;
use memhost_types::{
    ActivityAction, AgentId, CompanyId, FoundToken, NewToken, OperationErrorCode, OperationKind,
    Refusal, Scope, Token, TokenId,
};

/// The result of authentication.
#[derive(Debug)]
#[allow(
    clippy::large_enum_variant,
    reason = "one is made for each request, and nearly always the large one"
)]
pub enum Authentication {
    /// The token's bearer.
    Caller(Caller),
    /// The token is unknown or no longer valid. The reason does not identify it.
    Refused,
}

impl Tenancy {
    /// The bearer of a token. The use of an expired or revoked token is recorded as a refusal in
    /// its company's log.
    ///
    /// # Errors
    /// Where the refusal cannot be recorded.
    #[boxed]
    pub async fn authenticate(&self, token: &str) -> Result<Authentication, ServiceError> {
        let found = match self.tokens.find(token) {
            None => self.tokens.find_elsewhere(token).await?,
            found => found,
        };
        match found {
            Some(Known::Valid(caller)) => Ok(Authentication::Caller(caller)),
            None => {
                self.oplog.metrics.unauthenticated();
                Ok(Authentication::Refused)
            }
            Some(Known::Invalid(caller, what)) => {
                self.oplog.metrics.unauthenticated();
                let caller = caller.not_accepted(what);
                let company = caller.company().filter(|company| self.store.is_home(company));
                if let Some(company) = company.cloned() {
                    let message =
                        format!("the token {what}; make another with `memhost token create`");
                    let refusal = Refusal::new(OperationErrorCode::Forbidden, message);
                    self.refusal(&caller, OperationKind::Control, company, refusal).await?;
                }
                Ok(Authentication::Refused)
            }
        }
    }

    /// The caller for whom a request acts. Only an integration's request may name somebody.
    ///
    /// # Errors
    /// Where the caller is no integration and somebody is named; where a field is not valid.
    #[boxed]
    pub async fn act_for(&self, caller: Caller, whom: ActAs) -> Result<Caller, ServiceError> {
        // Most requests name nobody: they need no copy of the caller.
        if whom.is_empty() {
            return Ok(caller);
        }
        match caller.clone().acting(whom) {
            Ok(caller) => Ok(caller),
            Err(ActingError::Field(error)) => Err(error.into()),
            Err(ActingError::Denied(denied)) => {
                Err(self.deny(&caller, OperationKind::Control, caller.company(), &denied).await)
            }
        }
    }

    /// Checks whether a caller may do something in a company, or with the host. A refusal is
    /// recorded in the caller's own company's log, never in another's, and says the same whether or
    /// not what was asked for exists.
    ///
    /// # Errors
    /// Where it may not, or the refusal cannot be recorded; where the company is unknown, was
    /// erased or is being imported, or has so much that its settings stay as they are.
    #[boxed]
    pub async fn allow(
        &self,
        caller: &Caller,
        act: Act,
        company: Option<&CompanyId>,
    ) -> Result<(), ServiceError> {
        match caller.may(act, company) {
            Ok(()) => match company {
                // An erasure that was cut short goes on.
                Some(company) if act == Act::Erase && self.closed(company).is_some() => Ok(()),
                Some(company) => {
                    self.usable(caller, company).await?;
                    match act {
                        Act::Administer => Ok(self.check_settings(caller, company)?),
                        _ => Ok(()),
                    }
                }
                None => Ok(()),
            },
            Err(denied) => Err(self.deny(caller, OperationKind::Control, company, &denied).await),
        }
    }

    /// The same for what may be the first that is made for a company: the company may be unknown.
    ///
    /// # Errors
    /// As [`Tenancy::allow`] says.
    #[boxed]
    pub async fn allow_new(
        &self,
        caller: &Caller,
        act: Act,
        company: &CompanyId,
    ) -> Result<(), ServiceError> {
        match caller.may(act, Some(company)).is_ok()
            && !self.is_known(company)
            && self.closed(company).is_none()
        {
            true => Ok(()),
            false => self.allow(caller, act, Some(company)).await,
        }
    }

    /// Refuses a request to a company that is unknown, was erased or is being imported.
    ///
    /// # Errors
    /// Where the company is one of these.
    pub async fn usable(&self, caller: &Caller, company: &CompanyId) -> Result<(), ServiceError> {
        match self.closed(company) {
            Some(error) => Err(self.shut_out(caller, Some(company), error).await),
            None if !self.is_known(company) && !caller.is_host() => {
                Err(self.unknown(caller, company))
            }
            None => Ok(()),
        }
    }

    /// Whether a caller may do something. A refusal is not recorded: for leaving parts out of an
    /// answer.
    pub fn allows(&self, caller: &Caller, act: Act, company: &CompanyId) -> bool {
        caller.may(act, Some(company)).is_ok()
    }

    /// The agent for which a caller may ask: an agent asks for itself only, others for any agent.
    ///
    /// # Errors
    /// Where an agent asks for another agent.
    #[boxed]
    pub async fn own_agent(
        &self,
        caller: &Caller,
        company: &CompanyId,
        asked: Option<AgentId>,
    ) -> Result<Option<AgentId>, ServiceError> {
        let mut scope = Scope { agent_id: asked, ..Scope::company(company.clone()) };
        match caller.may_in(Act::Resolve, &mut scope) {
            Ok(()) => Ok(scope.agent_id),
            Err(denied) => {
                Err(self.deny(caller, OperationKind::Control, Some(company), &denied).await)
            }
        }
    }

    /// Records a call for an erased company. A company that is being imported gets no record:
    /// imported operations keep their sequence numbers, so none may be allocated.
    pub async fn shut_out(
        &self,
        caller: &Caller,
        company: Option<&CompanyId>,
        error: ServiceError,
    ) -> ServiceError {
        match (&error, company) {
            (ServiceError::Erased { .. }, Some(company)) => {
                let refusal = Refusal::new(OperationErrorCode::CompanyErased, error.to_string());
                match self.refusal(caller, OperationKind::Control, company.clone(), refusal).await {
                    Ok(error) | Err(error) => error,
                }
            }
            _ => error,
        }
    }

    /// Records that a caller was denied. Answers the error.
    pub async fn deny(
        &self,
        caller: &Caller,
        kind: OperationKind,
        company: Option<&CompanyId>,
        denied: &Denied,
    ) -> ServiceError {
        // What does not exist has no log. Whoever reaches no company is not told which ones exist,
        // and writes into none.
        let may_exist = |company: &&CompanyId| self.is_known(company) || self.is_erased(company);
        let company = company.filter(|company| caller.reaches_companies() && may_exist(company));
        // A page about all companies is not asked at the home of the caller's.
        let at_home = |company: &&CompanyId| self.store.is_home(company);
        match caller.company().or(company).filter(at_home).cloned() {
            Some(company) => match self.refusal(caller, kind, company, denied.into()).await {
                Ok(error) | Err(error) => error,
            },
            None => ServiceError::Denied(denied.clone()),
        }
    }

    /// Records a refusal whose scope is the company, or counts it. Answers it as an error.
    async fn refusal(
        &self,
        caller: &Caller,
        kind: OperationKind,
        company: CompanyId,
        refusal: Refusal,
    ) -> Result<ServiceError, ServiceError> {
        // Imported operations keep their sequence numbers, so none may be allocated until the
        // import has ended.
        if self.is_importing(&company) {
            return Ok(ServiceError::Importing { company });
        }
        match self.oplog.refuse(caller, kind, company, refusal).await {
            error @ OplogError::Ended { .. } => Ok(error.into()),
            error => Err(error.into()),
        }
    }

    /// Records that a token would have given its caller more than the caller has.
    async fn covered<T>(
        &self,
        caller: &Caller,
        company: Option<&CompanyId>,
        made: Result<T, AccessError>,
    ) -> Result<T, ServiceError> {
        match made {
            Err(AccessError::Beyond(denied)) => {
                Err(self.deny(caller, OperationKind::Control, company, &denied).await)
            }
            made => Ok(made?),
        }
    }

    /// Makes a token. Only this answer contains its value.
    ///
    /// # Errors
    /// Where a field is not valid, or the token would give more than the caller has.
    #[boxed]
    pub async fn create_token(
        &self,
        caller: &Caller,
        company: Option<&CompanyId>,
        request: CreateToken,
    ) -> Result<NewToken, ServiceError> {
        let made = self.tokens.make(caller, company, request).await;
        let (made, change) = self.covered(caller, company, made).await?;
        self.write_token(caller, company, ActivityAction::TokenCreated, &made.token, change)
            .await?;
        if let Err(error) = self.tokens.drop_ended(company).await {
            tracing::error!(%error, "tokens that have ended could not be removed");
        }
        Ok(made)
    }

    /// Gives a token another value. Only this answer contains it.
    ///
    /// # Errors
    /// Where there is no such token, it was revoked, or it gives more than the caller has.
    #[boxed]
    pub async fn rotate_token(
        &self,
        caller: &Caller,
        company: Option<&CompanyId>,
        id: TokenId,
        request: RotateToken,
    ) -> Result<NewToken, ServiceError> {
        let made = self.tokens.rotate(caller, company, id, request).await;
        let (made, change) = self.covered(caller, company, made).await?;
        self.write_token(caller, company, ActivityAction::TokenRotated, &made.token, change)
            .await?;
        Ok(made)
    }

    /// Revokes a token, permanently.
    ///
    /// # Errors
    /// Where there is no such token.
    #[boxed]
    pub async fn revoke_token(
        &self,
        caller: &Caller,
        company: Option<&CompanyId>,
        id: TokenId,
    ) -> Result<Token, ServiceError> {
        let (token, change) = self.tokens.revoke(company, id).await?;
        self.write_token(caller, company, ActivityAction::TokenRevoked, &token, change).await?;
        Ok(token)
    }

    /// A company's tokens, or the operators', oldest first, without their values.
    pub fn tokens(&self, company: Option<&CompanyId>) -> Vec<Token> {
        self.tokens.list(company)
    }

    /// Whose a token's value is: a company's, or for `None` anybody's on the host.
    ///
    /// # Errors
    /// Where the store cannot be read.
    #[boxed]
    pub async fn whose_token(
        &self,
        company: Option<&CompanyId>,
        value: &str,
    ) -> Result<FoundToken, ServiceError> {
        Ok(self.tokens.whose(company, value).await?)
    }

    /// Writes when tokens were last used, and removes those that have ended.
    pub async fn keep_tokens(&self) {
        self.write_last_uses().await;
        if let Err(error) = self.tokens.drop_ended(None).await {
            tracing::error!(%error, "tokens that have ended could not be removed");
        }
    }

    /// Writes when tokens were last used.
    pub async fn write_last_uses(&self) {
        if let Err(error) = self.tokens.write_last_uses().await {
            tracing::error!(%error, "when tokens were last used could not be written");
        }
    }

    /// No token of a company is accepted any more, before its rows are removed.
    pub fn forget_tokens(&self, company: &CompanyId) {
        self.tokens.forget(company);
    }

    async fn write_token(
        &self,
        caller: &Caller,
        company: Option<&CompanyId>,
        action: ActivityAction,
        token: &Token,
        change: Change,
    ) -> Result<(), ServiceError> {
        match company {
            Some(company) => {
                let entry = NewActivity::new(caller.principal(), action, token.name.as_str());
                let entry = entry.with(None::<&Token>, Some(token));
                self.activity.record_with(company, entry, vec![change.clone()]).await?;
                Ok(self.tokens.apply(&change)?)
            }
            None if !self.tokens.write(&change).await? => {
                Err(BindingError::Changed { what: "token" }.into())
            }
            // An operator's token belongs to no company, so the change is in the process's own log.
            None => {
                tracing::info!(
                    ?action,
                    token = token.name,
                    by = %caller.principal(),
                    "an operator's token changed"
                );
                Ok(())
            }
        }
    }
}
