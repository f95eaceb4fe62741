//! The search index, for searching without reading files. Except for ids, paths and partitions
//! everything is a number or a hash, so that 100,000 records fit into some tens of megabytes and a
//! search touches little memory.

mod analysis;
mod entry;
mod pages;
mod passage;
mod postings;
mod sessions;
mod table;

pub(crate) use analysis::Analysis;
use analysis::{Bytes, Terms, Weighted};
pub(crate) use entry::{Entry, Key, Partition, is_issue, matches, member, partition, stands_alone};
pub(crate) use pages::{Pages, decode, seal, stored_size, unseal};
pub(crate) use passage::Passage;
pub(crate) use postings::{ByHash, Posting};
pub(crate) use table::{Doc, DocId, Index};
