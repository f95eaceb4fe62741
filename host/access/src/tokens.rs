//! All tokens, in the store and cached in memory, as digests of random values of 256 bits.

mod ended;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jiff::Timestamp;
use parking_lot::RwLock;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::requests::{CreateToken, RotateToken, check};
use crate::{Caller, Denied};
use memhost_ports::{Clock, new_id};
use memhost_store::{self as store, Change, Expected, Store, StoreError, Table, TableWrite};
use memhost_types::{CompanyId, FieldError, FoundToken, NewToken, Token, TokenId};

/// A company has at most so many tokens that have not ended.
const MAX_TOKENS: usize = 10_000;
/// What values of tokens begin with.
const PREFIX: &str = "mh_";
/// The last use is kept to the hour: it is written once in an hour and not with every request.
const HOUR: i64 = 3_600;

/// Why a token was not made, changed or found.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum AccessError {
    #[error(transparent)]
    Field(#[from] FieldError),
    #[error("there is no token {id} here; `memhost token list` shows those that there are")]
    NotFound { id: String },
    #[error(
        "the token {id} was revoked and stays revoked; make another one with `memhost token create`"
    )]
    Revoked { id: String },
    /// The token would give its creator more than the creator has.
    #[error(transparent)]
    Beyond(#[from] Denied),
    #[error("no token can be made: the system gives no random bytes: {0}; try again")]
    NoRandomness(String),
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// A token as it is stored.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Stored {
    token: Token,
    /// BLAKE3 of the value, in hex. The value has 256 random bits: no salt and no slow hash would
    /// add anything.
    digest: String,
    /// The digest of the value before, which works until `previousValueUntil`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    previous: Option<String>,
}

/// The owner of a token's value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Known {
    /// A valid token.
    Valid(Caller),
    /// A token that expired, was revoked or has another value: its owner, and the reason.
    Invalid(Caller, &'static str),
}

/// The hours since 1970 in which a token was last used; 0: never.
type LastHour = Arc<AtomicI64>;

#[derive(Default)]
struct All {
    by_id: HashMap<TokenId, Arc<Stored>>,
    by_digest: HashMap<[u8; 32], Entry>,
    last_hours: HashMap<TokenId, LastHour>,
}

struct Entry {
    id: TokenId,
    caller: Arc<Caller>,
    expires_at: Option<Timestamp>,
    is_revoked: bool,
    /// Until when this value works after it was replaced. `None`: it is the current value.
    replaced_until: Option<Timestamp>,
    last_hour: LastHour,
}

