//! Get: one record.

use crate::guard::own_handles;
use crate::prelude::*;
use async_recursion::async_recursion as boxed;
use memhost_types::{GetRequest, GetResponse, RecordHandle, Snippet, Usage};

impl Operations {
    /// One record, if it is there.
    ///
    /// # Errors
    /// As [`ServiceError`] says.
    #[boxed]
    pub async fn get(
        &self,
        caller: &Caller,
        request: GetRequest,
    ) -> Result<GetResponse, ServiceError> {
        self.operate(caller, &mut Get { request }).await
    }
}

struct Get {
    request: GetRequest,
}

impl Step for Get {
    const KIND: OperationKind = OperationKind::Get;
    type Answer = (Option<Snippet>, Vec<Usage>);
    type Response = GetResponse;

    asks_with!(request);

    fn handles(&self) -> &[RecordHandle] {
        std::slice::from_ref(&self.request.handle)
    }

    async fn prepare(
        &mut self,
        _: &Operations,
        opened: &mut Opened,
        serving: &Arc<Serving>,
    ) -> Result<(), Refusal> {
        own_handles(serving, "handle", std::slice::from_ref(&self.request.handle))?;
        opened.keep_payload(&serving.binding, &self.request);
        Ok(())
    }

    async fn call(
        &self,
        serving: &Serving,
        _: OperationId,
    ) -> Result<Answer<Self::Answer>, Failure> {
        serving.instances.get(&self.request).await
    }

    fn completion(&self, (_, usage): &Self::Answer) -> Completion {
        Completion::usage(usage)
    }

    async fn finish(
        &mut self,
        answered: &mut Answered<'_>,
        (record, _): Self::Answer,
    ) -> Result<GetResponse, Refusal> {
        let mut found: Vec<Snippet> = record.into_iter().collect();
        answered.keep_partitions(&self.request.scope, &mut found).await?;
        answered.keep_visible(None, &mut found).await?;
        answered.hide(&mut found).await?;
        answered.show_corrections(&mut found).await?;
        answered.returns(&found);
        let record = found.pop();
        let row = match &record {
            Some(found) => {
                let (records, binding) = (&answered.host.records, &answered.serving.binding);
                records.row(binding, &found.handle.provider_record_id).await?
            }
            None => None,
        };
        let (operation_id, usage) = (answered.id(), answered.usage());
        Ok(GetResponse { operation_id, record, row, usage })
    }
}
