//! All tokens, in the store and cached in memory, as digests of random values of 256 bits.

use std::collections::HashMap;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jiff::Timestamp;
use parking_lot::RwLock;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::access::{AccessError, Caller};
use memhost_ports::{Clock, new_id};
use memhost_store::{self as store, Change, Expected, Store, Table};
use memhost_types::{AgentId, CompanyId, FieldError, NewToken, OperationKind, Role, Token, TokenId};

/// A company has at most so many tokens that were not revoked.
const MAX_TOKENS: usize = 10_000;

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
    /// The only memory operations that it is good for.
    #[serde(default)]
    #[schemars(transform = memhost_types::schema::few)]
    pub operations: Option<Vec<OperationKind>>,
    /// From when on it is good for nothing.
    #[serde(default)]
    pub expires_at: Option<Timestamp>,
}

/// A token as it is stored.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Stored {
    token: Token,
    /// BLAKE3 of the value, in hex. The value has 256 random bits: no salt and no slow hash would add anything.
    digest: String,
}

/// The owner of a token's value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Known {
    /// A valid token.
    Valid(Caller),
    /// A token that expired or was revoked: its owner, and the reason.
    Invalid(Caller, &'static str),
}

#[derive(Default)]
struct All {
    by_id: HashMap<TokenId, Arc<Stored>>,
    by_digest: HashMap<[u8; 32], Entry>,
}

struct Entry {
    caller: Arc<Caller>,
    expires_at: Option<Timestamp>,
    is_revoked: bool,
}

/// Every token of this host.
pub struct Tokens {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    all: RwLock<All>,
}

impl Tokens {
    /// Reads all tokens.
    ///
    /// # Errors
    /// Where one cannot be read.
    pub async fn open(store: Arc<dyn Store>, clock: Arc<dyn Clock>) -> Result<Self, AccessError> {
        let mut all = All::default();
        let mut rows = store::scan_all(&*store, Table::Tokens, b"");
        while let Some((_, stored)) = rows.next_row("token").await? {
            all.put(stored);
        }
        drop(rows);
        Ok(Self { store, clock, all: RwLock::new(all) })
    }

    /// The owner of a value; none where no token has it.
    pub fn find(&self, value: &str) -> Option<Known> {
        let all = self.all.read();
        // A digest is looked up, not compared: how long that takes says nothing about another value.
        let entry = all.by_digest.get(blake3::hash(value.as_bytes()).as_bytes())?;
        let caller = Caller::clone(&entry.caller);
        let has_expired = entry.expires_at.is_some_and(|expires_at| expires_at <= self.clock.now());
        Some(match (entry.is_revoked, has_expired) {
            (true, _) => Known::Invalid(caller, "was revoked"),
            (false, true) => Known::Invalid(caller, "has expired"),
            (false, false) => Known::Valid(caller),
        })
    }

    /// A new token, and the change that stores it; `company` is none for an operator's token. The token is valid once
    /// the change was made, with its entry in the activity log, and was passed to [`Tokens::apply`].
    ///
    /// # Errors
    /// Where a field is not valid.
    pub async fn make(
        &self,
        caller: &Caller,
        company: Option<&CompanyId>,
        request: CreateToken,
    ) -> Result<(NewToken, Change), AccessError> {
        check(company, &request, self.clock.now())?;
        let live = self.list(company).iter().filter(|token| token.revoked_at.is_none()).count();
        if live >= MAX_TOKENS {
            let message = format!("would be one too many; a company has at most {MAX_TOKENS}");
            return Err(FieldError::new("name", message).into());
        }
        let CreateToken { name, role, agent_id, run_id, operations, expires_at } = request;
        let token = Token {
            id: TokenId(new_id(&*self.clock)),
            name,
            role,
            company_id: company.cloned(),
            agent_id,
            run_id,
            operations,
            expires_at,
            created_at: self.clock.now(),
            created_by: caller.principal().to_owned(),
            rotated_at: None,
            revoked_at: None,
        };
        let (value, digest) = value()?;
        let change = self.change(None, &Stored { token: token.clone(), digest }).await?;
        Ok((NewToken { token, value }, change))
    }

    /// Gives a token another value. The previous value is invalid once the change is made.
    ///
    /// # Errors
    /// Where there is no such token in the company, or it was revoked.
    pub async fn rotate(&self, company: Option<&CompanyId>, id: TokenId) -> Result<(NewToken, Change), AccessError> {
        let present = self.get(company, id)?;
        if present.token.revoked_at.is_some() {
            return Err(AccessError::Revoked { id: id.0.to_string() });
        }
        let token = Token { rotated_at: Some(self.clock.now()), ..present.token.clone() };
        let (value, digest) = value()?;
        let change = self.change(Some(&present), &Stored { token: token.clone(), digest }).await?;
        Ok((NewToken { token, value }, change))
    }

    /// Revokes a token, permanently. It stays in the list, so that requests that still use it are attributed.
    ///
    /// # Errors
    /// Where there is no such token in the company.
    pub async fn revoke(&self, company: Option<&CompanyId>, id: TokenId) -> Result<(Token, Change), AccessError> {
        let present = self.get(company, id)?;
        let revoked_at = present.token.revoked_at.unwrap_or_else(|| self.clock.now());
        let token = Token { revoked_at: Some(revoked_at), ..present.token.clone() };
        let change =
            self.change(Some(&present), &Stored { token: token.clone(), digest: present.digest.clone() }).await?;
        Ok((token, change))
    }

