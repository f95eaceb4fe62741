//! Query: what fits, best first, without the records that wait for a person.

use crate::operations::prelude::*;
use crate::operations::privacy::private;
use async_recursion::async_recursion as boxed;
use memhost_sandbox::QueryAnswer;
use memhost_types::{ContextBundle, HookContext, QueryRequest, Snippet, limits};

/// How many times as many records the provider is asked for at first, where the host takes some out.
const SPARE: u32 = 4;

impl Service {
    /// Finds what fits, best first.
    ///
    /// # Errors
    /// As [`ServiceError`] says.
    #[boxed]
    pub async fn query(&self, caller: &Caller, request: QueryRequest) -> Result<ContextBundle, ServiceError> {
        self.query_for(caller, request, None).await
    }

    /// The same, for a hook.
    pub(crate) async fn query_for(
        &self,
        caller: &Caller,
        request: QueryRequest,
        hook: Option<(&HookContext, &str)>,
    ) -> Result<ContextBundle, ServiceError> {
        let wanted = request.top_k.unwrap_or(limits::DEFAULT_TOP_K);
        self.operate(caller, &mut Query { request, hook, wanted, reader: Reader::default() }).await
    }
}

struct Query<'a> {
    request: QueryRequest,
    /// The event, and who sent it.
    hook: Option<(&'a HookContext, &'a str)>,
    /// How many snippets the caller wants. The provider is asked for more where some may have to be hidden.
    wanted: u32,
    reader: Reader,
}

impl Query<'_> {
    /// Whether the host has to take records out of the answer.
    fn narrows(&self, host: &Service, serving: &Serving) -> bool {
        let is_filtered = self.request.filter.as_ref().is_some_and(|filter| !filter.is_empty());
        is_filtered || host.records.hides_from(serving.binding.id, &self.reader)
    }

    /// Asks the provider for as many as it may answer, as a part of the same operation.
    async fn all(&mut self, answered: &mut Answered<'_>) -> Result<Vec<Snippet>, Refusal> {
        self.request.top_k = Some(limits::MAX_PAGE);
        let serving = answered.serving;
        match serving.instances.query(&self.request).await {
            Ok(answer) => {
                answered.ending.add_usage(answer.value.usage);
                answered.ending.add_usage(answer.metered);
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

impl Step for Query<'_> {
    const KIND: OperationKind = OperationKind::Query;
    type Answer = QueryAnswer;
    type Response = ContextBundle;

    asks_with!(request);

    fn stamp(&mut self, caller: &Caller) -> Result<(), Denied> {
        self.reader = Reader::of(caller, &self.request.scope);
        Ok(())
    }

    fn describe(&self, opened: &mut Opened) {
        if let Some((hook, sender)) = self.hook {
            opened.set_provenance(None, Some(hook));
            opened.set_principal(sender);
        }
    }

    async fn prepare(&mut self, host: &Service, opened: &mut Opened, serving: &Arc<Serving>) -> Result<(), Refusal> {
        private(serving, &mut self.request)?;
        opened.keep_payload(serving, &self.request);
        let wanted = match self.narrows(host, serving) {
            true => self.wanted.saturating_mul(SPARE).min(limits::MAX_PAGE),
            false => self.wanted,
        };
        self.request.top_k = Some(host.with_hidden(&serving.binding, wanted));
        Ok(())
    }

    async fn call(&self, serving: &Serving, _: OperationId) -> Result<Answer<QueryAnswer>, Failure> {
        serving.instances.query(&self.request).await
    }

    fn completion(&self, answer: &QueryAnswer) -> Completion {
        Completion::usage(&answer.usage)
    }

    async fn finish(&mut self, answered: &mut Answered<'_>, answer: QueryAnswer) -> Result<ContextBundle, Refusal> {
        let QueryAnswer { mut snippets, mut profile_summary, .. } = answer;
        let hides = answered.host.records.hides_from(answered.serving.binding.id, &self.reader);
        if hides || answered.serving.binding.policy.review.is_some() {
            // It may be made from records that must be hidden.
            profile_summary = None;
        } else if profile_summary.is_none() {
            profile_summary = answered.summary(&self.request).await;
        }
        let asked = self.request.top_k.unwrap_or(self.wanted);
        let may_be_more = snippets.len() >= asked as usize && asked < limits::MAX_PAGE;
        answered.only(&self.reader, self.request.filter.as_ref(), &mut snippets).await?;
        if may_be_more && snippets.len() < self.wanted as usize && self.narrows(answered.host, answered.serving) {
            snippets = self.all(answered).await?;
            answered.only(&self.reader, self.request.filter.as_ref(), &mut snippets).await?;
        }
        answered.hide(&mut snippets).await?;
        snippets.truncate(self.wanted as usize);
        answered.returns(&snippets);
        Ok(ContextBundle { operation_id: answered.id(), snippets, profile_summary, usage: answered.usage() })
    }
}
