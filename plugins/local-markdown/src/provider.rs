//! The contract's calls.

use memhost_sdk::types::*;
use memhost_sdk::{Correction, Provider};
use serde_json::{Map, Value};

use crate::config::{Config, SCHEMA};
use crate::index::Doc;
use crate::library::Library;
use crate::rank::rank;
use crate::record::{Front, Record, occurred_at, scope_fields, source_fields};
use crate::words::{PASSAGE_WORDS, words};

/// A hit's text is the whole record up to here, in bytes; of a longer one it is what stands around the best passage.
const WHOLE_TEXT: usize = 4_000;
/// A list's answer stays well below what may cross in one call.
const LIST_BYTES: usize = 8 << 20;

/// The provider.
pub struct LocalMarkdown {
    config: Config,
    library: Library,
}

impl Provider for LocalMarkdown {
    type Config = Config;

    fn describe() -> Description {
        let mut description = Description::new(
            "local-markdown",
            env!("CARGO_PKG_VERSION"),
            "Records as Markdown files that a person can read, grep and edit, searched by words",
        );
        "Local Markdown".clone_into(&mut description.name);
        description.config_schema = Some(SCHEMA.to_owned());
        description
            .require(Permission::Directory(1 << 30), "Records are Markdown files in it")
            .require(Permission::Storage(512 << 20), "The search index is kept in it")
    }

    fn check_config(config: &Config) -> Result<(), Vec<ConfigError>> {
        config.check()
    }

    fn open(config: Config) -> Result<Self, Error> {
        let library = Library::open(&config)?;
        Ok(Self { config, library })
    }

    fn capture(&mut self, request: CaptureRequest) -> Result<CaptureResponse, Error> {
        self.library.refresh()?;
        let hook_id = request.hook.as_ref().map(|hook| hook.hook_id.clone());
        if let Some(present) = hook_id.as_deref().and_then(|hook| self.library.index.by_hook(hook)) {
            return Ok(vec![present.id.clone()].into());
        }
        let id = new_id(&request.operation_id, 0);
        if self.library.doc(&id).is_some() {
            return Ok(vec![id].into());
        }
        let now = now();
        let text = request.payload.text.or_else(|| request.payload.object.as_deref().map(readable)).unwrap_or_default();
        let front = Front {
            id: Some(id.clone()),
            created_at: Some(now.clone()),
            updated_at: Some(now),
            occurred_at: occurred_at(request.hook.as_ref()),
            hook_id,
            scope: scope_fields(&request.scope),
            source: source_fields(&request.source),
            metadata: merged(request.payload.metadata.as_deref(), request.metadata.as_deref())?,
            ..Front::default()
        };
        self.library.write(vec![(id.clone(), Record { front, text })])?;
        Ok(vec![id].into())
    }

    fn upsert_records(&mut self, request: UpsertRequest) -> Result<UpsertResponse, Error> {
        self.library.refresh()?;
        let now = now();
        let mut ids = Vec::new();
        let mut records: Vec<(String, Record)> = Vec::new();
        for (number, write) in request.records.into_iter().enumerate() {
            let id = write.id.clone().unwrap_or_else(|| new_id(&request.operation_id, number));
            if self.library.doc(&id).is_some_and(|doc| !self.sees(doc, &request.scope)) {
                return Err(Error::invalid(
                    &format!("records.{number}.id"),
                    "is the id of a record that this scope may not see; choose another id",
                ));
            }
            let created_at = self.library.read(&id)?.and_then(|before| before.front.created_at);
            let front = Front {
                id: Some(id.clone()),
                created_at: Some(created_at.unwrap_or_else(|| now.clone())),
                updated_at: Some(now.clone()),
                summary: write.summary,
                scope: scope_fields(&request.scope),
                source: request.source.as_ref().map(source_fields).unwrap_or_default(),
                metadata: object("metadata", write.metadata.as_deref())?,
                ..Front::default()
            };
            // Of two writes under one id the later one holds.
            records.retain(|(earlier, _)| *earlier != id);
            records.push((id.clone(), Record { front, text: write.text }));
            ids.push(id);
        }
        self.library.write(records)?;
        Ok(ids.into())
    }

    fn query(&mut self, request: QueryRequest) -> Result<ContextBundle, Error> {
        self.library.refresh()?;
        self.library.save_if(self.library.patience())?;
        let filter = object("metadataFilter", request.metadata_filter.as_deref())?;
        let top = request.top_k as usize;
        // A hit whose file was changed by hand is indexed anew, and the question asked again; files do not change so
        // fast that it would have to be asked a third time.
        let mut snippets = Vec::new();
        for _ in 0..2 {
            let (found, is_fresh) = self.hits(&request, filter.as_ref(), top)?;
            snippets = found;
            if is_fresh {
                break;
            }
        }
        Ok(snippets.into())
    }

