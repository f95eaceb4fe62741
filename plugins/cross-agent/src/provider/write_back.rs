//! Write-back: the items that come of a conversation. Each is a statement of a person, of the type
//! that its kind says.
//!
//! What an agent says makes no item: it is about nobody's preferences, and what it proposes is not
//! decided.

use memhost_extract::{Candidate, Kind, candidates, sentences};
use memhost_sdk::types::*;
use memhost_sdk::words::small;
use serde_json::{Map, Value, json};

use super::{CrossAgent, now};
use crate::index::Asked;
use crate::item::{Item, Place};
use crate::rank::Ask;

/// The most sentences of a conversation that are read: far within the deadline of a call.
const SENTENCES: usize = 200;
/// How many items are compared with a statement, to find whether it is known.
const SIMILAR: usize = 8;

/// The type of an item of this kind. A kind that Apropos has no type for is in the item's `kind`.
fn type_of(kind: Kind) -> &'static str {
    match kind {
        Kind::Decision => "decision",
        Kind::Preference | Kind::Constraint => "preference",
        Kind::Profile | Kind::Project | Kind::Fact | Kind::KeywordSet | Kind::Note => "fact",
        Kind::Goal | Kind::Hypothesis | Kind::Todo => "task_context",
    }
}

/// The statements of the persons in a conversation that are sure enough to be kept, each once.
fn statements(turns: &[Turn]) -> Vec<Candidate> {
    let is_person = |turn: &&Turn| !memhost_extract::is_machine(&turn.role);
    let mut all: Vec<_> =
        turns.iter().filter(is_person).flat_map(|turn| sentences(&turn.text)).collect();
    all.truncate(SENTENCES);
    let mut found = candidates(&all);
    found.retain(|candidate| candidate.confidence >= candidate.kind.threshold());
    found
}

/// The words of a statement, whatever their spelling and the marks around them.
fn plain(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    small(words.join(" ").trim_end_matches(['.', '!', ';', ',', '。', '!'])).into_owned()
}

impl CrossAgent {
    /// Writes the statements of a conversation as items. What the project knows already is not
    /// written again.
    pub(super) fn write_back(
        &mut self,
        request: &CaptureRequest,
        metadata: &Map<String, Value>,
    ) -> Result<Vec<RecordId>, Error> {
        let (mut ids, mut items) = (Vec::new(), Vec::new());
        let now = now().to_string();
        for (number, said) in statements(&request.payload.turns).into_iter().enumerate() {
            let (id, is_present) = self.own_id(&request.operation_id, Some(number))?;
            if is_present {
                ids.push(id);
                continue;
            }
            if self.knows(&said, &request.scope) {
                continue;
            }
            let mut metadata = metadata.clone();
            for (name, value) in [
                ("type", json!(type_of(said.kind))),
                ("kind", json!(said.kind.name())),
                ("confidence", json!(said.confidence)),
                ("tags", json!(said.tags)),
                ("rule", json!(said.rule)),
                ("source", json!("inferred")),
            ] {
                metadata.insert(name.to_owned(), value);
            }
            if said.evidence != said.text {
                metadata.insert("evidence".to_owned(), said.evidence.into());
            }
            ids.push(id.clone());
            items.push(Item {
                id,
                content: said.text,
                summary: None,
                metadata: Some(metadata),
                scope: Place::from(&request.scope),
                source_ref: Some(request.source.clone().into()),
                created_at: now.clone(),
                updated_at: now.clone(),
                operation_id: Some(request.operation_id.clone()),
                expires_at: None,
                mime_type: None,
                object: None,
            });
        }
        self.store.change(&items, &[])?;
        Ok(ids)
    }

    /// Whether an item says the same that everybody sees who will see the statement. If a private
    /// one counted, the others would lose the statement, and would learn of the private one.
    fn knows(&mut self, said: &Candidate, scope: &Scope) -> bool {
        let ask = Ask {
            terms: self.store.analyzer.question(&said.text),
            question: None,
            seen: self.store.index.places.seen(&Asked::sharing(scope)),
            members: Vec::new(),
            now: now().as_microsecond(),
            top: SIMILAR,
            config: &self.config,
        };
        let wanted = plain(&said.text);
        let found = ask.best(&self.store, &self.meaning, &mut self.scratch).unwrap_or_default();
        found.into_iter().any(|hit| {
            let id = self.store.index.known(hit.doc).map(|known| known.id.to_string());
            let item = id.and_then(|id| self.store.item(&id).ok().flatten());
            item.is_some_and(|item| plain(&item.content) == wanted)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_persons_say_surely_is_a_statement() {
        let turn = |role: &str, text: &str| Turn {
            role: role.to_owned(),
            name: None,
            text: text.to_owned(),
            at: None,
        };
        let found = statements(&[
            turn("user", "We chose SQLite over Postgres. Could you run the tests?"),
            turn("assistant", "Done. I prefer tea, and we decided to use Redis."),
            turn("user", "Always run the linter before you commit."),
        ]);
        let kinds: Vec<(&str, &str)> =
            found.iter().map(|said| (type_of(said.kind), said.text.as_str())).collect();
        assert_eq!(
            kinds,
            [
                ("decision", "We chose SQLite over Postgres."),
                ("preference", "Always run the linter before you commit.")
            ]
        );
        assert_eq!(plain("  Always  run it! "), "always run it");
    }
}
