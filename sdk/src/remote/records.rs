//! The contract's calls on records, on top of a service's own.

use std::cmp::Reverse;

use serde::{Deserialize, Serialize};

use super::{Filter, Listing, Record, Search, Service, Tag, Writes, pages, whole};
use crate::http;
use crate::types::{
    ContextBundle, CorrectRequest, CorrectResponse, Error, ForgetEffect, ForgetOutcome,
    ForgetRequest, ForgetResponse, GetResponse, ListPage, ListRequest, Patch, QueryRequest,
    RecordId, RecordWrite, Scope, UpsertRequest, UpsertResponse,
};

/// The contract's calls on the records of a service. Partitions and filters are kept here whatever
/// the service does.
#[derive(Debug)]
pub struct Records<'a, S> {
    pub(super) service: &'a S,
    pub(super) writes: Writes<String>,
}

impl<'a, S: Service> Records<'a, S> {
    /// Those of a service. What was written is noted in storage.
    pub fn of(service: &'a S) -> Self {
        Self { service, writes: Writes::new("records") }
    }

    /// Adds one record once, and answers its id. See [`Writes::once`]; the record is read back
    /// before it counts.
    ///
    /// # Errors
    /// The error of the service or of storage.
    pub fn add(
        &self,
        key: &str,
        may_repeat: bool,
        text: &str,
        tag: &Tag,
    ) -> Result<RecordId, Error> {
        self.service.takes(text, tag)?;
        let look = || Ok(self.written(key, text)?.map(|record| record.id));
        let write = || {
            let id = self.service.add(key, text, tag)?;
            match self.service.find(&id).map_err(http::Error::after_write)? {
                Some(record) if record.key.as_deref() == Some(key) => Ok(id),
                _ => Err(http::Error::Answer {
                    request: "adding a record".to_owned(),
                    reason: format!("no such record is there as {id}"),
                }),
            }
        };
        let id = self.writes.once(key, may_repeat, look, write)?;
        Ok(tag.id.clone().unwrap_or(id))
    }

    /// The record that was added with this key.
    fn written(&self, key: &str, text: &str) -> Result<Option<Record>, http::Error> {
        Ok(self
            .service
            .written(key, text)?
            .into_iter()
            .find(|record| record.key.as_deref() == Some(key)))
    }

    /// The record that the host knows by this id, if the scope may see it.
    fn find(&self, id: &str, scope: &Scope) -> Result<Option<Record>, Error> {
        let noted = self.writes.find(&given(id))?;
        let Some(own) = noted.or_else(|| self.service.is_id(id).then(|| id.to_owned())) else {
            return Ok(None);
        };
        Ok(self
            .service
            .find(&own)?
            .filter(|record| record.known_as() == id && record.tag.is_visible_in(scope)))
    }

    /// Replaces a record, and reads it back where the answer was lost.
    fn replace(&self, old: &Record, text: &str, new: Tag) -> Result<(), Error> {
        let mut tag = old.tag.clone().replaced_by(new);
        self.service.takes(text, &tag)?;
        if S::ONLY_ADDS {
            tag.id.get_or_insert_with(|| old.id.clone());
            return self.supersede(old, text, &tag);
        }
        match self.service.replace(old, text, &tag) {
            Err(error) if error.may_have_acted() => match self.service.find(&old.id) {
                Ok(Some(now)) if now.text == text && now.tag == tag => Ok(()),
                _ => Err(error.into()),
            },
            done => Ok(done?),
        }
    }

    fn write(
        &self,
        record: &RecordWrite,
        index: usize,
        request: &UpsertRequest,
    ) -> Result<RecordId, Error> {
        let tag = Tag::written(record, &request.scope, request.source.as_ref());
        let Some(id) = &record.id else {
            return self.add(
                &format!("{}-{index}", request.operation_id),
                false,
                &record.text,
                &tag,
            );
        };
        let everywhere = Scope::company(&request.scope.company_id);
        match self
            .find(id, &everywhere)?
            .map_or_else(|| self.lost(id, &record.text), |old| Ok(Some(old)))?
        {
            Some(old) if !old.tag.is_visible_in(&request.scope) => Err(Error::invalid(
                &format!("records.{index}.id"),
                "another partition has a record of this id",
            )),
            Some(old) => self.replace(&old, &record.text, tag).map(|()| id.clone()),
            None => self.add(&given(id), false, &record.text, &tag),
        }
    }

