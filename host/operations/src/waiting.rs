//! Gives the records of an import that wait to their providers, once the grants of their binding
//! are decided.

use crate::Operations;
use async_recursion::async_recursion as boxed;
use memhost_queues::waiting::Waiting;
use memhost_records::{check_owner, visibility_in};
use memhost_tenancy::ServiceError;
use memhost_types::{Binding, CompanyId, RecordRow, RecordWrite, Scope, Snippet, UpsertRequest};

/// The request that writes a record of another host, with the owner that this host knew. If nobody
/// knows the owner, the record belongs to the whole company.
pub fn upsert_of(binding: &Binding, snippet: Snippet, row: Option<&RecordRow>) -> UpsertRequest {
    let (scope, visibility) = match (row, snippet.scope) {
        (Some(row), _) => (row.scope.clone(), row.visibility),
        (None, scope) => {
            let scope = scope.unwrap_or_else(|| Scope::company(binding.company_id.clone()));
            let visibility = visibility_in(&scope);
            (scope, visibility)
        }
    };
    UpsertRequest {
        binding_key: Some(binding.key.clone()),
        visibility: check_owner(&scope, visibility).is_ok().then_some(visibility),
        scope,
        source: snippet.source,
        records: vec![RecordWrite {
            id: Some(snippet.handle.provider_record_id),
            text: snippet.text,
            summary: snippet.summary,
            metadata: snippet.metadata,
            created_at: snippet.created_at,
            expires_at: snippet.expires_at,
            ..RecordWrite::default()
        }],
    }
}

impl Operations {
    /// Whether a binding came with an import and waits as a whole: its provider has nothing yet.
    ///
    /// # Errors
    /// Where it cannot be read which build serves the binding.
    #[boxed]
    pub async fn never_served(&self, binding: &Binding) -> Result<bool, ServiceError> {
        Ok(binding.requested.is_some() && self.serving.state(binding).await?.is_none())
    }

    /// Gives what waits to the providers of the bindings whose grants are decided. What a provider
    /// does not take stays, and is tried again when something about the binding changes, or at the
    /// next start; after a failure that passes, soon.
    pub(crate) async fn take_waiting(&self, company: &CompanyId) -> Result<(), ServiceError> {
        if self.tenancy.closed(company).is_some() {
            return Ok(());
        }
        for id in self.waiting.bindings_of(company) {
            let Some(binding) =
                self.bindings.list(company).into_iter().find(|binding| binding.id == id)
            else {
                continue;
            };
            if binding.requested.is_some() {
                continue;
            }
            if self.give(&binding).await? {
                self.waiting.all_taken(company, id).await?;
                tracing::info!(%company, binding = %binding.key, "all records of the import are \
                    with their provider");
            }
        }
        Ok(())
    }

    /// Whether nothing waits any more.
    async fn give(&self, binding: &Binding) -> Result<bool, ServiceError> {
        let (mut after, mut is_all): (Option<Vec<u8>>, bool) = (None, true);
        loop {
            // The second of two tasks finds nothing. One lock for each row: a record may be
            // forgotten in between.
            let _lock = self.waiting.lock(binding.id).await?;
            if self.tenancy.closed(&binding.company_id).is_some() {
                return Ok(false);
            }
            let Some((key, waiting)) = self.waiting.next(binding, after.as_deref()).await? else {
                return Ok(is_all);
            };
            let given = match waiting {
                Waiting::Own(lines) => {
                    let scope = Scope::company(binding.company_id.clone());
                    self.import_lines(scope, &binding.key, lines, true).await.map(drop)
                }
                Waiting::Record(snippet) => {
                    let row = self.records.row(binding, &snippet.handle.provider_record_id).await?;
                    self.import_upsert(upsert_of(binding, *snippet, row.as_ref()), row).await
                }
            };
            match given {
                Ok(()) => self.waiting.taken(key.clone()).await?,
                Err(error) => {
                    is_all = false;
                    let (company, binding) = (&binding.company_id, &binding.key);
                    tracing::warn!(%error, %company, %binding, "a record of the import waits on; \
                        its provider did not take it");
                    if !matches!(
                        &error,
                        ServiceError::Operation { error, .. } if !error.code.is_worth_another_try(),
                    ) {
                        self.waiting.try_again();
                        self.wake.notify_one();
                        return Ok(false);
                    }
                }
            }
            after = Some(key);
        }
    }

    /// Goes on with everything that waits and may go on. One company's failure does not stop the
    /// others.
    #[boxed]
    pub async fn take_all_waiting(&self) {
        for company in self.waiting.companies() {
            if let Err(error) = self.take_waiting(&company).await {
                self.waiting.try_again();
                tracing::error!(%error, %company, "records of an import wait on");
            }
        }
    }

    /// The sentence about what waits for a binding, if anything does.
    pub fn waiting_warning(&self, binding: &Binding) -> Option<String> {
        let key = &binding.key;
        if !self.waiting.has(binding) && binding.requested.is_none() {
            return None;
        }
        Some(match binding.requested {
            Some(_) => format!(
                "records of its import wait until an operator decides about the grants and limits \
                 that came with it; \
                 `memhost binding grant {key}` shows them, and `--requested` accepts them"
            ),
            None => "records of an import are on their way to the provider, or it does not take \
                     them: look at the \
                     operations of the kinds `import` and `record_upsert`"
                .to_owned(),
        })
    }
}
