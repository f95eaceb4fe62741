//! What a provider declares not to do, and the host does: a request that is too large becomes
//! several calls, and what a metadata filter leaves out is taken out of the answers.

use super::answer::{Answer, ForgetAnswer, ListAnswer, QueryAnswer, RecordsAnswer};
use super::error::{CallError, Failure};
use super::instances::Instances;
use memhost_types::{
    Declarations, HostWork, JsonObject, ListRequest, OperationId, QueryRequest, Snippet, limits,
};

/// How many times as many records are asked for at first, where the host takes some out.
const SPARE: u32 = 4;
/// Pages that are read at most until one has a record that is wanted.
const MOST_PAGES: usize = 20;

/// An answer to a part of a request.
pub(super) trait Part {
    fn join(&mut self, next: Self);
    fn end(&mut self, rest: CallError);
}

impl Part for RecordsAnswer {
    fn join(&mut self, next: Self) {
        self.records.extend(next.records);
        self.usage.extend(next.usage);
    }

    fn end(&mut self, rest: CallError) {
        self.rest = Some(rest);
    }
}

impl Part for ForgetAnswer {
    fn join(&mut self, next: Self) {
        self.outcomes.extend(next.outcomes);
        self.usage.extend(next.usage);
    }

    fn end(&mut self, rest: CallError) {
        self.rest = Some(rest);
    }
}

/// A request in parts, and what the provider has answered to them. The first part has the
/// operation's own id, so that a request in one part is as if there were no parts. After a part
/// that failed the others are not tried.
pub(super) struct Parts<'a, T, A> {
    id: OperationId,
    rest: &'a [T],
    most: usize,
    number: usize,
    whole: Option<Answer<A>>,
}

impl<'a, T, A: Part> Parts<'a, T, A> {
    pub(super) fn of(id: OperationId, items: &'a [T], most: usize) -> Self {
        Self { id, rest: items, most, number: 0, whole: None }
    }

    /// The id and the items of the next call.
    pub(super) fn next(&mut self) -> (String, &'a [T]) {
        let id = match self.number {
            0 => self.id.to_string(),
            number => format!("{}.{number}", self.id),
        };
        let (next, rest) = self.rest.split_at(self.rest.len().min(self.most));
        self.number += 1;
        self.rest = rest;
        (id, next)
    }

    /// Takes the answer to a part. Some: it was the last one, and this is the whole.
    pub(super) fn take(
        &mut self,
        called: Result<Answer<A>, Failure>,
    ) -> Result<Option<Answer<A>>, Failure> {
        let whole = match (self.whole.take(), called) {
            (None, called) => called?,
            (Some(mut whole), Ok(next)) => {
                let next = whole.add(next);
                whole.value.join(next);
                whole
            }
            (Some(mut whole), Err(Failure { error, log, provider_us, metered })) => {
                whole.add(Answer { log, provider_us, metered, ..Answer::without_call(()) });
                whole.value.end(error);
                return Ok(Some(whole));
            }
        };
        if self.rest.is_empty() {
            return Ok(Some(whole));
        }
        self.whole = Some(whole);
        Ok(None)
    }
}

fn matches(filter: &JsonObject, snippet: &Snippet) -> bool {
    let has = |name: &str| snippet.metadata.as_ref().and_then(|metadata| metadata.get(name));
    filter.iter().all(|(name, value)| has(name) == Some(value))
}

impl Instances {
    pub(super) fn declarations(&self) -> &Declarations {
        &self.component().description().declarations
    }

