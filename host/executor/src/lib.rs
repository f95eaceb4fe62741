//! Computing away from the threads that drive async tasks: what computes there for long delays
//! every other request.

mod turns;

use std::cell::Cell;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::{Arc, LazyLock};
use std::task::Poll;

use serde::Serialize;
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::sync::oneshot;
use tokio::task::{JoinError, JoinHandle};

pub use turns::{Turn, Turns};

/// The most bytes that are worked on where an async task runs. What the host does with texts takes
/// less than a millisecond for so many.
pub const MAX_INLINE_BYTES: usize = 16 * 1024;

/// The most bytes of a task that runs beside others without a turn. Each of its steps takes less
/// than a millisecond, or goes through [`off_executor`].
pub const MAX_SHORT_BYTES: usize = 64 * 1024;

thread_local! {
    static IS_OFF: Cell<bool> = const { Cell::new(false) };
}

/// Marks a thread while it computes away from the executor.
struct Off(bool);

impl Off {
    fn begin() -> Self {
        Self(IS_OFF.replace(true))
    }
}

impl Drop for Off {
    fn drop(&mut self) {
        IS_OFF.set(self.0);
    }
}

/// Does work on about so many bytes. If they are many, another thread drives the async tasks of
/// this one meanwhile. For work of up to 100 ms; use [`in_turn`] for more.
pub fn off_executor<T>(bytes: usize, work: impl FnOnce() -> T) -> T {
    let mut work = Some(work);
    let mut done = None;
    let mut run = || done = work.take().map(|work| work());
    if bytes <= MAX_INLINE_BYTES || IS_OFF.get() {
        run();
    } else {
        run_off_executor(&mut run);
    }
    done.unwrap_or_else(|| unreachable!("the work is run once, or panics"))
}

/// Compiled once, for every kind of work.
fn run_off_executor(work: &mut dyn FnMut()) {
    let mut marked = || {
        let _off = Off::begin();
        work();
    };
    // A runtime of one thread has no other thread that could go on.
    match Handle::try_current().map(|handle| handle.runtime_flavor()) {
        Ok(RuntimeFlavor::MultiThread) => tokio::task::block_in_place(marked),
        _ => marked(),
    }
}

/// Drives a task of a company that works on about so many bytes. If they are more than
/// [`MAX_SHORT_BYTES`], each step of the task waits for a turn and is done away from the executor.
/// At most as many steps as there are processors are done at a time, and one company has all of
/// them but one. The task holds no turn while it waits for something else. Within another task's
/// turn it needs none of its own. An operator's company is the empty text.
pub async fn in_turn<T>(company: &str, bytes: usize, task: impl Future<Output = T>) -> T {
    static TURNS: LazyLock<Arc<Turns>> = LazyLock::new(|| {
        Turns::new(std::thread::available_parallelism().map_or(2, |count| count.get().max(2)))
    });
    let mut task = pin!(task);
    if bytes <= MAX_SHORT_BYTES {
        return task.await;
    }
    loop {
        let turn = if IS_OFF.get() { None } else { Some(TURNS.take(company).await) };
        let step = poll_fn(|context| {
            Poll::Ready(off_executor(usize::MAX, || task.as_mut().poll(context)))
        });
        if let Poll::Ready(done) = step.await {
            return done;
        }
        drop(turn);
        let mut has_waited = false;
        poll_fn(|_| match std::mem::replace(&mut has_waited, true) {
            true => Poll::Ready(()),
            // The step has left this task's waker where it waits.
            false => Poll::Pending,
        })
        .await;
    }
}

/// Starts a task. Tokio's part of it is compiled once, and not for each kind of task.
///
/// # Panics
/// Outside a runtime.
pub fn spawn(task: impl Future<Output = ()> + Send + 'static) -> JoinHandle<()> {
    let task: Pin<Box<dyn Future<Output = ()> + Send>> = Box::pin(task);
    tokio::spawn(task)
}

/// Starts blocking work on a thread of the runtime's pool. Tokio's part of it is compiled once.
///
/// # Errors
/// If the work panics.
///
/// # Panics
/// Outside a runtime.
pub fn spawn_blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> impl Future<Output = Result<T, JoinError>> + Send {
    let (sender, mut receiver) = oneshot::channel();
    let work: Box<dyn FnOnce() + Send> = Box::new(move || drop(sender.send(work())));
    let task = tokio::task::spawn_blocking(work);
    async move {
        task.await?;
        let done = receiver.try_recv();
        Ok(done.unwrap_or_else(|_| unreachable!("the work has sent its result, or panicked")))
    }
}

/// A value as JSON. Where it is long, it is written away from the executor.
///
/// # Errors
/// Where the value has no JSON form, such as a map with keys that are no strings.
pub fn to_json(value: &impl Serialize) -> serde_json::Result<Vec<u8>> {
    to_json_after(&[], value)
}

