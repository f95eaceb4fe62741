//! Computing away from the threads that drive async tasks: what computes there for long delays
//! every other request.

use std::cell::Cell;
use std::pin::Pin;
use std::sync::{Arc, LazyLock};

use serde::Serialize;
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::sync::oneshot;
use tokio::task::{JoinError, JoinHandle};

use super::long::do_at_usual_priority;
use super::turns::Turns;

/// The most bytes that are worked on where an async task runs. What the host does with texts takes
/// less than a millisecond for so many.
pub const MAX_INLINE_BYTES: usize = 16 * 1024;

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

/// This thread drives no task that must be quick: what computes for long may do so on it.
pub(crate) fn stay_off() {
    IS_OFF.set(true);
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

/// Compiled once, for all that is worked on.
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

/// Starts a task. What tokio has for a task is compiled once, and not for each kind of task.
///
/// # Panics
/// Outside a runtime.
pub fn spawn(task: impl Future<Output = ()> + Send + 'static) -> JoinHandle<()> {
    let task: Pin<Box<dyn Future<Output = ()> + Send>> = Box::pin(task);
    tokio::spawn(task)
}

/// Starts blocking work on a thread of the runtime's pool. What tokio has for it is compiled once.
///
/// # Errors
/// If the work panics.
///
/// # Panics
/// Outside a runtime.
pub fn spawn_blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> impl Future<Output = Result<T, JoinError>> + Send {
    let (sender, receiver) = oneshot::channel();
    let work: Box<dyn FnOnce() + Send> = Box::new(move || drop(sender.send(work())));
    let task = tokio::task::spawn_blocking(work);
    async move {
        task.await?;
        Ok(sent(receiver))
    }
}

/// Like [`spawn_blocking`], on a thread of the usual priority, also where a long task asks for it.
/// For work that holds what short requests wait for, such as a turn.
///
/// # Errors
/// If the work panics.
///
/// # Panics
/// Outside a runtime.
pub async fn spawn_blocking_usual<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, JoinError> {
    let (sender, receiver) = oneshot::channel();
    do_at_usual_priority(Box::new(move || drop(sender.send(work())))).await?;
    Ok(sent(receiver))
}

/// What work has sent that has ended and did not panic.
fn sent<T>(mut receiver: oneshot::Receiver<T>) -> T {
    receiver
        .try_recv()
        .unwrap_or_else(|_| unreachable!("the work has sent what it made, or panicked"))
}

/// Does long work of a company on a thread of its own, as soon as less than half of the processors
/// do such work. Companies take turns.
///
/// # Errors
/// If the work panics.
pub async fn in_turn<T: Send + 'static>(
    company: &str,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, JoinError> {
    static TURNS: LazyLock<Arc<Turns>> = LazyLock::new(|| {
        let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        Turns::new(processors / 2)
    });
    let turn = TURNS.take(company).await;
    spawn_blocking_usual(move || {
        let _off = Off::begin();
        let done = work();
        drop(turn);
        done
    })
    .await
}

/// A value as JSON. Where it is long, it is written away from the executor.
///
/// # Errors
/// Where the value has no JSON form, such as a map with keys that are no strings.
pub fn to_json(value: &impl Serialize) -> serde_json::Result<Vec<u8>> {
    let mut json = Bounded { bytes: Vec::with_capacity(1_024), max: MAX_INLINE_BYTES };
    // Its length is known only once it is written. One kind of writer: a second one would double
    // the code of each type.
    if serde_json::to_writer(&mut json, value).is_err() {
        json.bytes.clear();
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
    use super::*;

    const MANY: usize = MAX_INLINE_BYTES + 1;

    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn what_is_long_is_done_elsewhere_and_the_mark_ends_with_it() {
        expect_off_executor("a test", MAX_INLINE_BYTES);
        off_executor(MANY, || expect_off_executor("a test", MANY));
        in_turn("acme", || expect_off_executor("a test", MANY)).await.unwrap();
        let caught = std::panic::catch_unwind(|| expect_off_executor("a test", MANY));
        assert!(caught.is_err() == cfg!(debug_assertions));
        let caught = std::panic::catch_unwind(|| off_executor(MANY, || panic!("the work fails")));
        assert!(caught.is_err() && !IS_OFF.get());
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn others_go_on_meanwhile() {
        let (sender, receiver) = std::sync::mpsc::channel();
        tokio::spawn(async move { sender.send(()).unwrap() });
        // The only worker of this runtime waits here for what another task sends.
        tokio::spawn(async move { off_executor(MANY, || receiver.recv().unwrap()) }).await.unwrap();
    }

    #[tokio::test]
    async fn a_runtime_of_one_thread_does_it_at_once() {
        assert_eq!(off_executor(MANY, || 7), 7);
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