    /// The filter that the host applies itself, if there is one.
    pub(super) fn own_filter<'a>(&self, filter: Option<&'a JsonObject>) -> Option<&'a JsonObject> {
        filter.filter(|filter| {
            !filter.is_empty() && self.declarations().leaves(HostWork::MetadataFilter)
        })
    }

    /// A query whose filter the host applies.
    pub(super) async fn query_filtered(
        &self,
        request: &QueryRequest,
        filter: &JsonObject,
    ) -> Result<Answer<QueryAnswer>, Failure> {
        let wanted = request.top_k.unwrap_or(limits::DEFAULT_TOP_K);
        let more = wanted.saturating_mul(SPARE).min(limits::MAX_PAGE);
        // The budget is for what is wanted, not for what is taken out.
        let mut asked = QueryRequest {
            metadata_filter: None,
            token_budget: None,
            top_k: Some(more),
            ..request.clone()
        };
        let mut answer = self.query_as_it_is(&asked).await?;
        let may_be_more = answer.value.snippets.len() >= more as usize && more < limits::MAX_PAGE;
        answer.value.snippets.retain(|snippet| matches(filter, snippet));
        if may_be_more && answer.value.snippets.len() < wanted as usize {
            asked.top_k = Some(limits::MAX_PAGE);
            let all = match self.query_as_it_is(&asked).await {
                Ok(all) => answer.add(all),
                Err(failure) => return Err(answer.into_failure(failure)),
            };
            answer.value.usage.extend(all.usage);
            answer.value.snippets = all.snippets;
            answer.value.snippets.retain(|snippet| matches(filter, snippet));
        }
        answer.value.snippets.truncate(wanted as usize);
        Ok(answer)
    }

    /// A list whose filter the host applies. A page has what is left of one of the provider's
    /// pages.
    pub(super) async fn list_filtered(
        &self,
        request: &ListRequest,
        cursor: Option<String>,
        filter: &JsonObject,
    ) -> Result<Answer<ListAnswer>, Failure> {
        let asked = ListRequest { metadata_filter: None, ..request.clone() };
        let mut before = cursor.clone();
        let mut answer = self.list_as_it_is(&asked, cursor).await?;
        answer.value.items.retain(|snippet| matches(filter, snippet));
        for _ in 1..MOST_PAGES {
            let next = answer.value.next.clone().filter(|next| before.as_ref() != Some(next));
            let (true, Some(next)) = (answer.value.items.is_empty(), next) else { break };
            before = Some(next.clone());
            let page = match self.list_as_it_is(&asked, Some(next)).await {
                Ok(page) => answer.add(page),
                Err(failure) => return Err(answer.into_failure(failure)),
            };
            let used = std::mem::take(&mut answer.value.usage);
            answer.value = ListAnswer { usage: [used, page.usage].concat(), ..page };
            answer.value.items.retain(|snippet| matches(filter, snippet));
        }
        Ok(answer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use memhost_types::ProviderError;

    fn answer(records: &[u8]) -> Answer<ForgetAnswer> {
        let outcome = |number: &u8| {
            let handle =
                serde_json::json!({"providerKey": "p", "providerRecordId": number.to_string()});
            serde_json::from_value(serde_json::json!({"handle": handle, "effect": "hard"})).unwrap()
        };
        Answer::without_call(ForgetAnswer {
            outcomes: records.iter().map(outcome).collect(),
            ..ForgetAnswer::default()
        })
    }

    #[test]
    fn a_request_is_divided_under_ids_of_its_own_and_joined_in_order() {
        let (id, items) = (OperationId::new(1, 1, 1), [1, 2, 3, 4, 5]);
        let mut parts = Parts::of(id, &items, 2);
        let mut asked = Vec::new();
        let whole = loop {
            let (id, part) = parts.next();
            asked.push((id, part.to_vec()));
            if let Some(whole) = parts.take(Ok(answer(part))).unwrap() {
                break whole.value;
            }
        };
        assert_eq!(
            asked,
            [
                (id.to_string(), vec![1, 2]),
                (format!("{id}.1"), vec![3, 4]),
                (format!("{id}.2"), vec![5])
            ]
        );
        let ids: Vec<_> =
            whole.outcomes.iter().map(|one| one.handle.provider_record_id.as_str()).collect();
        assert_eq!(
            (ids.as_slice(), whole.rest.is_none()),
            (["1", "2", "3", "4", "5"].as_slice(), true)
        );
        let mut none = Parts::<u8, ForgetAnswer>::of(id, &[], 2);
        assert_eq!(none.next(), (id.to_string(), [].as_slice()));
        assert!(
            none.take(Ok(answer(&[]))).unwrap().is_some(),
            "a request without items is one call"
        );
    }

    #[test]
    fn a_part_that_fails_ends_the_request_with_what_was_done() {
        let failure = || Failure {
            error: CallError::Provider(ProviderError::NotFound("gone".to_owned())),
            log: Vec::new(),
            provider_us: 7,
            metered: <_>::default(),
        };
        let (id, items) = (OperationId::new(1, 1, 1), [1, 2, 3, 4, 5]);
        let mut parts = Parts::<u8, ForgetAnswer>::of(id, &items, 2);
        assert!(parts.take(Err(failure())).is_err(), "nothing was done");
        let mut parts = Parts::of(id, &items, 2);
        let (_, first) = parts.next();
        assert!(parts.take(Ok(answer(first))).unwrap().is_none());
        parts.next();
        let whole = parts.take(Err(failure())).unwrap().unwrap();
        assert_eq!((whole.value.outcomes.len(), whole.provider_us), (2, 7));
        assert!(whole.value.rest.is_some());
    }

    #[test]
    fn a_record_matches_a_filter_if_it_has_every_member() {
        let snippet: Snippet = serde_json::from_value(serde_json::json!({
            "handle": {"providerKey": "p", "providerRecordId": "r"}, "text": "x",
            "metadata": {"a": 1, "b": [true]},
        }))
        .unwrap();
        let fits = |filter: serde_json::Value| matches(filter.as_object().unwrap(), &snippet);
        assert!(
            fits(serde_json::json!({"a": 1})) && fits(serde_json::json!({"a": 1, "b": [true]}))
        );
        assert!(
            !fits(serde_json::json!({"a": 2})) && !fits(serde_json::json!({"a": 1, "c": null}))
        );
    }
}
