//! A company as a whole: export, import, restore in place and erasure. Rows of tables are exported
//! and imported as they are; records go through their providers.

mod copy;
mod erasure;
mod export;
mod import;
mod oldest_first;
mod transfer;

pub use copy::{Copied, CopyEnd, CopyError, copy_store, is_cut_copy};
pub use export::Line as ExportLine;
pub use import::{
    ImportOptions, Imported, MAX_LINE as MAX_IMPORT_LINE, Restored, undo_cut_imports,
};
pub use transfer::Transfer;
