//! The calls of `wasi:http` that make something grow in the host's memory: header fields, and the
//! requests and responses that are made of them. WASI bounds one list of fields; here all of an
//! instance are bounded, and count as the guest's.
//!
//! What is added is counted at once, and what goes is not looked at: lists become parts of
//! requests, are copied and dropped. When what was added reaches what is counted, the instance's
//! resources are measured, and counting goes on from there. So a call that drops what it does not
//! need is measured once for every 64 KiB.

use wasmtime::component::{Linker, Resource};
use wasmtime::{StoreContextMut, bail};
use wasmtime_wasi_http::p2::bindings::http::types::{self, ErrorCode, HeaderError, Method};
use wasmtime_wasi_http::p2::body::HostOutgoingBody;
use wasmtime_wasi_http::p2::types::{
    HostIncomingResponse, HostOutgoingRequest, HostOutgoingResponse,
};
use wasmtime_wasi_http::p2::{HeaderResult, HttpError};
use wasmtime_wasi_http::{FieldMap, WasiHttpView};

use super::state::{HttpMemory, State};
use crate::limiter::{bytes_of_field, bytes_of_fields};

/// The most that all header fields, requests and responses of an instance take, in bytes, without
/// their bodies.
const MOST_BYTES: usize = 4 << 20;
/// The margin of the count: at least this much is added between two measurements.
const STEP: usize = 64 << 10;

type Store<'a> = StoreContextMut<'a, State>;
type Fields = Resource<FieldMap>;
type Request = Resource<HostOutgoingRequest>;

impl State {
    /// Asks for room for what is about to be made.
    fn http_room(&mut self, more: usize) -> wasmtime::Result<()> {
        let wanted = self.http_memory.bytes.saturating_add(more);
        if wanted <= self.http_memory.room {
            self.http_memory.bytes = wanted;
            return Ok(());
        }
        let wanted = self.http_bytes().saturating_add(more);
        if wanted > MOST_BYTES {
            bail!(
                "its header fields, requests and responses have more than {} MiB together",
                MOST_BYTES >> 20
            );
        }
        let room = wanted + STEP;
        // What was counted until now is counted again.
        self.http_memory = HttpMemory::default();
        let Some(held) = self.limiter.memory().hold(room) else {
            self.limiter.refuse_memory();
            bail!("there is no room for its header fields");
        };
        self.http_memory = HttpMemory { room, held: Some(held), bytes: wanted };
        Ok(())
    }

    /// Measures what there is. What two of them share counts for both.
    fn http_bytes(&mut self) -> usize {
        let sizes = self.table.iter_mut().map(|resource| {
            if let Some(fields) = resource.downcast_ref::<FieldMap>() {
                bytes_of_fields(fields)
            } else if let Some(request) = resource.downcast_ref::<HostOutgoingRequest>() {
                bytes_of_request(request)
            } else if let Some(response) = resource.downcast_ref::<HostIncomingResponse>() {
                bytes_of_fields(&response.headers)
            } else if let Some(response) = resource.downcast_ref::<HostOutgoingResponse>() {
                bytes_of_fields(&response.headers)
            } else {
                0
            }
        });
        sizes.fold(0, usize::saturating_add)
    }

    /// An instance that has nothing of it after a call holds no memory for it.
    pub(crate) fn settle_http(&mut self) {
        if self.http_memory.held.is_some() && self.http_bytes() == 0 {
            self.http_memory = HttpMemory::default();
        }
    }

    fn fields_of_list(&mut self, entries: Vec<(String, Vec<u8>)>) -> HeaderAnswer<Fields> {
        let sizes = entries.iter().map(|(name, value)| bytes_of_field(name.len(), value.len()));
        self.http_room(sizes.fold(0, usize::saturating_add))?;
        answer(types::HostFields::from_list(&mut self.http(), entries))
    }

    fn append(&mut self, fields: Fields, name: String, value: Vec<u8>) -> HeaderAnswer<()> {
        self.http_room(bytes_of_field(name.len(), value.len()))?;
        answer(types::HostFields::append(&mut self.http(), fields, name, value))
    }

    fn set(&mut self, fields: Fields, name: String, values: Vec<Vec<u8>>) -> HeaderAnswer<()> {
        let sizes = values.iter().map(|value| bytes_of_field(name.len(), value.len()));
        self.http_room(sizes.fold(0, usize::saturating_add))?;
        answer(types::HostFields::set(&mut self.http(), fields, name, values))
    }

    /// A copy shares its fields with the first list until one of them is changed. It counts from
    /// the beginning.
    fn copy(&mut self, fields: Fields) -> wasmtime::Result<(Fields,)> {
        let bytes = bytes_of_fields(self.table.get(&fields)?);
        self.http_room(bytes)?;
        Ok((types::HostFields::clone(&mut self.http(), fields)?,))
    }

