//! `wrong` keeps every rule of the conformance kit but the one that it is told to break: by its configuration,
//! `{"break": "CAP-03"}`, or by a mark in its own bytes where there is no configuration, as in `describe`. Without either
//! it breaks none.

mod mark;
mod optional;

use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};

use memhost_sdk::storage::Collection;
use memhost_sdk::types::*;
use memhost_sdk::{NoConfig, Provider};
use serde::Deserialize;
use serde_json::{Map, Value};
use well_behaved::Keeper;

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Config {
    #[serde(rename = "break")]
    breaks: String,
    #[serde(flatten)]
    strange: Map<String, Value>,
}

/// `well-behaved`, with a rule that it breaks.
#[derive(Debug)]
struct Wrong {
    keeper: Keeper,
    breaks: String,
    /// Tells this instance from others.
    nonce: u64,
    count: u64,
    /// What the first query saw.
    snapshot: Option<HashSet<RecordId>>,
    /// Of the last capture.
    scope: Scope,
    /// What a wrong behaviour has to remember.
    marks: Collection<String>,
}

fn random() -> u64 {
    RandomState::new().hash_one(0)
}

/// The scope without what keeps records apart.
fn everywhere(scope: Scope) -> Scope {
    Scope { agent_id: None, subject_id: None, namespace: None, ..scope }
}

fn write(text: &str) -> RecordWrite {
    RecordWrite { id: None, text: text.to_owned(), summary: None, metadata: None }
}

impl Wrong {
    fn is(&self, rule: &str) -> bool {
        self.breaks == rule
    }

    /// An id that was never given before.
    fn fresh(&mut self) -> String {
        self.count += 1;
        format!("{:x}-{}", self.nonce, self.count)
    }

    fn everything(&mut self, scope: &Scope) -> Result<Vec<Snippet>, Error> {
        let request = ListRequest { scope: scope.clone(), cursor: None, limit: 1_000, metadata_filter: None };
        Ok(self.keeper.list_records(request)?.items)
    }

    fn forget_all(&mut self, scope: &Scope) -> Result<(), Error> {
        let ids = self.everything(scope)?.into_iter().map(|snippet| snippet.id).collect();
        self.keeper.forget(ids, scope.clone()).map(drop)
    }

    /// A record that nobody asked for.
    fn add(&mut self, scope: &Scope, record: RecordWrite) -> Result<RecordId, Error> {
        let operation_id = self.fresh();
        let request = UpsertRequest { operation_id, scope: scope.clone(), source: None, records: vec![record] };
        let mut answer = self.keeper.upsert_records(request)?;
        answer.records.pop().ok_or_else(|| Error::internal("nothing was written"))
    }

    fn refused(&self, error: Error) -> Error {
        match error {
            Error::InvalidRequest(mut invalid) => {
                if self.is("ERR-01") {
                    invalid.field = Some("records[0].id".to_owned());
                }
                if self.is("ERR-02") {
                    invalid.message = String::new();
                }
                Error::InvalidRequest(invalid)
            }
            error => error,
        }
    }
}

impl Provider for Wrong {
    type Config = Config;

    fn describe() -> Description {
        mark::describe()
    }

    fn check_config(config: &Config) -> Result<(), Vec<ConfigError>> {
        let complaint = |name: &String| ConfigError {
            pointer: if mark::is("CFG-02") { name.clone() } else { format!("/{name}") },
            message: match mark::is("CFG-01") {
                true => format!("is not known, complaint {}", random()),
                false => "is not known".to_owned(),
            },
        };
        let complaints: Vec<ConfigError> = config.strange.keys().map(complaint).collect();
        if complaints.is_empty() { Ok(()) } else { Err(complaints) }
    }

