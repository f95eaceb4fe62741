//! Who may: authenticating, allowing, and the tokens themselves.

use crate::Service;
use crate::access::Act;
use crate::access::Caller;
use crate::access::CreateToken;
use crate::access::Denied;
use crate::access::Known;
use crate::bindings::BindingError;
use crate::bindings::NewActivity;
use crate::error::Refusal;
use crate::error::ServiceError;
use crate::operations::record::Opened;
use memhost_store::{Change, Transacted};
use memhost_types::{
    ActivityAction, AgentId, CompanyId, NewToken, OperationErrorCode, OperationKind, Scope, Token, TokenId,
};

/// What a token is good for.
#[derive(Debug)]
pub enum Authentication {
    /// Its bearer.
    Caller(Caller),
    /// Nothing: it is nobody's, or no longer good. Why is said without saying which.
    Refused,
}

impl Service {
    /// Whose token this is. One that has expired or was revoked is recorded as a refusal in its company's log.
    ///
    /// # Errors
    /// Where the refusal cannot be recorded.
    pub async fn authenticate(&self, token: &str) -> Result<Authentication, ServiceError> {
        match self.tokens.find(token) {
            Some(Known::Valid(caller)) => Ok(Authentication::Caller(caller)),
            None => {
                self.recorder.metrics.unauthenticated();
                Ok(Authentication::Refused)
            }
            Some(Known::Invalid(caller, what)) => {
                self.recorder.metrics.unauthenticated();
                if let Some(company) = caller.company().cloned() {
                    let message = format!("the token {what}; make another with `memhost token create`");
                    let refusal = Refusal::new(OperationErrorCode::Forbidden, message);
                    self.refusal(&caller, OperationKind::Control, company, refusal).await?;
                }
                Ok(Authentication::Refused)
            }
        }
    }

    /// Whether somebody may do something in a company, or with the host. A refusal is recorded in the caller's own
    /// company's log, never in another's, and says the same whether or not what was asked for exists.
    ///
    /// # Errors
    /// Where it may not, or the refusal cannot be recorded.
    pub async fn allow(&self, caller: &Caller, act: Act, company: Option<&CompanyId>) -> Result<(), ServiceError> {
        match caller.may(act, company) {
            Ok(()) => match company.and_then(|company| self.closed(company)) {
                Some(error) if act != Act::Erase => Err(self.shut_out(caller, company, error).await),
                _ => Ok(()),
            },
            Err(denied) => Err(self.deny(caller, OperationKind::Control, company, &denied).await),
        }
    }

    /// Whether somebody may do something, without recording it where not: for leaving something out of an answer.
    pub fn allows(&self, caller: &Caller, act: Act, company: &CompanyId) -> bool {
        caller.may(act, Some(company)).is_ok()
    }

    /// Whom a caller may ask for: an agent for itself, everybody else for anybody.
    ///
    /// # Errors
    /// Where an agent asks for another one.
    pub async fn own_agent(
        &self,
        caller: &Caller,
        company: &CompanyId,
        asked: Option<AgentId>,
    ) -> Result<Option<AgentId>, ServiceError> {
        let mut scope = Scope { agent_id: asked, ..Scope::company(company.clone()) };
        match caller.may_in(Act::Resolve, &mut scope) {
            Ok(()) => Ok(scope.agent_id),
            Err(denied) => Err(self.deny(caller, OperationKind::Control, Some(company), &denied).await),
        }
    }

    /// Records that a company was erased and takes nothing. One that is on its way in has no number for a record yet.
    pub(crate) async fn shut_out(
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

    /// Records that somebody may not, and says so.
    pub(crate) async fn deny(
        &self,
        caller: &Caller,
        kind: OperationKind,
        company: Option<&CompanyId>,
        denied: &Denied,
    ) -> ServiceError {
        match caller.company().or(company).cloned() {
            Some(company) => match self.refusal(caller, kind, company, denied.into()).await {
                Ok(error) | Err(error) => error,
            },
            None => ServiceError::Denied(denied.clone()),
        }
    }

    /// Records a refusal that has no other scope than its company. Answers it as an error.
    async fn refusal(
        &self,
        caller: &Caller,
        kind: OperationKind,
        company: CompanyId,
        refusal: Refusal,
    ) -> Result<ServiceError, ServiceError> {
        let opened = Opened::begin(&self.recorder, caller, kind, &Scope::company(company)).await?;
        match opened.refuse(refusal).await {
            error @ ServiceError::Operation { .. } => Ok(error),
            error => Err(error),
        }
    }

    /// Makes a token. Its value is in the answer, this once.
    ///
    /// # Errors
    /// Where a field will not do.
    pub async fn create_token(
        &self,
        caller: &Caller,
        company: Option<&CompanyId>,
        request: CreateToken,
    ) -> Result<NewToken, ServiceError> {
        let (made, change) = self.tokens.make(caller, company, request)?;
        self.write_token(caller, company, ActivityAction::TokenCreated, &made.token, change).await?;
        Ok(made)
    }

    /// Gives a token another value, which is in the answer, this once.
    ///
    /// # Errors
    /// Where there is no such token, or it was revoked.
    pub async fn rotate_token(
        &self,
        caller: &Caller,
        company: Option<&CompanyId>,
        id: TokenId,
    ) -> Result<NewToken, ServiceError> {
        let (made, change) = self.tokens.rotate(company, id)?;
        self.write_token(caller, company, ActivityAction::TokenRotated, &made.token, change).await?;
        Ok(made)
    }

    /// Takes a token back, for good.
    ///
    /// # Errors
    /// Where there is no such token.
    pub async fn revoke_token(
        &self,
        caller: &Caller,
        company: Option<&CompanyId>,
        id: TokenId,
    ) -> Result<Token, ServiceError> {
        let (token, change) = self.tokens.revoke(company, id)?;
        self.write_token(caller, company, ActivityAction::TokenRevoked, &token, change).await?;
        Ok(token)
    }

    /// A company's tokens, or the operators', oldest first, without their values.
    pub fn tokens(&self, company: Option<&CompanyId>) -> Vec<Token> {
        self.tokens.list(company)
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
                self.bindings.record_with(company, entry, vec![change.clone()]).await?;
            }
            // An operator's token is no company's: the process's own log has it.
            None => match self.store.transact(std::slice::from_ref(&change))? {
                Transacted::Done(commit) => {
                    commit.await?;
                    tracing::info!(?action, token = token.name, by = caller.principal(), "an operator's token");
                }
                Transacted::Conflict(_) => return Err(BindingError::Changed { what: "token" }.into()),
            },
        }
        Ok(self.tokens.apply(&change)?)
    }
}
