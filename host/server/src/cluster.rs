//! Several hosts on one database. Each group of companies has one of them as its home, which serves
//! it. The others pass requests on to it, and one of them takes the group over when its lease has
//! ended or it gives the group away.

mod cut;
mod front;
mod hop;
mod of_hosts;
mod pass;
mod peers;
mod shared;
mod whose;

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};

use self::hop::Key;
use self::peers::Peers;
use self::shared::{Role, Serving, Shared};
use self::whose::Whose;
use super::ServerOptions;
use super::bodies::Bodies;
use super::connections::{Connections, open_files, within};
use super::listen::{Clients, Endpoint, ServeError, end};
use memhost_core::{Group, Home, Membership, OpenError, Service, SharedParts, Term};
use memhost_http::AdminToken;

/// How much of requests that are passed on is kept for another try, in KiB.
const MOST_KEPT_KIB: usize = 64 << 10;

/// How long a host that was a home says to the others that it is not any more. They look every
/// 0.7 s.
const TOLD_WITHIN: Duration = Duration::from_secs(1);
/// How long requests may take that are in progress when a group is given away.
const FINISHED_WITHIN: Duration = Duration::from_secs(3);
/// How long a host that stops waits for others to take its groups over.
const LEFT_WITHIN: Duration = Duration::from_secs(15);
/// How long a host keeps a group that it has taken over, even if another one should have it: that
/// one may be unable to take it.
const KEPT_FOR: Duration = Duration::from_secs(5);
/// When a group is given away that was busy.
const GIVEN_AGAIN: Duration = Duration::from_secs(30);
/// The pause before a group is taken over again whose service did not open.
const OPENED_AGAIN: Duration = Duration::from_secs(10);

/// The place of a host among others.
pub struct ClusterOptions {
    /// Its place among those on the database.
    pub membership: Arc<Membership>,
    /// What its services share.
    pub shared: Arc<SharedParts>,
    /// The operator's token.
    pub token: AdminToken,
    /// Where the others reach it, if anywhere.
    pub peers: Option<Endpoint>,
    /// The key by which they know each other.
    pub key: [u8; 32],
}

/// Serves at all endpoints until `stop` resolves. Whenever this host is to be the home of a group,
/// `open` opens its service. At the end it finishes calls in progress, flushes and leaves the other
/// hosts.
///
/// # Errors
/// If a service does not open, or accepting or the last flush fails.
pub async fn run_cluster<Opening>(
    endpoints: Vec<Endpoint>,
    cluster: ClusterOptions,
    open: impl Fn(Term) -> Opening + Send + Sync + 'static,
    options: ServerOptions,
    stop: impl Future<Output = ()> + Send,
) -> Result<(), ServeError>
where
    Opening: Future<Output = Result<Arc<Service>, OpenError>> + Send,
{
    let (stopping, stopped) = watch::channel(false);
    let connections = Connections::new(within(options.connections, open_files()));
    let (membership, parts) = (cluster.membership, cluster.shared);
    let database = Arc::clone(parts.database());
    let shared = Arc::new(Shared {
        roles: std::array::from_fn(|_| watch::Sender::new(Arc::new(Role::Waits))),
        key: Key::new(cluster.key, membership.id()),
        peers: Peers::default(),
        whose: Whose::new(database, &cluster.token, options.integrations.clone()),
        token: cluster.token,
        bodies: Bodies::new(options.connections.max_bodies_bytes),
        membership: Arc::clone(&membership),
        kept: Arc::new(Semaphore::new(MOST_KEPT_KIB)),
        options,
    });
    let mut serving = JoinSet::new();
    for endpoint in endpoints {
        let router = front::router(&shared, endpoint.surfaces()).into();
        let (connections, stopped) = (Arc::clone(&connections), stopped.clone());
        serving.spawn(endpoint.serve(connections, router, stopped, Clients::Others));
    }
    let (stopping_hosts, hosts_stopped) = watch::channel(false);
    let mut serving_hosts = JoinSet::new();
    if let Some(peers) = cluster.peers {
        let router = front::router_for_peers(&shared).into();
        let connections = Arc::clone(&connections);
        serving_hosts.spawn(peers.serve(connections, router, hosts_stopped, Clients::Hosts));
    }
    membership.begin();
    let (open, mut homes) = (Arc::new(open), JoinSet::new());
    for group in Group::all() {
        let (shared, open) = (Arc::clone(&shared), Arc::clone(&open));
        homes.spawn(async move { shared.keep_role(group, &*open).await });
    }
    let ended = tokio::select! {
        () = stop => Ok(()),
        // An endpoint ends only because of an error.
        Some(ended) = serving.join_next() => {
            ended.map_err(|error| ServeError::Serve(error.to_string()))
        }
        Some(ended) = serving_hosts.join_next() => {
            ended.map_err(|error| ServeError::Serve(error.to_string()))
        }
        Some(ended) = homes.join_next() => {
            Err(ended.unwrap_or_else(|error| ServeError::Serve(error.to_string())))
        }
    };
    if ended.is_ok() {
        shared.give_all().await;
    }
    homes.shutdown().await;
    let services: Vec<Arc<Service>> =
        shared.served().iter().map(|serving| Arc::clone(&serving.service)).collect();
    // Streams of events do not end by themselves.
    parts.stop_following();
    let done = end(&services, &stopping, serving).await;
    shared.finish_for_hosts().await;
    membership.leave().await;
    if !membership.is_alone() {
        // Another host may send something until its next heartbeat. It is told that nothing was
        // done, which a connection that just closes does not say.
        sleep(TOLD_WITHIN).await;
    }
    let _ = stopping_hosts.send(true);
    let _ = timeout(TOLD_WITHIN, serving_hosts.join_all()).await;
    tracing::info!("stopped; another host may take over");
    ended.and(done)
}

