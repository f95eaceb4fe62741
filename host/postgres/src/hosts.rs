//! The hosts on one database. Each group of companies has one of them as its home.
//!
//! Each host has a lease, which a heartbeat renews. Where that of a home has ended, another host
//! takes the group over by raising the token of the group's row in `homes`, which every transaction
//! of a home holds and compares: from then on none of the former home is committed. Time only says
//! who should try; the token says who may write.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::sync::{oneshot, watch};
use tokio::time::{sleep, timeout};
use tokio_postgres::{Client, Row};
use uuid::Uuid;

use crate::ask::{self, Value};
use crate::connect::{self, Address};
use crate::database::Database;
use crate::error::{OpenError, PATIENCE, failed, no_answer, said};
use crate::group::{BITS_BELOW_TIMELINE, Group, TIMELINE, Term, assigned, on_this_timeline};
use crate::heartbeat::{Agreed, Heartbeat, Home, JoinOptions, Seen};
use crate::lease::HostLease;
use crate::shelf::Shelf;
use memhost_store::StoreError;
use memhost_types::HostView;

/// How long a database may be unreachable when a host joins.
const REACHED_WITHIN: Duration = Duration::from_secs(30);
/// How long to wait for such a host to go: the lease of a process that was killed ends.
const ROOM_WITHIN: Duration = Duration::from_secs(5);
/// How long the first heartbeat may take.
const JOINED_WITHIN: Duration = Duration::from_secs(10);
const AGAIN: Duration = Duration::from_millis(200);

/// The server gives up before this host does: who tries again must not find the former try in its
/// way.
const BEGIN_TO_TAKE: &str = "BEGIN; SET LOCAL statement_timeout = '8s'";

/// How long only the host that a group without a home is assigned to takes it.
const ASSIGNED_FIRST: Duration = Duration::from_millis(2_000);

const TAKING: &str = "taking over";
const GIVING: &str = "giving companies to another host";

/// What a database says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DatabaseState {
    /// Its setting `synchronous_commit`.
    pub synchronous_commit: String,
    /// Whether it names synchronous standbys.
    pub waits_for_standby: bool,
    /// Standbys and other receivers of its WAL that are connected.
    pub standbys: i64,
    /// Connections of clients to the whole server.
    pub connections: i64,
    /// How many it takes of ordinary users.
    pub most_connections: i64,
}

/// A host that was there before, and that this one cannot join.
struct Conflict {
    host: String,
    has_another_token: bool,
    is_at_our_place: bool,
}

/// A host among those on one database, until it leaves.
pub struct Membership {
    id: Uuid,
    place: Uuid,
    peer_url: Option<String>,
    address: Address,
    lease: Arc<HostLease>,
    seen: watch::Receiver<Seen>,
    is_away: Arc<AtomicBool>,
    is_draining: Arc<AtomicBool>,
    /// Since when each group has no home, as far as this host knows.
    free_since: Mutex<[Option<Instant>; Group::COUNT]>,
    beating: Mutex<Option<(oneshot::Sender<()>, JoinHandle<()>)>>,
}