    /// The record of an id that the host gave, where the note of it is lost or leads nowhere.
    fn lost(&self, id: &str, text: &str) -> Result<Option<Record>, Error> {
        if self.writes.find(&given(id))?.is_some() {
            self.writes.forget(&given(id))?;
        }
        let found = self.written(&given(id), text)?;
        if let Some(record) = &found {
            self.writes.note(&given(id), &record.id)?;
        }
        Ok(found)
    }

    /// The call of the provider. What was written before an error stays, and the same call again
    /// writes the rest.
    ///
    /// # Errors
    /// The error of the service or of storage.
    pub fn upsert(&self, request: &UpsertRequest) -> Result<UpsertResponse, Error> {
        for (index, record) in request.records.iter().enumerate() {
            let tag = Tag::written(record, &request.scope, request.source.as_ref());
            self.service.takes(&record.text, &tag).map_err(|error| within(error, index))?;
        }
        let mut ids = Vec::new();
        for (index, record) in request.records.iter().enumerate() {
            let written = self.write(record, index, request);
            ids.push(written.inspect_err(|_| {
                log::warn!(
                    "{index} of {} records are written; the same call again writes the rest",
                    request.records.len()
                );
            })?);
        }
        Ok(ids.into())
    }

    /// The call of the provider. Hits of other partitions are taken out, so it asks for more than
    /// it needs, and once more for as many as there are. A query without words answers what was
    /// changed last.
    ///
    /// # Errors
    /// The error of the service.
    pub fn query(&self, request: &QueryRequest) -> Result<ContextBundle, Error> {
        let filter = Filter::new(request.metadata_filter.as_deref())?;
        let (scope, top_k) = (&request.scope, request.top_k as usize);
        let fits = |record: &Record| self.shows(record, scope) && filter.fits(&record.tag);
        let query = request.query.trim();
        if query.is_empty() {
            let (mut all, _) = self.service.list(1)?;
            all.retain(fits);
            all.sort_by_key(|record| Reverse(record.updated_at.clone()));
            all.truncate(top_k);
            return Ok(self.shown(all, scope).into());
        }
        let (most, members) = (S::MOST_HITS, filter.texts());
        let is_narrow =
            scope.agent_id.is_some() || scope.subject_id.is_some() || scope.namespace.is_some();
        let mut asked =
            if is_narrow || !filter.is_empty() { (top_k * 4).max(50) } else { top_k }.min(most);
        loop {
            let mut hits =
                self.service.search(&Search { query, members: &members, scope, most: asked })?;
            let are_all = hits.len() < asked || asked == most;
            hits.retain(fits);
            hits.truncate(top_k);
            if are_all || hits.len() == top_k {
                return Ok(self.shown(hits, scope).into());
            }
            asked = most;
        }
    }

    /// The call of the provider.
    ///
    /// # Errors
    /// The error of the service, or an invalid request.
    pub fn list(&self, request: &ListRequest) -> Result<ListPage, Error> {
        let filter = Filter::new(request.metadata_filter.as_deref())?;
        let fits = |record: &Record| self.shows(record, &request.scope) && filter.fits(&record.tag);
        let cursor = request.cursor.as_deref();
        let (items, continuation) = match self.service.listing() {
            Listing::Pages => {
                let fetch = |page| Ok(self.service.list(page)?);
                pages(cursor, request.limit, fetch, |record: &Record| &record.id, fits)?
            }
            Listing::Whole(most) => {
                let (mut all, follows) = self.service.list(1)?;
                let are_all = !follows && all.len() < most;
                all.retain(fits);
                whole(all, |record| &record.id, are_all, cursor, request.limit)
            }
        };
        Ok(ListPage { items: self.shown(items, &request.scope), continuation, usage: Vec::new() })
    }

