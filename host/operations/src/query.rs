//! Query: what fits, best first, without the records that wait for a person.

use std::collections::HashSet;

use crate::prelude::*;
use crate::privacy::private;
use crate::summary::{lines_of, only_of};
use async_recursion::async_recursion as boxed;
use memhost_executor::off_executor;
use memhost_records::{HostPartitions, Reader, has_one_of, words_of};
use memhost_sandbox::QueryAnswer;
use memhost_types::{
    ContextBundle, HookContext, Intent, JsonObject, ListRequest, Pages, Principal, QueryRequest,
    RecordHandle, Snippet, limits,
};

/// Pages of the provider's list that are looked through where too few of its hits are wanted.
const MOST_PAGES: u32 = 20;
/// How many times as many records the provider is asked for at first, where the host takes some
/// out.
const SPARE: u32 = 4;

impl Operations {
    /// Finds what fits, best first.
    ///
    /// # Errors
    /// As [`ServiceError`] says.
    #[boxed]
    pub async fn query(
        &self,
        caller: &Caller,
        request: QueryRequest,
    ) -> Result<ContextBundle, ServiceError> {
        self.ask(caller, request, None).await
    }

    /// The same, for a hook.
    ///
    /// # Errors
    /// As [`ServiceError`] says.
    #[boxed]
    pub async fn query_for(
        &self,
        caller: &Caller,
        request: QueryRequest,
        hook: Option<ForHook>,
    ) -> Result<ContextBundle, ServiceError> {
        self.ask(caller, request, hook).await
    }

    /// Both call this, so that neither is a box in a box.
    async fn ask(
        &self,
        caller: &Caller,
        request: QueryRequest,
        hook: Option<ForHook>,
    ) -> Result<ContextBundle, ServiceError> {
        let wanted = request.top_k.unwrap_or(limits::DEFAULT_TOP_K);
        self.operate(caller, &mut Query { request, hook, wanted, hides: false }).await
    }
}

/// The event that a query is for.
#[derive(Debug, Clone)]
pub struct ForHook {
    /// Its kind and id.
    pub context: HookContext,
    /// Who sent it.
    pub sender: Principal,
    /// Its metadata about the session.
    pub metadata: Option<JsonObject>,
}

struct Query {
    request: QueryRequest,
    hook: Option<ForHook>,
    /// How many snippets the caller wants. The provider is asked for more where some may have to be
    /// hidden.
    wanted: u32,
    /// Whether the provider was asked while the reader must not see some of its records.
    hides: bool,
}

impl Query {
    /// Whether the host has to take records out of the answer.
    fn narrows(&self, host: &Operations, serving: &Serving, reader: &Reader) -> bool {
        let is_filtered = self.request.filter.as_ref().is_some_and(|filter| !filter.is_empty());
        let declarations = &serving.plugin.component.description().declarations;
        let keeps_partition = !HostPartitions::of(declarations, &self.request.scope).is_empty();
        let id = serving.binding.id;
        is_filtered
            || keeps_partition
            || host.records.hides_from(id, reader)
            || host.records.has_expired(id, host.clock.now())
    }

    /// Whether a summary may be made of records that the caller must not see: they are private to
    /// others, wait for a person, or have expired.
    fn hides_some(&self, host: &Operations, serving: &Serving, reader: &Reader) -> bool {
        serving.binding.policy.review.is_some()
            || host.records.hides_from(serving.binding.id, reader)
            || host.records.has_expired(serving.binding.id, host.clock.now())
    }

    /// What the provider answers beside a summary of which something may have to be hidden, as
    /// lines.
    fn lines_of(&self, summary: Option<&str>, snippets: &[Snippet]) -> HashSet<String> {
        if self.hides && summary.is_some() { lines_of(snippets) } else { HashSet::new() }
    }

