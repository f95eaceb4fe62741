//! The control plane: the operation log, the activity log, the providers, and the store itself.

use async_recursion::async_recursion as boxed;
use schemars::JsonSchema;
use serde::Serialize;

use crate::Service;

use crate::error::ServiceError;
use crate::plugins::PluginSource;
use crate::plugins::RefusedPlugin;
use crate::plugins::Signed;
use memhost_types::{
    ActivityPage, CompanyId, FieldError, Operation, OperationFilter, OperationId, OperationPage, QueryDigest, limits,
};

/// The providers as they are shown.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PluginView {
    /// Those that can serve.
    pub admitted: Vec<AdmittedPlugin>,
    /// Files that were kept out.
    pub refused: Vec<RefusedPlugin>,
}

/// One provider as it is shown.
#[derive(Debug, Clone, Serialize, JsonSchema)]
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

impl Service {
    /// The providers that this host has, and the files that it refused.
    pub fn plugins(&self) -> PluginView {
        let admitted = self
            .plugins
            .list()
            .into_iter()
            .map(|plugin| AdmittedPlugin {
                source: plugin.source,
                signed: plugin.signed,
                inspection: plugin.component.inspection().clone(),
            })
            .collect();
        PluginView { admitted, refused: self.plugins.refused() }
    }

    /// One operation.
    ///
    /// # Errors
    /// Where the company has none of this id.
    #[boxed]
    pub async fn operation(&self, company: &CompanyId, id: OperationId) -> Result<Operation, ServiceError> {
        self.store.operation(company, id).await?.ok_or(ServiceError::NoOperation { id })
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
        if limit == 0 || limit > limits::MAX_PAGE {
            return Err(FieldError::new("limit", format!("is {limit}; 1 to {} are allowed", limits::MAX_PAGE)).into());
        }
        let wanted = serde_json::to_vec(filter).unwrap_or_default();
        let digest = QueryDigest::new([b"operations".as_slice(), company.as_str().as_bytes(), &wanted]);
        let before = cursor
            .map(|cursor| {
                let bytes = self.cursors.open(&digest, cursor).ok();
                bytes
                    .and_then(|bytes| Some(u64::from_be_bytes(bytes.try_into().ok()?)))
                    .ok_or_else(|| FieldError::new("cursor", memhost_types::CursorError.to_string()))
            })
            .transpose()?;
        let page = self.store.operations(company, filter, before, limit as usize).await?;
        let next_cursor = page.next_before.map(|before| self.cursors.seal(&digest, &before.to_be_bytes()));
        Ok(OperationPage { items: page.operations, next_cursor })
    }

    /// The activity log of a company, newest first.
    ///
    /// # Errors
    /// Where the cursor is not of this list or the log cannot be read.
    #[boxed]
    pub async fn activity(&self, company: &CompanyId, cursor: Option<&str>) -> Result<ActivityPage, ServiceError> {
        let digest = QueryDigest::new([b"activity".as_slice(), company.as_str().as_bytes()]);
        let from = cursor
            .map(|cursor| self.cursors.open(&digest, cursor))
            .transpose()
            .map_err(|error| FieldError::new("cursor", error.to_string()))?;
        let (items, next) = self.bindings.activity(company, from.as_deref(), limits::DEFAULT_LIMIT as usize).await?;
        Ok(ActivityPage { items, next_cursor: next.map(|next| self.cursors.seal(&digest, &next)) })
    }

    /// The time of the host's clock.
    pub fn now(&self) -> jiff::Timestamp {
        self.clock.now()
    }

    /// Reads the plugins directory now. Waits a few seconds at most for files that are being written.
    #[boxed]
    pub async fn scan_plugins(&self) {
        for _ in 0..50 {
            if self.plugins.scan().await {
                return;
            }
            tokio::time::sleep(std::time::Duration::from_millis(100)).await;
        }
    }

    /// Resolves when everything written so far is on disk.
    ///
    /// # Errors
    /// Where the disk fails.
    #[boxed]
    pub async fn flush(&self) -> Result<(), ServiceError> {
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
