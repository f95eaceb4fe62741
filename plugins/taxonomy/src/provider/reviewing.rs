//! The interface `review`.

use memhost_sdk::Review;
use memhost_sdk::storage::Batch;
use memhost_sdk::types::*;

use super::{ANSWER_BYTES, Taxonomy};
use crate::clock::now;
use crate::config::Config;
use crate::item::{Item, Status};
use crate::workflow::{approved, decide};

impl Review for Taxonomy {
    fn list_pending(
        &mut self,
        scope: Scope,
        cursor: Option<String>,
        limit: u32,
    ) -> Result<ListPage, Error> {
        self.store.refresh()?;
        let place = |item: &Item| (item.created_at, item.id.clone());
        let last = match cursor {
            None => None,
            Some(cursor) => {
                let read = cursor
                    .split_once(' ')
                    .and_then(|(time, id)| Some((time.parse().ok()?, id.to_owned())));
                Some(read.ok_or_else(|| {
                    Error::invalid(
                        "cursor",
                        format!(
                            "`{cursor}` is not a cursor of taxonomy's review; start without one"
                        ),
                    )
                })?)
            }
        };
        let mut all: Vec<&Item> = self
            .store
            .behind(None)
            .map(|held| &held.item)
            .filter(|item| item.status == Status::Pending)
            .filter(|item| item.is_visible(&scope))
            .filter(|item| last.as_ref().is_none_or(|last| place(item) > *last))
            .collect();
        all.sort_by_key(|item| place(item));
        let mut bytes = 0;
        let fits = |item: &&&Item| {
            bytes += item.text.len();
            bytes <= ANSWER_BYTES
        };
        let count = all.iter().take(limit as usize).take_while(fits).count().max(1);
        let has_more = all.len() > count;
        all.truncate(count);
        let continuation = match all.last() {
            Some(last) if has_more => {
                Continuation::Next(format!("{} {}", last.created_at, last.id))
            }
            _ => Continuation::End,
        };
        let items =
            all.into_iter().map(|item| waiting(&self.config, item, &scope.company_id)).collect();
        Ok(ListPage { items, continuation, usage: Vec::new() })
    }

    fn decide(
        &mut self,
        id: RecordId,
        scope: Scope,
        decision: Decision,
    ) -> Result<Option<Snippet>, Error> {
        self.store.refresh()?;
        let Some(item) = self.store.get(&id).filter(|item| item.is_visible(&scope)).cloned() else {
            return Err(Error::NotFound(format!("there is no record `{id}` in this scope")));
        };
        let decided = decide(&self.config, &item, decision, now())?;
        if decided != item {
            self.store.write(Batch::new(), vec![decided.clone()], &[])?;
        }
        let used = self.store.held(&id).and_then(|held| held.used);
        Ok((decided.status == Status::Approved)
            .then(|| decided.snippet(Score::None, &scope.company_id, used)))
    }
}

/// A waiting item as the reviewer sees it: unchanged, and if it contains raw personal data, also as
/// an approval would store it.
fn waiting(config: &Config, item: &Item, company: &str) -> Snippet {
    let mut shown = item.shown(None);
    if item.pii_risk == 2 {
        let redacted = approved(config, item, item.updated_at);
        shown.insert("approvedText".to_owned(), redacted.text.into());
    }
    Snippet {
        metadata: Some(serde_json::Value::Object(shown).to_string()),
        ..item.snippet(Score::None, company, None)
    }
}
