//! Listings of directories, one page after the other. WASI's own reads the whole directory into the
//! host's memory and looks at each file, in one call.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::sync::Arc;

use rustix::fs::AtFlags;
use wasmtime::component::Resource;
use wasmtime_wasi::p2::FsResult;
use wasmtime_wasi::p2::bindings::filesystem::types::{
    Descriptor, DescriptorType, DirectoryEntry, ErrorCode,
};

use super::File;
use crate::imports::state::State;
use crate::limiter::Held;
use crate::open_files::Opened;
use memhost_files::{Kind, Listing, PAGE_BYTES};

/// What one listing counts as in the guest's memory, in bytes: a page, and the names that were made
/// of it.
const LISTING_BYTES: usize = 4 * PAGE_BYTES;

/// A listing that a guest has open.
pub(super) struct Listed {
    listing: Listing,
    directory: Arc<std::fs::File>,
    /// Lives as long as the listing's own open file.
    _open: Arc<()>,
    _memory: Held,
}

impl State {
    pub(super) fn list(&mut self, directory: &File) -> FsResult<Resource<Listed>> {
        let directory = match self.table.get(directory)? {
            Descriptor::Dir(dir) => Arc::clone(&dir.dir),
            Descriptor::File(_) => return Err(ErrorCode::NotDirectory.into()),
        };
        self.room_for_a_file()?;
        let memory =
            self.limiter.memory().hold(LISTING_BYTES).ok_or(ErrorCode::InsufficientMemory)?;
        let listed = Listed {
            listing: Listing::of(&directory)?,
            directory,
            _open: Arc::new(()),
            _memory: memory,
        };
        let open: Opened = Arc::clone(&listed._open) as _;
        self.files.add(&open);
        Ok(self.table.push(listed)?)
    }

    pub(super) fn next_entry(
        &mut self,
        listing: &Resource<Listed>,
    ) -> FsResult<Option<DirectoryEntry>> {
        let listed = self.table.get_mut(listing)?;
        let (entry, name) = loop {
            let Some(entry) = listed.listing.next_entry()? else { return Ok(None) };
            match entry.name.to_str().map(str::to_owned) {
                Some(name) => break (entry, name),
                // The contract has no such name, and the guest may need the entries behind it.
                None => self.log.host("warn", &left_out(&entry.name)),
            }
        };
        let kind = match entry.kind {
            // A file system that does not say it in its listing.
            Kind::Unknown => {
                rustix::fs::statat(&listed.directory, &entry.name, AtFlags::SYMLINK_NOFOLLOW)
                    .map_or(Kind::Unknown, |stat| {
                        rustix::fs::FileType::from_raw_mode(stat.st_mode).into()
                    })
            }
            kind => kind,
        };
        let type_ = match kind {
            Kind::File => DescriptorType::RegularFile,
            Kind::Directory => DescriptorType::Directory,
            Kind::Link => DescriptorType::SymbolicLink,
            Kind::Special | Kind::Unknown => DescriptorType::Unknown,
        };
        Ok(Some(DirectoryEntry { type_, name }))
    }
}

/// Tells the operator which entry a provider does not see.
fn left_out(name: &OsStr) -> String {
    format!(
        "`{}` in the provider's directory is left out, because its name is not UTF-8; rename it",
        name.as_bytes().escape_ascii()
    )
}
