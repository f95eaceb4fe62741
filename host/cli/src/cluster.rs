//! `memhost cluster` shows the hosts that share a database, and drains them.

use clap::Subcommand;

use super::args::{HostArgs, WatchArgs};
use super::page::{self, Columns};
use super::texts::text;
use super::{CliError, Result};
use memhost_http::api::{ChangeHost, Items};
use memhost_types::HostView;

#[derive(Debug, Subcommand)]
pub(super) enum ClusterCommand {
    /// List the hosts that share a database.
    List {
        #[command(flatten)]
        host: HostArgs,
        #[command(flatten)]
        watch: WatchArgs,
    },
    /// Let a host give its companies to the others and take none, such as before maintenance.
    Drain {
        #[command(flatten)]
        host: HostArgs,
        /// Name, peer URL or ID of the host, as `memhost cluster list` shows it.
        #[arg(value_name = "HOST")]
        which: String,
        /// Let it serve companies again.
        #[arg(long)]
        undo: bool,
    },
}

/// Shows the hosts that share a database.
pub(super) async fn run(command: ClusterCommand) -> Result<()> {
    let (host, watch) = match command {
        ClusterCommand::List { host, watch } => (host, watch),
        ClusterCommand::Drain { host, which, undo } => return drain(host, &which, undo).await,
    };
    let session = host.open().await?;
    let fetch = async || session.host.get("/control/v1/hosts").await;
    let human = |all: &Items<HostView>| match all.items.is_empty() {
        true => "this host has a store of its own, which no other host uses".to_owned(),
        false => page::rows(&all.items, HOSTS),
    };
    if watch.watch.is_some() {
        return page::watch_list(&session, &watch, fetch, human).await;
    }
    session.show_list(&fetch().await?, human)
}

async fn drain(host: HostArgs, which: &str, undo: bool) -> Result<()> {
    let session = host.open().await?;
    let all = session.host.get::<Items<HostView>>("/control/v1/hosts").await?.read()?;
    let is_named = |host: &&HostView| {
        let url = host.peer_url.as_deref().unwrap_or_default();
        host.is_up
            && (host.name == which
                || url == which
                || url.trim_start_matches("http://") == which
                || host.id.to_string() == which)
    };
    let named: Vec<&HostView> = all.items.iter().filter(is_named).collect();
    let host = match named.as_slice() {
        [host] => *host,
        [] => {
            let message = format!(
                "no host that runs has the name, peer URL or ID `{which}`; `memhost cluster list` \
                 shows them"
            );
            return Err(CliError::input("HOST", message));
        }
        several => {
            let message = format!(
                "{} hosts have the name `{which}`; give the peer URL of one",
                several.len()
            );
            return Err(CliError::input("HOST", message));
        }
    };
    let path = format!("/control/v1/hosts/{}", host.id);
    let change = ChangeHost { is_draining: !undo };
    let changed = session.host.patch::<HostView>(&path, &change).await?;
    let takes = |one: &HostView| one.is_up && !one.is_draining && !one.is_leaving;
    let has_others = all.items.iter().any(|one| one.id != host.id && takes(one));
    session.show(&changed, |host| match (host.is_draining, has_others) {
        (true, true) => format!(
            "{} gives its companies to other hosts; `memhost cluster list` shows when it has none",
            host.name
        ),
        (true, false) => {
            format!("{} keeps its companies until another host takes some", host.name)
        }
        (false, _) => format!("{} serves companies again", host.name),
    })
}

const HOSTS: &Columns<HostView> = &[
    ("host", |host| text(&host.name)),
    ("peer url", |host| host.peer_url.clone().unwrap_or_default()),
    ("version", |host| host.version.clone()),
    ("state", |host| {
        let state = match host {
            HostView { is_up: false, .. } => "gone",
            HostView { is_leaving: true, up_seconds: ..60, groups: 0, .. } => "starting",
            HostView { is_leaving: true, .. } => "leaving",
            HostView { is_draining: true, groups: 0, is_leader: false, .. } => "drained",
            HostView { is_draining: true, .. } => "draining",
            HostView { is_leader: true, .. } => "leads",
            _ => "up",
        };
        state.to_owned()
    }),
    ("groups", |host| if host.is_up { host.groups.to_string() } else { String::new() }),
    ("up", |host| {
        if !host.is_up {
            return String::new();
        }
        let up = jiff::SignedDuration::from_secs(host.up_seconds);
        format!("{up:#}")
    }),
    ("id", |host| host.id.to_string()),
];
