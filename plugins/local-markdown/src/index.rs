//! The search index, for searching without reading files. Except for ids, paths and partitions everything is a number
//! or a hash, so that 100,000 records fit into some tens of megabytes and a search touches little memory.

mod analysis;
mod entry;
mod pages;
mod postings;
mod sessions;
mod table;

pub(crate) use analysis::Analysis;
use analysis::Terms;
pub(crate) use entry::{Entry, Key, Partition, is_document, matches, member, partition};
pub(crate) use pages::{PAGE_RECORDS, Pages, decode, seal, stored_size, unseal};
pub(crate) use postings::{ByHash, Posting};
pub(crate) use table::{Doc, DocId, Index};
