//! Health checks: whether the host can do its work, and advice where it cannot.

use async_recursion::async_recursion as boxed;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::{Check, Monitor};
use crate::permissions;
use memhost_access::{Act, Caller};
use memhost_store::{self as store, DiskLevel, DiskState, Held, Store, StoreError};
use memhost_types::{
    CompanyId, DeliveryFilter, DeliveryStatus, JobFilter, JobStatus, OperationFilter, counted,
};

/// How long a probe of the disk may take.
const PROBE: Duration = Duration::from_secs(5);
/// How long providers are asked about the systems behind them, all together.
const ASKING: Duration = Duration::from_secs(20);
/// Free disk space, in bytes, below which there is a warning.
const LITTLE_SPACE: u64 = 1 << 30;

impl Monitor {
    /// Whether the host can accept operations: the plugins that were there at its start are
    /// admitted, and the disk accepts writes. With a warning it answers reads only.
    #[boxed]
    pub async fn readiness(&self) -> Check {
        let disk = self.store.disk();
        if disk.level == DiskLevel::Spent {
            return check_space(disk);
        }
        if !self.plugins.is_ready() {
            let found = format!("plugins still being admitted: {}", self.plugins.admitting().len());
            return Check::error(
                "plugins",
                found,
                "wait until they are compiled; `memhost plugin list` shows them",
            );
        }
        match tokio::time::timeout(PROBE, self.store.commit()).await {
            Ok(Ok(())) if disk.level == DiskLevel::Low => check_space(disk),
            Ok(Ok(())) => Check::ok("store", "the disk accepts writes"),
            Ok(Err(error)) => Check::error(
                "store",
                error.to_string(),
                "free disk space, or check the disk's device",
            ),
            Err(_) => {
                let found = format!("the disk did not answer within {} s", PROBE.as_secs());
                Check::error("store", found, "check the disk's device and what else writes to it")
            }
        }
    }

    /// All checks, for a caller: one that only watches the host is told of no company.
    #[boxed]
    pub async fn doctor_for(&self, caller: &Caller) -> Vec<Check> {
        let all = self.doctor().await;
        if caller.may(Act::Host, None).is_ok() {
            return all;
        }
        let told =
            |check: Check| Check { found: check.unnamed.clone().unwrap_or(check.found), ..check };
        all.into_iter().map(told).collect()
    }

    /// All checks. They change nothing but an index that does not fit its log; providers are asked
    /// whether the systems behind them can be reached.
    #[boxed]
    pub async fn doctor(&self) -> Vec<Check> {
        let beside = self.beside();
        let stores: Vec<_> = self.with(&beside).map(|one| Arc::clone(&one.store)).collect();
        let mut all = vec![self.readiness().await];
        all.push(check_log(&stores).await);
        let data_dir = self.data_dir.clone();
        // A database has its own disk, and its own guards.
        if self.place.is_none() {
            all.push(check_space(self.store.disk()));
        }
        all.push(self.check_companies(&beside));
        let disk = move || vec![check_keys(&data_dir), permissions::check(&data_dir)];
        all.extend(memhost_executor::spawn_blocking(disk).await.unwrap_or_default());
        all.push(self.check_clock(&beside).await);
        all.push(self.check_cache());
        all.push(self.check_plugins());
        all.push(self.check_bindings(&beside).await);
        all.extend(self.check_sections(&beside));
        all.push(self.check_background(&beside).await);
        all.extend(self.check_quiet());
        all.extend(self.check_hosts().await);
        all.extend(self.check_database().await);
        all
    }

    /// Warns of a clock that was set back: new operations would have earlier times than old ones.
    async fn check_clock(&self, beside: &[Arc<Self>]) -> Check {
        let now = self.clock.now();
        if now.as_second() < 1_735_689_600 {
            return Check::error("clock", format!("it says {now}"), "set this machine's clock");
        }
        let mut newest = None;
        for one in self.with(beside) {
            for company in one.bindings.companies() {
                let all = OperationFilter::default();
                let page = one.store.operations(&company, &all, None, 1).await;
                let first = page.ok().and_then(|page| page.operations.into_iter().next());
                newest = newest.max(first.map(|operation| operation.started_at));
            }
        }
        match newest {
            Some(newest) if newest > now => {
                let found = format!("it says {now}, and the newest operation began at {newest}");
                Check::warning(
                    "clock",
                    found,
                    "set this machine's clock; it was set back or was wrong before",
                )
            }
            _ => Check::ok("clock", format!("it says {now}")),
        }
    }

    fn check_cache(&self) -> Check {
        let stats = self.sandbox.stats();
        let loaded = counted(stats.loaded, "component", "components");
        let found = format!("{loaded} loaded without compiling, {} compiled", stats.compiled);
        Check::ok("compiled cache", found)
    }

