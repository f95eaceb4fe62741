//! The contract's calls.

mod cursor;
mod jobs;
mod request;
mod search;
mod tree;
mod writing;

use memhost_sdk::types::*;
use memhost_sdk::{Correction, Explain, MAX_TEXT_BYTES, Provider};
use serde_json::{Map, Value, json};

use crate::config::{Config, schema};
use crate::index::{Partition, matches, partition};
use crate::library::Library;
use crate::rank::Scratch;
use crate::record::{Record, Unread, source_fields};
use request::object;

/// The most bytes of text in a list's answer. This is well below the limit of a call.
const LIST_BYTES: usize = 8 << 20;

/// The provider.
pub struct LocalMarkdown {
    config: Config,
    library: Library,
    scratch: Scratch,
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
        description.config_schema = Some(schema());
        description.capabilities.async_extraction = true;
        description
            .prefer(
                Permission::Directory(1 << 30),
                "Records are Markdown files in it, which people can read and change",
            )
            .require(
                Permission::Storage(512 << 20),
                "The search index is kept in it, and the files without a directory",
            )
            .prefer(Permission::Clock, "The times in the files are exact")
            .prefer(Permission::Embeddings, "Records are found by their meaning, too")
    }

    fn check_config(config: &Config) -> Result<(), Vec<ConfigError>> {
        config.check()
    }

    fn open(config: Config) -> Result<Self, Error> {
        let library = Library::open(&config)?;
        Ok(Self { config, library, scratch: Scratch::default() })
    }

    fn capture(&mut self, request: CaptureRequest) -> Result<CaptureResponse, Error> {
        self.library.refresh()?;
        self.write_capture(request)
    }

    fn upsert_records(&mut self, request: UpsertRequest) -> Result<UpsertResponse, Error> {
        self.library.refresh()?;
        self.write_all(request)
    }

    fn query(&mut self, request: QueryRequest) -> Result<ContextBundle, Error> {
        self.library.refresh()?;
        let found = self.search(&request)?;
        Ok(found.into_iter().map(|(snippet, _)| snippet).collect::<Vec<_>>().into())
    }

    fn list_records(&mut self, request: ListRequest) -> Result<ListPage, Error> {
        self.library.refresh()?;
        let after = request.cursor.as_deref().map(cursor::decode).transpose()?;
        let filter = object("metadataFilter", request.metadata_filter.as_deref())?;
        let limit = request.limit as usize;
        let admits = self.admits(&request.scope, filter.as_ref());
        let mut found: Vec<_> = self
            .library
            .index
            .behind(after)
            .filter(|(number, _)| admits(&self.library.index, *number))
            .take(limit + 1)
            .map(|(_, doc)| (doc.key, doc.id.to_string()))
            .collect();
        let mut has_more = found.len() > limit;
        found.truncate(limit);
        let (mut items, mut bytes, mut last) = (Vec::new(), 0, None);
        for (key, id) in found {
            if bytes > LIST_BYTES {
                has_more = true;
                break;
            }
            last = Some(key);
            if let Some(record) = self.read_visible(&id, &request.scope, filter.as_ref())? {
                let item = self.library.snippet(&id, record, &request.scope.company_id);
                let length = |text: &Option<String>| text.as_ref().map_or(0, String::len);
                bytes += item.text.len() + length(&item.metadata) + length(&item.summary);
                items.push(item);
            }
        }
        let continuation = match last {
            Some(key) if has_more => Continuation::Next(cursor::encode(key)),
            _ => Continuation::End,
        };
        self.library.save()?;
        Ok(ListPage { items, continuation, usage: Vec::new() })
    }

    fn get_record(&mut self, id: RecordId, scope: Scope) -> Result<GetResponse, Error> {
        self.library.refresh()?;
        let record = self.read_visible(&id, &scope, None)?;
        self.library.save()?;
        let found = record.map(|record| self.library.snippet(&id, record, &scope.company_id));
        Ok(found.into())
    }

    fn forget(&mut self, request: ForgetRequest) -> Result<ForgetResponse, Error> {
        self.library.refresh()?;
        let ForgetRequest { ids, scope, .. } = request;
        let mut docs = Vec::new();
        let mut outcomes = Vec::with_capacity(ids.len());
        for id in ids {
            let found =
                self.read_visible(&id, &scope, None)?.and_then(|_| self.library.index.by_id(&id));
            let effect = match found.filter(|doc| !docs.contains(doc)) {
                Some(doc) => {
                    docs.push(doc);
                    ForgetEffect::Hard
                }
                None => ForgetEffect::NotFound,
            };
            outcomes.push(ForgetOutcome { id, effect });
        }
        self.library.remove(&docs)?;
        Ok(ForgetResponse { outcomes, usage: Vec::new() })
    }
}

