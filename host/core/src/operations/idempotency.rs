//! Requests that may be sent twice: the second one with the same key is answered as the first one was.
//!
//! The key is durable before anything is done. Whoever comes while the first one is at work waits for it; after a crash in
//! the middle nobody knows whether it was done, and that is what is said.

use async_recursion::async_recursion as boxed;
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

/// Keys at work, each with the lock that the second one waits for.
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
    /// Of what was asked: the same key for something else is a mistake.
    request: String,
    begun_at: Timestamp,
    answer: Option<KeptAnswer>,
}

/// What a key stands for.
pub enum Idempotent {
    /// Nothing yet: do it, and hand the answer in.
    New(Ticket),
    /// It was done.
    Answered(KeptAnswer),
    /// The key was used for something else.
    Reused,
    /// The host ended while it was at work.
    Unknown,
}

/// Whoever holds it does what was asked.
pub struct Ticket {
    key: Vec<u8>,
    request: String,
    begun_at: Timestamp,
    in_flight: Option<OwnedMutexGuard<()>>,
}

impl Service {
    /// What a key of a caller stands for, in what is asked: a key is one token's and of no use to another one.
    ///
    /// # Errors
    /// Where the store fails.
    #[boxed]
    pub async fn idempotent(
        &self,
        caller: &Caller,
        company: Option<&CompanyId>,
        key: &str,
        request: &[&[u8]],
    ) -> Result<Idempotent, ServiceError> {
        // What is asked may hold a secret: nobody who reads the store can try values against the digest.
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
        let stored = self.store.get(Table::Idempotency, &key).await?;
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

    /// Keeps the answer of what was done; none: it was not done, and the key is free again.
    ///
    /// # Errors
    /// Where the store fails.
    #[boxed]
    pub async fn answered(&self, ticket: Ticket, answer: Option<KeptAnswer>) -> Result<(), ServiceError> {
        // What is too large to be kept was done all the same.
        let kept = answer.map(|answer| match answer.body.len() <= MAX_ANSWER {
            true => answer,
            false => KeptAnswer { body: String::new(), ..answer },
        });
        let written = self.write_ticket(&ticket, kept.map(Some)).await;
        drop(ticket);
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
        if let Transacted::Done(commit) = self.store.transact(&[change]).await? {
            commit.await?;
        }
        Ok(())
    }

    /// Forgets keys that are too old. Answers how many.
    pub(crate) async fn sweep_keys(&self) -> Result<usize, ServiceError> {
        let (mut old, now) = (Vec::new(), self.clock.now());
        let mut keys = store::scan_all(&*self.store, Table::Idempotency, b"");
        while let Some((key, value)) = keys.next().await? {
            let stored: Stored = store::decode("idempotency key", &value)?;
            if now.duration_since(stored.begun_at) >= KEPT {
                old.push(Change { table: Table::Idempotency, key, expected: Expected::Value(value), new: None });
            }
        }
        for change in &old {
            drop(self.store.transact(std::slice::from_ref(change)).await?);
        }
        Ok(old.len())
    }
}