    /// Takes out what the caller must not see or does not want.
    async fn only(
        &self,
        answered: &Answered<'_>,
        snippets: &mut Vec<Snippet>,
    ) -> Result<(), Refusal> {
        answered.keep_partitions(&self.request.scope, snippets).await?;
        Ok(answered.keep_visible(self.request.filter.as_ref(), snippets).await?)
    }

    /// Asks the provider for as many as it may answer, as a part of the same operation.
    #[boxed]
    async fn all(&mut self, answered: &mut Answered<'_>) -> Result<Vec<Snippet>, Refusal> {
        self.request.top_k = Some(limits::MAX_PAGE);
        let serving = answered.serving;
        match serving.instances.query(&self.request).await {
            Ok(answer) => {
                answered.ending.add_usage(answer.value.usage);
                answered.ending.add_metered(answer.metered);
                answered.ending.add_call(answer.log, answer.provider_us);
                Ok(answer.value.snippets)
            }
            Err(failure) => {
                answered.ending.add_metered(failure.metered);
                Err(Refusal::from(&failure.error))
            }
        }
    }
}

impl Query {
    /// Looks through the provider's list for records that are wanted and have a word of the
    /// question, where the provider has answered as many hits as it may and too few of them are
    /// wanted. They come after the hits, in the order of the list. Answers why there may be more.
    #[boxed]
    async fn further(
        &self,
        answered: &mut Answered<'_>,
        snippets: &mut Vec<Snippet>,
    ) -> Result<Option<String>, Refusal> {
        let (serving, words) = (answered.serving, words_of(&self.request.query));
        let request = ListRequest {
            binding_key: None,
            scope: self.request.scope.clone(),
            cursor: None,
            limit: Some(limits::MAX_PAGE),
            metadata_filter: self.request.metadata_filter.clone(),
            filter: None,
        };
        let mut known: HashSet<RecordHandle> =
            snippets.iter().map(|snippet| snippet.handle.clone()).collect();
        let (mut pages, mut seen, mut is_whole) = (Pages::default(), 0, true);
        for _ in 0..MOST_PAGES {
            let Some(cursor) = pages.next() else { return Ok((!is_whole).then(|| cut_off(seen))) };
            let page = match serving.instances.list(&request, cursor).await {
                Ok(answer) => {
                    answered.ending.add_metered(answer.metered);
                    answered.ending.add_call(answer.log, answer.provider_us);
                    answer.value
                }
                Err(failure) => {
                    answered.ending.add_metered(failure.metered);
                    return Ok(Some(cut_off(seen)));
                }
            };
            answered.ending.add_usage(page.usage);
            seen += page.items.len();
            is_whole = !page.truncated;
            let mut items = page.items;
            items.retain(|item| has_one_of(&words, item) && known.insert(item.handle.clone()));
            self.only(answered, &mut items).await?;
            snippets.extend(items);
            if snippets.len() >= self.wanted as usize {
                return Ok(None);
            }
            pages.go_on(page.next);
        }
        Ok(Some(cut_off(seen)))
    }
}

/// Why there may be more records that are wanted.
fn cut_off(seen: usize) -> String {
    format!(
        "the host looked at the {} best hits and at {seen} records of the list; others may fit, \
         too: narrow the question or the filter",
        limits::MAX_PAGE
    )
}

/// Leaves out what does not fit into a budget of tokens. What comes after it and is shorter may
/// still fit.
fn cut(snippets: &mut Vec<Snippet>, mut budget: usize) {
    off_executor(snippets.iter().map(|snippet| snippet.text.len()).sum(), || {
        snippets.retain(|snippet| {
            let left = budget.checked_sub(memhost_tokens::estimate(&snippet.text));
            budget = left.unwrap_or(budget);
            left.is_some()
        });
    });
}

impl Step for Query {
    const KIND: OperationKind = OperationKind::Query;
    type Answer = QueryAnswer;
    type Response = ContextBundle;

    asks_with!(request);

