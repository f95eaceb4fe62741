//! The hosts on one database.

use async_recursion::async_recursion as boxed;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::{Check, Monitor};
use memhost_store::StoreError;
use memhost_tenancy::ServiceError;
use memhost_types::counted;

/// One of the hosts on a database.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HostView {
    /// The id that it got when it was started.
    pub id: Uuid,
    /// Its name.
    pub name: String,
    /// Where the others reach it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peer_url: Option<String>,
    /// The program's version.
    pub version: String,
    /// Whether it leads: it serves all companies, and the others pass requests on to it.
    pub is_leader: bool,
    /// Whether it has renewed its lease in time.
    pub is_up: bool,
    /// Seconds since it was started.
    pub up_seconds: i64,
}

impl Monitor {
    /// The hosts on the database that were there in the last ten minutes, by name. A host with an
    /// embedded store is in no list.
    ///
    /// # Errors
    /// Where the database does not answer.
    #[boxed]
    pub async fn hosts(&self) -> Result<Vec<HostView>, ServiceError> {
        Ok(self.listed().await?)
    }

    async fn listed(&self) -> Result<Vec<HostView>, StoreError> {
        let Some(membership) = &self.membership else { return Ok(Vec::new()) };
        let all = membership.hosts().await?.into_iter();
        let views = all.map(|host| HostView {
            id: host.id,
            name: host.name,
            peer_url: host.peer_url,
            version: host.version,
            is_leader: host.is_leader,
            is_up: host.lease_ms > 0,
            up_seconds: host.up_s,
        });
        Ok(views.collect())
    }

    /// Warns where no other host could take this one's place, or one of them is gone.
    pub(super) async fn check_hosts(&self) -> Option<Check> {
        const NAME: &str = "hosts";
        if self.membership.as_ref()?.is_alone() {
            return Some(Check::ok(
                NAME,
                "this one alone; without --peer-listen no other can join",
            ));
        }
        let all = match self.listed().await {
            Ok(all) => all,
            Err(error) => {
                let advice = "check that the database runs";
                return Some(Check::error(NAME, error.to_string(), advice));
            }
        };
        let up = all.iter().filter(|host| host.is_up).count();
        let found = format!("{} on the database", counted(up, "host", "hosts"));
        let named = |host: &HostView| {
            format!("{} ({})", host.name, host.peer_url.as_deref().unwrap_or("no peer URL"))
        };
        let gone: Vec<String> = all.iter().filter(|host| !host.is_up).map(named).collect();
        Some(match (up, gone.is_empty()) {
            (_, false) => Check::warning(
                NAME,
                format!("{found}; gone in the last ten minutes: {}", gone.join(", ")),
                "start them again, or wait if they were to go",
            ),
            (..2, true) => Check::warning(
                NAME,
                found,
                "start another one on the same database, or nothing answers when this one ends",
            ),
            (_, true) => Check::ok(NAME, found),
        })
    }
}
