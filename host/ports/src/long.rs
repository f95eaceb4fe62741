//! Threads for tasks that compute for long. They have a low priority, so that what is short is answered first, whatever
//! is computed here.

use std::sync::LazyLock;

use rustix::process::{getpriority_process, setpriority_process};
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinHandle;

use super::executor::stay_off;

/// How much these threads yield to others: under full load they get about a third of what others get.
const NICE: i32 = 5;
/// The lowest priority.
const LOWEST: i32 = 19;

/// None where the system has no file descriptors left.
static LONG: LazyLock<Option<Runtime>> = LazyLock::new(|| {
    // As many as drive the short ones: a guest that blocks in a host call must not delay other calls.
    let threads = std::thread::available_parallelism().map_or(2, std::num::NonZero::get) * 2;
    // An absolute one: the runtime's threads start one another, and each inherits the priority of who starts it.
    let priority = getpriority_process(None).map(|usual| (usual + NICE).min(LOWEST));
    let begin = move || {
        stay_off();
        // Where the system does not allow it, the thread keeps its normal priority.
        let _ = priority.and_then(|priority| setpriority_process(None, priority));
    };
    let mut builder = Builder::new_multi_thread();
    builder.worker_threads(threads).thread_name("memhost-long").on_thread_start(begin).enable_all().build().ok()
});

/// Starts a task that may compute for long at a time, such as a request of megabytes. It does so on threads of its own,
/// and so does what it starts.
///
/// # Panics
/// Where the system has no threads left, or outside a runtime where it has no file descriptors left.
pub fn spawn_long<T: Send + 'static>(task: impl Future<Output = T> + Send + 'static) -> JoinHandle<T> {
    match &*LONG {
        Some(runtime) => runtime.spawn(task),
        None => tokio::spawn(task),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{expect_off_executor, off_executor, spawn_blocking};

    fn priority() -> i32 {
        getpriority_process(None).unwrap()
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn a_long_task_has_threads_of_a_lower_priority_and_holds_nobody_up() {
        let before = priority();
        let (sender, receiver) = std::sync::mpsc::channel();
        let long = spawn_long(async move {
            expect_off_executor("a test", usize::MAX);
            // The only worker of the test's runtime sends this meanwhile.
            receiver.recv().unwrap();
            let nested = || tokio::runtime::Handle::current().block_on(spawn_blocking(priority)).unwrap();
            [priority(), off_executor(usize::MAX, priority), spawn_blocking(nested).await.unwrap()]
        });
        tokio::spawn(async move { sender.send(()).unwrap() }).await.unwrap();
        assert_eq!(long.await.unwrap(), [(before + NICE).min(LOWEST); 3]);
        assert_eq!(priority(), before);
    }
}
