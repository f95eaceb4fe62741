//! From a question to snippets.

use std::rc::Rc;

use memhost_sdk::types::*;
use serde_json::{Map, Value};

use super::LocalMarkdown;
use super::request::object;
use crate::index::{DocId, Index, member};
use crate::meaning::Nearest;
use crate::rank::{Parts, Question, rank, terms};
use crate::text::words;

/// How often a query is repeated. If the file of a hit was changed by hand, the file is indexed
/// again and the query is repeated.
const ATTEMPTS: usize = 3;

struct Found {
    id: Rc<str>,
    score: Score,
    passage: usize,
    parts: Parts,
}

impl LocalMarkdown {
    /// The best snippets first, with the parts of their scores.
    pub(super) fn search(
        &mut self,
        request: &QueryRequest,
    ) -> Result<Vec<(Snippet, Parts)>, Error> {
        let filter = object("metadataFilter", request.metadata_filter.as_deref())?;
        let mut snippets = Vec::new();
        for _ in 0..ATTEMPTS {
            let version = self.library.version();
            snippets.clear();
            for found in self.find(request, filter.as_ref()) {
                let Some((doc, shown)) =
                    self.library.shown(&found.id, &request.scope.company_id)?
                else {
                    continue;
                };
                if filter.as_ref().is_some_and(|filter| !shown.matches(filter)) {
                    continue;
                }
                let hit = Snippet { score: found.score, ..shown.hit(found.passage) };
                // Its file may have been changed, and so may its partition.
                let index = &self.library.index;
                if self.sees(&index.partitions()[index.partition_of(doc)], &request.scope) {
                    snippets.push((hit, found.parts));
                }
            }
            if self.library.version() == version {
                break;
            }
        }
        self.library.save()?;
        Ok(snippets)
    }

    fn find(&mut self, request: &QueryRequest, filter: Option<&Map<String, Value>>) -> Vec<Found> {
        let top = request.top_k as usize;
        let admits = self.admits(&request.scope, filter);
        if words(&request.query).next().is_none() {
            return match request.intent {
                Intent::AgentPreamble => self.latest(top, admits),
                Intent::Answer | Intent::Browse | Intent::Other(_) => Vec::new(),
            };
        }
        let mut nearest = match self.config.ranking.has_meaning() {
            true => self.library.nearest(&request.query, &admits),
            false => Nearest::default(),
        };
        self.library.index.prepare(&terms(&self.library.analyzer, &request.query));
        let asked = self.library.analyzer.question(&request.query);
        if !asked.iter().any(|term| self.library.index.postings.of(*term).1 > 0) {
            nearest = self.library.beyond_nonsense(&request.query, nearest);
        }
        let (index, scratch) = (&self.library.index, &mut self.scratch);
        let admits = |doc| admits(index, doc);
        let question = Question { text: &request.query, nearest: &nearest, top };
        let hits =
            rank(index, &self.library.analyzer, &self.config.ranking, scratch, question, admits);
        hits.into_iter()
            .filter_map(|hit| {
                let id = Rc::clone(&index.doc(hit.doc)?.id);
                Some(Found {
                    id,
                    score: Score::Rank(f64::from(hit.score)),
                    passage: hit.passage,
                    parts: hit.parts,
                })
            })
            .collect()
    }

    /// Which records fit a scope and a filter.
    pub(super) fn admits(
        &self,
        scope: &Scope,
        filter: Option<&Map<String, Value>>,
    ) -> impl Fn(&Index, DocId) -> bool + use<> {
        let visible: Vec<bool> = self
            .library
            .index
            .partitions()
            .iter()
            .map(|partition| self.sees(partition, scope))
            .collect();
        let wanted: Vec<u64> =
            filter.into_iter().flatten().map(|(name, value)| member(name, value)).collect();
        move |index, doc| {
            let has = |member| index.doc(doc).is_some_and(|doc| doc.members.contains(member));
            visible[index.partition_of(doc)] && wanted.iter().all(has)
        }
    }

    /// The answer to an empty question: the latest records.
    fn latest(&self, top: usize, admits: impl Fn(&Index, DocId) -> bool) -> Vec<Found> {
        let index = &self.library.index;
        let mut docs: Vec<_> = index
            .behind(None)
            .filter(|(number, _)| admits(index, *number))
            .map(|(_, doc)| doc)
            .collect();
        docs.sort_unstable_by_key(|doc| std::cmp::Reverse((doc.when, doc.key)));
        docs.truncate(top);
        let found =
            |id: Rc<str>| Found { id, score: Score::None, passage: 0, parts: Parts::default() };
        docs.into_iter().map(|doc| found(Rc::clone(&doc.id))).collect()
    }
}