impl Membership {
    /// Joins the hosts on a database: `postgres://USER:PASSWORD@HOST/DATABASE`. Its schema is
    /// brought up to date. Waits for 30 seconds while the database cannot be reached, and for some
    /// where a host that was killed stands in the way.
    ///
    /// # Errors
    /// Where the database cannot be used, what must be alike differs, or another host is there and
    /// the two cannot reach each other.
    pub async fn join(database: &str, options: JoinOptions) -> Result<Self, OpenError> {
        let address = Address::parse(database)?;
        let until = Instant::now() + REACHED_WITHIN;
        loop {
            match connect::prepare(&address).await {
                Err(error @ OpenError::Unreachable { .. }) if Instant::now() < until => {
                    tracing::warn!(%error, "waiting for the database");
                    sleep(AGAIN * 5).await;
                }
                done => break done?,
            }
        }
        let shown = address.shown();
        let unreachable = |error: tokio_postgres::Error| OpenError::Unreachable {
            database: shown.clone(),
            message: said(&error),
        };
        let (client, _) = address.connect().await.map_err(unreachable)?;
        for agreed in &options.agreed {
            if agree(&client, agreed).await.map_err(unreachable)? != agreed.value {
                let Agreed { name, advice, .. } = *agreed;
                return Err(OpenError::Differs { database: shown, name, advice });
            }
        }
        let (id, place, peer_url) = (Uuid::new_v4(), options.place, options.peer_url.clone());
        let token = options.token.clone();
        let lease = Arc::<HostLease>::default();
        let (seen, receiver) = watch::channel(Seen::default());
        let (is_away, is_draining) = (Arc::new(AtomicBool::new(true)), Arc::default());
        let (stop, stopped) = oneshot::channel();
        let heartbeat = Heartbeat {
            database: database.to_owned(),
            id,
            options,
            lease: Arc::clone(&lease),
            seen,
            is_away: Arc::clone(&is_away),
            is_draining: Arc::clone(&is_draining),
        };
        let thread = heartbeat.start(stopped).map_err(|error| OpenError::Unreachable {
            database: shown.clone(),
            message: error.to_string(),
        })?;
        let beating = Mutex::new(Some((stop, thread)));
        let joined = Self {
            id,
            place,
            peer_url,
            address,
            lease,
            seen: receiver,
            is_away,
            is_draining,
            free_since: Mutex::default(),
            beating,
        };
        match joined.find_room(&client, &token).await {
            Ok(None) => Ok(joined),
            Ok(Some(Conflict { host: other, has_another_token, is_at_our_place })) => {
                joined.leave().await;
                Err(match (is_at_our_place, has_another_token) {
                    (true, _) => OpenError::Twice { database: shown, other },
                    (_, true) => OpenError::OtherToken { database: shown, other },
                    (_, false) => OpenError::Alone { database: shown, other },
                })
            }
            Err(error) => {
                joined.leave().await;
                Err(unreachable(error))
            }
        }
    }

    /// A host that was there before, and that this one cannot join.
    async fn find_room(
        &self,
        client: &Client,
        token: &str,
    ) -> Result<Option<Conflict>, tokio_postgres::Error> {
        let mut seen = self.seen.clone();
        let _ = timeout(JOINED_WITHIN, seen.changed()).await;
        let sql = "SELECT o.name, o.token <> $3, coalesce(o.place = me.place, false) \
                   FROM hosts o, hosts me WHERE me.id = $1 \
                   AND o.id <> me.id AND o.expires_at > clock_timestamp() \
                   AND (o.joined_at, o.id) < (me.joined_at, me.id) \
                   AND (o.peer_url IS NULL OR $2::text IS NULL OR o.peer_url = $2 \
                     OR o.token <> $3 OR o.place = me.place) \
                   ORDER BY o.token <> $3 LIMIT 1";
        let until = Instant::now() + ROOM_WITHIN;
        loop {
            let found = ask::row(client, sql, &[&self.id, &self.peer_url, &token]).await?;
            match found {
                Some(row) if Instant::now() > until => {
                    let (host, has_another_token) = (row.get(0), row.get(1));
                    let is_at_our_place = row.get(2);
                    return Ok(Some(Conflict { host, has_another_token, is_at_our_place }));
                }
                Some(_) => sleep(AGAIN).await,
                None => return Ok(None),
            }
        }
    }

    /// The components that the hosts share.
    pub fn shelf(&self) -> Shelf {
        Shelf::new(self.address.clone(), self.place)
    }

    /// This host's id.
    pub fn id(&self) -> Uuid {
        self.id
    }

    /// Where other hosts reach it.
    pub fn peer_url(&self) -> Option<&str> {
        self.peer_url.as_deref()
    }

    /// Whether no other host reaches it, so that none can be beside it.
    pub fn is_alone(&self) -> bool {
        self.peer_url.is_none()
    }

    /// Whether a home is a process that ran at the address of this one before.
    pub fn follows_at_address_of(&self, home: &Home) -> bool {
        !home.is_me && self.peer_url.is_some() && home.peer_url == self.peer_url
    }

    /// Until when it may answer.
    pub fn lease(&self) -> &Arc<HostLease> {
        &self.lease
    }

    /// What each heartbeat sees.
    pub fn seen(&self) -> watch::Receiver<Seen> {
        self.seen.clone()
    }

    /// The connections of this host, for its stores: so many for writing, and at most so many for
    /// reading.
    ///
    /// # Errors
    /// Where the database cannot be used.
    pub async fn connect(
        &self,
        database: &str,
        counts: (usize, usize),
    ) -> Result<Arc<Database>, OpenError> {
        Database::open(database, self.id, counts, Arc::clone(&self.lease)).await
    }

