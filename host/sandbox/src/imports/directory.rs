//! The calls of `wasi:filesystem` that make something grow, with a question before each.

use std::sync::Arc;

use bytes::Bytes;
use wasmtime::StoreContextMut;
use wasmtime::component::{Linker, Resource};
use wasmtime_wasi::filesystem::WasiFilesystemView;
use wasmtime_wasi::p2::bindings::filesystem::types::{
    Descriptor, DescriptorFlags, ErrorCode, Filesize, HostDescriptor, OpenFlags, PathFlags,
};
use wasmtime_wasi::p2::{DynOutputStream, FsError, FsResult, OutputStream, Pollable, StreamError, StreamResult};

use super::State;
use crate::quota::{DirectoryQuota, DirectoryUsage, ONE_FILE, bytes};

/// Linux's number for a quota that is used up: WASI knows the error of a stream by its number.
const EDQUOT: i32 = 122;

type File = Resource<Descriptor>;
type Store<'a> = StoreContextMut<'a, State>;

impl State {
    fn take(&self, wanted: DirectoryUsage) -> FsResult<()> {
        match &self.quota {
            None => Ok(()),
            Some(quota) => quota.take(wanted).map_err(|()| ErrorCode::Quota.into()),
        }
    }

    /// What a file grows by when something begins at `offset`: a hole takes no disk here and does in a copy.
    async fn gap(&mut self, file: &File, offset: Filesize) -> FsResult<u64> {
        if offset == 0 || self.quota.is_none() {
            return Ok(0);
        }
        let stat = self.filesystem().stat(Resource::new_borrow(file.rep())).await?;
        Ok(offset.saturating_sub(stat.size))
    }

    async fn open(
        &mut self,
        directory: File,
        follow: PathFlags,
        path: String,
        open: OpenFlags,
        flags: DescriptorFlags,
    ) -> FsResult<File> {
        if open.contains(OpenFlags::CREATE) {
            self.take(ONE_FILE)?;
        }
        self.filesystem().open_at(directory, follow, path, open, flags).await
    }

    async fn create_directory(&mut self, directory: File, path: String) -> FsResult<()> {
        self.take(ONE_FILE)?;
        self.filesystem().create_directory_at(directory, path).await
    }

    async fn symlink(&mut self, directory: File, old: String, new: String) -> FsResult<()> {
        self.take(ONE_FILE)?;
        self.filesystem().symlink_at(directory, old, new).await
    }

    async fn link(&mut self, from: File, follow: PathFlags, old: String, to: File, new: String) -> FsResult<()> {
        self.take(ONE_FILE)?;
        self.filesystem().link_at(from, follow, old, to, new).await
    }

    async fn write(&mut self, file: File, data: Vec<u8>, offset: Filesize) -> FsResult<Filesize> {
        let gap = self.gap(&file, offset).await?;
        self.take(bytes(gap.saturating_add(data.len() as u64)))?;
        self.filesystem().write(file, data, offset).await
    }

    async fn set_size(&mut self, file: File, size: Filesize) -> FsResult<()> {
        let gap = self.gap(&file, size).await?;
        self.take(bytes(gap))?;
        self.filesystem().set_size(file, size).await
    }

    async fn write_stream(&mut self, file: File, offset: Filesize) -> FsResult<Resource<DynOutputStream>> {
        let gap = self.gap(&file, offset).await?;
        self.take(bytes(gap))?;
        let stream = self.filesystem().write_via_stream(file, offset)?;
        self.bounded(stream)
    }

    fn append_stream(&mut self, file: File) -> FsResult<Resource<DynOutputStream>> {
        let stream = self.filesystem().append_via_stream(file)?;
        self.bounded(stream)
    }

    fn bounded(&mut self, stream: Resource<DynOutputStream>) -> FsResult<Resource<DynOutputStream>> {
        let Some(quota) = self.quota.clone() else { return Ok(stream) };
        let inner = self.table.delete(stream)?;
        let bounded: DynOutputStream = Box::new(Bounded { inner, quota });
        Ok(self.table.push(bounded)?)
    }
}

/// A file's stream that asks before it writes.
struct Bounded {
    inner: DynOutputStream,
    quota: Arc<DirectoryQuota>,
}

#[wasmtime_wasi::async_trait]
impl Pollable for Bounded {
    async fn ready(&mut self) {
        self.inner.ready().await;
    }
}

#[wasmtime_wasi::async_trait]
impl OutputStream for Bounded {
    fn write(&mut self, data: Bytes) -> StreamResult<()> {
        self.quota
            .take(bytes(data.len() as u64))
            .map_err(|()| StreamError::LastOperationFailed(std::io::Error::from_raw_os_error(EDQUOT).into()))?;
        self.inner.write(data)
    }
    fn flush(&mut self) -> StreamResult<()> {
        self.inner.flush()
    }
    fn check_write(&mut self) -> StreamResult<usize> {
        self.inner.check_write()
    }
}

type Answer<T> = wasmtime::Result<(Result<T, ErrorCode>,)>;

fn answer<T>(result: FsResult<T>) -> Answer<T> {
    match result {
        Ok(value) => Ok((Ok(value),)),
        Err(error) => FsError::downcast(error).map(|code| (Err(code),)),
    }
}

/// Puts the asking calls in the place of WASI's own.
pub(super) fn replace(linker: &mut Linker<State>) -> wasmtime::Result<()> {
    linker.allow_shadowing(true);
    let mut types = linker.instance("wasi:filesystem/types@0.2.12")?;
    types.func_wrap_async(
        "[method]descriptor.open-at",
        |mut store: Store<'_>, (directory, follow, path, open, flags)| {
            Box::new(async move { answer(store.data_mut().open(directory, follow, path, open, flags).await) })
        },
    )?;
    types.func_wrap_async("[method]descriptor.create-directory-at", |mut store: Store<'_>, (directory, path)| {
        Box::new(async move { answer(store.data_mut().create_directory(directory, path).await) })
    })?;
    types.func_wrap_async("[method]descriptor.symlink-at", |mut store: Store<'_>, (directory, old, new)| {
        Box::new(async move { answer(store.data_mut().symlink(directory, old, new).await) })
    })?;
    types.func_wrap_async("[method]descriptor.link-at", |mut store: Store<'_>, (from, follow, old, to, new)| {
        Box::new(async move { answer(store.data_mut().link(from, follow, old, to, new).await) })
    })?;
    types.func_wrap_async("[method]descriptor.write", |mut store: Store<'_>, (file, data, offset)| {
        Box::new(async move { answer(store.data_mut().write(file, data, offset).await) })
    })?;
    types.func_wrap_async("[method]descriptor.set-size", |mut store: Store<'_>, (file, size)| {
        Box::new(async move { answer(store.data_mut().set_size(file, size).await) })
    })?;
    types.func_wrap_async("[method]descriptor.write-via-stream", |mut store: Store<'_>, (file, offset)| {
        Box::new(async move { answer(store.data_mut().write_stream(file, offset).await) })
    })?;
    types.func_wrap("[method]descriptor.append-via-stream", |mut store: Store<'_>, (file,)| {
        answer(store.data_mut().append_stream(file))
    })?;
    linker.allow_shadowing(false);
    Ok(())
}
