//! `memhost cluster` shows the hosts that share a database.

use clap::Subcommand;

use super::Result;
use super::args::{HostArgs, WatchArgs};
use super::page::{self, Columns};
use super::texts::text;
use memhost_http::api::Items;
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
}

/// Shows the hosts that share a database.
pub(super) async fn run(command: ClusterCommand) -> Result<()> {
    let ClusterCommand::List { host, watch } = command;
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

const HOSTS: &Columns<HostView> = &[
    ("host", |host| text(&host.name)),
    ("peer url", |host| host.peer_url.clone().unwrap_or_default()),
    ("version", |host| host.version.clone()),
    ("state", |host| {
        let state = match (host.is_up, host.is_leader) {
            (true, true) => "leads",
            (true, false) => "follows",
            (false, _) => "gone",
        };
        state.to_owned()
    }),
    ("up", |host| {
        if !host.is_up {
            return String::new();
        }
        let up = jiff::SignedDuration::from_secs(host.up_seconds);
        format!("{up:#}")
    }),
    ("id", |host| host.id.to_string()),
];