    fn check_plugins(&self) -> Check {
        let plugins = self.control.plugins();
        let descriptions = plugins.admitted.iter().map(|plugin| &plugin.inspection.description);
        let excepting =
            descriptions.filter(|described| !described.declarations.exceptions.is_empty());
        let excepting: Vec<String> = excepting
            .map(|described| {
                let all =
                    described.declarations.exceptions.iter().map(|exception| exception.about());
                format!(
                    "; with `{}`, {}",
                    described.provider_key,
                    all.collect::<Vec<_>>().join(", and ")
                )
            })
            .collect();
        let found = format!(
            "{} can serve{}",
            counted(plugins.admitted.len(), "build", "builds"),
            excepting.concat()
        );
        match plugins.refused.first() {
            None => Check::ok("plugins", found),
            Some(first) => {
                let refused = match plugins.refused.len() {
                    1 => "1 file was refused".to_owned(),
                    count => format!("{count} files were refused, the first"),
                };
                let found = format!("{found}, {refused}: {}", first.reason);
                Check::warning(
                    "plugins",
                    found,
                    "`memhost plugin list` shows them all with their reasons",
                )
            }
        }
    }

    async fn check_bindings(&self, beside: &[Arc<Self>]) -> Check {
        let (mut all, mut troubled) = (0, Vec::new());
        let until = Instant::now() + ASKING;
        for one in self.with(beside) {
            for company in one.bindings.companies() {
                for binding in one.bindings.list(&company) {
                    // The page of the binding says later what it could not say in time.
                    if Instant::now() < until {
                        let asked = one.operations.ask_health(&binding);
                        let _ = tokio::time::timeout(PROBE, asked).await;
                    }
                }
                for view in one.control.bindings(&company).await.unwrap_or_default() {
                    all += 1;
                    if let Some(trouble) = view.troubles().next() {
                        troubled.push(format!("`{}` of {company}: {trouble}", view.binding.key));
                    }
                }
            }
        }
        match troubled.first() {
            None => Check::ok(
                "bindings",
                format!("{}, none with a warning", counted(all, "binding", "bindings")),
            ),
            Some(first) => {
                let have = if troubled.len() == 1 { "has a warning" } else { "have warnings" };
                let found =
                    format!("{} of {} {have}", troubled.len(), counted(all, "binding", "bindings"));
                let advice = "`memhost binding list` shows them";
                Check::warning("bindings", format!("{found}, the first: {first}"), advice)
                    .unnamed(found)
            }
        }
    }

    /// Warns of companies that have nearly as much as they may have.
    fn check_companies(&self, beside: &[Arc<Self>]) -> Check {
        let (mut most, mut near) = (Held::default(), Vec::new());
        let of = |one: &'_ Self| {
            let companies = one.tenancy.companies().into_iter();
            companies.map(|company| (Arc::clone(&one.store), company)).collect::<Vec<_>>()
        };
        let companies: Vec<_> = self.with(beside).flat_map(of).collect();
        for (store, company) in &companies {
            let held = match store.held(company) {
                Ok(held) => held,
                Err(error) => {
                    return Check::error("companies", error.to_string(), "check the disk's device");
                }
            };
            if held.bytes >= most.bytes {
                most = held;
            }
            if held.quota > 0 && held.bytes >= held.quota - held.quota / 10 {
                near.push((company, held));
            }
        }
        let all = counted(companies.len(), "company", "companies");
        match near.first() {
            None if most.quota == 0 => Check::ok("companies", format!("{all}, without a quota")),
            None => {
                let (held, quota) = (most.bytes >> 20, most.quota >> 20);
                Check::ok(
                    "companies",
                    format!(
                        "{all}, the largest with {held} MiB of {quota} MiB in the host's store"
                    ),
                )
            }
            Some((company, held)) => {
                let found = format!(
                    "{} of {all} near or over the quota of {} MiB",
                    near.len(),
                    held.quota >> 20
                );
                let named =
                    format!("{found}, the first is {company} with {} MiB", held.bytes >> 20);
                let advice = "set a shorter retention with `memhost company update`, or raise \
                              `company_max_bytes`";
                Check::warning("companies", named, advice).unnamed(found)
            }
        }
    }

    /// Warns of a restored copy, which is quiet.
    fn check_quiet(&self) -> Option<Check> {
        self.is_quiet().then(|| {
            let found = "the data directory was restored from a backup: nothing is delivered, and \
                         no other system is asked";
            let advice = "start the host with `memhost serve --end-quiet` if it is to work from \
                          now on";
            Check::warning("quiet", found, advice)
        })
    }

    /// Warns of dead deliveries and failed jobs.
    async fn check_background(&self, beside: &[Arc<Self>]) -> Check {
        let dead =
            DeliveryFilter { status: Some(DeliveryStatus::Dead), ..DeliveryFilter::default() };
        let failed = JobFilter { status: Some(JobStatus::Failed), ..JobFilter::default() };
        let mut troubled: Vec<CompanyId> = Vec::new();
        for one in self.with(beside) {
            for company in one.bindings.companies() {
                let deliveries = one.deliveries.list(&company, &dead, None, 1).await;
                let jobs = one.jobs.list(&company, &failed, None, 1).await;
                let has_dead = deliveries.is_ok_and(|(found, _)| !found.is_empty());
                if has_dead || jobs.is_ok_and(|(found, _)| !found.is_empty()) {
                    troubled.push(company);
                }
            }
        }
        match troubled.first() {
            None => Check::ok("hooks and jobs", "no delivery is dead and no job failed"),
            Some(first) => {
                let have = if troubled.len() == 1 { "company has" } else { "companies have" };
                let found = format!("{} {have} dead deliveries or failed jobs", troubled.len());
                let advice = "`memhost hook list --status dead` and `memhost job list --status \
                              failed` say why";
                Check::warning("hooks and jobs", format!("{found}, the first is {first}"), advice)
                    .unnamed(found)
            }
        }
    }
}