impl Entry {
    /// Why the value does not work any more.
    fn ended(&self, now: Timestamp) -> Option<&'static str> {
        let is_over = |end: Option<Timestamp>| end.is_some_and(|end| end <= now);
        match (self.is_revoked, is_over(self.expires_at), is_over(self.replaced_until)) {
            (true, ..) => Some("was revoked"),
            (_, true, _) => Some("has expired"),
            (.., true) => Some("has another value since it was rotated"),
            _ => None,
        }
    }
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

    /// The owner of a value. `None`: no token has it.
    pub fn find(&self, value: &str) -> Option<Known> {
        self.all.read().known(value, self.clock.now())
    }

    /// The owner of a value whose token another host keeps. To ask is no use of the token.
    ///
    /// # Errors
    /// Where the store cannot be read.
    pub async fn find_elsewhere(&self, value: &str) -> Result<Option<Known>, AccessError> {
        Ok(self.elsewhere(value).await?.and_then(|all| all.known(value, self.clock.now())))
    }

    /// The token of a value, alone, where another host keeps it.
    async fn elsewhere(&self, value: &str) -> Result<Option<All>, AccessError> {
        if !is_made_here(value) {
            return Ok(None);
        }
        let digest = blake3::hash(value.as_bytes()).to_hex();
        let Some(row) = self.store.token_elsewhere(&digest).await? else { return Ok(None) };
        let mut all = All::default();
        all.put(store::decode("token", &row)?);
        Ok(Some(all))
    }

    /// Whose a value is, for somebody who found it: a company's token, or for `None` any token of
    /// the host. To ask is no use of the token.
    ///
    /// # Errors
    /// Where the store cannot be read.
    pub async fn whose(
        &self,
        company: Option<&CompanyId>,
        value: &str,
    ) -> Result<FoundToken, AccessError> {
        let (value, now) = (value.trim(), self.clock.now());
        let here = self.all.read().found(value, now);
        let found = match here {
            Some(found) => Some(found),
            None => self.elsewhere(value).await?.and_then(|all| all.found(value, now)),
        };
        let is_shown = |token: &Token| company.is_none() || token.company_id.as_ref() == company;
        let Some((stored, ended)) = found.filter(|(stored, _)| is_shown(&stored.token)) else {
            return Ok(FoundToken::default());
        };
        Ok(FoundToken { token: Some(self.used(&stored.token)), ended: ended.map(str::to_owned) })
    }

    /// A new token, and the change that stores it; `company` is `None` for an operator's token. The
    /// token is valid once the change was made, with its entry in the activity log, and was passed
    /// to [`Tokens::apply`].
    ///
    /// # Errors
    /// Where a field is not valid, or the token would give more than the caller has.
    pub async fn make(
        &self,
        caller: &Caller,
        company: Option<&CompanyId>,
        request: CreateToken,
    ) -> Result<(NewToken, Change), AccessError> {
        let now = self.clock.now();
        check(company, &request, now)?;
        let live = self.list(company).iter().filter(|token| ended_at(token, now).is_none()).count();
        if live >= MAX_TOKENS {
            let message = format!(
                "would be one too many; a company has at most {MAX_TOKENS} valid tokens; revoke \
                 those that nobody uses with \
                 `memhost token delete ID`"
            );
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
            created_by: caller.principal().clone(),
            rotated_at: None,
            previous_value_until: None,
            last_used_at: None,
            revoked_at: None,
        };
        caller.covers(&token)?;
        let (value, digest) = value()?;
        let change =
            self.change(None, &Stored { token: token.clone(), digest, previous: None }).await?;
        Ok((NewToken { token, value }, change))
    }

    /// Gives a token another value. The previous value is invalid once the change is made, or after
    /// the overlap.
    ///
    /// # Errors
    /// Where there is no such token in the company, it was revoked, or it gives more than the
    /// caller has: whoever gets its value can do all that it can.
    pub async fn rotate(
        &self,
        caller: &Caller,
        company: Option<&CompanyId>,
        id: TokenId,
        request: RotateToken,
    ) -> Result<(NewToken, Change), AccessError> {
        let overlap = request.overlap()?;
        let present = self.get(company, id)?;
        if present.token.revoked_at.is_some() {
            return Err(AccessError::Revoked { id: id.0.to_string() });
        }
        caller.covers(&present.token)?;
        let now = self.clock.now();
        let until = now.checked_add(overlap).ok().filter(|_| overlap.is_positive());
        let token = Token {
            rotated_at: Some(now),
            previous_value_until: until,
            ..self.used(&present.token)
        };
        let (value, digest) = value()?;
        let previous = until.is_some().then(|| present.digest.clone());
        let change =
            self.change(Some(&present), &Stored { token: token.clone(), digest, previous }).await?;
        Ok((NewToken { token, value }, change))
    }

    /// Revokes a token, permanently. It stays in the list for a while, so that requests that still
    /// use it are attributed.
    ///
    /// # Errors
    /// Where there is no such token in the company.
    pub async fn revoke(
        &self,
        company: Option<&CompanyId>,
        id: TokenId,
    ) -> Result<(Token, Change), AccessError> {
        let present = self.get(company, id)?;
        let revoked_at = present.token.revoked_at.unwrap_or_else(|| self.clock.now());
        let token = Token { revoked_at: Some(revoked_at), ..self.used(&present.token) };
        let change = self
            .change(Some(&present), &Stored { token: token.clone(), ..Stored::clone(&present) })
            .await?;
        Ok((token, change))
    }

    /// Stores when tokens were last used, for those whose row is out of date. A token that is
    /// changed at the same time is stored at the next call.
    ///
    /// # Errors
    /// Where a row cannot be read or written.
    pub async fn write_last_uses(&self) -> Result<(), AccessError> {
        let all: Vec<_> = self.all.read().by_id.values().cloned().collect();
        for stored in all {
            let token = self.used(&stored.token);
            // Those of operators are written at one host only.
            let is_ours = token.company_id.is_some() || self.store.is_hosts_home();
            if is_ours && token != stored.token {
                let after = Stored { token, ..Stored::clone(&stored) };
                self.write(&self.change(Some(&stored), &after).await?).await?;
            }
        }
        Ok(())
    }

    /// Makes a change that no entry of an activity log describes. Answers whether it was made: not
    /// where the token was changed meanwhile.
    ///
    /// # Errors
    /// Where the store fails.
    pub async fn write(&self, change: &Change) -> Result<bool, AccessError> {
        let is_made = store::write(&*self.store, std::slice::from_ref(change)).await?;
        if is_made {
            self.apply(change)?;
        }
        Ok(is_made)
    }

    /// The token with the hour in which it was last used.
    fn used(&self, token: &Token) -> Token {
        let hour = self
            .all
            .read()
            .last_hours
            .get(&token.id)
            .map_or(0, |hour| hour.load(Ordering::Relaxed));
        let last = Timestamp::from_second(hour * HOUR).ok().filter(|_| hour > 0);
        Token { last_used_at: token.last_used_at.max(last), ..token.clone() }
    }

    /// Updates the cache with a change that was written.
    ///
    /// # Errors
    /// Where it cannot be read back.
    pub fn apply(&self, change: &Change) -> Result<(), AccessError> {
        self.reload(&change.key, change.new.as_deref())
    }

    /// Updates the cache with a row that another process wrote; rows of other tables are ignored.
    ///
    /// # Errors
    /// Where it cannot be read.
    pub fn follow(&self, row: &TableWrite) -> Result<(), AccessError> {
        match row.table {
            Table::Tokens => self.reload(&row.key, row.new.as_deref()),
            _ => Ok(()),
        }
    }

    fn reload(&self, key: &[u8], value: Option<&[u8]>) -> Result<(), AccessError> {
        let mut all = self.all.write();
        match value {
            Some(value) => all.put(store::decode("token", value)?),
            None => {
                if let Some(id) = key.last_chunk::<16>().map(|id| TokenId(Uuid::from_bytes(*id))) {
                    all.remove(id);
                    all.last_hours.remove(&id);
                }
            }
        }
        Ok(())
    }

    /// A company's tokens, or the operators', oldest first.
    pub fn list(&self, company: Option<&CompanyId>) -> Vec<Token> {
        let all = self.all.read();
        let own = all.by_id.values().filter(|stored| stored.token.company_id.as_ref() == company);
        let own: Vec<_> = own.cloned().collect();
        drop(all);
        let mut tokens: Vec<Token> = own.iter().map(|stored| self.used(&stored.token)).collect();
        tokens.sort_by_key(|token| token.id);
        tokens
    }

    /// Removes the tokens of an erased company from the cache.
    pub fn forget(&self, company: &CompanyId) {
        let mut all = self.all.write();
        let All { by_id, by_digest, last_hours } = &mut *all;
        last_hours.retain(|id, _| {
            by_id.get(id).is_none_or(|stored| stored.token.company_id.as_ref() != Some(company))
        });
        by_id.retain(|_, stored| stored.token.company_id.as_ref() != Some(company));
        by_digest.retain(|_, entry| entry.caller.company() != Some(company));
    }

    async fn change(&self, before: Option<&Stored>, after: &Stored) -> Result<Change, AccessError> {
        let key = key(&after.token);
        let expected = match before {
            Some(before) => {
                store::unchanged(&*self.store, Table::Tokens, &key, "token", before).await?
            }
            None => Expected::Absent,
        };
        Ok(Change {
            table: Table::Tokens,
            key,
            expected,
            new: Some(store::encode("token", after)?),
        })
    }

    fn get(&self, company: Option<&CompanyId>, id: TokenId) -> Result<Arc<Stored>, AccessError> {
        let found = self.all.read().by_id.get(&id).cloned();
        let own = found.filter(|stored| stored.token.company_id.as_ref() == company);
        own.ok_or_else(|| AccessError::NotFound { id: id.0.to_string() })
    }
}

