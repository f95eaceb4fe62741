//! A Unix socket as a transport of `ureq`, with the request's deadline at every step.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::mpsc;
use std::time::Duration;

use ureq::unversioned::transport::{
    Buffers, ConnectionDetails, Connector, LazyBuffers, NextTimeout, Transport,
};
use ureq::{Error, Timeout};

/// Connects to a Unix socket, whatever the address of the request is. A request without a timeout
/// waits without one.
#[derive(Debug)]
pub struct UnixConnector(PathBuf);

impl UnixConnector {
    /// To the socket at this path.
    pub fn new(path: PathBuf) -> Self {
        Self(path)
    }
}

impl Connector for UnixConnector {
    type Out = UnixTransport;

    fn connect(
        &self,
        details: &ConnectionDetails,
        _: Option<()>,
    ) -> Result<Option<Self::Out>, Error> {
        let path = self.0.clone();
        let limit = details.timeout.not_zero().map(|limit| *limit);
        let stream = within(limit, move || UnixStream::connect(path))
            .ok_or(Error::Timeout(details.timeout.reason))??;
        let buffers = LazyBuffers::new(
            details.config.input_buffer_size(),
            details.config.output_buffer_size(),
        );
        Ok(Some(UnixTransport { stream, buffers }))
    }
}

/// Connecting to a Unix socket has no timeout in the system: it waits while the queue of the
/// listener is full. A thread does it, and is left behind when it takes too long. The process ends
/// soon.
fn within<T: Send + 'static>(
    limit: Option<Duration>,
    work: impl FnOnce() -> T + Send + 'static,
) -> Option<T> {
    let Some(limit) = limit else { return Some(work()) };
    let (done, is_done) = mpsc::channel();
    std::thread::spawn(move || done.send(work()));
    is_done.recv_timeout(limit).ok()
}

/// A connection.
#[derive(Debug)]
pub struct UnixTransport {
    stream: UnixStream,
    buffers: LazyBuffers,
}

/// A socket reports a timeout of its own as "would block".
fn timed_out(error: io::Error, reason: Timeout) -> Error {
    match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => Error::Timeout(reason),
        _ => Error::Io(error),
    }
}

impl Transport for UnixTransport {
    fn buffers(&mut self) -> &mut dyn Buffers {
        &mut self.buffers
    }

    fn transmit_output(&mut self, amount: usize, timeout: NextTimeout) -> Result<(), Error> {
        self.stream.set_write_timeout(timeout.not_zero().map(|limit| *limit))?;
        let output = &self.buffers.output()[..amount];
        match self.stream.write_all(output) {
            // The host has refused before it read everything: its answer is there to be read.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            written => written.map_err(|error| timed_out(error, timeout.reason)),
        }
    }

    fn await_input(&mut self, timeout: NextTimeout) -> Result<bool, Error> {
        self.stream.set_read_timeout(timeout.not_zero().map(|limit| *limit))?;
        let amount = loop {
            match self.stream.read(self.buffers.input_append_buf()) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                read => break read.map_err(|error| timed_out(error, timeout.reason))?,
            }
        };
        self.buffers.input_appended(amount);
        Ok(amount > 0)
    }

    fn is_open(&mut self) -> bool {
        // One request a connection.
        false
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    #[test]
    fn connecting_ends_at_the_deadline() {
        let started = Instant::now();
        let never = || loop {
            std::thread::park();
        };
        assert_eq!(within::<()>(Some(Duration::from_millis(50)), never), None);
        assert!(started.elapsed() < Duration::from_secs(2), "{:?}", started.elapsed());
        assert_eq!(within(Some(Duration::from_secs(20)), || 7), Some(7));
        assert_eq!(within(None, || 7), Some(7));
    }
}