impl Shared {
    /// Lets other hosts take over what this one serves, where there are others.
    async fn give_all(&self) {
        self.membership.begin_to_leave();
        let until = Instant::now() + LEFT_WITHIN;
        while Instant::now() < until && self.membership.has_others() && !self.served().is_empty() {
            sleep(Duration::from_millis(20)).await;
        }
    }

    /// Begins nothing more for other hosts, and waits for what was begun.
    async fn finish_for_hosts(&self) {
        let served = self.served();
        served.iter().for_each(|serving| serving.close());
        finished(&served).await;
    }

    /// Does for a group what each heartbeat asks for. Ends where this host is to be its home and
    /// its service does not open.
    async fn keep_role<Opening>(&self, group: Group, open: impl Fn(Term) -> Opening) -> ServeError
    where
        Opening: Future<Output = Result<Arc<Service>, OpenError>>,
    {
        let mut seen = self.membership.seen();
        let mut kept_until = Instant::now();
        loop {
            let home = seen.borrow_and_update().homes[group.number()].clone();
            let serving = match &**self.role(group).borrow() {
                Role::Serves(serving) => Some(Arc::clone(serving)),
                _ => None,
            };
            match serving {
                Some(serving) if !self.membership.lease().is_home(serving.term) => {
                    let is_ours = home.as_ref().is_some_and(|home| home.is_me);
                    let why = match is_ours {
                        true => {
                            "the database has another timeline, as after a standby was \
                            promoted or a backup restored: what this host has in memory is read \
                            again"
                        }
                        false => "another host has taken over",
                    };
                    tracing::warn!(group = group.number(), "{why}");
                    self.follow(group, home.as_ref());
                    // It can write nothing any more, and nobody waits for its end.
                    tokio::spawn(async move {
                        serving.service.background().shutdown(Duration::ZERO).await;
                    });
                    if is_ours {
                        continue;
                    }
                }
                Some(serving) => {
                    let must_go = self.membership.must_leave();
                    let may_go = must_go || Instant::now() > kept_until;
                    if may_go && self.membership.should_give(group) {
                        self.give(&serving, must_go).await;
                        kept_until = Instant::now() + GIVEN_AGAIN;
                    }
                }
                None if self.membership.should_take(group) => {
                    kept_until = Instant::now() + KEPT_FOR;
                    match self.take(group, &open).await {
                        Ok(()) => {}
                        // Nothing would open.
                        Err(error) if group == Group::HOST => return error.into(),
                        Err(error) => {
                            tracing::error!(%error, group = group.number(), "companies cannot be \
                                served here; another host may take them over");
                            sleep(OPENED_AGAIN).await;
                        }
                    }
                }
                None => self.follow(group, home.as_ref()),
            }
            if seen.changed().await.is_err() {
                return ServeError::Serve("the heartbeat of this host has ended".to_owned());
            }
        }
    }

