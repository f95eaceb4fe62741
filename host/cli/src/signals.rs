//! The signals that end what runs until it is told to stop.

use std::io::IsTerminal;

use tokio::signal::unix::{Signal, SignalKind, signal};

/// Resolves on SIGINT or SIGTERM, and on SIGHUP where its terminal has gone. The log says which it
/// was. Signals count from this call on.
pub(super) fn stop() -> impl Future<Output = ()> + Send + 'static {
    let listen = |kind| signal(kind).ok();
    let (interrupt, terminate, hangup) = (
        listen(SignalKind::interrupt()),
        listen(SignalKind::terminate()),
        listen(SignalKind::hangup()),
    );
    let has_terminal = std::io::stdin().is_terminal();
    async move {
        let name = tokio::select! {
            () = came(interrupt) => "SIGINT",
            () = came(terminate) => "SIGTERM",
            () = hung_up(hangup, has_terminal) => "SIGHUP, its terminal was closed",
        };
        tracing::info!("stopping: {name}");
    }
}

/// Resolves when the terminal is closed. Without one, SIGHUP comes from a supervisor or from a
/// script that rotates logs: neither wants to end a host.
async fn hung_up(signals: Option<Signal>, has_terminal: bool) {
    let Some(mut signals) = signals else { return std::future::pending().await };
    while signals.recv().await.is_some() {
        if has_terminal {
            return;
        }
        tracing::warn!(
            "SIGHUP is ignored: the configuration is read at the start only; restart the host to \
             apply a change, SIGTERM stops it"
        );
    }
    std::future::pending::<()>().await;
}

/// Resolves at the signal; never where the process cannot be told of it.
async fn came(signals: Option<Signal>) {
    match signals {
        Some(mut signals) => drop(signals.recv().await),
        None => std::future::pending().await,
    }
}