    fn list_records(&mut self, request: ListRequest) -> Result<ListPage, Error> {
        self.library.refresh()?;
        let filter = object("metadataFilter", request.metadata_filter.as_deref())?;
        let limit = request.limit as usize;
        let mut ids: Vec<String> = self
            .library
            .index
            .behind(request.cursor.as_deref())
            .filter(|doc| self.sees(doc, &request.scope) && matches(doc, filter.as_ref()))
            .take(limit + 1)
            .map(|doc| doc.id.clone())
            .collect();
        let mut has_more = ids.len() > limit;
        ids.truncate(limit);
        let (mut items, mut bytes) = (Vec::new(), 0);
        let mut last = None;
        for id in ids {
            if bytes > LIST_BYTES {
                has_more = true;
                break;
            }
            if let Some(record) = self.library.read(&id)? {
                bytes += record.text.len();
                items.push(snippet(&id, record, &request.scope.company_id));
            }
            last = Some(id);
        }
        let continuation = match last {
            Some(last) if has_more => Continuation::Next(last),
            _ => Continuation::End,
        };
        Ok(ListPage { items, continuation, usage: Vec::new() })
    }

    fn get_record(&mut self, id: RecordId, scope: Scope) -> Result<GetResponse, Error> {
        self.library.refresh()?;
        if !self.library.doc(&id).is_some_and(|doc| self.sees(doc, &scope)) {
            return Ok(GetResponse::default());
        }
        let record = self.library.read(&id)?;
        Ok(record.map(|record| snippet(&id, record, &scope.company_id)).into())
    }

    fn forget(&mut self, ids: Vec<RecordId>, scope: Scope) -> Result<ForgetResponse, Error> {
        self.library.refresh()?;
        let mut paths = Vec::new();
        let outcomes = ids
            .into_iter()
            .map(|id| {
                let path = self.library.doc(&id).filter(|doc| self.sees(doc, &scope)).map(|doc| doc.path.clone());
                let effect = match path {
                    Some(path) if !paths.contains(&path) => {
                        paths.push(path);
                        ForgetEffect::Hard
                    }
                    _ => ForgetEffect::NotFound,
                };
                ForgetOutcome { id, effect }
            })
            .collect();
        self.library.remove(&paths)?;
        Ok(ForgetResponse { outcomes, usage: Vec::new() })
    }
}

impl Correction for LocalMarkdown {
    fn correct(&mut self, request: CorrectRequest) -> Result<CorrectResponse, Error> {
        self.library.refresh()?;
        let Patch::Replacement(write) = request.patch else {
            return Err(Error::unsupported(
                "local-markdown has no model to follow an instruction; give the record as it should be",
            ));
        };
        let seen = self.library.doc(&request.id).is_some_and(|doc| self.sees(doc, &request.scope));
        let before = if seen { self.library.read(&request.id)? } else { None };
        let Some(mut record) = before else {
            return Err(Error::NotFound(format!("there is no record `{}` in this scope", request.id)));
        };
        record.text = write.text;
        record.front.updated_at = Some(now());
        record.front.summary = write.summary.or(record.front.summary);
        if write.metadata.is_some() {
            record.front.metadata = object("patch.record.metadata", write.metadata.as_deref())?;
        }
        self.library.write(vec![(request.id.clone(), record)])?;
        Ok(CorrectResponse { record_id: request.id, superseded: None, usage: Vec::new() })
    }
}

impl LocalMarkdown {
    /// Partitions: what a record has set, a scope must not contradict.
    fn sees(&self, doc: &Doc, scope: &Scope) -> bool {
        let fits = |of_doc: &Option<String>, of_scope: &Option<String>| {
            of_doc.is_none() || of_scope.is_none() || of_doc == of_scope
        };
        (self.config.shared_across_agents || fits(&doc.agent, &scope.agent_id))
            && fits(&doc.subject, &scope.subject_id)
            && fits(&doc.namespace, &scope.namespace)
    }