    /// The call of the provider.
    ///
    /// # Errors
    /// The error of the service or of storage.
    pub fn get(&self, id: &str, scope: &Scope) -> Result<GetResponse, Error> {
        Ok(self.find(id, scope)?.map(|record| self.one_shown(record, scope)).into())
    }

    /// The call of the provider. Each record is read back before it counts as forgotten. Where a
    /// call ends before it can tell how far a record is forgotten, the next one tells.
    ///
    /// # Errors
    /// The error of the service or of storage, or if a record is still there.
    pub fn forget(&self, request: ForgetRequest) -> Result<ForgetResponse, Error> {
        let going = Writes::<Going>::new("forgetting");
        let forget = |id: RecordId| {
            let found = match self.find(&id, &request.scope)? {
                // An earlier call may have deleted it.
                None => going
                    .find(&id)?
                    .map(Going::record)
                    .filter(|gone| gone.tag.is_visible_in(&request.scope)),
                found => found,
            };
            let Some(record) = found else {
                return Ok(ForgetOutcome { id, effect: ForgetEffect::NotFound });
            };
            self.finish(&id)?;
            going.note(&id, &Going::of(&record))?;
            let deleted = self.service.delete(&record.id);
            if self.service.find(&record.id)?.is_some() {
                deleted?;
                return Err(Error::internal(format!(
                    "the record {id} was deleted and is still there; try again"
                )));
            }
            let effect = self.service.left_of(&record)?;
            self.writes.forget(&given(&id))?;
            going.forget(&id)?;
            Ok(ForgetOutcome { id, effect })
        };
        let outcomes = request.ids.into_iter().map(forget).collect::<Result<_, Error>>()?;
        Ok(ForgetResponse { outcomes, usage: Vec::new() })
    }

    /// The call of the interface `correction`. An instruction is given once.
    ///
    /// # Errors
    /// The error of the service, or if there is no such record.
    pub fn correct(&self, request: CorrectRequest) -> Result<CorrectResponse, Error> {
        if matches!(request.patch, Patch::Instruction(_)) && !S::TAKES_INSTRUCTIONS {
            return Err(Error::unsupported(
                "instructions are not read; send the record as it should be",
            ));
        }
        let missing = || Error::NotFound(format!("there is no record {}", request.id));
        let old = self.find(&request.id, &request.scope)?.ok_or_else(missing)?;
        match request.patch {
            Patch::Replacement(new) => {
                self.replace(&old, &new.text, Tag::written(&new, &request.scope, None))?;
            }
            Patch::Instruction(said) => {
                let give = || self.service.instruct(&old, &said).map(|()| true);
                Writes::new("instructions").once(
                    &request.operation_id,
                    false,
                    || Ok(None),
                    give,
                )?;
            }
        }
        Ok(CorrectResponse { record_id: request.id, superseded: None, usage: Vec::new() })
    }
}

/// The notes of a record before it is deleted, for [`Service::left_of`].
#[derive(Clone, Serialize, Deserialize)]
struct Going {
    id: String,
    scope: Option<Scope>,
    is_extracted: bool,
}

impl Going {
    fn of(record: &Record) -> Self {
        Self {
            id: record.id.clone(),
            scope: record.tag.scope.clone(),
            is_extracted: record.is_extracted,
        }
    }

    fn record(self) -> Record {
        let tag = Tag { scope: self.scope, ..Tag::default() };
        Record { id: self.id, tag, is_extracted: self.is_extracted, ..Record::default() }
    }
}

/// An error about a record, of the record of this number.
fn within(error: Error, index: usize) -> Error {
    match error {
        Error::InvalidRequest(mut error) => {
            error.field = error.field.map(|field| format!("records.{index}.{field}"));
            Error::InvalidRequest(error)
        }
        other => other,
    }
}

/// The key of a record whose id the host gave.
pub(super) fn given(id: &str) -> String {
    format!("id/{id}")
}
