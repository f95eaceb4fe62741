//! Threads for tasks that compute for long. They have a low priority, so that what is short is
//! answered first, whatever is computed here.

use std::cell::Cell;
use std::future::poll_fn;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::task::Poll;

use rustix::process::{getpriority_process, setpriority_process};
use tokio::runtime::{Builder, Runtime};
use tokio::task::{JoinError, JoinHandle};

use super::executor::stay_off;

/// How much these threads yield to others: under full load they get about a third of what others
/// get.
const NICE: i32 = 5;
/// The lowest priority.
const LOWEST: i32 = 19;

struct Threads {
    long: Runtime,
    /// Starts threads of the usual priority for long tasks: a thread inherits the priority of who
    /// starts it, and may not raise it again.
    usual: Runtime,
}

static THREADS: Made = Made::new();

thread_local! {
    /// Whether this thread is one of those with a low priority.
    static IS_LOW: Cell<bool> = const { Cell::new(false) };
}

/// What is made at its first use; tried again at the next one where the system has no threads or
/// files left for it.
struct Made {
    threads: OnceLock<Threads>,
    /// Whether the log has a line on the failure. A busy host tries thousands of times.
    is_told: Mutex<bool>,
}

impl Made {
    const fn new() -> Self {
        Self { threads: OnceLock::new(), is_told: Mutex::new(false) }
    }

    fn get(&self, make: impl FnOnce() -> io::Result<Threads>) -> Option<&Threads> {
        if let Some(threads) = self.threads.get() {
            return Some(threads);
        }
        // One at a time makes them.
        let mut is_told = self.is_told.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(threads) = self.threads.get() {
            return Some(threads);
        }
        match make() {
            Ok(threads) => Some(self.threads.get_or_init(|| threads)),
            Err(error) => {
                if !std::mem::replace(&mut *is_told, true) {
                    let until = "until they can, such requests run beside short ones";
                    tracing::warn!(%error, "the threads for long requests cannot be started; \
                        {until}");
                }
                None
            }
        }
    }
}

fn make() -> io::Result<Threads> {
    // As many as drive the short ones: a guest that blocks in a host call must not delay other
    // calls.
    let threads = std::thread::available_parallelism().map_or(2, std::num::NonZero::get) * 2;
    // An absolute one: the runtime's threads start one another, and each inherits the priority of
    // who starts it.
    let priority = getpriority_process(None).map(|usual| (usual + NICE).min(LOWEST));
    let begin = move || {
        stay_off();
        IS_LOW.set(true);
        // Where the system does not allow it, the thread keeps its normal priority.
        let _ = priority.and_then(|priority| setpriority_process(None, priority));
    };
    let usual = build(Builder::new_multi_thread().worker_threads(1).thread_name("memhost-usual"))?;
    let mut builder = Builder::new_multi_thread();
    builder.worker_threads(threads).thread_name("memhost-long").on_thread_start(begin).enable_all();
    match build(&mut builder) {
        Ok(long) => Ok(Threads { long, usual }),
        Err(error) => {
            // A runtime may not be dropped on a thread that drives tasks.
            usual.shutdown_background();
            Err(error)
        }
    }
}

fn build(builder: &mut Builder) -> io::Result<Runtime> {
    // Where the system has no thread left, tokio panics. This one fails instead.
    drop(std::thread::Builder::new().spawn(|| ())?.join());
    // Another program may have taken the last one meanwhile.
    let panicked = |_| Err(io::Error::other("no thread could be started"));
    catch_unwind(AssertUnwindSafe(|| builder.build())).unwrap_or_else(panicked)
}

/// Starts a task that may compute for long at a time, such as a request of megabytes. It does so on
/// threads of its own, and so does what it starts. Where the system has no threads or files left
/// for them, it runs where it is.
///
/// # Panics
/// Outside a runtime where the system has no threads or files left.
pub fn spawn_long<T: Send + 'static>(
    task: impl Future<Output = T> + Send + 'static,
) -> JoinHandle<T> {
    match THREADS.get(make) {
        Some(threads) => threads.long.spawn(task),
        None => tokio::spawn(task),
    }
}

tokio::task_local! {
    /// Whether the task asks to go on on the threads for long tasks.
    static ASKS: Arc<AtomicBool>;
}

/// Starts a task beside short ones. It goes on as [`spawn_long`] does from where it calls
/// [`go_long`].
///
/// # Panics
/// Outside a runtime.
pub fn spawn_short<T: Send + 'static>(
    task: impl Future<Output = T> + Send + 'static,
) -> JoinHandle<T> {
    let asks = Arc::new(AtomicBool::new(false));
    let mut task = Box::pin(ASKS.scope(Arc::clone(&asks), task));
    tokio::spawn(async move {
        let until_it_asks = poll_fn(|context| match task.as_mut().poll(context) {
            Poll::Ready(done) => Poll::Ready(Some(done)),
            Poll::Pending if asks.load(Ordering::Relaxed) => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        });
        match until_it_asks.await {
            Some(done) => done,
            None => spawn_long(task).await.unwrap_or_else(|error| match error.try_into_panic() {
                Ok(panic) => resume_unwind(panic),
                Err(error) => unreachable!("nobody ends a long task: {error}"),
            }),
        }
    })
}

