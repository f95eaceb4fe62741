//! Sessions of people in the explorer: rows among the host's own, so that they outlive the process,
//! and every host on a database knows them.
//!
//! A session holds no permission of its own: it has a token, and every page authenticates that
//! token again. So a revoked token ends its sessions, and there is no second model of permissions.
//! The token is sealed. A row is found by the digest of its session's id, which is a random value
//! of 256 bits, so the rows sign nobody in.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use crate::error::ServiceError;
use memhost_registry::secrets::Vault;
use memhost_store::{self as store, Change, Store, Table};

/// The prefix of their rows.
const SESSION: &[u8] = b"session\0";
/// The lifetime of a session.
const LIFETIME: SignedDuration = SignedDuration::from_hours(12);
/// The most sessions. Beyond it the one that would end first is removed.
const MAX_SESSIONS: usize = 4_096;
/// The most sessions of one token. Beyond it the oldest one of the token is removed.
const MAX_SESSIONS_OF_TOKEN: usize = 16;
const CSRF: &str = "memhost 2026-11 explorer forms";

/// The sessions of people in the explorer.
pub struct Sessions {
    store: Arc<dyn Store>,
    vault: Vault,
    key: [u8; 32],
}

/// A session as it is stored.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Stored {
    /// The token, sealed for this session, in base64.
    token: String,
    /// The token's digest under the host's key: which sessions are of one token.
    holder: String,
    until: Timestamp,
}

/// A session that is found.
#[derive(Debug, Clone)]
pub struct Session {
    /// The digest of its id.
    pub key: [u8; 32],
    /// The token. It may have ended.
    pub token: String,
    /// What its forms carry, so that another site cannot send them.
    pub csrf: String,
}

impl Sessions {
    /// The sessions in a store, sealed with a key.
    pub(crate) fn new(store: Arc<dyn Store>, key: [u8; 32]) -> Self {
        Self { store, vault: Vault::open(key), key }
    }

    /// Begins a session for a token. Answers its id, which is shown to nobody else.
    ///
    /// # Errors
    /// Where the system has no randomness, or the store fails.
    pub async fn begin(&self, token: &str, now: Timestamp) -> Result<String, ServiceError> {
        let mut bytes = [0; 32];
        getrandom::fill(&mut bytes).map_err(ServiceError::host)?;
        let id = URL_SAFE_NO_PAD.encode(bytes);
        let key = row_key(digest(&id));
        let sealed = self.vault.seal(&key, token).map_err(ServiceError::host)?;
        let session = Stored {
            token: URL_SAFE_NO_PAD.encode(sealed),
            holder: blake3::keyed_hash(&self.key, token.as_bytes()).to_hex().to_string(),
            until: now.checked_add(LIFETIME).unwrap_or(now),
        };
        let mut gone = self.in_the_way(&session.holder, now).await?;
        gone.push(Change::always(Table::Host, key, Some(store::encode("session", &session)?)));
        store::write(&*self.store, &gone).await?;
        Ok(id)
    }

    /// The removal of sessions that have ended, and of those that make room for another one.
    async fn in_the_way(&self, holder: &str, now: Timestamp) -> Result<Vec<Change>, ServiceError> {
        let (mut gone, mut kept) = (Vec::new(), Vec::new());
        let mut rows = store::scan_all(&*self.store, Table::Host, SESSION);
        while let Some((key, row)) = rows.next().await? {
            // One that cannot be read is of no use.
            match store::decode::<Stored>("session", &row) {
                Ok(session) if session.until > now => kept.push((session.until, key, session)),
                _ => gone.push(key),
            }
        }
        kept.sort_by_key(|(until, ..)| *until);
        let of_token = kept.iter().filter(|(.., session)| session.holder == holder);
        let oldest = match of_token.clone().count() >= MAX_SESSIONS_OF_TOKEN {
            true => of_token.clone().next(),
            false => kept.first().filter(|_| kept.len() >= MAX_SESSIONS),
        };
        gone.extend(oldest.map(|(_, key, _)| key.clone()));
        Ok(gone.into_iter().map(|key| Change::always(Table::Host, key, None)).collect())
    }

