//! Records that an operation wrote: they wait where the policy says so, unless a person who may
//! review wrote them.

use std::sync::{Arc, OnceLock};

use memhost_store::StoreError;
use memhost_types::{
    CompanyId, GetRequest, ListRequest, Pages, Principal, RecordHandle, ReviewItem, ReviewPolicy,
    ReviewStatus, Scope, Snippet,
};

use crate::review::control::whole;
use crate::review::judge::judge;
use crate::runner::Answered;
use memhost_access::{Act, Caller};

/// The most records that are judged after an import. A further one is judged before it is first
/// returned.
const MOST_IMPORTED: usize = 10_000;
/// Records of one page of them.
const IMPORTED_PAGE: u32 = 100;

/// The author of the records that an operation wrote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Author {
    /// An agent, a provider or the host: the policy judges it.
    Judged,
    /// A person who may review. It counts without a decision, and the queue shows that.
    Reviewer {
        principal: Principal,
        /// The subject of a decision. The decision is its entry in the queue.
        decided: Option<Arc<Decided>>,
    },
}

/// A record that a decision changes.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Decided {
    about: RecordHandle,
    seen: OnceLock<String>,
}

impl Decided {
    pub(crate) fn about(handle: &RecordHandle) -> Self {
        Self { about: handle.clone(), seen: OnceLock::new() }
    }

    /// What the provider made of it, with its summary. `None` if it was not read.
    pub(crate) fn seen(&self) -> Option<String> {
        self.seen.get().cloned()
    }
}

impl Author {
    /// Agents' tokens may not review. A program that speaks MCP writes for an agent, whoever gave
    /// it a token.
    pub(crate) fn of(caller: &Caller, company: &CompanyId) -> Self {
        let is_program = caller.is_host() || caller.agent().is_some() || caller.is_mcp();
        match !is_program && caller.may(Act::Administer, Some(company)).is_ok() {
            true => Self::Reviewer { principal: caller.principal().clone(), decided: None },
            false => Self::Judged,
        }
    }

    /// The caller that decides about a record.
    pub(crate) fn deciding(caller: &Caller, decided: &Arc<Decided>) -> Self {
        Self::Reviewer { principal: caller.principal().clone(), decided: Some(Arc::clone(decided)) }
    }

    /// Whether a decision writes what an agent has asked for before.
    pub(crate) fn is_decision(&self) -> bool {
        matches!(self, Self::Reviewer { decided: Some(_), .. })
    }
}

impl Answered<'_> {
    /// Judges records that a provider or the host wrote, as the binding's policy says.
    ///
    /// # Errors
    /// Where the store fails or the provider cannot be asked for the texts.
    pub async fn judge(
        &mut self,
        scope: &Scope,
        records: &[RecordHandle],
    ) -> Result<(), StoreError> {
        self.judge_new(scope, records, &Author::Judged).await
    }

    /// Judges the records that an operation has made, so that they are in the queue before anybody
    /// asks for them. It reads them from the provider as a part of the operation.
    pub(crate) async fn judge_new(
        &mut self,
        scope: &Scope,
        records: &[RecordHandle],
        author: &Author,
    ) -> Result<(), StoreError> {
        self.queue_provider_review(scope).await?;
        let serving = self.serving;
        let Some(policy) = &serving.binding.policy.review else { return Ok(()) };
        for handle in records {
            let request =
                GetRequest { binding_key: None, scope: scope.clone(), handle: handle.clone() };
            // A record that cannot be read now is judged at its first read.
            let (snippet, usage, metered) = match serving.instances.get(&request).await {
                Ok(answer) => (answer.value.0, answer.value.1, answer.metered),
                Err(failure) => (None, Vec::new(), failure.metered),
            };
            self.ending.add_usage(usage);
            self.ending.add_metered(metered);
            match (snippet, author) {
                (Some(snippet), Author::Judged) => {
                    self.host.counts(&serving.binding, Some(policy), self.id(), &snippet).await?;
                }
                (Some(snippet), Author::Reviewer { decided: Some(decided), .. })
                    if decided.about == *handle =>
                {
                    // The first one counts; there is one.
                    let _ = decided.seen.set(whole(&snippet.text, snippet.summary.as_deref()));
                }
                (Some(snippet), Author::Reviewer { principal, .. }) => {
                    self.pass(policy, &snippet, principal).await?;
                }
                (None, _) => {}
            }
        }
        Ok(())
    }

    /// Judges what is there after an import, whose answer names no record.
    pub(crate) async fn judge_imported(&mut self, scope: &Scope) -> Result<(), StoreError> {
        self.queue_provider_review(scope).await?;
        let serving = self.serving;
        let Some(policy) = &serving.binding.policy.review else { return Ok(()) };
        let request = ListRequest {
            binding_key: None,
            scope: scope.clone(),
            cursor: None,
            limit: Some(IMPORTED_PAGE),
            metadata_filter: None,
            filter: None,
        };
        let (mut pages, mut seen) = (Pages::default(), 0);
        while seen < MOST_IMPORTED
            && let Some(cursor) = pages.next()
        {
            let page = match serving.instances.list(&request, cursor).await {
                Ok(answer) => {
                    self.ending.add_metered(answer.metered);
                    answer.value
                }
                Err(failure) => {
                    self.ending.add_metered(failure.metered);
                    tracing::warn!(error = %failure.error, binding = %serving.binding.key, "the \
                        provider could not list what it imported; each record is judged before it \
                        is first returned");
                    break;
                }
            };
            self.ending.add_usage(page.usage);
            // An empty page counts, too: a list that never ends is left.
            seen += page.items.len().max(1);
            for snippet in &page.items {
                self.host.counts(&serving.binding, Some(policy), self.id(), snippet).await?;
            }
            pages.go_on(page.next);
        }
        Ok(())
    }

    /// Approves a record that a person who may review has written, where the policy would hold it.
    async fn pass(
        &self,
        policy: &ReviewPolicy,
        snippet: &Snippet,
        principal: &Principal,
    ) -> Result<(), StoreError> {
        let (host, binding) = (self.host, &self.serving.binding);
        let text = whole(&snippet.text, snippet.summary.as_deref());
        let mut verdict = judge(policy, &text, snippet.metadata.as_ref());
        let record = &snippet.handle.provider_record_id;
        let _lock = host.reviews.lock(binding.id, record).await?;
        let needs_no_entry = match host.reviews.standing(binding.id, record) {
            // What the provider itself holds is decided through its interface.
            Some(standing) => standing.waits_at_provider(),
            None => verdict.reasons.is_empty(),
        };
        if needs_no_entry {
            return Ok(());
        }
        verdict.reasons.push(format!("{principal} may review, and wrote it past the queue"));
        let item = host.item(
            binding,
            Some(self.id()),
            &snippet.handle,
            &text,
            verdict,
            ReviewStatus::Approved,
        );
        let at = host.clock.now();
        host.reviews
            .put(&ReviewItem {
                decided_by: Some(principal.to_string()),
                decided_at: Some(at),
                ..item
            })
            .await
    }
}
