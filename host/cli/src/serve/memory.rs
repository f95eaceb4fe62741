//! Gives memory back that a busy time has left. The allocator keeps freed pages and returns them
//! only during a later allocation, so an idle host would keep them.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// How often it looks.
const EVERY: Duration = Duration::from_secs(15);
/// Processor time within that, below which the host rests.
const RESTS: Duration = Duration::from_millis(300);
/// Processor time since memory was last given back, from which it is worth it again.
const WORTH_IT: Duration = Duration::from_secs(2);

/// Looks until it is dropped.
pub(super) async fn give_back_when_idle<T>() -> T {
    let (mut last, mut given_back) = (Duration::ZERO, Duration::ZERO);
    loop {
        tokio::time::sleep(EVERY).await;
        let now = spent();
        if now.saturating_sub(last) < RESTS && now.saturating_sub(given_back) > WORTH_IT {
            give_back_on_all_threads().await;
            given_back = spent();
        }
        last = now;
    }
}

/// A thread can return only what it keeps itself. There is a task for each worker; nothing makes
/// each worker take one, but a task takes long enough that an idle worker takes the next. Threads
/// of the blocking pool end when the host rests.
async fn give_back_on_all_threads() {
    let workers = tokio::runtime::Handle::current().metrics().num_workers();
    let tasks: Vec<_> = (0..workers).map(|_| tokio::spawn(async { give_back() })).collect();
    for task in tasks {
        drop(task.await);
    }
    give_back();
}

/// The processor time of this process.
fn spent() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or(0))
}

#[allow(unsafe_code, reason = "the only way to tell the allocator; see the comment at the call")]
fn give_back() {
    // SAFETY: it takes no pointer, and may be called at any time from any thread. It returns free
    // pages to the system and changes nothing that is in use.
    unsafe { libmimalloc_sys::mi_collect(true) };
    tracing::debug!("free memory was given back to the system");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(target_os = "linux")]
    fn resident() -> usize {
        let pages = std::fs::read_to_string("/proc/self/statm").unwrap();
        pages.split_whitespace().nth(1).unwrap().parse::<usize>().unwrap()
            * rustix::param::page_size()
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn what_was_freed_goes_back_although_something_behind_it_is_kept() {
        let (freed, kept): (Vec<Vec<u8>>, Vec<Vec<u8>>) =
            (0..4_000).map(|_| (vec![1_u8; 16 << 10], vec![1_u8; 2_000])).unzip();
        drop(freed);
        let before = resident();
        give_back();
        assert!(resident() + (16 << 20) < before, "{before} {}", resident());
        drop(kept);
    }

    #[test]
    fn the_time_of_the_processor_counts_on() {
        let before = spent();
        let mut sum = 0_u64;
        while spent() < before + Duration::from_millis(2) {
            sum = std::hint::black_box(sum + 1);
        }
        assert!(sum > 0);
    }
}