impl Correction for LocalMarkdown {
    fn correct(&mut self, request: CorrectRequest) -> Result<CorrectResponse, Error> {
        self.library.refresh()?;
        let Patch::Replacement(write) = request.patch else {
            return Err(Error::unsupported(
                "local-markdown cannot follow instructions; send the corrected record",
            ));
        };
        let Some(mut record) = self.read_visible(&request.id, &request.scope, None)? else {
            return Err(Error::NotFound(format!(
                "there is no record `{}` in this scope",
                request.id
            )));
        };
        if let Some(unread) = record.front.unread.clone() {
            let is_text_alone = write.summary.is_none()
                && write.metadata.is_none()
                && write.source.is_none()
                && write.created_at.is_none()
                && write.expires_at.is_none();
            if !is_text_alone || unread.end > MAX_TEXT_BYTES {
                let path = self.library.path(&request.id);
                return Err(unread_front("patch.record", &path, &unread));
            }
            record.set_text(write.text);
            self.library.write(&[(request.id.clone(), record)])?;
            self.leave_job()?;
            let (record_id, superseded) = (request.id, None);
            return Ok(CorrectResponse { record_id, superseded, usage: Vec::new() });
        }
        record.set_text(write.text);
        record.front.id = Some(request.id.clone());
        record.front.updated_at = Some(self.library.now().to_string());
        // A summary of the text before would keep what was corrected.
        record.front.summary = write.summary;
        record.front.created_at = write.created_at.or(record.front.created_at);
        record.front.expires_at = write.expires_at.or(record.front.expires_at);
        if let Some(source) = &write.source {
            record.front.source = source_fields(source);
        }
        if write.metadata.is_some() {
            record.front.metadata = object("patch.record.metadata", write.metadata.as_deref())?;
        }
        self.library.write(&[(request.id.clone(), record)])?;
        self.leave_job()?;
        Ok(CorrectResponse { record_id: request.id, superseded: None, usage: Vec::new() })
    }
}

impl Explain for LocalMarkdown {
    fn explain_query(&mut self, request: QueryRequest) -> Result<Explanation, Error> {
        self.library.refresh()?;
        let hits = self.search(&request)?.into_iter().map(|(snippet, parts)| {
            let contributions = [
                ("words", parts.words),
                ("meaning", parts.meaning),
                ("neighbours", parts.neighbours),
                ("session", parts.session),
                ("names", parts.names),
            ]
            .map(|(name, value)| Contribution { name: name.to_owned(), value: f64::from(value) });
            HitTrace { id: snippet.id, contributions: contributions.into() }
        });
        let hits = hits.collect();
        let words = self.library.analyzer.telling(&request.query);
        Ok(Explanation { query: json!({"words": words}).to_string(), hits })
    }
}

/// Refuses a change that would lose what a person wrote above a text.
fn unread_front(field: &str, path: &str, unread: &Unread) -> Error {
    Error::invalid(
        field,
        format!(
            "would lose the front matter of {}, which cannot be read at line {}: {}; repair it, or \
             correct the text alone",
            path.escape_debug(),
            unread.line,
            unread.reason
        ),
    )
}

impl LocalMarkdown {
    /// A record of this scope, read from its file.
    fn read_visible(
        &mut self,
        id: &str,
        scope: &Scope,
        filter: Option<&Map<String, Value>>,
    ) -> Result<Option<Record>, Error> {
        let index = &self.library.index;
        let Some(doc) = index.by_id(id) else { return Ok(None) };
        // Checked first, so that the file of a record of another scope is not read.
        if !self.sees(&index.partitions()[index.partition_of(doc)], scope) {
            return Ok(None);
        }
        let record = self.library.read(id)?;
        Ok(record.filter(|record| {
            self.sees(&partition(&record.front), scope)
                && filter.is_none_or(|filter| matches(record.front.metadata.as_ref(), filter))
        }))
    }

    /// Whether the scope has no other value in a field that the record has set.
    fn sees(&self, [agent, subject, namespace]: &Partition, scope: &Scope) -> bool {
        let fits = |of_record: &Option<String>, of_scope: &Option<String>| {
            of_record.is_none() || of_scope.is_none() || of_record == of_scope
        };
        fits(agent, &scope.agent_id)
            && fits(subject, &scope.subject_id)
            && fits(namespace, &scope.namespace)
    }
}
