//! Explain: how a query came to its answer.

use crate::operations::prelude::*;
use crate::operations::privacy::private;
use async_recursion::async_recursion as boxed;
use memhost_sandbox::ExplainAnswer;
use memhost_types::{Explanation, QueryRequest, limits};

impl Service {
    /// Runs a query again and tells how it came to its answer.
    ///
    /// # Errors
    /// As [`ServiceError`] says; `unsupported` where the provider does not export `explain`, or where the binding holds
    /// records for a person, because the explanation would disclose them.
    #[boxed]
    pub async fn explain(&self, caller: &Caller, request: QueryRequest) -> Result<Explanation, ServiceError> {
        self.operate(caller, &mut Explain(request)).await
    }
}

struct Explain(QueryRequest);

impl Step for Explain {
    const KIND: OperationKind = OperationKind::Explain;
    type Answer = ExplainAnswer;
    type Response = Explanation;

    asks_with!(0);

    async fn prepare(&mut self, host: &Service, opened: &mut Opened, serving: &Arc<Serving>) -> Result<(), Refusal> {
        host.holds_nothing(serving)?;
        private(serving, &mut self.0)?;
        opened.keep_payload(serving, &self.0);
        Ok(())
    }

    async fn call(&self, serving: &Serving, _: OperationId) -> Result<Answer<ExplainAnswer>, Failure> {
        serving.instances.explain(&self.0).await
    }

    fn completion(&self, answer: &ExplainAnswer) -> Completion {
        let handles = answer.hits.iter().take(limits::MAX_RECORDED_HANDLES).map(|hit| hit.handle.clone());
        Completion { records: handles.collect(), record_count: answer.hits.len(), ..Completion::default() }
    }

    async fn finish(&mut self, answered: &mut Answered<'_>, answer: ExplainAnswer) -> Result<Explanation, Refusal> {
        Ok(Explanation { operation_id: answered.id(), query: answer.query, hits: answer.hits })
    }
}
