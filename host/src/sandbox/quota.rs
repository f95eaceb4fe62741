//! How much a binding's private directory may hold. WASI knows no such limit, so the calls that make something grow are
//! replaced by ones that ask first.
//!
//! Counting every file at every write would cost more than the write. Instead the room that is left is taken from as
//! guests write, and measured anew only when it is used up: what was overwritten or deleted meanwhile is found then. So
//! the directory never holds more than its grant, and what it may still take is never less than shown.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use parking_lot::Mutex;
use wasmtime::StoreContextMut;
use wasmtime::component::{Linker, Resource};
use wasmtime_wasi::filesystem::WasiFilesystemView;
use wasmtime_wasi::p2::bindings::filesystem::types::{
    Descriptor, DescriptorFlags, ErrorCode, Filesize, HostDescriptor, OpenFlags, PathFlags,
};
use wasmtime_wasi::p2::{DynOutputStream, FsError, FsResult, OutputStream, Pollable, StreamError, StreamResult};

use super::imports::State;

/// A guest that keeps trying at its limit does not make the host walk its directory more often than this.
const MEASURE_AGAIN: Duration = Duration::from_secs(1);

/// Linux's number for a quota that is used up: WASI knows the error of a stream by its number.
const EDQUOT: i32 = 122;

/// What a directory holds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DirectoryUsage {
    /// Apparent sizes of all files together.
    pub bytes: u64,
    /// Files, directories and links, without the directory itself.
    pub files: u64,
}

/// A directory and what it may hold.
pub struct DirectoryQuota {
    path: PathBuf,
    max: DirectoryUsage,
    left: Mutex<Left>,
    /// Since a call last asked: a guest's own word for it is often no more than `I/O error`.
    refused: AtomicBool,
}

struct Left {
    room: DirectoryUsage,
    measured: Option<Instant>,
}

impl DirectoryQuota {
    /// Measures the directory: call it where blocking is allowed.
    pub fn new(path: &Path, max_bytes: u64, max_files: u64) -> Self {
        let max = DirectoryUsage { bytes: max_bytes, files: max_files };
        let left = Left { room: DirectoryUsage::default(), measured: None };
        let quota = Self { path: path.to_owned(), max, left: Mutex::new(left), refused: AtomicBool::new(false) };
        quota.measure(&mut quota.left.lock());
        quota
    }

    /// The directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What a guest that was refused ran into, once.
    pub(super) fn take_refusal(&self) -> Option<String> {
        let DirectoryUsage { bytes, files } = self.max;
        self.refused.swap(false, Ordering::Relaxed).then(|| {
            format!("its directory is full: the limits are `directoryBytes` of {bytes} and `directoryFiles` of {files}")
        })
    }

    /// What it holds at most, as far as is known without measuring.
    pub fn usage(&self) -> DirectoryUsage {
        let room = self.left.lock().room;
        DirectoryUsage {
            bytes: self.max.bytes.saturating_sub(room.bytes),
            files: self.max.files.saturating_sub(room.files),
        }
    }

    fn measure(&self, left: &mut Left) {
        let used = measure(&self.path);
        left.room.bytes = self.max.bytes.saturating_sub(used.bytes);
        left.room.files = self.max.files.saturating_sub(used.files);
        left.measured = Some(Instant::now());
    }

    /// Takes room, if there is as much.
    fn take(&self, wanted: DirectoryUsage) -> Result<(), ()> {
        let mut left = self.left.lock();
        let fits = |room: &DirectoryUsage| wanted.bytes <= room.bytes && wanted.files <= room.files;
        if !fits(&left.room) && left.measured.is_none_or(|measured| measured.elapsed() >= MEASURE_AGAIN) {
            self.measure(&mut left);
        }
        if !fits(&left.room) {
            self.refused.store(true, Ordering::Relaxed);
            return Err(());
        }
        left.room.bytes -= wanted.bytes;
        left.room.files -= wanted.files;
        Ok(())
    }
}

/// Links are counted and never followed. What cannot be read counts nothing: it is the host's own user's.
fn measure(directory: &Path) -> DirectoryUsage {
    let mut used = DirectoryUsage::default();
    let mut pending = vec![directory.to_owned()];
    while let Some(directory) = pending.pop() {
        let Ok(entries) = std::fs::read_dir(&directory) else { continue };
        for entry in entries.flatten() {
            used.files += 1;
            let Ok(metadata) = entry.metadata() else { continue };
            if metadata.is_dir() {
                pending.push(entry.path());
            } else {
                used.bytes += metadata.len();
            }
        }
    }
    used
}

