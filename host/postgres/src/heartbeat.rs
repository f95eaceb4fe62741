//! The heartbeat of a host, on a thread of its own: however busy the host is, its lease does not
//! end for that.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::runtime::Builder;
use tokio::sync::{oneshot, watch};
use tokio::time::{sleep, timeout};
use tokio_postgres::{Client, Row};
use uuid::Uuid;

use crate::ask::{self, Kept, Value};
use crate::connect::Address;
use crate::error::said;
use crate::group::{Group, TIMELINE, Term};
use crate::lease::{HostLease, LEASE, now};

/// How often a host renews its lease. One heartbeat may fail, and the next one is in time.
const BEAT: Duration = Duration::from_millis(700);
/// The pause after a heartbeat that failed, or that found another home's lease at its end.
const LATE: Duration = Duration::from_millis(200);
/// How long one heartbeat may take, with a new connection.
const WITHIN: Duration = Duration::from_secs(1);
/// When groups are given to a host that has joined: one that fails at once gets none.
const SETTLED: &str = "interval '4 seconds'";
/// The server gives a heartbeat up before this host opens another connection: a slow database must
/// not be asked ever more.
const BEGIN: &str = "BEGIN; SET LOCAL statement_timeout = '800ms'";

/// What a host says of itself to the others.
#[derive(Debug, Clone)]
pub struct JoinOptions {
    /// Its name in lists, such as that of its machine.
    pub name: String,
    /// Where the others reach it. `None`: nowhere, so it must be the only one.
    pub peer_url: Option<String>,
    /// The program's version.
    pub version: String,
    /// The id of its data directory.
    pub place: Uuid,
    /// A digest of the operator's token, which all hosts that run at a time have alike.
    pub token: String,
    /// Values that all hosts must have alike. The first host sets them.
    pub agreed: Vec<Agreed>,
}

/// A value that all hosts must have alike.
#[derive(Debug, Clone)]
pub struct Agreed {
    /// Its name, such as `host key`.
    pub name: &'static str,
    /// A digest or an id.
    pub value: String,
    /// The value that another one may replace while no host runs. Every other one stays.
    pub before: Option<&'static str>,
    /// What to do at a host that has another one.
    pub advice: &'static str,
}

/// The home of a group, as the last heartbeat saw it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Home {
    /// Its host's id.
    pub host: Uuid,
    /// Rises whenever a host takes the group over, and with the database's timeline.
    pub token: i64,
    /// The host's name. `None`: it has given the group away, has left, or is gone for long.
    pub name: Option<String>,
    /// Where it is reached.
    pub peer_url: Option<String>,
    /// Whether its lease had ended.
    pub is_late: bool,
    /// Whether it is this host.
    pub is_me: bool,
}

/// What the last heartbeat saw.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Seen {
    /// The home of each group. `None`: there never was one.
    pub homes: [Option<Home>; Group::COUNT],
    /// The other hosts that have a lease.
    pub others: Vec<Peer>,
    /// The database's timeline. Terms that began before another one are over.
    pub timeline: i64,
}

/// Another host that has a lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Peer {
    /// Its id.
    pub host: Uuid,
    /// Where it is reached.
    pub peer_url: Option<String>,
    /// Whether it was there for some seconds.
    pub is_settled: bool,
    /// Whether it takes no group, because it is not ready or stops.
    pub is_leaving: bool,
    /// Whether an operator wants it to take none.
    pub is_draining: bool,
}

pub(crate) struct Heartbeat {
    pub(crate) database: String,
    pub(crate) id: Uuid,
    pub(crate) options: JoinOptions,
    pub(crate) lease: Arc<HostLease>,
    pub(crate) seen: watch::Sender<Seen>,
    /// Whether this host has not begun to take groups, or stops.
    pub(crate) is_away: Arc<AtomicBool>,
    /// Whether it does so because an operator wants it.
    pub(crate) is_draining: Arc<AtomicBool>,
}

