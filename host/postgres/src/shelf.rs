//! What hosts on one database have of components: which files each of them has brought, and the
//! components themselves.

use std::time::Duration;

use tokio::sync::Mutex;
use tokio::time::timeout;
use tokio_postgres::Client;
use uuid::Uuid;

use crate::ask::{self, Value};
use crate::connect::Address;
use crate::error::{OpenError, failed, no_answer};
use crate::place::{STATE, kind};
use memhost_store::{StoreError, Table};

/// How long one step may take: a component may have many MiB.
const WITHIN: Duration = Duration::from_secs(30);
/// The most files of one host, and of all hosts together: one with very many does not push out
/// those of the others.
pub const MOST_OF_ONE: i64 = 200;
const MOST_OF_ALL: i64 = 2_000;

const SHARING: &str = "sharing plugins";

/// A file of the plugins directory of some host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SharedPlugin {
    /// The host's data directory, by its id.
    pub place: Uuid,
    /// The file's name, as that host says it.
    pub name: String,
    /// The component's digest, as a text.
    pub digest: String,
    /// When the file was written, in microseconds since 1970.
    pub written_us: i64,
    /// The signature file that is beside the component.
    pub signature: Option<Vec<u8>>,
}

/// The components that hosts on one database share, as one of them sees it. Nothing of it is
/// fenced: each host writes about its own files only, and checks what it gets.
pub struct Shelf {
    address: Address,
    place: Uuid,
    client: Mutex<Option<Client>>,
}

/// A component, and the signature file beside it.
pub type Shelved = (Vec<u8>, Option<Vec<u8>>);

impl Shelf {
    /// The components in a database, for somebody who is no host.
    ///
    /// # Errors
    /// Where the address cannot be read.
    pub fn open(database: &str) -> Result<Self, OpenError> {
        Ok(Self::new(Address::parse(database)?, Uuid::nil()))
    }

    pub(crate) fn new(address: Address, place: Uuid) -> Self {
        Self { address, place, client: Mutex::default() }
    }

    /// The files of all hosts: of each the first 200 by name, at most 2,000 together.
    ///
    /// # Errors
    /// Where the database fails.
    pub async fn plugins(&self) -> Result<Vec<SharedPlugin>, StoreError> {
        let sql = "SELECT p.place, p.name, p.digest, p.written_us, b.signature FROM (\
                     SELECT *, row_number() OVER (PARTITION BY place ORDER BY name) AS at \
                     FROM plugins) AS p JOIN builds b ON b.digest = p.digest \
                   WHERE p.at <= $1 ORDER BY p.at, p.place LIMIT $2";
        let rows = self.ask(sql, &[&MOST_OF_ONE, &MOST_OF_ALL]).await?;
        let plugin = |row: &tokio_postgres::Row| SharedPlugin {
            place: row.get(0),
            name: row.get(1),
            digest: row.get(2),
            written_us: row.get(3),
            signature: row.get(4),
        };
        Ok(rows.iter().map(plugin).collect())
    }

    /// The digests of all components.
    ///
    /// # Errors
    /// Where the database fails.
    pub async fn builds(&self) -> Result<Vec<String>, StoreError> {
        let rows = self.ask("SELECT digest FROM builds", &[]).await?;
        Ok(rows.iter().map(|row| row.get(0)).collect())
    }

    /// A component. `None`: it is gone.
    ///
    /// # Errors
    /// Where the database fails.
    pub async fn fetch(&self, digest: &str) -> Result<Option<Shelved>, StoreError> {
        let sql = "SELECT component, signature FROM builds WHERE digest = $1";
        let rows = self.ask(sql, &[&digest]).await?;
        Ok(rows.first().map(|row| (row.get(0), row.get(1))))
    }

    /// Adds a component, or the signature to one that is there.
    ///
    /// # Errors
    /// Where the database fails.
    pub async fn put(
        &self,
        digest: &str,
        component: &[u8],
        signature: Option<&[u8]>,
    ) -> Result<(), StoreError> {
        let sql = "INSERT INTO builds (digest, component, signature) VALUES ($1, $2, $3) \
                   ON CONFLICT (digest) DO UPDATE \
                   SET signature = coalesce(excluded.signature, builds.signature), \
                     put_at = clock_timestamp()";
        self.ask(sql, &[&digest, &component, &signature]).await.map(drop)
    }

    /// A file of this host has this component, which is there.
    ///
    /// # Errors
    /// Where the database fails.
    pub async fn bring(&self, name: &str, digest: &str, written_us: i64) -> Result<(), StoreError> {
        let sql = "INSERT INTO plugins (place, name, digest, written_us) VALUES ($1, $2, $3, $4) \
                   ON CONFLICT (place, name) DO UPDATE \
                   SET digest = excluded.digest, written_us = excluded.written_us";
        self.ask(sql, &[&self.place, &name, &digest, &written_us]).await.map(drop)
    }

    /// Files of this host are gone.
    ///
    /// # Errors
    /// Where the database fails.
    pub async fn take_back(&self, names: &[&str]) -> Result<(), StoreError> {
        let sql = "DELETE FROM plugins WHERE place = $1 AND name = ANY($2)";
        self.ask(sql, &[&self.place, &names]).await.map(drop)
    }

    /// Removes components that no host's directory has and no binding needs.
    ///
    /// # Errors
    /// Where the database fails.
    pub async fn remove_unneeded(&self) -> Result<(), StoreError> {
        // A binding and the state of its storage name the build by its digest.
        let sql = "DELETE FROM builds b WHERE put_at < clock_timestamp() - interval '10 minutes' \
                   AND NOT EXISTS (SELECT 1 FROM plugins p WHERE p.digest = b.digest) \
                   AND NOT EXISTS (SELECT 1 FROM entries e WHERE e.kind = ANY($1) \
                     AND position(decode(b.digest, 'escape') IN e.value) > 0)";
        self.ask(sql, &[&[kind(Table::Bindings), STATE].as_slice()]).await.map(drop)
    }

    async fn ask(
        &self,
        sql: &str,
        values: &[&dyn Value],
    ) -> Result<Vec<tokio_postgres::Row>, StoreError> {
        let mut known = self.client.lock().await;
        let client = match known.take().filter(|client| !client.is_closed()) {
            Some(client) => client,
            None => self.address.connect().await.map_err(failed(SHARING))?.0,
        };
        // A connection that says nothing is not used again.
        let answer = timeout(WITHIN, ask::rows(&client, sql, values)).await;
        let answer = answer.map_err(|_| no_answer(SHARING))?;
        *known = Some(client);
        answer.map_err(failed(SHARING))
    }
}
