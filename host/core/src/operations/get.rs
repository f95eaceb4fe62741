//! Get: one record.

use crate::operations::guard::own_handles;
use crate::operations::prelude::*;
use async_recursion::async_recursion as boxed;
use memhost_types::{GetRequest, GetResponse, Snippet, Usage};

impl Service {
    /// One record, if it is there.
    ///
    /// # Errors
    /// As [`ServiceError`] says.
    #[boxed]
    pub async fn get(&self, caller: &Caller, request: GetRequest) -> Result<GetResponse, ServiceError> {
        self.operate(caller, &mut Get(request)).await
    }
}

struct Get(GetRequest);

impl Step for Get {
    const KIND: OperationKind = OperationKind::Get;
    type Answer = (Option<Snippet>, Vec<Usage>);
    type Response = GetResponse;

    asks_with!(0);

    async fn prepare(&mut self, _: &Service, opened: &mut Opened, serving: &Arc<Serving>) -> Result<(), Refusal> {
        own_handles(serving, "handle", std::slice::from_ref(&self.0.handle))?;
        opened.keep_payload(serving, &self.0);
        Ok(())
    }

    async fn call(&self, serving: &Serving, _: OperationId) -> Result<Answer<Self::Answer>, Failure> {
        serving.instances.get(&self.0).await
    }

    fn completion(&self, (_, usage): &Self::Answer) -> Completion {
        Completion::usage(usage)
    }

    async fn finish(
        &mut self,
        answered: &mut Answered<'_>,
        (record, usage): Self::Answer,
    ) -> Result<GetResponse, Refusal> {
        let mut found: Vec<Snippet> = record.into_iter().collect();
        answered.hide(&mut found).await?;
        answered.show_corrections(&mut found).await?;
        answered.returns(&found);
        Ok(GetResponse { operation_id: answered.id(), record: found.pop(), usage })
    }
}