    fn open(config: Config) -> Result<Self, Error> {
        let breaks = if config.breaks.is_empty() { mark::rule() } else { config.breaks };
        let mut wrong = Self {
            keeper: Keeper::open(NoConfig {})?,
            breaks,
            nonce: random(),
            count: 0,
            snapshot: None,
            scope: Scope::company(""),
            marks: Collection::new("marks"),
        };
        if wrong.is("RST-01") {
            wrong.forget_all(&Scope::company(""))?;
        }
        Ok(wrong)
    }

    fn capture(&mut self, mut request: CaptureRequest) -> Result<CaptureResponse, Error> {
        self.scope = request.scope.clone();
        let fresh = self.fresh();
        let is_record = request.mode == CaptureMode::CaptureRecord;
        match (self.breaks.as_str(), &mut request.hook) {
            ("CAP-02", _) => request.operation_id = fresh,
            ("CAP-03", Some(hook)) => hook.hook_id = fresh,
            ("EXT-06", Some(hook)) if !is_record => hook.hook_id = fresh,
            ("RST-03", Some(hook)) => hook.hook_id = format!("{}-{:x}", hook.hook_id, self.nonce),
            ("CAP-04", _) if is_record => request.payload.text = Some("Something was captured".to_owned()),
            ("CAP-06", Some(hook)) => {
                if self.marks.get("latest")?.is_some_and(|latest| latest > hook.triggered_at) {
                    return Err(Error::invalid("hook.triggeredAt", "is before the last one"));
                }
                self.marks.put("latest", &hook.triggered_at)?;
            }
            ("CAP-07", Some(HookContext { hook_kind: HookKind::Other(kind), .. })) => {
                return Err(Error::invalid("hook.hookKind", format!("`{kind}` is not known")));
            }
            ("CAP-08", _) => assert!(request.payload.text.is_some(), "as the rule says"),
            ("CAP-09", _) => request.source.external_ref = None,
            _ => {}
        }
        let mut answer = self.keeper.capture(request)?;
        if self.is("CAP-01") {
            answer.records.push("no-such-record".to_owned());
        }
        Ok(answer)
    }

    fn upsert_records(&mut self, mut request: UpsertRequest) -> Result<UpsertResponse, Error> {
        let asked = request.clone();
        match self.breaks.as_str() {
            "UPS-02" => request.records.iter_mut().for_each(|record| record.id = None),
            "UPS-03" => {
                for record in &mut request.records {
                    let Some(id) = &record.id else { continue };
                    let old = self.keeper.get_record(id.clone(), request.scope.clone())?.snippet;
                    record.summary = record.summary.take().or(old.and_then(|old| old.summary));
                }
            }
            "UPS-04" => {
                let again: Vec<RecordWrite> =
                    request.records.iter().filter(|record| record.id.is_some()).cloned().collect();
                request.records.extend(again.into_iter().map(|record| RecordWrite { id: None, ..record }));
            }
            "UPS-06" => request.records.iter_mut().for_each(|record| record.text = record.text.trim().to_owned()),
            "UPS-07" => request.records.iter_mut().for_each(|record| record.metadata = None),
            "UPS-08" => request.source = None,
            "UPS-09" => request.records.iter_mut().for_each(|record| record.text.truncate(1_000)),
            _ => {}
        }
        let mut answer = match self.keeper.upsert_records(request) {
            Err(error) => {
                for record in asked.records.into_iter().filter(|_| self.breaks == "UPS-05").collect::<Vec<_>>() {
                    // One after the other, as far as it goes.
                    let _ = self.add(&asked.scope, record);
                }
                return Err(self.refused(error));
            }
            Ok(answer) => answer,
        };
        answer.records.truncate(asked.records.len());
        if let Some(last) = answer.records.last().filter(|_| self.breaks == "QRY-01") {
            self.marks.put("last", last)?;
        }
        if self.is("UPS-01") {
            answer.records.reverse();
        }
        Ok(answer)
    }