/// When a token ended. `None`: it is still valid at `now`.
fn ended_at(token: &Token, now: Timestamp) -> Option<Timestamp> {
    let expired = token.expires_at.filter(|end| *end <= now);
    [token.revoked_at, expired].into_iter().flatten().min()
}

/// Where a token is stored.
fn key(token: &Token) -> Vec<u8> {
    let company = token.company_id.as_ref().map_or("", |company| company.as_str());
    let id: Uuid = token.id.0;
    [company.as_bytes(), b"\0", id.as_bytes()].concat()
}

/// The digest that is written as this text.
fn digest_of(text: &str) -> Option<[u8; 32]> {
    blake3::Hash::from_hex(text).ok().map(|hash| *hash.as_bytes())
}

impl Stored {
    /// The digests of the values that the token has, each with the end of the one that was
    /// replaced.
    fn digests(&self) -> impl Iterator<Item = ([u8; 32], Option<Timestamp>)> {
        let previous = self.previous.as_deref().zip(self.token.previous_value_until);
        let all = [
            Some((self.digest.as_str(), None)),
            previous.map(|(digest, until)| (digest, Some(until))),
        ];
        all.into_iter().flatten().filter_map(|(digest, until)| Some((digest_of(digest)?, until)))
    }
}

impl All {
    /// The owner of a value, which is used now.
    fn known(&self, value: &str, now: Timestamp) -> Option<Known> {
        // A digest is looked up, not compared: how long that takes says nothing about another
        // value.
        let entry = self.by_digest.get(blake3::hash(value.as_bytes()).as_bytes())?;
        let caller = Caller::clone(&entry.caller);
        Some(match entry.ended(now) {
            Some(why) => Known::Invalid(caller, why),
            None => {
                entry.last_hour.fetch_max(now.as_second() / HOUR, Ordering::Relaxed);
                Known::Valid(caller)
            }
        })
    }