/// Whether this runs on the threads for long tasks.
pub fn is_long() -> bool {
    IS_LOW.get()
}

/// Moves the task that calls this to the threads for long tasks, if [`spawn_short`] has started it:
/// what comes next may compute for long.
pub async fn go_long() {
    let mut has_asked = IS_LOW.get();
    poll_fn(|context| {
        if has_asked || ASKS.try_with(|asks| asks.store(true, Ordering::Relaxed)).is_err() {
            return Poll::Ready(());
        }
        has_asked = true;
        // A future between the two, such as one of several that are joined, polls this one only if
        // it was woken.
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

/// Does blocking work at the usual priority, also for a long task: others wait for what it holds.
pub(crate) async fn do_at_usual_priority(work: Box<dyn FnOnce() + Send>) -> Result<(), JoinError> {
    match THREADS.threads.get().filter(|_| IS_LOW.get()) {
        // Not started from here: the new thread would inherit the low priority.
        Some(threads) => {
            threads.usual.spawn(async move { tokio::task::spawn_blocking(work).await }).await?
        }
        None => tokio::task::spawn_blocking(work).await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{expect_off_executor, in_turn, off_executor, spawn_blocking, spawn_blocking_usual};

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
            let nested =
                || tokio::runtime::Handle::current().block_on(spawn_blocking(priority)).unwrap();
            [priority(), off_executor(usize::MAX, priority), spawn_blocking(nested).await.unwrap()]
        });
        tokio::spawn(async move { sender.send(()).unwrap() }).await.unwrap();
        assert_eq!(long.await.unwrap(), [(before + NICE).min(LOWEST); 3]);
        assert_eq!(priority(), before);
    }

    #[tokio::test]
    async fn a_short_task_goes_on_as_a_long_one_when_it_asks() {
        let usual = priority();
        let moved = spawn_short(async {
            let before = priority();
            let joined = tokio::join!(tokio::task::yield_now(), go_long());
            go_long().await;
            (before, joined.1, priority())
        });
        assert_eq!(moved.await.unwrap(), (usual, (), (usual + NICE).min(LOWEST)));
        go_long().await;
        assert_eq!((priority(), spawn_short(async { priority() }).await.unwrap()), (usual, usual));
        let panics = spawn_short(async {
            go_long().await;
            panic!("the task fails")
        });
        assert!(panics.await.is_err_and(|error: JoinError| error.is_panic()));
    }

    #[tokio::test]
    async fn a_moved_task_ends_also_when_nobody_waits_for_it() {
        let (sender, receiver) = tokio::sync::oneshot::channel();
        let (go, wait) = tokio::sync::oneshot::channel();
        drop(spawn_short(async move {
            go_long().await;
            wait.await.unwrap();
            sender.send(priority()).unwrap();
        }));
        go.send(()).unwrap();
        assert_eq!(receiver.await.unwrap(), (priority() + NICE).min(LOWEST));
    }

    #[tokio::test]
    async fn what_others_wait_for_is_done_at_the_usual_priority() {
        let usual = priority();
        let both = || async {
            [
                in_turn("acme", priority).await.unwrap(),
                spawn_blocking_usual(priority).await.unwrap(),
            ]
        };
        assert_eq!(both().await, [usual; 2]);
        assert_eq!(spawn_long(both()).await.unwrap(), [usual; 2]);
        let panics = spawn_long(spawn_blocking_usual(|| panic!("the work fails"))).await.unwrap();
        assert!(panics.is_err_and(|error: JoinError| error.is_panic()));
    }

    #[tokio::test]
    async fn a_passing_lack_of_threads_or_files_is_gone_at_the_next_request() {
        let made = Made::new();
        assert!(made.get(|| Err(io::Error::other("no files"))).is_none());
        assert!(*made.is_told.lock().unwrap());
        assert!(made.get(make).is_some());
        assert!(made.get(|| unreachable!("they are made")).is_some());
        let threads = made.threads.into_inner().unwrap();
        threads.long.shutdown_background();
        threads.usual.shutdown_background();
    }

    #[tokio::test]
    async fn a_panic_for_lack_of_threads_is_an_error() {
        let mut builder = Builder::new_multi_thread();
        builder.worker_threads(1).thread_name_fn(|| panic!("the system has no thread left"));
        assert!(build(&mut builder).is_err());
    }
}