    fn query(&mut self, mut request: QueryRequest) -> Result<ContextBundle, Error> {
        let scope = request.scope.clone();
        match self.breaks.as_str() {
            "QRY-03" => request.top_k = 1_000,
            "QRY-04" => request.metadata_filter = None,
            "QRY-07" => drop(self.add(&scope, write("Somebody has asked something"))?),
            "QRY-08" if request.query.is_empty() => return Err(Error::invalid("query", "is empty")),
            "QRY-10" => assert!(!request.query.contains('"'), "as the rule says"),
            "PRM-01" => assert!(self.marks.get("any").is_ok(), "as the rule says"),
            "PAR-01" => request.scope.agent_id = None,
            "PAR-02" => request.scope.subject_id = None,
            "PAR-03" => request.scope.namespace = None,
            _ => {}
        }
        let mut found = self.keeper.query(request)?.snippets;
        match self.breaks.as_str() {
            "QRY-01" => {
                let last = self.marks.get("last")?;
                found.retain(|snippet| last.as_ref() != Some(&snippet.id));
            }
            "QRY-02" if found.is_empty() => return Err(Error::NotFound("nothing fits".to_owned())),
            "QRY-05" => found.iter_mut().for_each(|snippet| snippet.score = Score::Similarity(f64::NAN)),
            "QRY-06" => found.reverse(),
            "QRY-09" => found.iter_mut().for_each(|snippet| snippet.id.insert(0, 'x')),
            "FGT-02" => {
                for ghost in self.marks.iter("") {
                    let (id, text) = ghost?;
                    found.push(Snippet::new(String::from_utf8_lossy(&id), text));
                }
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

    fn list_records(&mut self, mut request: ListRequest) -> Result<ListPage, Error> {
        let scope = request.scope.clone();
        match self.breaks.as_str() {
            "LST-02" => {
                // A list that begins again when somebody has written.
                let count = self.everything(&scope)?.len().to_string();
                let before = self.marks.get("count")?.filter(|_| request.cursor.is_some());
                let is_again = self.marks.get("again")?.is_none() && before.is_some_and(|before| before != count);
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
        let mut page = self.keeper.list_records(request)?;
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

    fn get_record(&mut self, id: RecordId, mut scope: Scope) -> Result<GetResponse, Error> {
        if self.is("PAR-05") {
            scope = everywhere(scope);
        }
        let Some(mut snippet) = self.keeper.get_record(id, scope)?.snippet else {
            return match self.is("GET-01") {
                true => Err(Error::NotFound("there is no such record".to_owned())),
                false => Ok(GetResponse::default()),
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

    fn forget(&mut self, ids: Vec<RecordId>, mut scope: Scope) -> Result<ForgetResponse, Error> {
        if self.is("FGT-05") {
            scope = everywhere(scope);
        }
        if self.is("FGT-02") {
            for id in &ids {
                if let Some(snippet) = self.keeper.get_record(id.clone(), scope.clone())?.snippet {
                    self.marks.put(id, &snippet.text)?;
                }
            }
        }
        let mut answer = self.keeper.forget(ids, scope.clone())?;
        for outcome in &mut answer.outcomes {
            let is_there = outcome.effect != ForgetEffect::NotFound;
            match self.breaks.as_str() {
                "FGT-03" if is_there => self.marks.put(&outcome.id, &"gone".to_owned())?,
                "FGT-03" if self.marks.get(&outcome.id)?.is_some() => outcome.effect = ForgetEffect::Hard,
                "FGT-04" if !is_there => return Err(Error::NotFound(format!("there is no {}", outcome.id))),
                _ => {}
            }
        }
        match self.breaks.as_str() {
            "FGT-01" => answer.outcomes.reverse(),
            "FGT-06" => self.forget_all(&scope)?,
            _ => {}
        }
        Ok(answer)
    }
}

memhost_sdk::export!(Wrong);
memhost_sdk::export_correction!(Wrong);
memhost_sdk::export_extraction!(Wrong);
memhost_sdk::export_explain!(Wrong);
memhost_sdk::export_browse!(Wrong);
memhost_sdk::export_migration!(Wrong);
