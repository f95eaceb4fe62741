//! The hosts on one database.

use async_recursion::async_recursion as boxed;

use super::{Check, Monitor};
use memhost_postgres::Group;
use memhost_store::StoreError;
use memhost_tenancy::ServiceError;
use memhost_types::{HostView, counted};

/// Connections that a host has for a moment when it takes all groups over.
const FREE_CONNECTIONS: i64 = 31;

impl Monitor {
    /// Whether its service serves companies, and not what belongs to none.
    pub(super) fn serves_companies(&self) -> bool {
        self.place.as_ref().is_none_or(|place| place.group != Group::HOST)
    }

    /// The hosts on the database that were there in the last ten minutes, by name. A host with an
    /// embedded store is in no list.
    ///
    /// # Errors
    /// Where the database does not answer.
    #[boxed]
    pub async fn hosts(&self) -> Result<Vec<HostView>, ServiceError> {
        Ok(self.listed().await?)
    }

    /// Lets a host give its groups of companies away and take none, or take groups again. Answers
    /// the host. `None`: there is no such host.
    ///
    /// # Errors
    /// Where the database does not answer.
    #[boxed]
    pub async fn drain(
        &self,
        host: uuid::Uuid,
        is_draining: bool,
    ) -> Result<Option<HostView>, ServiceError> {
        let Some(place) = &self.place else { return Ok(None) };
        if !place.membership.drain(host, is_draining).await? {
            return Ok(None);
        }
        Ok(self.listed().await?.into_iter().find(|one| one.id == host))
    }

    async fn listed(&self) -> Result<Vec<HostView>, StoreError> {
        let Some(place) = &self.place else { return Ok(Vec::new()) };
        place.membership.hosts().await
    }

    /// Warns where a crash of the database would lose what was acknowledged, or it is nearly out of
    /// connections.
    pub(super) async fn check_database(&self) -> Option<Check> {
        const NAME: &str = "database";
        let state = match self.place.as_ref()?.membership.database().await {
            Ok(state) => state,
            Err(error) => {
                let advice = "check that the database runs";
                return Some(Check::error(NAME, error.to_string(), advice));
            }
        };
        let (used, most) = (state.connections, state.most_connections);
        let found = format!(
            "synchronous_commit is {}, {}, {used} of {most} connections",
            state.synchronous_commit,
            counted(state.standbys, "standby", "standbys"),
        );
        let is_weak = matches!(state.synchronous_commit.as_str(), "off" | "local");
        Some(if state.waits_for_standby && state.standbys == 0 {
            let advice = "start the standby that synchronous_standby_names names; until then \
                          writes wait";
            Check::warning(NAME, found, advice)
        } else if state.waits_for_standby && is_weak {
            let advice = "set synchronous_commit to on, or a fail-over to the standby loses what \
                          was acknowledged";
            Check::warning(NAME, found, advice)
        } else if most - used < FREE_CONNECTIONS {
            let advice = "raise max_connections of the database, or stop other clients: a host \
                          that takes over needs up to 31";
            Check::warning(NAME, found, advice)
        } else {
            Check::ok(NAME, found)
        })
    }

    /// Warns where no other host could take this one's place, or one of them is gone.
    pub(super) async fn check_hosts(&self) -> Option<Check> {
        const NAME: &str = "hosts";
        if self.place.as_ref()?.membership.is_alone() {
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
