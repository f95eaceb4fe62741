//! Work on the bodies and heads of requests that would take an executor's thread for too long.

use std::sync::Arc;

use memhost_executor::off_executor;
use tokio::sync::OwnedSemaphorePermit;
use tokio::task::JoinError;

use super::load::Load;

/// A body of this many bytes takes about a millisecond to look through, in an unhurried build.
pub(super) const SLOW_BODY: usize = 16 << 10;
/// Secrets of this many bytes together take as long to prepare for it.
pub(super) const SLOW_SECRETS: usize = 1 << 10;

/// One of the binding's outgoing connections, and the call that has it. Work on a blocking thread
/// goes on when its call is over; who holds this keeps its place until then, so that calls that end
/// early leave no more work behind than there are places.
#[derive(Clone)]
pub(super) struct Place {
    _permit: Arc<OwnedSemaphorePermit>,
    load: Load,
}

impl Place {
    pub(super) fn new(permit: OwnedSemaphorePermit, load: &Load) -> Self {
        Self { _permit: Arc::new(permit), load: load.clone() }
    }
}

/// Does work on a blocking thread if its length is at least `slow`, where it takes about a
/// millisecond. The time counts for the call that has the place; shorter work is done where it is
/// asked for, and counted there. A [`JoinError`] means that the host ends, or that its own code
/// failed.
pub(super) async fn on_blocking_thread<T, E>(
    length: usize,
    slow: usize,
    place: Option<&Place>,
    work: impl FnOnce() -> Result<T, E> + Send + 'static,
) -> Result<T, E>
where
    T: Send + 'static,
    E: From<JoinError> + Send + 'static,
{
    if length < slow {
        return work();
    }
    let place = place.cloned();
    let marked = move || {
        let work = || off_executor(length, work);
        match &place {
            Some(place) => place.load.timed(work),
            None => work(),
        }
    };
    memhost_executor::spawn_blocking(marked).await.unwrap_or_else(|ended| Err(ended.into()))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::sync::Semaphore;

    use super::super::load::tests::load;
    use super::*;
    use crate::computing::time_of_thread;
    use memhost_types::BindingLimits;

    #[tokio::test]
    async fn the_time_of_work_on_another_thread_counts_for_its_call() {
        let load = load(BindingLimits { call_cpu_ms: 10, ..BindingLimits::default() });
        let places = Arc::new(Semaphore::new(1));
        let place = Place::new(places.try_acquire_owned().unwrap(), &load);
        let work = on_blocking_thread::<(), JoinError>(10, 10, Some(&place), || {
            let until = time_of_thread() + Duration::from_millis(15);
            while time_of_thread() < until {}
            Ok(())
        });
        assert!(work.await.is_ok() && load.check().is_err());
    }

    #[tokio::test]
    async fn long_work_is_done_on_a_thread_of_its_own() {
        let here = std::thread::current().id();
        let thread = async |length| {
            on_blocking_thread::<_, JoinError>(length, 10, None, || Ok(std::thread::current().id()))
                .await
                .ok()
        };
        assert_eq!(thread(9).await, Some(here));
        assert!(thread(10).await.is_some_and(|thread| thread != here));
    }

    #[tokio::test]
    async fn work_whose_call_is_over_keeps_its_place() {
        let places = Arc::new(Semaphore::new(1));
        let load = load(BindingLimits::default());
        let place = Place::new(Arc::clone(&places).try_acquire_owned().unwrap(), &load);
        let (go_on, wait) = std::sync::mpsc::channel::<()>();
        let work = on_blocking_thread::<(), JoinError>(10, 10, Some(&place), move || {
            let _ = wait.recv();
            Ok(())
        });
        // The call waits for a while and is then over.
        assert!(tokio::time::timeout(Duration::from_millis(50), work).await.is_err());
        drop(place);
        assert_eq!(places.available_permits(), 0);
        go_on.send(()).unwrap();
        drop(places.acquire().await.unwrap());
    }
}
