//! Threads for tasks that compute for long. They have a low priority, so that what is short is answered first, whatever
//! is computed here.

use std::sync::LazyLock;

use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinHandle;

use super::executor::stay_off;

/// How much these threads yield to others: under full load they get about a third of what others get.
const NICE: i32 = 5;

/// None where the system has no more threads.
static LONG: LazyLock<Option<Runtime>> = LazyLock::new(|| {
    let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let begin = || {
        stay_off();
        // Where the system does not allow it, the thread keeps its normal priority.
        let _ = rustix::process::nice(NICE);
    };
    let mut builder = Builder::new_multi_thread();
    builder.worker_threads(threads).thread_name("memhost-long").on_thread_start(begin).enable_all().build().ok()
});

/// Starts a task that may compute for long at a time, such as a request of megabytes. It does so on threads of its own,
/// and so does what it starts.
///
/// # Panics
/// Outside a runtime, where the system has no threads for another one.
pub fn spawn_long<T: Send + 'static>(task: impl Future<Output = T> + Send + 'static) -> JoinHandle<T> {
    match &*LONG {
        Some(runtime) => runtime.spawn(task),
        None => tokio::spawn(task),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{expect_off_executor, off_executor};

    /// The priority of this thread, as the system counts it: 19 is the lowest.
    fn priority() -> i64 {
        let stat = std::fs::read_to_string("/proc/thread-self/stat").unwrap();
        let (_, fields) = stat.rsplit_once(')').unwrap();
        fields.split_whitespace().nth(16).unwrap().parse().unwrap()
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn a_long_task_has_threads_of_a_lower_priority_and_holds_nobody_up() {
        let before = priority();
        let (sender, receiver) = std::sync::mpsc::channel();
        let long = spawn_long(async move {
            expect_off_executor("a test", usize::MAX);
            let lower = off_executor(usize::MAX, priority);
            // The only worker of the test's runtime sends this meanwhile.
            receiver.recv().unwrap();
            (lower, priority())
        });
        tokio::spawn(async move { sender.send(()).unwrap() }).await.unwrap();
        let (lower, after) = long.await.unwrap();
        assert_eq!((lower, after), ((before + i64::from(NICE)).min(19), lower));
        assert_eq!(priority(), before);
    }
}