    async fn take<Opening>(
        &self,
        group: Group,
        open: impl Fn(Term) -> Opening,
    ) -> Result<(), OpenError>
    where
        Opening: Future<Output = Result<Arc<Service>, OpenError>>,
    {
        let term = match self.membership.take(group).await {
            Ok(Some(term)) => term,
            Ok(None) => return Ok(()),
            Err(error) => {
                tracing::warn!(%error, group = group.number(), "this host could not take over");
                return Ok(());
            }
        };
        let service = match open(term).await {
            Ok(service) => service,
            Err(error) => {
                if let Err(error) = self.membership.give(term).await {
                    tracing::warn!(%error, "companies were not given to another host");
                }
                return Err(error);
            }
        };
        let serving = Serving::new(term, service, &self.token, (&self.options, &self.bodies));
        self.role(group).send_replace(Arc::new(Role::Serves(Arc::new(serving))));
        match group {
            Group::HOST => tracing::info!(term = term.token, "this host leads"),
            _ => tracing::debug!(group = group.number(), term = term.token, "taken over"),
        }
        Ok(())
    }

    /// Gives a group away: finishes what is in progress, while other requests wait for the next
    /// home. Without need (`must_go`) a group with a long request stays.
    async fn give(&self, serving: &Arc<Serving>, must_go: bool) {
        let group = serving.term.group;
        serving.close();
        finished(std::slice::from_ref(serving)).await;
        if !must_go && serving.is_answering() {
            return serving.reopen();
        }
        serving.service.background().shutdown(FINISHED_WITHIN).await;
        // What was acknowledged is written, and so is the rest that there is time for.
        match timeout(FINISHED_WITHIN, serving.service.control().flush()).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::warn!(%error, "something was not written before a move"),
            Err(_) => tracing::warn!("something was not written in time before a move"),
        }
        match timeout(FINISHED_WITHIN, self.membership.give(serving.term)).await {
            Ok(Ok(())) => tracing::debug!(group = group.number(), "given away"),
            // Whether it was given is seen at the next heartbeat. If not, it is taken again.
            Ok(Err(error)) => tracing::warn!(%error, "companies were not given to another host"),
            Err(_) => tracing::warn!("companies were not given to another host in time"),
        }
        self.role(group).send_replace(Arc::new(Role::Waits));
    }

    fn follow(&self, group: Group, home: Option<&Home>) {
        let next = match home {
            Some(former) if self.membership.follows_at_address_of(former) => Role::Waits,
            Some(Home { host, name: Some(name), peer_url, is_me: false, .. }) => {
                Role::Follows { host: *host, name: name.clone(), peer_url: peer_url.clone() }
            }
            _ => Role::Waits,
        };
        self.role(group).send_if_modified(|role| {
            let is_same = match (&**role, &next) {
                (Role::Waits, Role::Waits) => true,
                (Role::Follows { host, .. }, Role::Follows { host: other, .. }) => host == other,
                _ => false,
            };
            if let (false, Role::Follows { name, peer_url, .. }, Group::HOST) =
                (is_same, &next, group)
            {
                tracing::info!(leader = name, ?peer_url, "another host leads");
            }
            if !is_same {
                *role = Arc::new(next);
            }
            !is_same
        });
    }
}

/// Waits until everything that was begun is answered, for some seconds.
async fn finished(served: &[Arc<Serving>]) {
    let until = Instant::now() + FINISHED_WITHIN;
    while served.iter().any(|serving| serving.is_answering()) && Instant::now() < until {
        sleep(Duration::from_millis(5)).await;
    }
}
