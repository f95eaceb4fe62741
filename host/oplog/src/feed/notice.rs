//! What followers are told.

use std::sync::Arc;

use super::place::Place;
use memhost_types::{BudgetView, CompanyId, Job, Operation, PluginChange};

/// Something that happened.
#[derive(Debug, Clone, PartialEq)]
pub enum HostEvent {
    /// An operation ended. Without its guest's log and the snapshot of its request, which the
    /// operation log has.
    Operation(Arc<Operation>),
    /// A job is new or has changed.
    Job(Box<Job>),
    /// The state of a budget has changed.
    Budget(Box<BudgetView>),
    /// A plugin's file was admitted, refused or removed.
    Plugin(PluginChange),
    /// Events before this were missed: who shows a list must read it again.
    Reset,
}

impl HostEvent {
    /// Every name that can be asked for.
    pub const KINDS: [&'static str; 4] = ["operation", "job", "budget", "plugin"];

    /// Its name.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Operation(_) => "operation",
            Self::Job(_) => "job",
            Self::Budget(_) => "budget",
            Self::Plugin(_) => "plugin",
            Self::Reset => "reset",
        }
    }
}

/// An event with its position.
#[derive(Debug, Clone, PartialEq)]
pub struct Notice {
    /// Its place. A follower that comes back goes on after it.
    pub place: Place,
    /// The company it belongs to. `None`: the host.
    pub company_id: Option<CompanyId>,
    /// What.
    pub happened: HostEvent,
}
