//! Queries, lists and single records.

use std::collections::HashSet;

use memhost_sdk::types::*;
use memhost_sdk::{Provider, Review};

use crate::{Wrong, everywhere, write};

impl Wrong {
    pub(crate) fn asked(&mut self, mut request: QueryRequest) -> Result<ContextBundle, Error> {
        let (scope, mut hidden) = (request.scope.clone(), HashSet::<RecordId>::new());
        match self.breaks.as_str() {
            "QRY-03" => request.top_k = 1_000,
            "QRY-04" => request.metadata_filter = None,
            "QRY-07" => drop(self.add(&scope, write("Somebody has asked something"))?),
            "QRY-08" if request.query.is_empty() => {
                return Err(Error::invalid("query", "is empty"));
            }
            "QRY-10" => assert!(!request.query.contains('"'), "as the rule says"),
            "PRM-01" => assert!(self.marks.get("any").is_ok(), "as the rule says"),
            "PAR-01" => request.scope.agent_id = None,
            "PAR-02" => request.scope.subject_id = None,
            "PAR-03" => request.scope.namespace = None,
            "PAR-06" if scope.agent_id.is_some() => {
                let everybodys = Scope { agent_id: Some("nobody".to_owned()), ..scope.clone() };
                let everybodys = self.everything(&everybodys)?;
                hidden = everybodys.into_iter().map(|snippet| snippet.id).collect();
            }
            _ => {}
        }
        let mut found = self.reference.query(request)?.snippets;
        found.retain(|snippet| !hidden.contains(&snippet.id));
        match self.breaks.as_str() {
            "QRY-01" => {
                let last = self.marks.get("last")?;
                found.retain(|snippet| last.as_ref() != Some(&snippet.id));
            }
            "QRY-02" if found.is_empty() => return Err(Error::NotFound("nothing fits".to_owned())),
            "QRY-05" => {
                found.iter_mut().for_each(|snippet| snippet.score = Score::Similarity(f64::NAN))
            }
            "QRY-06" => found.reverse(),
            "QRY-09" => found.iter_mut().for_each(|snippet| snippet.id.insert(0, 'x')),
            "FGT-02" => {
                for ghost in self.marks.iter("") {
                    let (id, text) = ghost?;
                    found.push(Snippet::new(String::from_utf8_lossy(&id), text));
                }
            }
            "REV-01" => found.extend(self.reference.list_pending(scope, None, 1_000)?.items),
            "REV-07" => {
                let mut kept = Vec::new();
                for snippet in found {
                    if self.marks.get(&snippet.id)?.is_none() {
                        kept.push(snippet);
                    }
                }
                found = kept;
            }
            "RST-02" => {
                let ids = found.iter().map(|snippet| snippet.id.clone()).collect();
                let known = self.snapshot.get_or_insert(ids);
                found.retain(|snippet| known.contains(&snippet.id));
            }
            _ => {}
        }
        Ok(found.into())
    }

    pub(crate) fn listed(&mut self, mut request: ListRequest) -> Result<ListPage, Error> {
        let scope = request.scope.clone();
        match self.breaks.as_str() {
            "LST-02" => {
                // A list that begins again after a write.
                let count = self.everything(&scope)?.len().to_string();
                let before = self.marks.get("count")?.filter(|_| request.cursor.is_some());
                let is_again = self.marks.get("again")?.is_none()
                    && before.is_some_and(|before| before != count);
                if is_again {
                    request.cursor = None;
                    self.marks.put("again", &count)?;
                }
                self.marks.put("count", &count)?;
            }
            "LST-03" => request.limit = 1_000,
            "LST-04" => request.metadata_filter = None,
            "PAR-04" => request.scope = everywhere(request.scope),
            _ => {}
        }
        let mut page = self.reference.list_records(request)?;
        if let (Continuation::Next(_), "LST-01") = (&page.continuation, self.breaks.as_str()) {
            let last_but_one = page.items.iter().rev().nth(1).map(|snippet| snippet.id.clone());
            page.continuation = last_but_one.map_or(Continuation::End, Continuation::Next);
        }
        if self.is("LST-05") {
            let kept: HashSet<RecordId> =
                self.everything(&scope)?.into_iter().take(250).map(|snippet| snippet.id).collect();
            page.items.retain(|snippet| kept.contains(&snippet.id));
        }
        Ok(page)
    }

    pub(crate) fn got(&mut self, id: RecordId, mut scope: Scope) -> Result<GetResponse, Error> {
        if self.is("PAR-05") {
            scope = everywhere(scope);
        }
        let Some(mut snippet) = self.reference.get_record(id.clone(), scope)?.snippet else {
            return match self.breaks.as_str() {
                "GET-01" => Err(Error::NotFound("there is no such record".to_owned())),
                "REV-08" => Ok(self.marks.get(&id)?.map(|text| Snippet::new(id, text)).into()),
                _ => Ok(GetResponse::default()),
            };
        };
        if self.is("GET-02") {
            snippet.created_at = Some("yesterday".to_owned());
        }
        if self.is("GET-03") {
            snippet.metadata = Some("[1]".to_owned());
        }
        Ok(Some(snippet).into())
    }
}
