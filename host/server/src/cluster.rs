//! Several hosts on one database. One leads and serves all companies; the others pass requests on
//! to it, and one of them takes its place when its lease has ended.

mod cut;
mod front;
mod hop;
mod peers;
mod shared;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};

use self::hop::Key;
use self::peers::Peers;
use self::shared::{Leads, Role, Shared};
use super::ServerOptions;
use super::bodies::Bodies;
use super::connections::{Connections, open_files, within};
use super::listen::{Clients, Endpoint, ServeError, end};
use super::routes::{Surfaces, router_of};
use memhost_core::{Leader, Membership, OpenError, Service, Term};
use memhost_http::AdminToken;

/// How much of requests that are passed on is kept for another try, in KiB.
const MOST_KEPT_KIB: usize = 64 << 10;

/// How long a host that has led says to the others that it does not any more. They look every
/// 0.7 s.
const TOLD_WITHIN: Duration = Duration::from_secs(1);
/// How long requests of other hosts may take at the end.
const FINISHED_WITHIN: Duration = Duration::from_secs(10);

/// The place of a host among others.
pub struct ClusterOptions {
    /// Its place among those on the database.
    pub membership: Arc<Membership>,
    /// Where the others reach it, if anywhere.
    pub peers: Option<Endpoint>,
    /// The key by which they know each other.
    pub key: [u8; 32],
}

/// Serves at all endpoints until `stop` resolves. Whenever this host is to lead, `open` opens it.
/// At the end it finishes calls in progress, flushes and leaves the other hosts.
///
/// # Errors
/// If the host does not open, or accepting or the last flush fails.
pub async fn run_cluster<Opening>(
    endpoints: Vec<Endpoint>,
    cluster: ClusterOptions,
    open: impl Fn(Term) -> Opening + Send + Sync,
    options: ServerOptions,
    stop: impl Future<Output = ()> + Send,
) -> Result<(), ServeError>
where
    Opening: Future<Output = Result<(Arc<Service>, AdminToken), OpenError>> + Send,
{
    let (stopping, stopped) = watch::channel(false);
    let connections = Connections::new(within(options.connections, open_files()));
    let membership = cluster.membership;
    let shared = Arc::new(Shared {
        role: watch::Sender::new(Arc::new(Role::Waits)),
        key: Key::new(cluster.key, membership.id()),
        peers: Peers::default(),
        bodies: Bodies::new(options.connections.max_bodies_bytes),
        membership: Arc::clone(&membership),
        kept: Arc::new(Semaphore::new(MOST_KEPT_KIB)),
        is_leaving: AtomicBool::new(false),
        for_hosts: AtomicUsize::new(0),
        options,
    });
    let mut serving = JoinSet::new();
    for endpoint in endpoints {
        let router = front::router(&shared, endpoint.surfaces());
        let (connections, stopped) = (Arc::clone(&connections), stopped.clone());
        serving.spawn(endpoint.serve(connections, router, stopped, Clients::Others));
    }
    let (stopping_hosts, hosts_stopped) = watch::channel(false);
    let mut serving_hosts = JoinSet::new();
    if let Some(peers) = cluster.peers {
        let router = front::router_for_peers(&shared);
        let connections = Arc::clone(&connections);
        serving_hosts.spawn(peers.serve(connections, router, hosts_stopped, Clients::Hosts));
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
        error = shared.take_roles(open) => Err(error),
    };
    let role = Arc::clone(&*shared.role.borrow());
    let service = match &*role {
        Role::Leads(leads) => Some(Arc::clone(&leads.service)),
        _ => None,
    };
    let done = end(service.as_deref(), &stopping, serving).await;
    shared.finish_for_hosts().await;
    membership.leave().await;
    if service.is_some() {
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
    /// Begins nothing more for other hosts, and waits for what was begun.
    async fn finish_for_hosts(&self) {
        self.is_leaving.store(true, Ordering::SeqCst);
        let until = Instant::now() + FINISHED_WITHIN;
        while self.for_hosts.load(Ordering::SeqCst) > 0 && Instant::now() < until {
            sleep(Duration::from_millis(10)).await;
        }
    }

    /// Does what each heartbeat asks for. Ends where this host is to lead and does not open.
    async fn take_roles<Opening>(&self, open: impl Fn(Term) -> Opening) -> ServeError
    where
        Opening: Future<Output = Result<(Arc<Service>, AdminToken), OpenError>>,
    {
        let mut leaders = self.membership.leader();
        loop {
            let leader = leaders.borrow_and_update().clone();
            let leads = match &**self.role.borrow() {
                Role::Leads(leads) => Some((leads.token, Arc::clone(&leads.service))),
                _ => None,
            };
            match leads {
                Some((token, _)) if leader.as_ref().is_none_or(|seen| seen.token <= token) => {}
                Some((_, service)) => {
                    tracing::warn!("another host has taken over");
                    self.follow(leader.as_ref());
                    retire(service).await;
                }
                None if self.membership.should_lead(leader.as_ref()) => {
                    if let Err(error) = self.lead(&open).await {
                        return error.into();
                    }
                }
                None => self.follow(leader.as_ref()),
            }
            if leaders.changed().await.is_err() {
                return ServeError::Serve("the heartbeat of this host has ended".to_owned());
            }
        }
    }

    async fn lead<Opening>(&self, open: impl Fn(Term) -> Opening) -> Result<(), OpenError>
    where
        Opening: Future<Output = Result<(Arc<Service>, AdminToken), OpenError>>,
    {
        let term = match self.membership.lead().await {
            Ok(Some(term)) => term,
            Ok(None) => return Ok(()),
            Err(error) => {
                tracing::warn!(%error, "this host could not take over");
                return Ok(());
            }
        };
        let (service, token) = open(term).await?;
        let router = |surfaces| {
            let (service, token) = (Arc::clone(&service), token.clone());
            router_of(surfaces, service, token, &self.options, &self.bodies)
        };
        let leads = Leads {
            token: term.token,
            all: router(Surfaces::All),
            runtime: router(Surfaces::Runtime),
            control: router(Surfaces::Control),
            service: Arc::clone(&service),
        };
        self.role.send_replace(Arc::new(Role::Leads(leads)));
        tracing::info!(term = term.token, "this host leads");
        Ok(())
    }

    fn follow(&self, leader: Option<&Leader>) {
        let next = match leader {
            Some(former) if self.membership.follows_at_address_of(former) => Role::Waits,
            Some(Leader { host, name: Some(name), peer_url, is_me: false, .. }) => {
                Role::Follows { host: *host, name: name.clone(), peer_url: peer_url.clone() }
            }
            _ => Role::Waits,
        };
        self.role.send_if_modified(|role| {
            let is_same = match (&**role, &next) {
                (Role::Waits, Role::Waits) => true,
                (Role::Follows { host, .. }, Role::Follows { host: other, .. }) => host == other,
                _ => false,
            };
            if let (false, Role::Follows { name, peer_url, .. }) = (is_same, &next) {
                tracing::info!(leader = name, ?peer_url, "another host leads");
            }
            if !is_same {
                *role = Arc::new(next);
            }
            !is_same
        });
    }
}

/// Ends what a host did that leads no more. What it still writes is refused by the database.
async fn retire(service: Arc<Service>) {
    service.control().stop_following();
    service.background().shutdown(Duration::ZERO).await;
}