    /// Updates the cache with a change that was written.
    ///
    /// # Errors
    /// Where it cannot be read back.
    pub fn apply(&self, change: &Change) -> Result<(), AccessError> {
        if let Some(value) = &change.new {
            self.all.write().put(store::decode("token", value)?);
        }
        Ok(())
    }

    /// Updates the cache with a row that somebody else wrote.
    ///
    /// # Errors
    /// Where it cannot be read.
    pub fn reload(&self, key: &[u8], value: Option<&[u8]>) -> Result<(), AccessError> {
        let mut all = self.all.write();
        match value {
            Some(value) => all.put(store::decode("token", value)?),
            None => {
                let id = key.last_chunk::<16>().map(|id| TokenId(Uuid::from_bytes(*id)));
                id.into_iter().for_each(|id| all.remove(id));
            }
        }
        Ok(())
    }

    /// A company's tokens, or the operators', oldest first.
    pub fn list(&self, company: Option<&CompanyId>) -> Vec<Token> {
        let all = self.all.read();
        let own = all.by_id.values().filter(|stored| stored.token.company_id.as_ref() == company);
        let mut tokens: Vec<Token> = own.map(|stored| stored.token.clone()).collect();
        tokens.sort_by_key(|token| token.id);
        tokens
    }

    /// Removes the tokens of an erased company from the cache.
    pub fn forget(&self, company: &CompanyId) {
        let mut all = self.all.write();
        let All { by_id, by_digest } = &mut *all;
        by_id.retain(|_, stored| stored.token.company_id.as_ref() != Some(company));
        by_digest.retain(|_, entry| entry.caller.company() != Some(company));
    }

    async fn change(&self, before: Option<&Stored>, after: &Stored) -> Result<Change, AccessError> {
        let company = after.token.company_id.as_ref().map_or("", |company| company.as_str());
        let id: Uuid = after.token.id.0;
        let key = [company.as_bytes(), b"\0", id.as_bytes()].concat();
        let expected = match before {
            Some(before) => store::unchanged(&*self.store, Table::Tokens, &key, "token", before).await?,
            None => Expected::Absent,
        };
        Ok(Change { table: Table::Tokens, key, expected, new: Some(store::encode("token", after)?) })
    }

    fn get(&self, company: Option<&CompanyId>, id: TokenId) -> Result<Arc<Stored>, AccessError> {
        let found = self.all.read().by_id.get(&id).cloned();
        let own = found.filter(|stored| stored.token.company_id.as_ref() == company);
        own.ok_or_else(|| AccessError::NotFound { id: id.0.to_string() })
    }
}

impl Stored {
    fn digest(&self) -> Option<[u8; 32]> {
        blake3::Hash::from_hex(&self.digest).ok().map(|hash| *hash.as_bytes())
    }
}

impl All {
    fn remove(&mut self, id: TokenId) {
        if let Some(digest) = self.by_id.remove(&id).and_then(|before| before.digest()) {
            self.by_digest.remove(&digest);
        }
    }

    fn put(&mut self, stored: Stored) {
        self.remove(stored.token.id);
        if let Some(digest) = stored.digest() {
            let entry = Entry {
                caller: Arc::new(Caller::of(&stored.token)),
                expires_at: stored.token.expires_at,
                is_revoked: stored.token.revoked_at.is_some(),
            };
            self.by_digest.insert(digest, entry);
        }
        self.by_id.insert(stored.token.id, Arc::new(stored));
    }
}

fn value() -> Result<(String, String), AccessError> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).map_err(|error| AccessError::NoRandomness(error.to_string()))?;
    let value = format!("mh_{}", URL_SAFE_NO_PAD.encode(bytes));
    let digest = blake3::hash(value.as_bytes()).to_hex().to_string();
    Ok((value, digest))
}

fn check(company: Option<&CompanyId>, request: &CreateToken, now: Timestamp) -> Result<(), FieldError> {
    let name = &request.name;
    if name.is_empty() || name.chars().count() > 64 || name.chars().any(char::is_control) {
        return Err(FieldError::new("name", "is not 1 to 64 printable characters"));
    }
    match (request.role, company) {
        (Role::Operator, Some(_)) => {
            return Err(FieldError::new("role", "is `operator`, and an operator belongs to no company; leave it out"));
        }
        (Role::CompanyAdministrator | Role::Agent | Role::Auditor, None) => {
            return Err(FieldError::new("role", format!("is `{}`, which belongs to a company; name it", request.role)));
        }
        _ => {}
    }
    let is_agent = request.role == Role::Agent;
    if is_agent != request.agent_id.is_some() {
        return Err(FieldError::new("agentId", "goes with the role `agent`, and that role goes with it"));
    }
    if let Some(run) = &request.run_id {
        if !is_agent {
            return Err(FieldError::new("runId", "goes with the role `agent` only"));
        }
        memhost_types::check_id("runId", run)?;
    }
    if request.operations.as_ref().is_some_and(|operations| operations.len() > memhost_types::limits::MAX_FEW) {
        return Err(FieldError::new("operations", "names one twice; name each once"));
    }
    if request.operations.as_ref().is_some_and(Vec::is_empty) {
        return Err(FieldError::new("operations", "is empty; name some, or leave it out for all of the role's"));
    }
    if request.expires_at.is_some_and(|expires_at| expires_at <= now) {
        return Err(FieldError::new("expiresAt", "is over already; name a time to come"));
    }
    Ok(())
}
