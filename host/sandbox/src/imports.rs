//! The host's side of every import. An import that was not granted is linked, too, and answers
//! `denied`.

mod directory;
mod headers;
mod state;

use wasmtime::Engine;
use wasmtime::component::{HasSelf, Linker};

pub(super) use self::state::{GuestStore, HttpMemory, State};
use super::contract::MemoryProvider;

/// Everything that a component can import.
pub(super) fn linker(engine: &Engine) -> wasmtime::Result<Linker<State>> {
    let mut linker = Linker::new(engine);
    wasmtime_wasi::p2::add_to_linker_async(&mut linker)?;
    wasmtime_wasi_http::p2::add_only_http_to_linker_async(&mut linker)?;
    directory::replace(&mut linker)?;
    headers::replace(&mut linker)?;
    MemoryProvider::add_to_linker::<State, HasSelf<State>>(&mut linker, |state| state)?;
    Ok(linker)
}
