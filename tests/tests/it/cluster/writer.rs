//! A client that writes while hosts come and go.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::{CAPTURE, capture, send};

/// Captures one text after the other at a host until it is told to stop, and notes what was
/// acknowledged and what was not.
pub(crate) struct Writer {
    stop: Arc<AtomicBool>,
    /// Something for each one that is acknowledged.
    done: Receiver<()>,
    thread: std::thread::JoinHandle<Written>,
}

#[derive(Default)]
pub(crate) struct Written {
    pub(crate) acknowledged: Vec<String>,
    /// What else was answered.
    pub(crate) others: Vec<(u16, Value)>,
    /// The longest time that an acknowledged capture took.
    pub(crate) longest: Duration,
}

impl Writer {
    /// With keys, each capture is sent until it is acknowledged.
    pub(crate) fn start(url: &str, name: &'static str, with_keys: bool) -> Self {
        let (stop, url) = (Arc::new(AtomicBool::new(false)), url.to_owned());
        let stopping = Arc::clone(&stop);
        let (acknowledged, done) = channel();
        let thread = std::thread::spawn(move || {
            let mut written = Written::default();
            let mut number = 0;
            while !stopping.load(Ordering::Relaxed) {
                number += 1;
                let text = format!("{name} number{number} of the letters");
                let key = with_keys.then(|| format!("{name}-{number}"));
                let begun = Instant::now();
                loop {
                    match send(&url, CAPTURE, Some(&capture(&text)), key.as_deref()) {
                        Some((200..300, _)) => {
                            written.acknowledged.push(text.clone());
                            let _ = acknowledged.send(());
                            written.longest = written.longest.max(begun.elapsed());
                            break;
                        }
                        // Whether it was done before its host ended is not known, and stays so.
                        Some(unknown @ (409, _)) => {
                            written.others.push(unknown);
                            break;
                        }
                        Some(other) => written.others.push(other),
                        None => written.others.push((0, Value::Null)),
                    }
                    if !with_keys || begun.elapsed() > Duration::from_secs(30) {
                        break;
                    }
                }
                std::thread::sleep(Duration::from_millis(20));
            }
            written
        });
        Self { stop, done, thread }
    }

    /// Waits until so many more are acknowledged.
    pub(crate) fn more(&self, count: usize) {
        self.done.try_iter().for_each(drop);
        for _ in 0..count {
            let next = self.done.recv_timeout(Duration::from_secs(60));
            next.expect("nothing is acknowledged any more");
        }
    }

    pub(crate) fn stop(self) -> Written {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().unwrap()
    }
}
