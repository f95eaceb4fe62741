//! The last notices of the feed, bounded in count and in memory.

use std::collections::VecDeque;
use std::sync::Arc;

use super::weight::weight;
use super::{HostEvent, Notice};
use memhost_types::CompanyId;

/// Notices that are kept.
pub(super) const KEPT: usize = 1_024;
/// How much memory they may keep, in bytes.
pub(super) const MAX_KEPT_BYTES: usize = 8 * 1024 * 1024;

/// The notices that are kept, by number.
#[derive(Default)]
pub(super) struct Ring {
    /// The number of the first one that is kept.
    pub(super) first: u64,
    pub(super) kept: VecDeque<Arc<Notice>>,
    /// The memory that they keep.
    pub(super) bytes: usize,
}

impl Ring {
    pub(super) fn end(&self) -> u64 {
        self.first + self.kept.len() as u64
    }

    /// Puts a reset in the place of each notice of an erased company: the numbers of the others
    /// stay.
    pub(super) fn forget(&mut self, company: &CompanyId) {
        for notice in
            self.kept.iter_mut().filter(|notice| notice.company_id.as_ref() == Some(company))
        {
            self.bytes -= weight(&notice.happened);
            *notice = Arc::new(Notice {
                id: notice.id.clone(),
                company_id: None,
                happened: HostEvent::Reset,
            });
            self.bytes += weight(&notice.happened);
        }
    }

    pub(super) fn push(&mut self, notice: Arc<Notice>) {
        self.bytes += weight(&notice.happened);
        self.kept.push_back(notice);
        while self.kept.len() > KEPT || (self.bytes > MAX_KEPT_BYTES && self.kept.len() > 1) {
            let Some(oldest) = self.kept.pop_front() else { return };
            self.bytes -= weight(&oldest.happened);
            self.first += 1;
        }
    }
}
