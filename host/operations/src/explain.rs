//! Explain: how a query came to its answer.

use crate::prelude::*;
use crate::privacy::private;
use async_recursion::async_recursion as boxed;
use memhost_records::HostPartitions;
use memhost_sandbox::ExplainAnswer;
use memhost_types::{Explanation, QueryRequest, limits};

impl Operations {
    /// Runs a query again and tells how it came to its answer.
    ///
    /// # Errors
    /// As [`ServiceError`] says; `unsupported` where the provider does not export `explain`, or
    /// where the binding holds records for a person, because the explanation would disclose them.
    #[boxed]
    pub async fn explain(
        &self,
        caller: &Caller,
        request: QueryRequest,
    ) -> Result<Explanation, ServiceError> {
        self.operate(caller, &mut Explain { request }).await
    }
}

struct Explain {
    request: QueryRequest,
}

impl Step for Explain {
    const KIND: OperationKind = OperationKind::Explain;
    type Answer = ExplainAnswer;
    type Response = Explanation;

    asks_with!(request);

    fn wanted(&self) -> u32 {
        self.request.top_k.unwrap_or_default()
    }

    async fn prepare(
        &mut self,
        host: &Operations,
        opened: &mut Opened,
        serving: &Arc<Serving>,
    ) -> Result<(), Refusal> {
        host.holds_nothing(serving)?;
        private(serving, &mut self.request)?;
        opened.keep_payload(&serving.binding, &self.request);
        Ok(())
    }

    async fn call(
        &self,
        serving: &Serving,
        _: OperationId,
    ) -> Result<Answer<ExplainAnswer>, Failure> {
        serving.instances.explain(&self.request).await
    }

    fn completion(&self, _: &ExplainAnswer) -> Completion {
        Completion::default()
    }

    async fn finish(
        &mut self,
        answered: &mut Answered<'_>,
        answer: ExplainAnswer,
    ) -> Result<Explanation, Refusal> {
        let (records, binding) = (&answered.host.records, &answered.serving.binding);
        let reader = answered.ending.reader();
        let mut hits = Vec::with_capacity(answer.hits.len());
        let declarations = &answered.serving.plugin.component.description().declarations;
        let own = HostPartitions::of(declarations, &self.request.scope);
        for hit in answer.hits {
            if !records.is_in(binding, &own, &hit.handle.provider_record_id).await? {
                continue;
            }
            let now = answered.host.clock.now();
            if records.may_show(binding, reader, &hit.handle.provider_record_id, now).await? {
                hits.push(hit);
            }
        }
        let handles =
            hits.iter().take(limits::MAX_RECORDED_HANDLES).map(|hit| hit.handle.clone()).collect();
        answered.ending.set_records(handles, hits.len());
        Ok(Explanation { operation_id: answered.id(), query: answer.query, hits })
    }
}