/// The same, after some bytes.
///
/// # Errors
/// As [`to_json`].
pub fn to_json_after(bytes: &[u8], value: &impl Serialize) -> serde_json::Result<Vec<u8>> {
    let mut json = Bounded { bytes: Vec::with_capacity(1_024), max: MAX_INLINE_BYTES };
    json.bytes.extend_from_slice(bytes);
    // Its length is known only once it is written. One kind of writer: a second one would double
    // the code of each type.
    if serde_json::to_writer(&mut json, value).is_err() {
        json.bytes.truncate(bytes.len());
        json.max = usize::MAX;
        off_executor(usize::MAX, || serde_json::to_writer(&mut json, value))?;
    }
    Ok(json.bytes)
}

/// Keeps what is written up to a length.
struct Bounded {
    bytes: Vec<u8>,
    max: usize,
}

impl std::io::Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.write_all(bytes).map(|()| bytes.len())
    }

    fn write_all(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        if bytes.len() > self.max - self.bytes.len() {
            return Err(std::io::ErrorKind::FileTooLarge.into());
        }
        self.bytes.extend_from_slice(bytes);
        Ok(())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Says that a function works on so many bytes for longer than an executor may. In a debug build,
/// and so in every test, it panics where that happens on a thread of the executor.
pub fn expect_off_executor(what: &str, bytes: usize) {
    debug_assert!(
        bytes <= MAX_INLINE_BYTES || IS_OFF.get() || Handle::try_current().is_err(),
        "{what} of {bytes} bytes on a thread of the executor; call it through `off_executor`"
    );
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::time::Duration;

    use super::*;

    const MANY: usize = MAX_INLINE_BYTES + 1;

    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn what_is_long_is_done_elsewhere_and_the_mark_ends_with_it() {
        expect_off_executor("a test", MAX_INLINE_BYTES);
        off_executor(MANY, || expect_off_executor("a test", MANY));
        in_turn("acme", usize::MAX, async { expect_off_executor("a test", MANY) }).await;
        let caught = std::panic::catch_unwind(|| expect_off_executor("a test", MANY));
        assert!(caught.is_err() == cfg!(debug_assertions));
        let caught = std::panic::catch_unwind(|| off_executor(MANY, || panic!("the work fails")));
        assert!(caught.is_err() && !IS_OFF.get());
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn others_go_on_meanwhile() {
        let (sender, receiver) = mpsc::channel();
        tokio::spawn(async move { sender.send(()).unwrap() });
        // The only worker of this runtime waits here for what another task sends.
        tokio::spawn(async move { off_executor(MANY, || receiver.recv().unwrap()) }).await.unwrap();
    }

    /// Without a bound on long tasks each of them would hold a thread, and all processors.
    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_company_leaves_a_turn_for_others_however_many_long_tasks_it_has() {
        let processors = std::thread::available_parallelism().unwrap().get().max(2);
        let (begun, begins) = mpsc::channel();
        let mut holding = Vec::new();
        for _ in 0..2 * processors {
            let (go_on, wait) = mpsc::channel::<()>();
            let begun = begun.clone();
            let task = async move {
                begun.send(()).unwrap();
                wait.recv().unwrap();
            };
            let task =
                tokio::spawn(async move { in_turn("greedy", MAX_SHORT_BYTES + 1, task).await });
            holding.push((go_on, task));
        }
        let waits = Duration::from_millis(100);
        off_executor(MANY, || {
            for _ in 1..processors {
                begins.recv().unwrap();
            }
            assert!(begins.recv_timeout(waits).is_err(), "it has all turns but one");
        });
        in_turn("short", MAX_SHORT_BYTES, async {}).await;
        in_turn("other", usize::MAX, async { tokio::task::yield_now().await }).await;
        for (go_on, _) in &holding {
            go_on.send(()).unwrap();
        }
        for (_, task) in holding {
            task.await.unwrap();
        }
    }

    /// Two tasks of one company, of which each would wait for a turn that the other has.
    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_task_that_waits_has_no_turn_and_one_within_another_needs_none() {
        let (sender, receiver) = oneshot::channel();
        let inner = in_turn("acme", usize::MAX, async { receiver.await.unwrap() });
        let waits = in_turn("acme", usize::MAX, inner);
        let sends = in_turn("acme", usize::MAX, async {
            tokio::task::yield_now().await;
            sender.send(7).unwrap();
        });
        assert_eq!(tokio::join!(waits, sends).0, 7);
    }

    #[tokio::test]
    async fn a_runtime_of_one_thread_does_it_at_once() {
        assert_eq!(off_executor(MANY, || 7), 7);
        assert_eq!(in_turn("acme", usize::MAX, async { 7 }).await, 7);
    }

    #[test]
    fn json_is_the_same_however_long_it_is() {
        for count in [0, 10, MANY] {
            let value = vec!["x"; count];
            assert_eq!(to_json(&value).unwrap(), serde_json::to_vec(&value).unwrap());
        }
        assert!(to_json(&std::collections::HashMap::from([(vec![1], 1)])).is_err());
    }

    #[test]
    fn without_a_runtime_everything_is_allowed() {
        expect_off_executor("a test", MANY);
        assert_eq!(off_executor(MANY, || 7), 7);
    }
}