/// Compares the log with what is derived from it, and has that made again where it does not fit.
async fn check_log(stores: &[Arc<dyn Store>]) -> Check {
    const DAMAGED: &str = "stop the host, copy the data directory, then `memhost store verify`";
    let found = async {
        let (mut all_mended, mut all_left) = (Vec::new(), Vec::new());
        for store in stores {
            let findings = store.verify().await?;
            let mended =
                if findings.is_empty() { Vec::new() } else { store::mend(&**store).await? };
            let left = if mended.is_empty() { findings } else { store.verify().await? };
            all_mended.extend(mended);
            all_left.extend(left);
        }
        Ok::<_, StoreError>((all_mended, all_left))
    };
    let said = |findings: &[String], first: &String| {
        let found = counted(findings.len(), "finding", "findings");
        (format!("{found}, the first: {first}"), found)
    };
    match found.await {
        Ok((mended, left)) => match (left.first(), mended.first()) {
            (None, None) => Check::ok("operation log", "the log and its indexes match"),
            (Some(first), _) => {
                let (named, unnamed) = said(&left, first);
                Check::error("operation log", named, DAMAGED).unnamed(unnamed)
            }
            (None, Some(first)) => {
                let (named, unnamed) = said(&mended, first);
                let what = "the indexes did not fit the log and were made again from it";
                let advice =
                    "nothing is lost; if it happens again, check the disk for hardware errors";
                Check::warning("operation log", format!("{what}: {named}"), advice)
                    .unnamed(format!("{what}: {unnamed}"))
            }
        },
        Err(error) => Check::error(
            "operation log",
            error.to_string(),
            "stop the host and copy the data directory",
        ),
    }
}

fn check_space(disk: DiskState) -> Check {
    let Some(free) = disk.free_bytes else {
        return Check::warning("disk", "its free space cannot be read", "check the data directory");
    };
    let found = format!(
        "{} MiB are free, {} MiB of them are the reserve",
        free >> 20,
        disk.reserve_bytes >> 20
    );
    let advice =
        "free disk space, or forget or erase something; writes are accepted again by themselves";
    match disk.level {
        DiskLevel::Plenty if free < LITTLE_SPACE => Check::warning(
            "disk",
            found,
            "free disk space: writes are refused when only the reserve is left",
        ),
        DiskLevel::Plenty => Check::ok("disk", found),
        DiskLevel::Low => Check::warning("disk", format!("{found}: new data is refused"), advice),
        DiskLevel::Spent => {
            Check::error("disk", format!("{found}: all but deletions is refused"), advice)
        }
    }
}

/// Warns where others than the host's user can read the key files.
fn check_keys(data_dir: &Path) -> Check {
    use std::os::unix::fs::PermissionsExt;
    for name in ["host.key", "vault.key", "admin-token", "operator-token"] {
        let path = data_dir.join(name);
        let Ok(metadata) = std::fs::metadata(&path) else { continue };
        let mode = metadata.permissions().mode() & 0o777;
        if mode & 0o077 != 0 {
            let found = format!(
                "{} can be used by others than its owner (mode {mode:03o})",
                path.display()
            );
            return Check::warning("keys", found, format!("`chmod 600 '{}'`", path.display()));
        }
    }
    Check::ok("keys", "only the host's user can read them")
}