    /// The session with an id. `None`: there is none, or it has ended.
    ///
    /// # Errors
    /// Where the store fails.
    pub async fn find(&self, id: &str, now: Timestamp) -> Result<Option<Session>, ServiceError> {
        let key = digest(id);
        let row = self.store.get(Table::Host, &row_key(key)).await?;
        let stored = row.and_then(|row| store::decode::<Stored>("session", &row).ok());
        let Some(stored) = stored.filter(|session| session.until > now) else { return Ok(None) };
        // With another key it is as if it were not there.
        let sealed = URL_SAFE_NO_PAD.decode(&stored.token).ok();
        let token = sealed.and_then(|sealed| self.vault.open_sealed(&row_key(key), &sealed).ok());
        let csrf = || URL_SAFE_NO_PAD.encode(blake3::derive_key(CSRF, id.as_bytes()));
        Ok(token.map(|token| Session { key, token, csrf: csrf() }))
    }

    /// Ends a session.
    ///
    /// # Errors
    /// Where the store fails.
    pub async fn end(&self, key: [u8; 32]) -> Result<(), ServiceError> {
        let gone = Change::always(Table::Host, row_key(key), None);
        Ok(store::write(&*self.store, &[gone]).await.map(drop)?)
    }
}

fn digest(id: &str) -> [u8; 32] {
    *blake3::hash(id.as_bytes()).as_bytes()
}

fn row_key(digest: [u8; 32]) -> Vec<u8> {
    [SESSION, &digest].concat()
}

#[cfg(test)]
mod tests {
    use memhost_store::MemoryStore;

    use super::*;

    fn sessions() -> (Arc<MemoryStore>, Sessions) {
        let store = Arc::new(MemoryStore::default());
        (Arc::clone(&store), Sessions::new(store, [7; 32]))
    }

    #[tokio::test]
    async fn nobody_signs_others_out_by_signing_in() {
        let ((_, sessions), now) = (sessions(), Timestamp::UNIX_EPOCH);
        let other = sessions.begin("another token", now).await.unwrap();
        let mut all = Vec::new();
        for second in 1..=i64::try_from(MAX_SESSIONS_OF_TOKEN).unwrap() + 20 {
            let later = now + SignedDuration::from_secs(second);
            all.push(sessions.begin("token", later).await.unwrap());
        }
        assert!(sessions.find(&other, now).await.unwrap().is_some());
        let mut kept = 0;
        for id in &all {
            kept += usize::from(sessions.find(id, now).await.unwrap().is_some());
        }
        assert_eq!(kept, MAX_SESSIONS_OF_TOKEN);
        let last = sessions.find(all.last().unwrap(), now).await.unwrap();
        assert!(last.is_some(), "the oldest goes");
    }

    #[tokio::test]
    async fn a_session_is_told_by_its_id_outlives_the_process_and_ends() {
        let ((store, first), now) = (sessions(), Timestamp::UNIX_EPOCH);
        let id = first.begin("token", now).await.unwrap();
        let sessions = Sessions::new(store.clone(), [7; 32]);
        let known = sessions.find(&id, now).await.unwrap().unwrap();
        assert_eq!(known.token, "token");
        let again = sessions.find(&id, now).await.unwrap().unwrap();
        assert_eq!((known.csrf.len(), &known.csrf), (43, &again.csrf));
        assert_ne!(known.csrf, id);
        assert!(sessions.find("another", now).await.unwrap().is_none());
        assert!(sessions.find(&id, now + LIFETIME).await.unwrap().is_none());
        let other_key = Sessions::new(store.clone(), [8; 32]);
        assert!(other_key.find(&id, now).await.unwrap().is_none());
        // Neither the token nor the id is in the rows.
        let mut rows = store::scan_all(&*store, Table::Host, b"");
        while let Some((key, row)) = rows.next().await.unwrap() {
            let text = String::from_utf8_lossy(&[key, row].concat()).into_owned();
            assert!(!text.contains("\"token\"}") && !text.contains(&id), "{text}");
        }
        sessions.end(known.key).await.unwrap();
        assert!(first.find(&id, now).await.unwrap().is_none());
        // What has ended leaves no row behind once somebody else signs in.
        first.begin("one", now).await.unwrap();
        first.begin("two", now + LIFETIME).await.unwrap();
        let mut rows = store::scan_all(&*store, Table::Host, SESSION);
        assert!(rows.next().await.unwrap().is_some() && rows.next().await.unwrap().is_none());
    }
}
