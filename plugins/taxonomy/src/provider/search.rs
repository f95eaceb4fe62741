//! Queries, and the summary of a scope.

use memhost_sdk::types::*;

use super::{Taxonomy, matches};
use crate::clock::now;
use crate::item::Item;
use crate::kind::Kind;
use crate::rank::{Hit, rank};
use crate::store::Held;
use crate::words::stems;
use crate::write::object;

/// How many statements of a kind a summary has at most. The newest are chosen.
const STATEMENTS: usize = 12;
/// The longest statement in a summary, in characters.
const STATEMENT: usize = 200;

impl Taxonomy {
    /// The hits of a query. It counts no uses.
    pub(super) fn search(&self, request: &QueryRequest) -> Result<Vec<Hit>, Error> {
        let filter = object("metadataFilter", request.metadata_filter.as_deref())?;
        let now = now();
        let fits = |held: &&Held| {
            held.item.counts(now)
                && held.item.is_visible(&request.scope)
                && filter.as_ref().is_none_or(|filter| matches(&held.item, filter))
        };
        let items: Vec<&Held> = self.store.behind(None).filter(fits).collect();
        let question = stems(&request.query);
        Ok(rank(&self.config, &items, &question, &request.intent, request.top_k as usize, now))
    }

    /// Counts the uses of facts in a result, so that they fade later.
    pub(super) fn count_uses(&mut self, hits: &[Hit]) -> Result<(), Error> {
        let facts: Vec<String> =
            hits.iter().filter(|hit| hit.kind == Kind::Fact).map(|hit| hit.id.clone()).collect();
        if facts.is_empty() { Ok(()) } else { self.store.count_uses(&facts, now()) }
    }

    /// Constraints, preferences and profile of a scope in a few lines, if there are any.
    pub(super) fn summary(&self, scope: &Scope) -> Option<String> {
        let now = now();
        let mut lines = Vec::new();
        for (kind, title) in [
            (Kind::Constraint, "Constraints"),
            (Kind::Preference, "Preferences"),
            (Kind::Profile, "Profile"),
        ] {
            let is_one =
                |item: &&Item| item.kind == kind && item.counts(now) && item.is_visible(scope);
            let mut all: Vec<&Item> =
                self.store.behind(None).map(|held| &held.item).filter(is_one).collect();
            all.sort_by(|a, b| b.updated_at.cmp(&a.updated_at).then_with(|| a.id.cmp(&b.id)));
            all.truncate(STATEMENTS);
            if !all.is_empty() {
                let statements: Vec<String> =
                    all.into_iter().map(|item| short(&item.text)).collect();
                lines.push(format!("{title}: {}", statements.join("; ")));
            }
        }
        (!lines.is_empty()).then(|| lines.join("\n"))
    }
}

/// A statement on one line.
fn short(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let line = line.trim_end_matches(['.', '!', ';']);
    match line.char_indices().nth(STATEMENT) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line.to_owned(),
    }
}
