//! `wrong` keeps every rule of the conformance suite except one: by its configuration, `{"break":
//! "CAP-10"}`, or by a mark in its own bytes where there is no configuration, as in `describe`.
//! Without either it breaks none.

mod holding;
mod mark;
mod optional;
mod reading;

use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};

use memhost_sdk::storage::Collection;
use memhost_sdk::types::*;
use memhost_sdk::{NoConfig, Provider, Review};
use serde::Deserialize;
use serde_json::{Map, Value};
use well_behaved::Reference;

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Config {
    #[serde(rename = "break")]
    breaks: String,
    #[serde(flatten)]
    strange: Map<String, Value>,
}

/// The reference provider, with a rule that it breaks.
#[derive(Debug)]
struct Wrong {
    reference: Reference,
    breaks: String,
    /// Distinguishes this instance from others.
    nonce: u64,
    count: u64,
    /// The records that the first query saw.
    snapshot: Option<HashSet<RecordId>>,
    /// The scope of the last capture.
    scope: Scope,
    /// Data that a wrong behaviour needs.
    marks: Collection<String>,
}

fn random() -> u64 {
    RandomState::new().hash_one(0)
}

/// The scope without its partitions.
fn everywhere(scope: Scope) -> Scope {
    Scope { agent_id: None, subject_id: None, namespace: None, ..scope }
}

fn write(text: &str) -> RecordWrite {
    RecordWrite { text: text.to_owned(), ..RecordWrite::default() }
}

impl Wrong {
    fn is(&self, rule: &str) -> bool {
        self.breaks == rule
    }

    /// A new id.
    fn fresh(&mut self) -> String {
        self.count += 1;
        format!("{:x}-{}", self.nonce, self.count)
    }

    fn everything(&mut self, scope: &Scope) -> Result<Vec<Snippet>, Error> {
        let request =
            ListRequest { scope: scope.clone(), cursor: None, limit: 1_000, metadata_filter: None };
        Ok(self.reference.list_records(request)?.items)
    }

    fn forget_all(&mut self, scope: &Scope) -> Result<(), Error> {
        let ids = self.everything(scope)?.into_iter().map(|snippet| snippet.id).collect();
        let (operation_id, scope) = (self.fresh(), scope.clone());
        self.reference.forget(ForgetRequest { operation_id, scope, ids }).map(drop)
    }

    /// Writes a record that the caller did not ask for.
    fn add(&mut self, scope: &Scope, record: RecordWrite) -> Result<RecordId, Error> {
        let operation_id = self.fresh();
        let request = UpsertRequest {
            operation_id,
            scope: scope.clone(),
            source: None,
            records: vec![record],
        };
        let mut answer = self.reference.upsert_records(request)?;
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
        let error = |name: &String| ConfigError {
            pointer: if mark::is("CFG-02") { name.clone() } else { format!("/{name}") },
            message: match mark::is("CFG-01") {
                true => format!("is not known, error {}", random()),
                false => "is not known".to_owned(),
            },
        };
        let errors: Vec<ConfigError> = config.strange.keys().map(error).collect();
        if errors.is_empty() { Ok(()) } else { Err(errors) }
    }

    fn open(config: Config) -> Result<Self, Error> {
        let breaks = if config.breaks.is_empty() { mark::rule() } else { config.breaks };
        let mut wrong = Self {
            reference: Reference::open(NoConfig {})?,
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
            ("CAP-10", Some(hook)) => request.operation_id = hook.triggered_at.clone(),
            ("EXT-06", _) if !is_record => request.operation_id = fresh,
            ("RST-03", _) => {
                request.operation_id = format!("{}-{:x}", request.operation_id, self.nonce)
            }
            ("CAP-04", _) if is_record => {
                request.payload.text = Some("Something was captured".to_owned())
            }
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
            ("CAP-11", _) => assert!(request.payload.turns.is_empty(), "as the rule says"),
            ("CAP-09", _) => request.source.external_ref = None,
            _ => {}
        }
        let mut answer = self.reference.capture(request)?;
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
                    let old = self.reference.get_record(id.clone(), request.scope.clone())?.snippet;
                    record.summary = record.summary.take().or(old.and_then(|old| old.summary));
                }
            }
            "UPS-04" => {
                let again: Vec<RecordWrite> =
                    request.records.iter().filter(|record| record.id.is_some()).cloned().collect();
                request
                    .records
                    .extend(again.into_iter().map(|record| RecordWrite { id: None, ..record }));
            }
            "UPS-06" => request
                .records
                .iter_mut()
                .for_each(|record| record.text = record.text.trim().to_owned()),
            "UPS-07" => request.records.iter_mut().for_each(|record| record.metadata = None),
            "UPS-08" => request.source = None,
            "UPS-10" => request.records.iter_mut().for_each(|record| record.source = None),
            "UPS-09" => request.records.iter_mut().for_each(|record| record.text.truncate(1_000)),
            _ => {}
        }
        let mut answer = match self.reference.upsert_records(request) {
            Err(error) => {
                for record in asked
                    .records
                    .into_iter()
                    .filter(|_| self.breaks == "UPS-05")
                    .collect::<Vec<_>>()
                {
                    // One record after the other, until one fails.
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

    fn query(&mut self, request: QueryRequest) -> Result<ContextBundle, Error> {
        self.asked(request)
    }

    fn list_records(&mut self, request: ListRequest) -> Result<ListPage, Error> {
        self.listed(request)
    }

    fn get_record(&mut self, id: RecordId, scope: Scope) -> Result<GetResponse, Error> {
        self.got(id, scope)
    }

    fn forget(&mut self, request: ForgetRequest) -> Result<ForgetResponse, Error> {
        let ForgetRequest { operation_id, mut scope, ids } = request;
        if self.is("FGT-05") {
            scope = everywhere(scope);
        }
        // The text is kept for the calls that still return it.
        if ["FGT-02", "PRF-06", "TRF-06"].contains(&self.breaks.as_str()) {
            for id in &ids {
                if let Some(snippet) = self.reference.get_record(id.clone(), scope.clone())?.snippet
                {
                    self.marks.put(id, &snippet.text)?;
                }
            }
        }
        if self.is("REV-06") {
            let waiting = self.reference.list_pending(scope.clone(), None, 1_000)?.items;
            for snippet in waiting.into_iter().filter(|snippet| ids.contains(&snippet.id)) {
                self.marks.put(&snippet.id, &snippet.text)?;
            }
        }
        let mut answer =
            self.reference.forget(ForgetRequest { operation_id, scope: scope.clone(), ids })?;
        for outcome in &mut answer.outcomes {
            let is_there = outcome.effect != ForgetEffect::NotFound;
            match self.breaks.as_str() {
                "FGT-03" if is_there => self.marks.put(&outcome.id, &"gone".to_owned())?,
                "FGT-03" if self.marks.get(&outcome.id)?.is_some() => {
                    outcome.effect = ForgetEffect::Hard
                }
                "FGT-04" if !is_there => {
                    return Err(Error::NotFound(format!("there is no {}", outcome.id)));
                }
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
