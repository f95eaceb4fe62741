//! The hosts on one database.

use async_recursion::async_recursion as boxed;

use super::{Check, Monitor};
use memhost_store::StoreError;
use memhost_tenancy::ServiceError;
use memhost_types::{HostView, counted};

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
        membership.hosts().await
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
