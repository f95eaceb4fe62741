//! What a host says while it opens.

use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use crate::{CliError, Result};
use memhost_core::{Service, ServiceOptions};

/// Seconds for which one core compiles the built-in provider.
const COMPILES_FOR: usize = 4;

/// What the host does before it listens. A person types the next command meanwhile.
pub(super) fn starting(data_dir: &Path, has_database: bool) -> String {
    let shown = data_dir.display();
    let does = match (has_database, data_dir.join("FORMAT").exists()) {
        (true, _) => "joins the hosts on its database".to_owned(),
        (false, true) => format!("opens {shown}"),
        (false, false) => format!("makes {shown}"),
    };
    format!("memhost is starting: it {does}, and then says `listening`")
}

/// What the host does now, for everybody who asks it something.
pub(super) fn doing(compiles: bool) -> String {
    if !compiles {
        return "opens its data directory".to_owned();
    }
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let seconds = COMPILES_FOR.div_ceil(cores);
    format!(
        "compiles the built-in provider for this processor, which takes about {seconds} s, or \
         longer on a busy machine"
    )
}

/// Opens a host. `is_told`: standard error says when that takes longer.
pub(super) async fn open(options: ServiceOptions, is_told: bool) -> Result<Arc<Service>> {
    let mut compiles = options.sandbox.compiles_own.subscribe();
    let telling = async {
        if compiles.wait_for(|compiles| *compiles).await.is_ok() && is_told {
            drop(writeln!(std::io::stderr(), "memhost {}", doing(true)));
        }
        std::future::pending().await
    };
    tokio::select! {
        opened = Service::open(options) => opened.map_err(CliError::data_dir),
        never = telling => never,
    }
}