    /// The token of a value, and why that does not work any more.
    fn found(&self, value: &str, now: Timestamp) -> Option<(Arc<Stored>, Option<&'static str>)> {
        let entry = self.by_digest.get(blake3::hash(value.as_bytes()).as_bytes())?;
        Some((Arc::clone(self.by_id.get(&entry.id)?), entry.ended(now)))
    }

    fn remove(&mut self, id: TokenId) {
        if let Some(before) = self.by_id.remove(&id) {
            before.digests().for_each(|(digest, _)| drop(self.by_digest.remove(&digest)));
        }
    }

    fn put(&mut self, stored: Stored) {
        let id = stored.token.id;
        self.remove(id);
        let last_hour = Arc::clone(self.last_hours.entry(id).or_default());
        last_hour.fetch_max(
            stored.token.last_used_at.map_or(0, |at| at.as_second() / HOUR),
            Ordering::Relaxed,
        );
        let caller = Arc::new(Caller::of(&stored.token));
        for (digest, replaced_until) in stored.digests() {
            let entry = Entry {
                id,
                caller: Arc::clone(&caller),
                expires_at: stored.token.expires_at,
                is_revoked: stored.token.revoked_at.is_some(),
                replaced_until,
                last_hour: Arc::clone(&last_hour),
            };
            self.by_digest.insert(digest, entry);
        }
        self.by_id.insert(id, Arc::new(stored));
    }
}

/// Whether a text has the form of a token's value.
pub fn is_made_here(value: &str) -> bool {
    let random = value.strip_prefix(PREFIX).and_then(|text| URL_SAFE_NO_PAD.decode(text).ok());
    random.is_some_and(|random| random.len() == 32)
}

fn value() -> Result<(String, String), AccessError> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).map_err(|error| AccessError::NoRandomness(error.to_string()))?;
    let value = format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(bytes));
    let digest = blake3::hash(value.as_bytes()).to_hex().to_string();
    Ok((value, digest))
}