    /// The hosts that groups are given to, this one included unless it takes none.
    fn receivers(&self, seen: &Seen, settled_only: bool) -> Vec<Uuid> {
        let others = seen.others.iter().filter(|other| {
            // Before a host that was killed and started again has ended, both are there.
            let is_reached = other.peer_url.is_some() && other.peer_url != self.peer_url;
            is_reached && !other.is_leaving && (other.is_settled || !settled_only)
        });
        let others = others.map(|other| (other.host, other.is_draining));
        let own = (self.id, self.is_draining.load(Ordering::SeqCst));
        let all: Vec<_> = others.chain((!self.is_away()).then_some(own)).collect();
        // Where all are drained, they serve.
        let is_any = all.iter().any(|(_, is_draining)| !is_draining);
        let taking = all.into_iter().filter(|(_, is_draining)| !is_any || !is_draining);
        let mut hosts: Vec<Uuid> = taking.map(|(host, _)| host).collect();
        hosts.sort_unstable();
        hosts
    }

    /// Whether this host should try to take a group over: it has no home, or the home's lease has
    /// ended while this host kept its own. The host that the group is assigned to comes first.
    pub fn should_take(&self, group: Group) -> bool {
        let seen = self.seen.borrow();
        let home = seen.homes[group.number()].as_ref();
        let is_ours = home.is_some_and(|home| home.is_me);
        let is_free = home.is_none_or(|home| home.name.is_none() || home.is_late);
        let has_waited = {
            let mut since = self.free_since.lock();
            let since = &mut since[group.number()];
            *since = is_free.then(|| since.unwrap_or_else(Instant::now));
            since.is_some_and(|since| since.elapsed() > ASSIGNED_FIRST)
        };
        if self.is_away() || !self.lease.is_held() || !(is_free || is_ours) {
            return false;
        }
        // Its lease has ended, or it is gone by now.
        let is_late = home.is_some_and(|home| home.name.is_some() && home.is_late);
        if is_late && !self.lease.is_settled() {
            return false;
        }
        let receivers = self.receivers(&seen, false);
        let may = has_waited && receivers.contains(&self.id);
        let assigned = assigned(&receivers);
        is_ours || may || assigned.get(group.number()) == Some(&Some(self.id))
    }

    /// Whether this host should give a group away: another one is assigned to it. After an outage
    /// of the database, or when its clock was set, hosts look gone that have not renewed their
    /// leases yet: a host that stays waits for them.
    pub fn should_give(&self, group: Group) -> bool {
        if !self.must_leave() && !self.lease.is_settled() {
            return false;
        }
        let seen = self.seen.borrow();
        let receivers = self.receivers(&seen, !self.must_leave());
        let assigned = assigned(&receivers);
        assigned.get(group.number()).is_some_and(|host| host.is_some_and(|host| host != self.id))
    }

    /// From here on this host takes groups over. Before, it was not ready.
    pub fn begin(&self) {
        self.is_away.store(false, Ordering::SeqCst);
    }

    /// From here on this host takes no group over, and gives its own away.
    pub fn begin_to_leave(&self) {
        self.is_away.store(true, Ordering::SeqCst);
    }

    /// Whether another host can take groups over.
    pub fn has_others(&self) -> bool {
        let seen = self.seen.borrow();
        self.receivers(&seen, false).iter().any(|host| *host != self.id)
    }

    /// Whether this host has not begun, or stops.
    fn is_away(&self) -> bool {
        self.is_away.load(Ordering::SeqCst)
    }

    /// Whether this host is to give all groups away: it stops, or an operator wants it.
    pub fn must_leave(&self) -> bool {
        self.is_away() || self.is_draining.load(Ordering::SeqCst)
    }

    /// Lets a host give its groups away and take none, or take groups again. Answers whether there
    /// is such a host.
    ///
    /// # Errors
    /// Where the database fails.
    pub async fn drain(&self, host: Uuid, is_draining: bool) -> Result<bool, StoreError> {
        let draining = failed("draining a host");
        let (client, _) = self.address.connect().await.map_err(&draining)?;
        let sql = "UPDATE hosts SET is_draining = $2 WHERE id = $1 \
                   AND expires_at > clock_timestamp()";
        Ok(ask::changed(&client, sql, &[&host, &is_draining]).await.map_err(&draining)? > 0)
    }

