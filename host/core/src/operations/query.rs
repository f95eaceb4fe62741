//! Query: what fits, best first, without the records that wait for a person.

use crate::operations::prelude::*;
use crate::operations::privacy::private;
use async_recursion::async_recursion as boxed;
use memhost_sandbox::QueryAnswer;
use memhost_types::{ContextBundle, HookContext, QueryRequest, limits};

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
        self.operate(caller, &mut Query { request, hook, wanted }).await
    }
}

struct Query<'a> {
    request: QueryRequest,
    /// The event, and who sent it.
    hook: Option<(&'a HookContext, &'a str)>,
    /// How many snippets the caller wants. The provider is asked for more where some may have to be hidden.
    wanted: u32,
}

impl Step for Query<'_> {
    const KIND: OperationKind = OperationKind::Query;
    type Answer = QueryAnswer;
    type Response = ContextBundle;

    asks_with!(request);

    fn describe(&self, opened: &mut Opened) {
        if let Some((hook, sender)) = self.hook {
            opened.set_provenance(None, Some(hook));
            opened.set_principal(sender);
        }
    }

    async fn prepare(&mut self, host: &Service, opened: &mut Opened, serving: &Arc<Serving>) -> Result<(), Refusal> {
        private(serving, &mut self.request)?;
        opened.keep_payload(serving, &self.request);
        self.request.top_k = Some(host.with_hidden(&serving.binding, self.wanted));
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
        if answered.serving.binding.policy.review.is_some() {
            // It may be made from records that must be hidden.
            profile_summary = None;
        } else if profile_summary.is_none() {
            profile_summary = answered.summary(&self.request).await;
        }
        answered.hide(&mut snippets).await?;
        snippets.truncate(self.wanted as usize);
        answered.returns(&snippets);
        Ok(ContextBundle { operation_id: answered.id(), snippets, profile_summary, usage: answered.usage() })
    }
}
