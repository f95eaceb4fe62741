//! Requests that may be sent twice: the second one with the same key is answered as the first one was.
//!
//! The key is on disk before anything is done. A second request that comes while the first one runs waits for it.
//! After a crash in between nobody knows whether the first one was done, and the answer says so.

use std::collections::HashMap;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use tokio::sync::{Mutex as AsyncMutex, OwnedMutexGuard};

use crate::access::Caller;

use crate::Service;

use crate::error::ServiceError;
use memhost_store::{self as store, Change, Expected, Table, Transacted};
use memhost_types::CompanyId;

/// How long an answer is kept.
const KEPT: SignedDuration = SignedDuration::from_hours(24);
/// The largest answer that is kept, in bytes.
const MAX_ANSWER: usize = 256 << 10;

/// Keys of requests that run, each with the lock that a second request waits for.
pub(crate) type InFlight = Mutex<HashMap<Vec<u8>, Arc<AsyncMutex<()>>>>;

/// An answer as it is kept.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct KeptAnswer {
    /// Its status.
    pub status: u16,
    /// Its media type.
    pub content_type: String,
    /// Its body.
    pub body: String,
}

#[derive(Serialize, Deserialize)]
struct Stored {
    /// The digest of the request: the same key for another request is a mistake.
    request: String,
    begun_at: Timestamp,
    answer: Option<KeptAnswer>,
}

/// What a key stands for.
pub enum Idempotent {
    /// Nothing yet: do it, and hand the answer to [`Service::answered`].
    New(Ticket),
    /// The request was done.
    Answered(KeptAnswer),
    /// The key was used for another request.
    Reused,
    /// The host ended while the request ran.
    Unknown,
}

/// The right to do the request: one task has it.
pub struct Ticket {
    key: Vec<u8>,
    request: String,
    begun_at: Timestamp,
    in_flight: Option<OwnedMutexGuard<()>>,
}

impl Service {
    /// What a key of a caller stands for. A key belongs to one token and means nothing with another one.
    ///
    /// # Errors
    /// Where the store fails.
    pub async fn idempotent(
        &self,
        caller: &Caller,
        company: Option<&CompanyId>,
        key: &str,
        request: &[&[u8]],
    ) -> Result<Idempotent, ServiceError> {
        // The request may hold a secret: the digest is keyed, so that a reader of the store cannot try values against
        // it.
        let mut digest = blake3::Hasher::new_keyed(&self.digest_key);
        for part in request {
            digest.update(&(part.len() as u64).to_le_bytes()).update(part);
        }
        let request = digest.finalize().to_hex().to_string();
        let company = company.map_or("", |company| company.as_str());
        let key = [company.as_bytes(), b"\0", caller.key().as_bytes(), b"\0", key.as_bytes()].concat();
        let lock = Arc::clone(self.idempotency.lock().entry(key.clone()).or_default());
        let in_flight = lock.lock_owned().await;
        let now = self.clock.now();
        let stored = self.store.get(Table::Idempotency, &key)?;
        let stored: Option<Stored> = stored.map(|value| store::decode("idempotency key", &value)).transpose()?;
        match stored.filter(|stored| now.duration_since(stored.begun_at) < KEPT) {
            Some(stored) if stored.request != request => Ok(Idempotent::Reused),
            Some(Stored { answer: Some(answer), .. }) => Ok(Idempotent::Answered(answer)),
            Some(Stored { answer: None, .. }) => Ok(Idempotent::Unknown),
            None => {
                let ticket = Ticket { key, request, begun_at: now, in_flight: Some(in_flight) };
                self.write_ticket(&ticket, Some(None)).await?;
                Ok(Idempotent::New(ticket))
            }
        }
    }

    /// Keeps the answer to a request. None: the request was not done, and the key is free again.
    ///
    /// # Errors
    /// Where the store fails.
    pub async fn answered(&self, mut ticket: Ticket, answer: Option<KeptAnswer>) -> Result<(), ServiceError> {
        // The request was done even where its answer is too large to be kept.
        let kept = answer.map(|answer| match answer.body.len() <= MAX_ANSWER {
            true => answer,
            false => KeptAnswer { body: String::new(), ..answer },
        });
        let written = self.write_ticket(&ticket, kept.map(Some)).await;
        ticket.in_flight = None;
        self.idempotency.lock().retain(|_, lock| Arc::strong_count(lock) > 1);
        written
    }

    async fn write_ticket(&self, ticket: &Ticket, answer: Option<Option<KeptAnswer>>) -> Result<(), ServiceError> {
        let stored = answer.map(|answer| Stored { request: ticket.request.clone(), begun_at: ticket.begun_at, answer });
        let change = Change {
            table: Table::Idempotency,
            key: ticket.key.clone(),
            expected: Expected::Anything,
            new: stored.map(|stored| store::encode("idempotency key", &stored)).transpose()?,
        };
        if let Transacted::Done(commit) = self.store.transact(&[change])? {
            commit.await?;
        }
        Ok(())
    }

    /// Deletes keys that are too old. Answers how many.
    pub(crate) fn sweep_keys(&self) -> Result<usize, ServiceError> {
        let (mut from, mut old) = (None, Vec::new());
        let now = self.clock.now();
        loop {
            let page = self.store.scan(Table::Idempotency, b"", from.as_deref(), 50)?;
            for (key, value) in page.entries {
                let stored: Stored = store::decode("idempotency key", &value)?;
                if now.duration_since(stored.begun_at) >= KEPT {
                    old.push(Change { table: Table::Idempotency, key, expected: Expected::Value(value), new: None });
                }
            }
            match page.next {
                Some(next) => from = Some(next),
                None => break,
            }
        }
        for change in &old {
            drop(self.store.transact(std::slice::from_ref(change))?);
        }
        Ok(old.len())
    }
}