    /// Is the home of a group from here on, unless another host is. Waits for transactions of the
    /// former home that have begun.
    ///
    /// # Errors
    /// Where the database fails. This host may be the home then, without a term; it can be called
    /// again.
    pub async fn take(&self, group: Group) -> Result<Option<Term>, StoreError> {
        match timeout(PATIENCE, self.try_to_take(group)).await {
            Ok(taken) => taken,
            // A connection may be silent without being broken. This host looks on and tries again.
            Err(_) => Err(no_answer(TAKING)),
        }
    }

    async fn try_to_take(&self, group: Group) -> Result<Option<Term>, StoreError> {
        let taking = failed(TAKING);
        let token = self.seen.borrow().homes[group.number()].as_ref().map_or(0, |home| home.token);
        let (client, _) = self.address.connect().await.map_err(&taking)?;
        let (row, nobody) = (group.row(), Uuid::nil());
        let first = "INSERT INTO homes (company, host, token) VALUES ($1, $2, 0) \
                     ON CONFLICT (company) DO NOTHING";
        // Waits for transactions of the former home: each of them holds this row.
        let take = format!(
            "UPDATE homes h SET host = $1, \
               token = 1 + CASE WHEN {} THEN h.token \
                 ELSE {TIMELINE} << {BITS_BELOW_TIMELINE} END \
             WHERE h.company = $2 AND h.token = $3 AND NOT EXISTS (\
               SELECT 1 FROM hosts o WHERE o.id = h.host AND o.id <> $1 \
               AND o.expires_at > clock_timestamp()) RETURNING h.token",
            on_this_timeline()
        );
        let (first_of, taken_by): ([&dyn Value; 2], [&dyn Value; 3]) =
            ([&row, &nobody], [&self.id, &row, &token]);
        // They are sent together, and done one after the other.
        let ((), _, taken, ()) = tokio::try_join!(
            client.batch_execute(BEGIN_TO_TAKE),
            ask::changed(&client, first, &first_of),
            ask::row(&client, &take, &taken_by),
            client.batch_execute("COMMIT"),
        )
        .map_err(&taking)?;
        let Some(row) = taken else { return Ok(None) };
        let term = Term { host: self.id, token: row.get(0), group };
        self.lease.begin(term);
        self.free_since.lock()[group.number()] = None;
        if group == Group::HOST {
            // Nothing is committed any more whose batch had a number.
            let left = "WITH gone AS (DELETE FROM hosts WHERE id <> $1 \
                          AND expires_at < clock_timestamp() - interval '10 minutes') \
                        DELETE FROM lanes l WHERE l.host <> $1 \
                          AND NOT EXISTS (SELECT 1 FROM hosts o WHERE o.id = l.host)";
            ask::changed(&client, left, &[&self.id]).await.map_err(&taking)?;
        }
        Ok(Some(term))
    }

    /// Gives a group away, once everything of it is written. Any host may take it over at once.
    ///
    /// # Errors
    /// Where the database fails. The group stays here then.
    pub async fn give(&self, term: Term) -> Result<(), StoreError> {
        // From here on this host answers nothing of them: another one may write.
        self.lease.end_term(term.group);
        self.free_since.lock()[term.group.number()] = None;
        // With another token, so that this host does not take it back by what it saw before.
        let sql = "UPDATE homes SET host = $1, token = token + 1 \
                   WHERE company = $2 AND host = $3 AND token = $4";
        let values: [&dyn Value; 4] = [&Uuid::nil(), &term.group.row(), &self.id, &term.token];
        let asking = async {
            let (client, _) = self.address.connect().await?;
            ask::changed(&client, sql, &values).await
        };
        let given = timeout(PATIENCE, asking).await.map_err(|_| no_answer(GIVING))?;
        given.map_err(failed(GIVING)).map(drop)
    }

