//! List: one page of all records.

use crate::operations::guard::{moves_on, page_digest};
use crate::operations::prelude::*;
use async_recursion::async_recursion as boxed;
use memhost_sandbox::ListAnswer;
use memhost_types::{ListPage, ListRequest, QueryDigest};

impl Service {
    /// One page of all records.
    ///
    /// # Errors
    /// As [`ServiceError`] says; a cursor that is not of this list is an invalid `cursor`.
    #[boxed]
    pub async fn list(&self, caller: &Caller, request: ListRequest) -> Result<ListPage, ServiceError> {
        self.operate(caller, &mut List { request, cursor: None, shows_hidden: false }).await
    }

    /// The same with the records that wait for a person: for exporting or forgetting everything.
    pub(crate) async fn list_all(&self, caller: &Caller, request: ListRequest) -> Result<ListPage, ServiceError> {
        self.operate(caller, &mut List { request, cursor: None, shows_hidden: true }).await
    }
}

struct List {
    request: ListRequest,
    /// The provider's own cursor.
    cursor: Option<String>,
    shows_hidden: bool,
}

impl List {
    fn digest(&self, serving: &Serving) -> QueryDigest {
        let filter = serde_json::to_vec(&self.request.metadata_filter).unwrap_or_default();
        page_digest("list", serving, &self.request.scope, &filter)
    }
}

impl Step for List {
    const KIND: OperationKind = OperationKind::List;
    type Answer = ListAnswer;
    type Response = ListPage;

    asks_with!(request);

    async fn prepare(&mut self, host: &Service, opened: &mut Opened, serving: &Arc<Serving>) -> Result<(), Refusal> {
        self.cursor = host.provider_cursor(&self.digest(serving), self.request.cursor.as_deref())?;
        opened.keep_payload(serving, &self.request);
        Ok(())
    }

    async fn call(&self, serving: &Serving, _: OperationId) -> Result<Answer<ListAnswer>, Failure> {
        serving.instances.list(&self.request, self.cursor.clone()).await
    }

    fn completion(&self, answer: &ListAnswer) -> Completion {
        Completion::usage(&answer.usage)
    }

    async fn finish(&mut self, answered: &mut Answered<'_>, answer: ListAnswer) -> Result<ListPage, Refusal> {
        let ListAnswer { mut items, next, truncated, usage } = answer;
        moves_on(answered.serving, self.cursor.as_deref(), next.as_deref())?;
        if !self.shows_hidden {
            answered.hide(&mut items).await?;
        }
        answered.show_corrections(&mut items).await?;
        answered.returns(&items);
        let digest = self.digest(answered.serving);
        let next_cursor = next.map(|cursor| answered.host.cursors.seal(&digest, cursor.as_bytes()));
        Ok(ListPage { operation_id: answered.id(), items, next_cursor, truncated, usage })
    }
}