    /// The snippets that answer, and whether every file was still as it was indexed.
    fn hits(
        &mut self,
        request: &QueryRequest,
        filter: Option<&Map<String, Value>>,
        top: usize,
    ) -> Result<(Vec<Snippet>, bool), Error> {
        let admits = |doc: &Doc| self.sees(doc, &request.scope) && matches(doc, filter);
        let found: Vec<(String, Score, u32)> = if words(&request.query).next().is_none() {
            match request.intent {
                Intent::AgentPreamble => self.latest(top, &admits),
                Intent::Answer | Intent::Browse => Vec::new(),
            }
        } else {
            let library = &self.library;
            let hits = rank(&library.index, &library.analyzer, &self.config.ranking, &request.query, top, admits);
            hits.into_iter()
                .filter_map(|hit| {
                    let doc = library.index.doc(hit.doc)?;
                    let passage = hit.passage.saturating_sub(doc.first_passage);
                    Some((doc.id.clone(), Score::Rank(f64::from(hit.score)), passage))
                })
                .collect()
        };
        let mut snippets = Vec::with_capacity(found.len());
        let mut is_fresh = true;
        for (id, score, passage) in found {
            let before = self.library.doc(&id).map(|doc| doc.stamp);
            let record = self.library.read(&id)?;
            is_fresh &= before == self.library.doc(&id).map(|doc| doc.stamp);
            if let Some(mut record) = record {
                record.text = around(record.text, passage as usize);
                snippets.push(Snippet { score, ..snippet(&id, record, &request.scope.company_id) });
            }
        }
        Ok((snippets, is_fresh))
    }

    /// Without a question the latest records are the most useful ones.
    fn latest(&self, top: usize, admits: &dyn Fn(&Doc) -> bool) -> Vec<(String, Score, u32)> {
        let mut docs: Vec<&Doc> = self.library.index.docs().map(|(_, doc)| doc).filter(|doc| admits(doc)).collect();
        docs.sort_unstable_by(|a, b| b.when.cmp(&a.when).then_with(|| b.id.cmp(&a.id)));
        docs.truncate(top);
        docs.into_iter().map(|doc| (doc.id.clone(), Score::None, 0)).collect()
    }
}

/// Named by the operation, so that the same operation makes the same record.
fn new_id(operation_id: &str, number: usize) -> String {
    let operation: String = operation_id.chars().filter(|c| *c != '-').collect();
    if number == 0 { operation } else { format!("{operation}.{number:03}") }
}

fn now() -> String {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    jiff::Timestamp::try_from(std::time::UNIX_EPOCH + since).unwrap_or_default().to_string()
}

fn object(field: &str, json: Option<&str>) -> Result<Option<Map<String, Value>>, Error> {
    json.map(serde_json::from_str)
        .transpose()
        .map_err(|error| Error::invalid(field, format!("is not a JSON object: {error}")))
}

/// The payload's own metadata and the request's, which wins.
fn merged(payload: Option<&str>, request: Option<&str>) -> Result<Option<Map<String, Value>>, Error> {
    let (payload, request) = (object("payload.metadata", payload)?, object("metadata", request)?);
    Ok(match (payload, request) {
        (Some(mut payload), Some(request)) => {
            payload.extend(request);
            Some(payload)
        }
        (payload, request) => payload.or(request),
    })
}

/// A structured object as a person would read it.
fn readable(json: &str) -> String {
    let value = serde_json::from_str::<Value>(json).and_then(|value| serde_json::to_string_pretty(&value));
    format!("```json\n{}\n```\n", value.unwrap_or_else(|_| json.to_owned()))
}

fn matches(doc: &Doc, filter: Option<&Map<String, Value>>) -> bool {
    let Some(filter) = filter.filter(|filter| !filter.is_empty()) else { return true };
    let Some(metadata) = doc.metadata.as_deref().and_then(|json| serde_json::from_str::<Value>(json).ok()) else {
        return false;
    };
    filter.iter().all(|(name, wanted)| metadata.get(name) == Some(wanted))
}

fn snippet(id: &str, record: Record, company: &str) -> Snippet {
    let time = |text: Option<&String>| text.filter(|text| text.parse::<jiff::Timestamp>().is_ok()).cloned();
    Snippet {
        source: record.source(company),
        created_at: time(record.front.created_at.as_ref()),
        updated_at: time(record.front.updated_at.as_ref()),
        metadata: record.front.metadata.map(|metadata| Value::Object(metadata).to_string()),
        summary: record.front.summary,
        ..Snippet::new(id, record.text)
    }
}

/// The best passage of a long text, with the passage before and the one behind it.
fn around(text: String, passage: usize) -> String {
    if text.len() <= WHOLE_TEXT {
        return text;
    }
    let begins: Vec<usize> = words(&text).map(|(at, _)| at).step_by(PASSAGE_WORDS).collect();
    let from = begins.get(passage.saturating_sub(1)).copied().unwrap_or(0);
    let to = begins.get(passage + 2).copied().unwrap_or(text.len());
    let to = text.floor_char_boundary(to.min(from + WHOLE_TEXT));
    let cut = |is_cut: bool| if is_cut { "…" } else { "" };
    format!("{}{}{}", cut(from > 0), text[from..to].trim_end(), cut(to < text.len()))
}
