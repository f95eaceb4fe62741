//! The control plane: the operation log, the activity log, the providers, and the store itself.

use async_recursion::async_recursion as boxed;
use std::path::PathBuf;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Control;
use memhost_registry::plugins::{Plugin, PluginSource, RefusedPlugin, Signed};
use memhost_tenancy::Page;
use memhost_tenancy::ServiceError;
use memhost_types::{
    ActivityPage, CompanyId, Operation, OperationFilter, OperationId, OperationPage,
};

/// How long a scan waits for files.
const LONGEST_SCAN: Duration = Duration::from_secs(15);
/// How long it waits before it looks at a file again that is being written.
const BETWEEN_SCANS: Duration = Duration::from_millis(100);

/// The providers as they are shown.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PluginView {
    /// Those that can serve.
    pub admitted: Vec<AdmittedPlugin>,
    /// Files that were refused.
    pub refused: Vec<RefusedPlugin>,
    /// Files that are being admitted.
    pub admitting: Vec<PathBuf>,
    /// The plugins directory, on the machine of the host.
    pub directory: PathBuf,
    /// The public keys whose signatures the host trusts, as minisign prints them.
    pub trusted_keys: Vec<String>,
    /// The public keys of cosign whose signatures the host trusts, as PEM.
    pub trusted_cosign_keys: Vec<String>,
}

/// One provider as it is shown.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AdmittedPlugin {
    /// Where it came from.
    pub source: PluginSource,
    /// Whose it is.
    pub signed: Signed,
    /// What is known of it.
    #[serde(flatten)]
    pub inspection: memhost_sandbox::Inspection,
}

impl Control {
    /// The providers that this host has, and the files that it refused.
    pub fn plugins(&self) -> PluginView {
        let view = |Plugin { source, signed, component, .. }: Plugin| AdmittedPlugin {
            source,
            signed,
            inspection: component.inspection().clone(),
        };
        let trust = self.plugins.trust();
        PluginView {
            admitted: self.plugins.list().into_iter().map(view).collect(),
            refused: self.plugins.refused(),
            admitting: self.plugins.admitting(),
            directory: self.plugins.directory(),
            trusted_keys: trust.keys.iter().map(ToString::to_string).collect(),
            trusted_cosign_keys: trust.cosign_keys.iter().map(ToString::to_string).collect(),
        }
    }

    /// One operation.
    ///
    /// # Errors
    /// Where the company has none of this id.
    #[boxed]
    pub async fn operation(
        &self,
        company: &CompanyId,
        id: OperationId,
    ) -> Result<Operation, ServiceError> {
        let mut found =
            self.store.operation(company, id).await?.ok_or(ServiceError::NoOperation { id })?;
        self.oplog.refusals.show(company, std::slice::from_mut(&mut found));
        Ok(found)
    }

    /// Operations that match, newest first.
    ///
    /// # Errors
    /// Where the limit or the cursor is not valid.
    #[boxed]
    pub async fn operations(
        &self,
        company: &CompanyId,
        filter: &OperationFilter,
        cursor: Option<&str>,
        limit: u32,
    ) -> Result<OperationPage, ServiceError> {
        let page = self.tenancy.page_of("operations", company, filter, cursor, Some(limit))?;
        // Only what was sealed is opened, and that was a number.
        let before = page.from().and_then(|bytes| Some(u64::from_be_bytes(bytes.try_into().ok()?)));
        let mut found = self.store.operations(company, filter, before, page.limit).await?;
        self.oplog.refusals.show(company, &mut found.operations);
        let next = found.next_before.map(|before| before.to_be_bytes().to_vec());
        let Page { items, next_cursor } = self.tenancy.sealed(&page, (found.operations, next));
        Ok(OperationPage { items, next_cursor })
    }

    /// The activity log of a company, newest first.
    ///
    /// # Errors
    /// Where the cursor is not of this list or the log cannot be read.
    #[boxed]
    pub async fn activity(
        &self,
        company: &CompanyId,
        cursor: Option<&str>,
    ) -> Result<ActivityPage, ServiceError> {
        let page = self.tenancy.page_of("activity", company, &(), cursor, None)?;
        let found = self.activity.page(company, page.from(), page.limit).await?;
        let Page { items, next_cursor } = self.tenancy.sealed(&page, found);
        Ok(ActivityPage { items, next_cursor })
    }

    /// The time of the host's clock.
    pub fn now(&self) -> jiff::Timestamp {
        self.clock.now()
    }

    /// Reads the plugins directory now. Waits for files that are being written or admitted, fifteen
    /// seconds at most, and not for those that take long to compile.
    #[boxed]
    pub async fn scan_plugins(&self) {
        let scanned = async {
            loop {
                match self.plugins.scan().await {
                    true if self.plugins.has_only_slow() => return,
                    true => self.plugins.wait_for_fast().await,
                    false => tokio::time::sleep(BETWEEN_SCANS).await,
                }
            }
        };
        // What is not done by then goes on by itself.
        let _ = tokio::time::timeout(LONGEST_SCAN, scanned).await;
    }

    /// Resolves when everything written so far is on disk, with the numbers of the refusals until
    /// now.
    ///
    /// # Errors
    /// Where the disk fails.
    #[boxed]
    pub async fn flush(&self) -> Result<(), ServiceError> {
        self.oplog.write_refusals(true).await?;
        Ok(self.store.commit().await?)
    }

    /// Compares the store with its indexes. Answers one line for each difference.
    ///
    /// # Errors
    /// Where it cannot be read.
    #[boxed]
    pub async fn verify_store(&self) -> Result<Vec<String>, ServiceError> {
        Ok(self.store.verify().await?)
    }
}
