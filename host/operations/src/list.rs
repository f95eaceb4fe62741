//! List: one page of all records.

use crate::guard::{moves_on, page_digest};
use crate::prelude::*;
use async_recursion::async_recursion as boxed;
use memhost_sandbox::ListAnswer;
use memhost_types::{ListPage, ListRequest, QueryDigest};

/// Pages of the provider that are read for one page of what a reader wants.
const MOST_PAGES: u32 = 20;

impl Operations {
    /// One page of all records.
    ///
    /// # Errors
    /// As [`ServiceError`] says; a cursor that is not of this list is an invalid `cursor`.
    #[boxed]
    pub async fn list(
        &self,
        caller: &Caller,
        request: ListRequest,
    ) -> Result<ListPage, ServiceError> {
        self.operate(caller, &mut List::new(request, false)).await
    }

    /// The same with the records that wait for a person: for exporting or forgetting everything.
    ///
    /// # Errors
    /// As [`ServiceError`] says.
    #[boxed]
    pub async fn list_all(
        &self,
        caller: &Caller,
        request: ListRequest,
    ) -> Result<ListPage, ServiceError> {
        self.operate(caller, &mut List::new(request, true)).await
    }
}

struct List {
    request: ListRequest,
    /// The provider's own cursor.
    cursor: Option<String>,
    shows_hidden: bool,
}

impl List {
    fn new(request: ListRequest, shows_hidden: bool) -> Self {
        Self { request, cursor: None, shows_hidden }
    }

    fn digest(&self, serving: &Serving) -> QueryDigest {
        let filters = (&self.request.metadata_filter, &self.request.filter);
        let filter = memhost_executor::to_json(&filters).unwrap_or_default();
        page_digest("list", serving, &self.request.scope, &filter)
    }
}

impl List {
    /// A further page of the provider, as a part of the same operation.
    async fn further(
        &self,
        answered: &mut Answered<'_>,
        cursor: String,
    ) -> Result<ListAnswer, Refusal> {
        let serving = answered.serving;
        match serving.instances.list(&self.request, Some(cursor)).await {
            Ok(answer) => {
                answered.ending.add_metered(answer.metered);
                answered.ending.add_call(answer.log, answer.provider_us);
                Ok(answer.value)
            }
            Err(failure) => {
                answered.ending.add_metered(failure.metered);
                Err(Refusal::from(&failure.error))
            }
        }
    }
}

impl Step for List {
    const KIND: OperationKind = OperationKind::List;
    type Answer = ListAnswer;
    type Response = ListPage;

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
        self.cursor =
            host.tenancy.provider_cursor(&self.digest(serving), self.request.cursor.as_deref())?;
        opened.keep_payload(&serving.binding, &self.request);
        Ok(())
    }

    async fn call(&self, serving: &Serving, _: OperationId) -> Result<Answer<ListAnswer>, Failure> {
        serving.instances.list(&self.request, self.cursor.clone()).await
    }

    fn completion(&self, answer: &ListAnswer) -> Completion {
        Completion::usage(&answer.usage)
    }

    async fn finish(
        &mut self,
        answered: &mut Answered<'_>,
        answer: ListAnswer,
    ) -> Result<ListPage, Refusal> {
        let ListAnswer { mut items, mut next, mut truncated, usage: _ } = answer;
        moves_on(answered.serving, self.cursor.as_deref(), next.as_deref())?;
        for page in 1.. {
            let found = items.len();
            answered.keep_partitions(&self.request.scope, &mut items).await?;
            let now = (!self.shows_hidden).then(|| answered.host.clock.now());
            answered.keep_visible_at(now, self.request.filter.as_ref(), &mut items).await?;
            // Where everything was taken out, what the reader wants may be on the next page.
            let is_emptied = found > 0 && items.is_empty() && page < MOST_PAGES;
            if !self.shows_hidden {
                answered.hide(&mut items).await?;
            }
            let Some(cursor) = next.clone().filter(|_| is_emptied) else { break };
            let further = self.further(answered, cursor.clone()).await?;
            moves_on(answered.serving, Some(&cursor), further.next.as_deref())?;
            answered.ending.add_usage(further.usage);
            (items, next, truncated) = (further.items, further.next, further.truncated);
        }
        answered.show_corrections(&mut items).await?;
        answered.returns(&items);
        let digest = self.digest(answered.serving);
        let next_cursor = next.map(|cursor| answered.host.cursors.seal(&digest, cursor.as_bytes()));
        let (operation_id, usage) = (answered.id(), answered.usage());
        Ok(ListPage { operation_id, items, next_cursor, truncated, usage })
    }
}
