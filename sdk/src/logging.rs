//! `log` records become lines on standard error, which the host captures with the operation.

use std::cell::RefCell;
use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};

/// So many warnings are remembered. After that the memory is cleared.
const REMEMBERED: usize = 4_096;

thread_local! {
    static WARNED: RefCell<HashSet<u64>> = RefCell::default();
}

/// Logs a warning unless this instance has logged the same one before: what is wrong with a file or
/// a record is found again at every query.
pub fn warn_once(message: &str) {
    let mut hasher = DefaultHasher::new();
    message.hash(&mut hasher);
    let is_new = WARNED.with_borrow_mut(|warned| {
        if warned.len() >= REMEMBERED {
            warned.clear();
        }
        warned.insert(hasher.finish())
    });
    if is_new {
        log::warn!("{message}");
    }
}

struct Stderr;

impl log::Log for Stderr {
    fn enabled(&self, metadata: &log::Metadata<'_>) -> bool {
        metadata.level() <= log::max_level()
    }

    fn log(&self, record: &log::Record<'_>) {
        if self.enabled(record.metadata()) {
            eprintln!("{} {}: {}", record.level(), record.target(), record.args());
        }
    }

    fn flush(&self) {}
}

/// Called before every first call of an instance. A provider that set its own logger keeps it.
pub(crate) fn init() {
    if log::set_logger(&Stderr).is_ok() {
        log::set_max_level(log::LevelFilter::Info);
    }
}