fn bytes(bytes: u64) -> DirectoryUsage {
    DirectoryUsage { bytes, files: 0 }
}

const ONE_FILE: DirectoryUsage = DirectoryUsage { bytes: 0, files: 1 };

impl State {
    fn take(&self, wanted: DirectoryUsage) -> FsResult<()> {
        match &self.quota {
            None => Ok(()),
            Some(quota) => quota.take(wanted).map_err(|()| ErrorCode::Quota.into()),
        }
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
        |mut store: StoreContextMut<'_, State>,
         (fd, follow, path, open, flags): (
            Resource<Descriptor>,
            PathFlags,
            String,
            OpenFlags,
            DescriptorFlags,
        )| {
            Box::new(async move {
                let state = store.data_mut();
                if open.contains(OpenFlags::CREATE)
                    && let Err(error) = state.take(ONE_FILE)
                {
                    return answer(Err(error));
                }
                answer(state.filesystem().open_at(fd, follow, path, open, flags).await)
            })
        },
    )?;
    types.func_wrap_async(
        "[method]descriptor.create-directory-at",
        |mut store: StoreContextMut<'_, State>, (fd, path): (Resource<Descriptor>, String)| {
            Box::new(async move {
                let state = store.data_mut();
                if let Err(error) = state.take(ONE_FILE) {
                    return answer(Err(error));
                }
                answer(state.filesystem().create_directory_at(fd, path).await)
            })
        },
    )?;
    types.func_wrap_async(
        "[method]descriptor.symlink-at",
        |mut store: StoreContextMut<'_, State>, (fd, old, new): (Resource<Descriptor>, String, String)| {
            Box::new(async move {
                let state = store.data_mut();
                if let Err(error) = state.take(ONE_FILE) {
                    return answer(Err(error));
                }
                answer(state.filesystem().symlink_at(fd, old, new).await)
            })
        },
    )?;
    types.func_wrap_async(
        "[method]descriptor.write",
        |mut store: StoreContextMut<'_, State>, (fd, data, offset): (Resource<Descriptor>, Vec<u8>, Filesize)| {
            Box::new(async move {
                let state = store.data_mut();
                if let Err(error) = state.take(bytes(data.len() as u64)) {
                    return answer(Err(error));
                }
                answer(state.filesystem().write(fd, data, offset).await)
            })
        },
    )?;
    types.func_wrap_async(
        "[method]descriptor.set-size",
        |mut store: StoreContextMut<'_, State>, (fd, size): (Resource<Descriptor>, Filesize)| {
            Box::new(async move {
                let state = store.data_mut();
                let borrowed = Resource::new_borrow(fd.rep());
                let grown = match state.filesystem().stat(borrowed).await {
                    Ok(stat) => size.saturating_sub(stat.size),
                    Err(error) => return answer(Err(error)),
                };
                if let Err(error) = state.take(bytes(grown)) {
                    return answer(Err(error));
                }
                answer(state.filesystem().set_size(fd, size).await)
            })
        },
    )?;
    types.func_wrap(
        "[method]descriptor.write-via-stream",
        |mut store: StoreContextMut<'_, State>, (fd, offset): (Resource<Descriptor>, Filesize)| {
            let state = store.data_mut();
            let stream = state.filesystem().write_via_stream(fd, offset);
            answer(stream.and_then(|stream| state.bounded(stream)))
        },
    )?;
    types.func_wrap(
        "[method]descriptor.append-via-stream",
        |mut store: StoreContextMut<'_, State>, (fd,): (Resource<Descriptor>,)| {
            let state = store.data_mut();
            let stream = state.filesystem().append_via_stream(fd);
            answer(stream.and_then(|stream| state.bounded(stream)))
        },
    )?;
    linker.allow_shadowing(false);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_is_taken_and_found_again() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::create_dir(directory.path().join("sub")).unwrap();
        let file = directory.path().join("sub/file");
        std::fs::write(&file, [0; 60]).unwrap();
        let quota = DirectoryQuota::new(directory.path(), 100, 3);
        assert_eq!(quota.usage(), DirectoryUsage { bytes: 60, files: 2 });
        quota.take(bytes(40)).unwrap();
        quota.take(bytes(1)).unwrap_err();
        quota.take(ONE_FILE).unwrap();
        quota.take(ONE_FILE).unwrap_err();
        std::fs::remove_file(file).unwrap();
        // It was measured a moment ago, and is not measured again at once.
        quota.take(bytes(1)).unwrap_err();
        quota.left.lock().measured = None;
        quota.take(bytes(100)).unwrap();
    }
}