struct Connection {
    client: Client,
    beat: Kept<'static>,
    others: Kept<'static>,
    shorten: Kept<'static>,
}

impl Connection {
    async fn open(address: &Address) -> Result<Self, tokio_postgres::Error> {
        let (client, _) = address.connect().await?;
        let term = format!("interval '{} seconds'", LEASE.as_secs());
        let beat = address
            .way
            .keep(
                &client,
                format!(
                    "WITH beat AS (\
                   INSERT INTO hosts \
                     (id, name, peer_url, version, token, place, is_leaving, expires_at) \
                   VALUES ($1, $2, $3, $4, $5, $6, $7, clock_timestamp() + {term}) \
                   ON CONFLICT (id) DO UPDATE SET expires_at = excluded.expires_at, \
                     is_leaving = excluded.is_leaving) \
                 SELECT h.host, h.token, o.name, o.peer_url, \
                   (extract(epoch FROM o.expires_at - clock_timestamp()) * 1000)::bigint, \
                   (extract(epoch FROM clock_timestamp()) * 1000000)::bigint, h.company, \
                   (SELECT {TIMELINE}) \
                 FROM (SELECT) AS it LEFT JOIN homes h ON h.company < 0 \
                 LEFT JOIN hosts o ON o.id = h.host"
                ),
            )
            .await?;
        let others = address
            .way
            .keep(
                &client,
                format!(
                    "SELECT id, peer_url, \
                   joined_at NOT BETWEEN clock_timestamp() - {SETTLED} AND clock_timestamp(), \
                   is_leaving, is_draining, expires_at > clock_timestamp() + {term} \
                 FROM hosts WHERE expires_at > clock_timestamp() ORDER BY id"
                ),
            )
            .await?;
        // Hosts do not wait for each other.
        let shorten = format!(
            "UPDATE hosts SET expires_at = clock_timestamp() + {term} WHERE id IN (\
               SELECT id FROM hosts WHERE expires_at > clock_timestamp() + {term} \
               FOR UPDATE SKIP LOCKED)"
        );
        let shorten = address.way.keep(&client, shorten).await?;
        Ok(Self { client, beat, others, shorten })
    }
}

