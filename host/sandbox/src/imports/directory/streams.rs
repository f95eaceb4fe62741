//! Streams of files. Each has a buffer of the host, which counts as the guest's memory, and one
//! that writes asks for room before it does.

use std::sync::Arc;

use bytes::Bytes;
use wasmtime::component::Resource;
use wasmtime_wasi::filesystem::WasiFilesystemView;
use wasmtime_wasi::p2::bindings::filesystem::types::{ErrorCode, Filesize, HostDescriptor};
use wasmtime_wasi::p2::{
    DynInputStream, DynOutputStream, FsResult, InputStream, OutputStream, Pollable, StreamError,
    StreamResult,
};

use super::File;
use crate::imports::state::State;
use crate::limiter::Held;
use crate::quota::{DirectoryQuota, bytes};

/// Linux's number for a quota that is used up: WASI knows the error of a stream by its number.
const EDQUOT: i32 = 122;
/// The most that a stream of WASI reads or writes at once, in bytes.
const STREAM_BYTES: usize = 64 << 10;

impl State {
    pub(super) async fn write_stream(
        &mut self,
        file: File,
        offset: Filesize,
    ) -> FsResult<Resource<DynOutputStream>> {
        let gap = self.gap(&file, offset).await?;
        self.take(bytes(gap)).await?;
        let stream = self.filesystem().write_via_stream(file, offset)?;
        self.bounded(stream)
    }

    pub(super) fn append_stream(&mut self, file: File) -> FsResult<Resource<DynOutputStream>> {
        let stream = self.filesystem().append_via_stream(file)?;
        self.bounded(stream)
    }

    fn bounded(
        &mut self,
        stream: Resource<DynOutputStream>,
    ) -> FsResult<Resource<DynOutputStream>> {
        let inner = self.table.delete(stream)?;
        let held = self.buffer()?;
        let bounded: DynOutputStream =
            Box::new(Writing { inner, quota: self.quota.clone(), _memory: held });
        Ok(self.table.push(bounded)?)
    }

    pub(super) fn read_stream(
        &mut self,
        file: File,
        offset: Filesize,
    ) -> FsResult<Resource<DynInputStream>> {
        let stream = self.filesystem().read_via_stream(file, offset)?;
        let inner = self.table.delete(stream)?;
        let held = self.buffer()?;
        let bounded: DynInputStream = Box::new(Reading { inner, _memory: held });
        Ok(self.table.push(bounded)?)
    }

    fn buffer(&self) -> FsResult<Held> {
        Ok(self.limiter.memory().hold(STREAM_BYTES).ok_or(ErrorCode::InsufficientMemory)?)
    }
}

/// A stream that reads a file.
struct Reading {
    inner: DynInputStream,
    _memory: Held,
}

#[wasmtime_wasi::async_trait]
impl Pollable for Reading {
    async fn ready(&mut self) {
        self.inner.ready().await;
    }
}

#[wasmtime_wasi::async_trait]
impl InputStream for Reading {
    fn read(&mut self, size: usize) -> StreamResult<Bytes> {
        self.inner.read(size)
    }

    async fn blocking_read(&mut self, size: usize) -> StreamResult<Bytes> {
        self.inner.blocking_read(size).await
    }

    async fn cancel(&mut self) {
        self.inner.cancel().await;
    }
}

/// A stream that writes a file, and asks before it does.
struct Writing {
    inner: DynOutputStream,
    quota: Option<Arc<DirectoryQuota>>,
    _memory: Held,
}

impl Writing {
    /// Whether the directory must be measured before it is known how much may be written.
    fn is_unknown(&self) -> bool {
        self.quota.as_ref().is_some_and(|quota| quota.needs_measuring(bytes(STREAM_BYTES as u64)))
    }
}

fn full() -> StreamError {
    StreamError::LastOperationFailed(std::io::Error::from_raw_os_error(EDQUOT).into())
}

#[wasmtime_wasi::async_trait]
impl Pollable for Writing {
    async fn ready(&mut self) {
        if let Some(quota) = &self.quota {
            quota.renew(bytes(STREAM_BYTES as u64)).await;
        }
        self.inner.ready().await;
    }
}

#[wasmtime_wasi::async_trait]
impl OutputStream for Writing {
    fn write(&mut self, data: Bytes) -> StreamResult<()> {
        if let Some(quota) = &self.quota {
            quota.take_known(bytes(data.len() as u64)).map_err(|()| full())?;
        }
        self.inner.write(data)
    }

    async fn blocking_write_and_flush(&mut self, data: Bytes) -> StreamResult<()> {
        if let Some(quota) = &self.quota {
            quota.take(bytes(data.len() as u64)).await.map_err(|()| full())?;
        }
        self.inner.blocking_write_and_flush(data).await
    }

    fn flush(&mut self) -> StreamResult<()> {
        self.inner.flush()
    }

    fn check_write(&mut self) -> StreamResult<usize> {
        // Not ready: who waits for it gets the directory measured.
        if self.is_unknown() { Ok(0) } else { self.inner.check_write() }
    }

    async fn cancel(&mut self) {
        self.inner.cancel().await;
    }
}
