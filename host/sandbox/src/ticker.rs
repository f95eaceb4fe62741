//! The clock that makes a guest yield: the epoch advances every millisecond while a guest computes,
//! also when guests hold every thread of the executor; hence a thread of its own. While none
//! computes, the thread sleeps, and a host without calls costs nothing.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::Thread;
use std::time::Duration;

/// How often the epoch advances. A guest computes for at most two of these before it yields.
const TICK: Duration = Duration::from_millis(1);
/// Ticks without a guest until the thread sleeps: waking it costs a call to the system, which a
/// busy host need not pay.
const UNTIL_SLEEP: u32 = 100;

#[derive(Debug, Default)]
struct Shared {
    computing: AtomicUsize,
    sleeps: AtomicBool,
    ended: AtomicBool,
}

/// The clock. It ends when this is dropped.
#[derive(Debug)]
pub(super) struct Ticker {
    shared: Arc<Shared>,
    thread: Thread,
}

/// A guest computes: the clock ticks until this is dropped.
pub(super) struct Ticking<'t>(&'t Shared);

impl Ticker {
    /// Begins to tick. `advance` answers whether there is still something to advance.
    ///
    /// # Errors
    /// Where the system gives no thread.
    pub(super) fn start(
        mut advance: impl FnMut() -> bool + Send + 'static,
    ) -> std::io::Result<Self> {
        let shared = Arc::new(Shared::default());
        let own = Arc::clone(&shared);
        let work = move || {
            let mut idle_ticks = 0;
            while !own.ended.load(Ordering::SeqCst) {
                std::thread::sleep(TICK);
                if !advance() {
                    return;
                }
                idle_ticks =
                    if own.computing.load(Ordering::SeqCst) == 0 { idle_ticks + 1 } else { 0 };
                if idle_ticks >= UNTIL_SLEEP {
                    own.sleep();
                    idle_ticks = 0;
                }
            }
        };
        let thread = std::thread::Builder::new()
            .name("memhost-epoch".to_owned())
            .spawn(work)?
            .thread()
            .clone();
        Ok(Self { shared, thread })
    }

    /// Ticks while a guest computes.
    pub(super) fn ticking(&self) -> Ticking<'_> {
        self.shared.computing.fetch_add(1, Ordering::SeqCst);
        if self.shared.sleeps.load(Ordering::SeqCst) {
            self.wake();
        }
        Ticking(&self.shared)
    }

    fn wake(&self) {
        self.shared.sleeps.store(false, Ordering::SeqCst);
        self.thread.unpark();
    }
}

impl Shared {
    /// Waits until a guest computes. Whoever begins after the flag is set wakes the thread; whoever
    /// began before is seen.
    fn sleep(&self) {
        self.sleeps.store(true, Ordering::SeqCst);
        while self.sleeps.load(Ordering::SeqCst)
            && self.computing.load(Ordering::SeqCst) == 0
            && !self.ended.load(Ordering::SeqCst)
        {
            std::thread::park();
        }
        self.sleeps.store(false, Ordering::SeqCst);
    }
}

impl Drop for Ticking<'_> {
    fn drop(&mut self) {
        self.0.computing.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Drop for Ticker {
    fn drop(&mut self) {
        self.shared.ended.store(true, Ordering::SeqCst);
        self.wake();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU64;
    use std::time::Instant;

    fn wait_until(is_so: impl Fn() -> bool) {
        let until = Instant::now() + Duration::from_secs(60);
        while !is_so() {
            assert!(Instant::now() < until, "this did not happen within a minute");
            std::thread::sleep(TICK);
        }
    }

    #[test]
    fn it_rests_while_no_guest_computes_and_ticks_at_once_when_one_does() {
        let ticks = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&ticks);
        let ticker = Ticker::start(move || {
            counted.fetch_add(1, Ordering::SeqCst);
            true
        })
        .unwrap();
        for _ in 0..3 {
            wait_until(|| ticker.shared.sleeps.load(Ordering::SeqCst));
            let before = ticks.load(Ordering::SeqCst);
            std::thread::sleep(TICK * 20);
            assert!(ticks.load(Ordering::SeqCst) <= before + 1, "it ticks for nobody");
            let outer = ticker.ticking();
            drop(ticker.ticking());
            wait_until(|| ticks.load(Ordering::SeqCst) > before + 2 * u64::from(UNTIL_SLEEP));
            drop(outer);
        }
        let shared = Arc::clone(&ticker.shared);
        drop(ticker);
        wait_until(|| Arc::strong_count(&shared) == 1);
    }
}
