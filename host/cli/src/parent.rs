//! The program that started this one, as seen through standard input: what it says first, and
//! whether it is still there.

use std::io::{BufRead, ErrorKind, Read};
use std::sync::mpsc;
use std::time::Duration;

use tokio::sync::oneshot;

use super::CliError;

/// The longest first line, in bytes.
const MAX_LINE: u64 = 4_096;
/// How long the first line may take.
const LONGEST_WAIT: Duration = Duration::from_secs(5);

/// The first line of standard input, without its end.
pub(super) fn first_line() -> Result<String, CliError> {
    let wrong = |message: String| CliError::input("--token-from-stdin", message);
    let (told, answer) = mpsc::channel();
    // A thread of its own: a read of standard input cannot be given up, and the process ends
    // without it.
    std::thread::spawn(move || {
        let mut line = String::new();
        let read = std::io::stdin().lock().take(MAX_LINE).read_line(&mut line);
        let _ = told.send(read.map(|_| line));
    });
    let read = answer.recv_timeout(LONGEST_WAIT).map_err(|_| {
        let seconds = LONGEST_WAIT.as_secs();
        wrong(format!(
            "no line came on standard input within {seconds} seconds; write the token \
                       and a line break"
        ))
    })?;
    let line = read.map_err(|error| {
        wrong(format!("standard input cannot be read: {error}; write the token as its first line"))
    })?;
    match line.strip_suffix('\n') {
        Some(token) => Ok(token.trim_end_matches('\r').to_owned()),
        None => Err(wrong(format!(
            "standard input has no whole line of at most {MAX_LINE} bytes; write the token and a \
             line break"
        ))),
    }
}

/// Resolves when standard input is closed.
pub(super) struct InputClosed(oneshot::Receiver<()>);

impl InputClosed {
    pub(super) async fn wait(self) {
        // The other end is gone only where the thread has ended.
        let _ = self.0.await;
        tracing::info!("standard input was closed; the host stops");
    }
}

/// Watches standard input. What comes there is not looked at.
pub(super) fn input_closed() -> InputClosed {
    let (closed, wait) = oneshot::channel();
    // A thread of its own: the runtime waits for blocking tasks before a process ends, and this one
    // may never end.
    std::thread::spawn(move || {
        let (mut input, mut buffer) = (std::io::stdin().lock(), [0; 4_096]);
        loop {
            match input.read(&mut buffer) {
                Ok(0) => break,
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => break,
            }
        }
        // Nobody may wait any more.
        let _ = closed.send(());
    });
    InputClosed(wait)
}