    /// The fields of a response, which last when the response is dropped.
    fn response_headers(
        &mut self,
        response: Resource<HostIncomingResponse>,
    ) -> wasmtime::Result<(Fields,)> {
        let bytes = bytes_of_fields(&self.table.get(&response)?.headers);
        self.http_room(bytes)?;
        Ok((types::HostIncomingResponse::headers(&mut self.http(), response)?,))
    }

    fn set_method(
        &mut self,
        request: Request,
        method: Method,
    ) -> wasmtime::Result<(Result<(), ()>,)> {
        self.http_room(bytes_of_method(&method))?;
        Ok((types::HostOutgoingRequest::set_method(&mut self.http(), request, method)?,))
    }

    fn set_path(
        &mut self,
        request: Request,
        path: Option<String>,
    ) -> wasmtime::Result<(Result<(), ()>,)> {
        self.http_room(path.as_ref().map_or(0, String::len))?;
        Ok((types::HostOutgoingRequest::set_path_with_query(&mut self.http(), request, path)?,))
    }

    fn set_authority(
        &mut self,
        request: Request,
        authority: Option<String>,
    ) -> wasmtime::Result<(Result<(), ()>,)> {
        self.http_room(authority.as_ref().map_or(0, String::len))?;
        Ok((types::HostOutgoingRequest::set_authority(&mut self.http(), request, authority)?,))
    }

    /// Trailers are not sent, so nothing keeps them.
    fn finish_body(
        &mut self,
        body: Resource<HostOutgoingBody>,
        trailers: Option<Fields>,
    ) -> wasmtime::Result<(Result<(), ErrorCode>,)> {
        if let Some(trailers) = trailers {
            self.table.delete(trailers)?;
        }
        match types::HostOutgoingBody::finish(&mut self.http(), body, None) {
            Ok(()) => Ok((Ok(()),)),
            Err(error) => HttpError::downcast(error).map(|code| (Err(code),)),
        }
    }
}

type HeaderAnswer<T> = wasmtime::Result<(Result<T, HeaderError>,)>;

fn answer<T>(result: HeaderResult<T>) -> HeaderAnswer<T> {
    match result {
        Ok(value) => Ok((Ok(value),)),
        Err(error) => error.downcast().map(|code| (Err(code),)),
    }
}

fn bytes_of_method(method: &Method) -> usize {
    if let Method::Other(name) = method { name.len() } else { 0 }
}

fn bytes_of_request(request: &HostOutgoingRequest) -> usize {
    let texts = [&request.path_with_query, &request.authority]
        .map(|text| text.as_ref().map_or(0, String::len));
    let texts = texts
        .iter()
        .fold(bytes_of_method(&request.method), |sum, bytes| sum.saturating_add(*bytes));
    texts.saturating_add(bytes_of_fields(&request.headers))
}

/// Puts these calls in the place of WASI's.
pub(super) fn replace(linker: &mut Linker<State>) -> wasmtime::Result<()> {
    linker.allow_shadowing(true);
    let mut types = linker.instance("wasi:http/types@0.2.12")?;
    types.func_wrap("[static]fields.from-list", |mut store: Store<'_>, (entries,)| {
        store.data_mut().fields_of_list(entries)
    })?;
    types.func_wrap("[method]fields.append", |mut store: Store<'_>, (fields, name, value)| {
        store.data_mut().append(fields, name, value)
    })?;
    types.func_wrap("[method]fields.set", |mut store: Store<'_>, (fields, name, values)| {
        store.data_mut().set(fields, name, values)
    })?;
    types.func_wrap("[method]fields.clone", |mut store: Store<'_>, (fields,)| {
        store.data_mut().copy(fields)
    })?;
    types.func_wrap("[method]incoming-response.headers", |mut store: Store<'_>, (response,)| {
        store.data_mut().response_headers(response)
    })?;
    types.func_wrap(
        "[method]outgoing-request.set-method",
        |mut store: Store<'_>, (request, method)| store.data_mut().set_method(request, method),
    )?;
    types.func_wrap(
        "[method]outgoing-request.set-path-with-query",
        |mut store: Store<'_>, (request, path)| store.data_mut().set_path(request, path),
    )?;
    types.func_wrap(
        "[method]outgoing-request.set-authority",
        |mut store: Store<'_>, (request, authority)| {
            store.data_mut().set_authority(request, authority)
        },
    )?;
    types.func_wrap("[static]outgoing-body.finish", |mut store: Store<'_>, (body, trailers)| {
        store.data_mut().finish_body(body, trailers)
    })?;
    linker.allow_shadowing(false);
    Ok(())
}
