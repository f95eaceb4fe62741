//! The time. All other modules get it from here. Without the grant `clock` it advances in steps of
//! 100 milliseconds, which is enough for lifetimes of days.

use jiff::Timestamp;

/// Now, in UTC.
pub(crate) fn now() -> Timestamp {
    #[cfg(not(target_family = "wasm"))]
    if let Some(fixed) = FIXED.get() {
        return fixed;
    }
    Timestamp::now()
}

#[cfg(not(target_family = "wasm"))]
thread_local! {
    static FIXED: std::cell::Cell<Option<Timestamp>> = const { std::cell::Cell::new(None) };
}

/// Fixes the time of this thread, for native tests and measurements; `None` is the real time. Not
/// part of the component.
#[cfg(not(target_family = "wasm"))]
pub fn fix(time: Option<Timestamp>) {
    FIXED.set(time);
}