    /// All hosts that were here in the last ten minutes, by name, at each address the last one.
    ///
    /// # Errors
    /// Where the database fails.
    pub async fn hosts(&self) -> Result<Vec<HostView>, StoreError> {
        let listing = failed("listing hosts");
        let (client, _) = self.address.connect().await.map_err(&listing)?;
        let sql = "SELECT o.id, o.name, o.peer_url, o.version, \
                     extract(epoch FROM clock_timestamp() - o.joined_at)::bigint, \
                     o.expires_at > clock_timestamp(), \
                     EXISTS (SELECT 1 FROM homes h WHERE h.company = $1 AND h.host = o.id), \
                     (SELECT count(*) FROM homes h WHERE h.company < $1 AND h.host = o.id), \
                     o.is_leaving, o.is_draining FROM hosts o \
                   WHERE o.expires_at > clock_timestamp() OR NOT EXISTS (\
                     SELECT 1 FROM hosts n WHERE n.peer_url = o.peer_url \
                     AND n.joined_at > o.joined_at) \
                   ORDER BY o.name, o.joined_at";
        let rows = ask::rows(&client, sql, &[&Group::HOST.row()]).await.map_err(&listing)?;
        let host = |row: &Row| HostView {
            id: row.get(0),
            name: row.get(1),
            peer_url: row.get(2),
            version: row.get(3),
            up_seconds: row.get(4),
            is_up: row.get(5),
            is_leader: row.get(6),
            groups: u32::try_from(row.get::<_, i64>(7)).unwrap_or(0),
            is_leaving: row.get(8),
            is_draining: row.get(9),
        };
        Ok(rows.iter().map(host).collect())
    }

    /// What the database says of itself.
    ///
    /// # Errors
    /// Where it fails.
    pub async fn database(&self) -> Result<DatabaseState, StoreError> {
        let looking = failed("looking at the database");
        let (client, _) = self.address.connect().await.map_err(&looking)?;
        let sql = "SELECT current_setting('synchronous_commit'), \
                     current_setting('synchronous_standby_names') <> '', \
                     (SELECT count(*) FROM pg_stat_replication), \
                     (SELECT count(*) FROM pg_stat_activity \
                       WHERE backend_type = 'client backend'), \
                     current_setting('max_connections')::bigint \
                       - current_setting('superuser_reserved_connections')::bigint";
        let row = ask::the_row(&client, sql, &[]).await.map_err(&looking)?;
        Ok(DatabaseState {
            synchronous_commit: row.get(0),
            waits_for_standby: row.get(1),
            standbys: row.get(2),
            connections: row.get(3),
            most_connections: row.get(4),
        })
    }

    /// Leaves: another host may take over at once. This one answers nothing afterwards.
    pub async fn leave(&self) {
        self.lease.end();
        let Some((stop, thread)) = self.beating.lock().take() else { return };
        let _ = stop.send(());
        let _ = tokio::task::spawn_blocking(move || thread.join()).await;
    }
}

/// Waits until no host uses a database, for some seconds: the lease of a process that was killed
/// ends.
///
/// # Errors
/// Where the database cannot be used, or a host uses it.
pub async fn wait_until_unused(database: &str) -> Result<(), OpenError> {
    let address = Address::parse(database)?;
    connect::prepare(&address).await?;
    let shown = address.shown();
    let unreachable = |error: tokio_postgres::Error| OpenError::Unreachable {
        database: shown.clone(),
        message: said(&error),
    };
    let (client, _) = address.connect().await.map_err(unreachable)?;
    let sql = "SELECT name FROM hosts WHERE expires_at > clock_timestamp() LIMIT 1";
    let until = Instant::now() + ROOM_WITHIN;
    while let Some(row) = ask::row(&client, sql, &[]).await.map_err(unreachable)? {
        if Instant::now() > until {
            return Err(OpenError::InUse { other: row.get(0), database: shown });
        }
        sleep(AGAIN).await;
    }
    Ok(())
}

/// The value that all hosts have, which is this one's if it is the first, or no host runs and there
/// is no company yet.
async fn agree(client: &Client, own: &Agreed) -> Result<String, tokio_postgres::Error> {
    let Agreed { name, value, before, advice: _ } = own;
    let first = "INSERT INTO agreed (name, value) VALUES ($1, $2) ON CONFLICT (name) DO UPDATE \
                 SET value = excluded.value WHERE (agreed.value = $3 \
                   OR NOT EXISTS (SELECT 1 FROM companies)) AND NOT EXISTS (\
                   SELECT 1 FROM hosts WHERE expires_at > clock_timestamp())";
    ask::changed(client, first, &[name, value, before]).await?;
    let row = ask::the_row(client, "SELECT value FROM agreed WHERE name = $1", &[name]).await?;
    Ok(row.get(0))
}
