//! The calls of `wasi:filesystem` that make something grow, with a question before each; those that
//! open something, which is counted; and those that can take long, on a blocking thread. The others
//! are WASI's own.

mod link;
mod listing;
mod streams;

use std::sync::Arc;

use wasmtime::component::Resource;
use wasmtime_wasi::filesystem::WasiFilesystemView;
use wasmtime_wasi::p2::FsResult;
use wasmtime_wasi::p2::bindings::filesystem::types::{
    Descriptor, DescriptorFlags, ErrorCode, Filesize, HostDescriptor, OpenFlags, PathFlags,
};

use super::state::State;
use crate::open_files::{FAST_BYTES, Opened, is_slow_to_close};
use crate::quota::{DirectoryUsage, ONE_FILE, bytes};

pub(super) use self::link::replace;

type File = Resource<Descriptor>;

impl State {
    async fn take(&mut self, wanted: DirectoryUsage) -> FsResult<()> {
        match &self.quota {
            None => Ok(()),
            Some(quota) => quota.take(wanted).await.map_err(|()| ErrorCode::Quota.into()),
        }
    }

    /// The size of an open file.
    async fn size(&mut self, file: &File) -> FsResult<u64> {
        Ok(self.filesystem().stat(borrowed(file)).await?.size)
    }

    /// What a file grows by when something begins at `offset`: a hole takes no disk here and does
    /// in a copy.
    async fn gap(&mut self, file: &File, offset: Filesize) -> FsResult<u64> {
        if offset == 0 || self.quota.is_none() {
            return Ok(0);
        }
        Ok(offset.saturating_sub(self.size(file).await?))
    }

    /// Whether a name stands for a file that takes long to free.
    async fn is_large(&mut self, directory: &File, path: &str) -> bool {
        let mut files = self.filesystem();
        let stat = files.stat_at(borrowed(directory), PathFlags::empty(), path.to_owned());
        stat.await.is_ok_and(|stat| stat.size > FAST_BYTES)
    }

    /// The same file or directory, whose calls run on a blocking thread.
    fn aside(&mut self, file: &File) -> FsResult<File> {
        use wasmtime_wasi::filesystem::{Dir, File};
        let copy = match self.table.get(file)? {
            Descriptor::File(file) => Descriptor::File(File::new(
                file.file.try_clone()?,
                file.perms,
                file.open_mode,
                false,
            )),
            Descriptor::Dir(dir) => {
                Descriptor::Dir(Dir::new(dir.dir.try_clone()?, dir.perms, dir.open_mode, false))
            }
        };
        Ok(self.table.push(copy)?)
    }

    /// Ends what [`State::aside`] began.
    fn back<T>(&mut self, aside: &File, done: FsResult<T>) -> FsResult<T> {
        self.table.delete(Resource::<Descriptor>::new_own(aside.rep()))?;
        done
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
            self.take(ONE_FILE).await?;
        }
        self.room_for_a_file()?;
        let is_slow = open.contains(OpenFlags::TRUNCATE) && self.is_large(&directory, &path).await;
        let opened = match is_slow {
            false => self.filesystem().open_at(directory, follow, path, open, flags).await,
            true => {
                let aside = self.aside(&directory)?;
                let opened =
                    self.filesystem().open_at(borrowed(&aside), follow, path, open, flags).await;
                self.back(&aside, opened)
            }
        }?;
        let open: Opened = match self.table.get(&opened)? {
            Descriptor::File(file) => Arc::clone(&file.file) as _,
            Descriptor::Dir(dir) => Arc::clone(&dir.dir) as _,
        };
        self.files.add(&open);
        Ok(opened)
    }

    fn room_for_a_file(&self) -> FsResult<()> {
        if self.files.has_room() {
            return Ok(());
        }
        self.log.host("warn", "too many files are open; close some, as `host/docs/wasi.md` says");
        Err(ErrorCode::InsufficientMemory.into())
    }

    async fn create_directory(&mut self, directory: File, path: String) -> FsResult<()> {
        self.take(ONE_FILE).await?;
        self.filesystem().create_directory_at(directory, path).await
    }

    async fn symlink(&mut self, directory: File, old: String, new: String) -> FsResult<()> {
        self.take(ONE_FILE).await?;
        self.filesystem().symlink_at(directory, old, new).await
    }

    async fn link(
        &mut self,
        from: File,
        follow: PathFlags,
        old: String,
        to: File,
        new: String,
    ) -> FsResult<()> {
        self.take(ONE_FILE).await?;
        self.filesystem().link_at(from, follow, old, to, new).await
    }

    async fn unlink(&mut self, directory: File, path: String) -> FsResult<()> {
        if !self.is_large(&directory, &path).await {
            return self.filesystem().unlink_file_at(directory, path).await;
        }
        let aside = self.aside(&directory)?;
        let done = self.filesystem().unlink_file_at(borrowed(&aside), path).await;
        self.back(&aside, done)
    }

    async fn rename(&mut self, from: File, old: String, to: File, new: String) -> FsResult<()> {
        if !self.is_large(&to, &new).await {
            return self.filesystem().rename_at(from, old, to, new).await;
        }
        let aside = self.aside(&from)?;
        let done = self.filesystem().rename_at(borrowed(&aside), old, to, new).await;
        self.back(&aside, done)
    }

    async fn write(&mut self, file: File, data: Vec<u8>, offset: Filesize) -> FsResult<Filesize> {
        let gap = self.gap(&file, offset).await?;
        self.take(bytes(gap.saturating_add(data.len() as u64))).await?;
        if data.len() as u64 <= FAST_BYTES {
            return self.filesystem().write(file, data, offset).await;
        }
        let aside = self.aside(&file)?;
        let done = self.filesystem().write(borrowed(&aside), data, offset).await;
        self.back(&aside, done)
    }

    async fn set_size(&mut self, file: File, size: Filesize) -> FsResult<()> {
        let now = self.size(&file).await?;
        self.take(bytes(size.saturating_sub(now))).await?;
        if now.saturating_sub(size) <= FAST_BYTES {
            return self.filesystem().set_size(file, size).await;
        }
        let aside = self.aside(&file)?;
        let done = self.filesystem().set_size(borrowed(&aside), size).await;
        self.back(&aside, done)
    }

    async fn sync(&mut self, file: File, data_only: bool) -> FsResult<()> {
        let aside = self.aside(&file)?;
        let done = match data_only {
            true => self.filesystem().sync_data(borrowed(&aside)).await,
            false => self.filesystem().sync(borrowed(&aside)).await,
        };
        self.back(&aside, done)
    }

    async fn close(&mut self, file: File) -> wasmtime::Result<()> {
        if let Descriptor::File(file) = self.table.delete(file)?
            && is_slow_to_close(&file.file)
        {
            drop(memhost_executor::spawn_blocking(move || drop(file)).await);
        }
        Ok(())
    }
}

fn borrowed(file: &File) -> File {
    Resource::new_borrow(file.rep())
}
