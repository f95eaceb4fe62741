//! Puts the host's own calls of `wasi:filesystem` in the place of WASI's.

use wasmtime::StoreContextMut;
use wasmtime::component::{Linker, Resource, ResourceType};
use wasmtime_wasi::p2::bindings::filesystem::types::{Descriptor, ErrorCode};
use wasmtime_wasi::p2::{FsError, FsResult};

use super::listing::Listed;
use crate::imports::state::State;

type Store<'a> = StoreContextMut<'a, State>;
type Answer<T> = wasmtime::Result<(Result<T, ErrorCode>,)>;

fn answer<T>(result: FsResult<T>) -> Answer<T> {
    match result {
        Ok(value) => Ok((Ok(value),)),
        Err(error) => FsError::downcast(error).map(|code| (Err(code),)),
    }
}

/// A method of a descriptor with these arguments of the guest, and then the host's own.
macro_rules! method {
    ($types:ident, $name:literal, $function:ident($($argument:ident),*) $(, $own:expr)?) => {
        $types.func_wrap_async($name, |mut store: Store<'_>, ($($argument,)*)| {
            Box::new(
                async move { answer(store.data_mut().$function($($argument),* $(, $own)?).await) }
            )
        })?;
    };
}

pub(crate) fn replace(linker: &mut Linker<State>) -> wasmtime::Result<()> {
    linker.allow_shadowing(true);
    let mut types = linker.instance("wasi:filesystem/types@0.2.12")?;
    method!(types, "[method]descriptor.open-at", open(directory, follow, path, open, flags));
    method!(types, "[method]descriptor.create-directory-at", create_directory(directory, path));
    method!(types, "[method]descriptor.symlink-at", symlink(directory, old, new));
    method!(types, "[method]descriptor.link-at", link(from, follow, old, to, new));
    method!(types, "[method]descriptor.unlink-file-at", unlink(directory, path));
    method!(types, "[method]descriptor.rename-at", rename(from, old, to, new));
    method!(types, "[method]descriptor.write", write(file, data, offset));
    method!(types, "[method]descriptor.set-size", set_size(file, size));
    method!(types, "[method]descriptor.sync", sync(file), false);
    method!(types, "[method]descriptor.sync-data", sync(file), true);
    method!(types, "[method]descriptor.write-via-stream", write_stream(file, offset));
    types.func_wrap("[method]descriptor.append-via-stream", |mut store: Store<'_>, (file,)| {
        answer(store.data_mut().append_stream(file))
    })?;
    types.func_wrap(
        "[method]descriptor.read-via-stream",
        |mut store: Store<'_>, (file, offset)| answer(store.data_mut().read_stream(file, offset)),
    )?;
    types.resource_async("descriptor", ResourceType::host::<Descriptor>(), |mut store, rep| {
        Box::new(async move { store.data_mut().close(Resource::new_own(rep)).await })
    })?;
    types
        .func_wrap("[method]descriptor.read-directory", |mut store: Store<'_>, (directory,)| {
            answer(store.data_mut().list(&directory))
        })?;
    types.func_wrap(
        "[method]directory-entry-stream.read-directory-entry",
        |mut store: Store<'_>, (listing,)| answer(store.data_mut().next_entry(&listing)),
    )?;
    types.resource(
        "directory-entry-stream",
        ResourceType::host::<Listed>(),
        |mut store, rep| {
            store.data_mut().table.delete(Resource::<Listed>::new_own(rep))?;
            Ok(())
        },
    )?;
    linker.allow_shadowing(false);
    Ok(())
}
