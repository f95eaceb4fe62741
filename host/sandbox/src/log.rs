//! What a guest writes to standard output and error, kept with its operation and bounded.

use std::sync::Arc;

use parking_lot::Mutex;
use wasmtime_wasi::cli::{IsTerminal, StdoutStream};
use wasmtime_wasi::p2::{OutputStream, Pollable, StreamResult};

use memhost_types::{LogLine, limits};

#[derive(Default)]
struct Kept {
    out: Vec<u8>,
    err: Vec<u8>,
    /// What the host has to say about the call.
    host: Vec<LogLine>,
    dropped: u64,
}

/// The most lines of the host about one call, of each level. A guest can cause as many as it likes;
/// more are left out.
pub(super) const MAX_HOST_LINES: usize = 32;

/// The log of one instance, emptied after each call.
#[derive(Clone)]
pub(super) struct GuestLog {
    kept: Arc<Mutex<Kept>>,
    max: usize,
}

impl GuestLog {
    pub(super) fn new(max_bytes: u64) -> Self {
        let max =
            usize::try_from(max_bytes).unwrap_or(usize::MAX).min(limits::MAX_RECORDED_LOG_BYTES);
        Self { kept: Arc::default(), max }
    }

    pub(super) fn stdout(&self) -> LogStream {
        LogStream { log: self.clone(), is_err: false }
    }

    pub(super) fn stderr(&self) -> LogStream {
        LogStream { log: self.clone(), is_err: true }
    }

    fn write(&self, is_err: bool, bytes: &[u8]) {
        let mut kept = self.kept.lock();
        let room = self.max.saturating_sub(kept.out.len() + kept.err.len());
        let taken = room.min(bytes.len());
        let stream = if is_err { &mut kept.err } else { &mut kept.out };
        stream.extend_from_slice(&bytes[..taken]);
        kept.dropped += (bytes.len() - taken) as u64;
    }

    /// Adds a line of the host for the operator.
    pub(super) fn host(&self, level: &str, text: &str) {
        let mut kept = self.kept.lock();
        if kept.host.iter().filter(|line| line.level == level).count() < MAX_HOST_LINES {
            kept.host.push(host_line(level, text));
        }
    }

    /// What was written since the last time, as lines.
    pub(super) fn take(&self) -> Vec<LogLine> {
        let kept = {
            let mut kept = self.kept.lock();
            if kept.out.is_empty()
                && kept.err.is_empty()
                && kept.host.is_empty()
                && kept.dropped == 0
            {
                return Vec::new();
            }
            std::mem::take(&mut *kept)
        };
        let mut lines: Vec<LogLine> =
            lines(&kept.err, "stderr").chain(lines(&kept.out, "stdout")).chain(kept.host).collect();
        if kept.dropped > 0 {
            let text =
                format!("{} more bytes of log were left out; `logBytes` limits them", kept.dropped);
            lines.push(LogLine { level: "warn".to_owned(), text });
        }
        lines
    }
}

/// A line of the host for the operator.
pub(super) fn host_line(level: &str, text: &str) -> LogLine {
    let text = memhost_types::cut_message(format!("host: {text}"));
    LogLine { level: level.to_owned(), text }
}

fn lines<'a>(bytes: &'a [u8], stream: &'a str) -> impl Iterator<Item = LogLine> + 'a {
    bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).map(move |line| {
        let line = String::from_utf8_lossy(line);
        let (level, text) = match line.split_once(' ') {
            Some((level @ ("ERROR" | "WARN" | "INFO" | "DEBUG" | "TRACE"), text)) => {
                (level.to_lowercase(), text)
            }
            _ => (stream.to_owned(), &*line),
        };
        // A guest must not be able to write escape sequences into an operator's terminal.
        let text = text
            .chars()
            .map(|c| if c.is_control() && c != '\t' { '\u{fffd}' } else { c })
            .collect();
        LogLine { level, text }
    })
}

/// One of the two streams.
#[derive(Clone)]
pub(super) struct LogStream {
    log: GuestLog,
    is_err: bool,
}

impl IsTerminal for LogStream {
    fn is_terminal(&self) -> bool {
        false
    }
}

impl StdoutStream for LogStream {
    fn async_stream(&self) -> Box<dyn tokio::io::AsyncWrite + Send + Sync> {
        Box::new(tokio::io::sink())
    }

    fn p2_stream(&self) -> Box<dyn OutputStream> {
        Box::new(self.clone())
    }
}

#[wasmtime_wasi::async_trait]
impl Pollable for LogStream {
    async fn ready(&mut self) {}
}

impl OutputStream for LogStream {
    fn write(&mut self, bytes: bytes::Bytes) -> StreamResult<()> {
        self.log.write(self.is_err, &bytes);
        Ok(())
    }

    fn flush(&mut self) -> StreamResult<()> {
        Ok(())
    }

    fn check_write(&mut self) -> StreamResult<usize> {
        Ok(64 * 1024)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_have_levels_and_no_escape_sequences() {
        let log = GuestLog::new(1 << 16);
        log.write(true, b"WARN provider: slow\nplain \x1b[31mred\n");
        log.write(false, b"out\n");
        let lines: Vec<_> = log.take().into_iter().map(|line| (line.level, line.text)).collect();
        assert_eq!(lines[0], ("warn".to_owned(), "provider: slow".to_owned()));
        assert_eq!(lines[1], ("stderr".to_owned(), "plain \u{fffd}[31mred".to_owned()));
        assert_eq!(lines[2], ("stdout".to_owned(), "out".to_owned()));
        assert!(log.take().is_empty());
    }

    #[test]
    fn a_flood_is_cut_and_counted() {
        let log = GuestLog::new(16);
        for _ in 0..10 {
            log.write(true, b"0123456789\n");
        }
        let lines = log.take();
        assert!(lines.last().unwrap().text.starts_with("94 more bytes"), "{lines:?}");
        assert!(lines.iter().take(2).map(|line| line.text.len()).sum::<usize>() <= 16);
    }
}