impl Heartbeat {
    /// Renews the lease until `stop`, and takes the host from the list then.
    pub(crate) fn start(self, stop: oneshot::Receiver<()>) -> io::Result<JoinHandle<()>> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        std::thread::Builder::new()
            .name("heartbeat".to_owned())
            .spawn(move || runtime.block_on(self.run(stop)))
    }

    async fn run(self, mut stop: oneshot::Receiver<()>) {
        // Its tasks belong to this thread's runtime.
        let Ok(address) = Address::parse(&self.database) else { return };
        let (mut connection, mut was_well) = (None, true);
        loop {
            let sent = now();
            let beaten = timeout(WITHIN, self.beat(&address, &mut connection)).await;
            let pause = match beaten {
                Ok(Ok((seen, left, time))) => {
                    self.lease.found_time(sent, time);
                    self.lease.renew(sent, &self.terms(&seen));
                    self.lease.found_timeline(seen.timeline);
                    self.seen.send_replace(seen);
                    if !was_well {
                        tracing::info!("the lease of this host is renewed again");
                    }
                    was_well = true;
                    left.map_or(BEAT, |left| left.clamp(LATE, BEAT))
                }
                failure => {
                    connection = None;
                    if std::mem::take(&mut was_well) {
                        let why = match failure {
                            Ok(Err(error)) => said(&error),
                            _ => format!("no answer came within {} s", WITHIN.as_secs()),
                        };
                        tracing::warn!(why, "the lease of this host could not be renewed");
                    }
                    LATE
                }
            };
            tokio::select! {
                _ = &mut stop => break,
                () = sleep(pause) => {}
            }
        }
        let gone = async {
            let sql = "DELETE FROM hosts WHERE id = $1";
            match self.connect(&address, &mut connection).await {
                Ok(connection) => drop(ask::changed(&connection.client, sql, &[&self.id]).await),
                Err(error) => tracing::warn!(why = said(&error), "the other hosts were not told"),
            }
        };
        let _ = timeout(WITHIN, gone).await;
    }

    async fn connect<'c>(
        &self,
        address: &Address,
        connection: &'c mut Option<Connection>,
    ) -> Result<&'c Connection, tokio_postgres::Error> {
        let known = connection.take().filter(|known| !known.client.is_closed());
        let fresh = match known {
            Some(known) => known,
            None => Connection::open(address).await?,
        };
        Ok(connection.insert(fresh))
    }

    /// The terms in which this host is a home.
    fn terms(&self, seen: &Seen) -> Vec<Term> {
        let homes = Group::all().zip(&seen.homes);
        let ours = homes.filter_map(|(group, home)| Some((group, home.as_ref()?)));
        ours.filter(|(_, home)| home.is_me)
            .map(|(group, home)| Term { host: self.id, token: home.token, group })
            .filter(|term| term.is_of(seen.timeline))
            .collect()
    }

    /// Answers what is seen, how long the first lease of another home lasts, and the time.
    async fn beat(
        &self,
        address: &Address,
        connection: &mut Option<Connection>,
    ) -> Result<(Seen, Option<Duration>, i64), tokio_postgres::Error> {
        let Connection { client, beat, others, shorten } =
            self.connect(address, connection).await?;
        let JoinOptions { name, peer_url, version, token, place, .. } = &self.options;
        let is_leaving = self.is_away.load(Ordering::SeqCst);
        let values: [&dyn Value; 7] =
            [&self.id, name, peer_url, version, token, place, &is_leaving];
        // They are sent together, and done one after the other.
        let ((), rows, hosts, ()) = tokio::try_join!(
            client.batch_execute(BEGIN),
            beat.rows(client, &values),
            others.rows(client, &[]),
            client.batch_execute("COMMIT"),
        )?;
        // The database's clock was set back. The lease of a host that is gone would last long.
        if hosts.iter().any(|row| row.get(5)) {
            shorten.changed(client, &[]).await?;
        }
        let mut seen = Seen::default();
        let (mut first, mut time) = (None::<Duration>, 0);
        for row in &rows {
            (time, seen.timeline) = (row.get(5), row.get(7));
            let Some((group, home, left)) = self.read(row) else { continue };
            first = first.into_iter().chain(left).min();
            seen.homes[group.number()] = Some(home);
        }
        let is_own = |row: &&Row| row.get::<_, Uuid>(0) == self.id;
        if let Some(own) = hosts.iter().find(is_own) {
            self.is_draining.store(own.get(4), Ordering::SeqCst);
        }
        seen.others = hosts
            .iter()
            .filter(|row| !is_own(row))
            .map(|row| Peer {
                host: row.get(0),
                peer_url: row.get(1),
                is_settled: row.get(2),
                is_leaving: row.get(3),
                is_draining: row.get(4),
            })
            .collect();
        Ok((seen, first, time))
    }

    fn read(&self, row: &Row) -> Option<(Group, Home, Option<Duration>)> {
        let group = Group::of_row(row.get::<_, Option<i64>>(6)?)?;
        let host = row.get::<_, Option<Uuid>>(0)?;
        let left: Option<i64> = row.get(4);
        let is_me = host == self.id;
        let home = Home {
            host,
            token: row.get(1),
            name: row.get(2),
            peer_url: row.get(3),
            is_late: left.is_none_or(|left| left <= 0) && !is_me,
            is_me,
        };
        // A group that is free is looked at soon.
        let left = if home.name.is_none() { Some(0) } else { left.filter(|_| !is_me) };
        let left = left.map(|left| Duration::from_millis(u64::try_from(left).unwrap_or(0)));
        Some((group, home, left))
    }
}
