//! Requests that may be sent twice: the second one with the same key is answered as the first one
//! was.
//!
//! The key is durable before anything is done. A request that comes while the first one runs waits
//! for it. After a crash in between it is unknown whether the first one was done, and the answer
//! says so.

use async_recursion::async_recursion as boxed;
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use crate::Operations;
use memhost_access::Caller;
use memhost_executor::off_executor;
use memhost_store::{self as store, Change, Expected, Lease, LockKind, Store, StoreError, Table};
use memhost_tenancy::ServiceError;
use memhost_types::CompanyId;

/// How long an answer is kept.
const KEPT: SignedDuration = SignedDuration::from_hours(24);
/// The largest answer that is kept, in bytes.
const MAX_ANSWER: usize = 1 << 20;

/// A stored answer.
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

/// Removes the bodies of a company's stored answers that may have a record's text. Whoever repeats
/// such a request gets the status without the body.
pub(crate) async fn clear(store: &dyn Store, company: &CompanyId) -> Result<(), StoreError> {
    let mut rows = store::scan_all(store, Table::Idempotency, &store::company_key(company, b""));
    let mut cleared = Vec::new();
    while let Some((key, value)) = rows.next().await? {
        let stored: Stored = store::decode("idempotency key", &value)?;
        let Some(answer) = stored.answer.filter(|answer| answer.body.contains("text")) else {
            continue;
        };
        let answer = Some(KeptAnswer { body: String::new(), ..answer });
        let new = Some(store::encode("idempotency key", &Stored { answer, ..stored })?);
        cleared.push(Change {
            table: Table::Idempotency,
            key,
            expected: Expected::Value(value),
            new,
        });
    }
    for change in &cleared {
        store::write(store, std::slice::from_ref(change)).await?;
    }
    Ok(())
}

/// The state of an idempotency key.
pub enum Idempotent {
    /// Nothing yet: do it, and pass the answer to [`Operations::answered`].
    New(Ticket),
    /// It was done.
    Answered(KeptAnswer),
    /// The key was used for another request.
    Reused,
    /// The host ended before the request was answered.
    Unknown,
}

/// The right to do what was asked.
pub struct Ticket {
    key: Vec<u8>,
    request: String,
    begun_at: Timestamp,
    company: Option<CompanyId>,
    /// A second request with this key waits for it.
    _lock: Lease,
}

impl Operations {
    /// What an idempotency key stands for. Keys of different callers are different.
    ///
    /// # Errors
    /// Where the store fails, or the key is new and the company has no room for it.
    #[boxed]
    pub async fn idempotent(
        &self,
        caller: &Caller,
        company: Option<&CompanyId>,
        key: &str,
        request: &[&[u8]],
    ) -> Result<Idempotent, ServiceError> {
        // A request may contain a secret. The digest has a key, so that who reads the store cannot
        // guess the secret by it.
        let request = off_executor(request.iter().map(|part| part.len()).sum(), || {
            let mut digest = blake3::Hasher::new_keyed(&self.digest_key);
            for part in request {
                digest.update(&(part.len() as u64).to_le_bytes()).update(part);
            }
            digest.finalize().to_hex().to_string()
        });
        let name = company.map_or("", |company| company.as_str());
        let key = [name.as_bytes(), b"\0", caller.key().as_bytes(), b"\0", key.as_bytes()].concat();
        let lock = self.store.lock(LockKind::Request, &key).await?;
        let now = self.clock.now();
        let stored = self.store.get(Table::Idempotency, &key).await?;
        let stored: Option<Stored> =
            stored.map(|value| store::decode("idempotency key", &value)).transpose()?;
        match stored.filter(|stored| now.duration_since(stored.begun_at) < KEPT) {
            Some(stored) if stored.request != request => Ok(Idempotent::Reused),
            Some(Stored { answer: Some(answer), .. }) => Ok(Idempotent::Answered(answer)),
            Some(Stored { answer: None, .. }) => Ok(Idempotent::Unknown),
            None => {
                // What the host does not know has no rows, and is refused.
                if let Some(company) = company {
                    self.tenancy.check_key(caller, company)?;
                }
                let ticket =
                    Ticket { key, request, begun_at: now, company: company.cloned(), _lock: lock };
                self.write_ticket(&ticket, Some(None)).await?;
                Ok(Idempotent::New(ticket))
            }
        }
    }

    /// Keeps the answer. `None`: nothing was done, and the key is free again.
    ///
    /// # Errors
    /// Where the store fails.
    #[boxed]
    pub async fn answered(
        &self,
        ticket: Ticket,
        answer: Option<KeptAnswer>,
    ) -> Result<(), ServiceError> {
        let room = match &ticket.company {
            Some(company) => self.store.held(company)?.room(),
            None => u64::MAX,
        };
        // An answer that is too large, or for which the company has no room, is kept without its
        // body.
        let kept = answer.map(|answer| {
            match answer.body.len() <= MAX_ANSWER && answer.body.len() as u64 <= room {
                true => answer,
                false => KeptAnswer { body: String::new(), ..answer },
            }
        });
        self.write_ticket(&ticket, kept.map(Some)).await
    }

    async fn write_ticket(
        &self,
        ticket: &Ticket,
        answer: Option<Option<KeptAnswer>>,
    ) -> Result<(), ServiceError> {
        let stored = answer.map(|answer| Stored {
            request: ticket.request.clone(),
            begun_at: ticket.begun_at,
            answer,
        });
        let new = stored.map(|stored| store::encode("idempotency key", &stored)).transpose()?;
        match store::write(
            &*self.store,
            &[Change::always(Table::Idempotency, ticket.key.clone(), new)],
        )
        .await
        {
            // Nothing of an erased company is kept, nor the answer to the request that erased it.
            Err(StoreError::Erased { .. }) | Ok(_) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Removes keys that are too old. Answers how many.
    ///
    /// # Errors
    /// Where the store fails.
    #[boxed]
    pub async fn sweep_keys(&self) -> Result<usize, ServiceError> {
        let (mut old, now) = (Vec::new(), self.clock.now());
        let mut keys = store::scan_all(&*self.store, Table::Idempotency, b"");
        while let Some((key, value)) = keys.next().await? {
            let stored: Stored = store::decode("idempotency key", &value)?;
            if now.duration_since(stored.begun_at) >= KEPT {
                old.push(Change {
                    table: Table::Idempotency,
                    key,
                    expected: Expected::Value(value),
                    new: None,
                });
            }
        }
        for change in &old {
            drop(self.store.transact(std::slice::from_ref(change)).await?);
        }
        Ok(old.len())
    }
}