    fn wanted(&self) -> u32 {
        self.wanted
    }

    fn describe(&self, opened: &mut Opened) {
        if let Some(hook) = &self.hook {
            opened.set_provenance(None, Some(&hook.context));
            opened.set_principal(&hook.sender);
            opened.note_context(hook.metadata.as_ref());
        }
    }

    async fn prepare(
        &mut self,
        host: &Operations,
        opened: &mut Opened,
        serving: &Arc<Serving>,
    ) -> Result<(), Refusal> {
        private(serving, &mut self.request)?;
        opened.keep_payload(&serving.binding, &self.request);
        self.hides = self.hides_some(host, serving, opened.reader());
        let wanted = match self.narrows(host, serving, opened.reader()) {
            true => self.wanted.saturating_mul(SPARE).min(limits::MAX_PAGE),
            false => self.wanted,
        };
        self.request.top_k = Some(host.with_hidden(&serving.binding, wanted));
        Ok(())
    }

    async fn call(
        &self,
        serving: &Serving,
        _: OperationId,
    ) -> Result<Answer<QueryAnswer>, Failure> {
        serving.instances.query(&self.request).await
    }

    fn completion(&self, answer: &QueryAnswer) -> Completion {
        Completion::usage(&answer.usage)
    }

    async fn finish(
        &mut self,
        answered: &mut Answered<'_>,
        answer: QueryAnswer,
    ) -> Result<ContextBundle, Refusal> {
        let QueryAnswer { mut snippets, mut profile_summary, .. } = answer;
        if profile_summary.is_none() {
            profile_summary = answered.summary(&self.request).await;
        }
        // After the provider was asked for it, too.
        self.hides |= self.hides_some(answered.host, answered.serving, answered.ending.reader());
        let asked = self.request.top_k.unwrap_or(self.wanted);
        let found = snippets.len();
        let may_be_more = snippets.len() >= asked as usize && asked < limits::MAX_PAGE;
        let mut answers = self.lines_of(profile_summary.as_deref(), &snippets);
        self.only(answered, &mut snippets).await?;
        let are_too_few = snippets.len() < self.wanted as usize
            && self.narrows(answered.host, answered.serving, answered.ending.reader());
        let mut is_cut = asked >= limits::MAX_PAGE && found >= asked as usize;
        if may_be_more && (are_too_few || (self.hides && profile_summary.is_some())) {
            snippets = self.all(answered).await?;
            is_cut = snippets.len() >= limits::MAX_PAGE as usize;
            answers = self.lines_of(profile_summary.as_deref(), &snippets);
            self.only(answered, &mut snippets).await?;
        }
        let mut degraded = None;
        if is_cut && are_too_few && snippets.len() < self.wanted as usize {
            degraded = self.further(answered, &mut snippets).await?;
        }
        answered.hide(&mut snippets).await?;
        answered.show_corrections(&mut snippets).await?;
        if let Some(summary) = profile_summary.as_deref().filter(|_| self.hides) {
            let (kept, why) = only_of(summary, &answers, &snippets);
            profile_summary = kept;
            let all: Vec<String> = degraded.into_iter().chain(why).collect();
            degraded = Some(all.join("; ")).filter(|why| !why.is_empty());
        }
        snippets.truncate(self.wanted as usize);
        if let Some(budget) = self.request.token_budget {
            cut(&mut snippets, budget as usize);
        }
        if let Some(summary) =
            profile_summary.as_deref().filter(|_| self.request.intent == Intent::AgentPreamble)
        {
            let tokens = off_executor(summary.len(), || memhost_tokens::estimate(summary));
            answered.host.oplog.metrics.preamble(&answered.serving.binding.provider_key, tokens);
        }
        answered.returns(&snippets);
        let (operation_id, usage) = (answered.id(), answered.usage());
        Ok(ContextBundle { operation_id, snippets, profile_summary, degraded, usage })
    }
}
