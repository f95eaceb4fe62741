//! Browse: the provider's own tree.

use crate::guard::page_digest;
use crate::prelude::*;
use async_recursion::async_recursion as boxed;
use memhost_sandbox::BrowseAnswer;
use memhost_types::{BrowsePage, BrowseRequest, QueryDigest, limits};

impl Operations {
    /// One page of the children of a node of the provider's own tree.
    ///
    /// # Errors
    /// As [`ServiceError`] says; `not_found` for a path that is gone; `unsupported` as with
    /// [`Operations::explain`], for the interface `browse`; a cursor that is not of this node is an
    /// invalid `cursor`.
    #[boxed]
    pub async fn browse(
        &self,
        caller: &Caller,
        request: BrowseRequest,
    ) -> Result<BrowsePage, ServiceError> {
        self.operate(caller, &mut Browse { request, cursor: None }).await
    }
}

struct Browse {
    request: BrowseRequest,
    /// The provider's own cursor.
    cursor: Option<String>,
}

impl Browse {
    fn digest(&self, serving: &Serving) -> QueryDigest {
        page_digest("browse", serving, &self.request.scope, self.request.path.as_bytes())
    }
}

impl Step for Browse {
    const KIND: OperationKind = OperationKind::Browse;
    type Answer = BrowseAnswer;
    type Response = BrowsePage;

    asks_with!(request);

    fn wanted(&self) -> u32 {
        self.request.limit.unwrap_or_default()
    }

    async fn prepare(
        &mut self,
        host: &Operations,
        opened: &mut Opened,
        serving: &Arc<Serving>,
    ) -> Result<(), Refusal> {
        host.holds_nothing(serving)?;
        self.cursor =
            host.tenancy.provider_cursor(&self.digest(serving), self.request.cursor.as_deref())?;
        opened.keep_payload(&serving.binding, &self.request);
        Ok(())
    }

    async fn call(
        &self,
        serving: &Serving,
        _: OperationId,
    ) -> Result<Answer<BrowseAnswer>, Failure> {
        serving.instances.browse(&self.request, self.cursor.as_deref()).await
    }

    fn completion(&self, _: &BrowseAnswer) -> Completion {
        Completion::default()
    }

    async fn finish(
        &mut self,
        answered: &mut Answered<'_>,
        answer: BrowseAnswer,
    ) -> Result<BrowsePage, Refusal> {
        let digest = self.digest(answered.serving);
        let next_cursor =
            answer.next.map(|cursor| answered.host.cursors.seal(&digest, cursor.as_bytes()));
        let (records, binding) = (&answered.host.records, &answered.serving.binding);
        let reader = answered.ending.reader();
        let mut nodes = Vec::with_capacity(answer.nodes.len());
        for node in answer.nodes {
            let may = match &node.record {
                Some(handle) => {
                    let now = answered.host.clock.now();
                    records.may_show(binding, reader, &handle.provider_record_id, now).await?
                }
                None => true,
            };
            if may {
                nodes.push(node);
            }
        }
        let handles =
            nodes.iter().filter_map(|node| node.record.clone()).take(limits::MAX_RECORDED_HANDLES);
        answered.ending.set_records(handles.collect(), nodes.len());
        Ok(BrowsePage { operation_id: answered.id(), nodes, next_cursor })
    }
}
