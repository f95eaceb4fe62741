//! Requests through a Unix socket: for hosts that listen on a path instead of a port.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;

use ureq::Error;
use ureq::unversioned::transport::{Buffers, ConnectionDetails, Connector, LazyBuffers, NextTimeout, Transport};

/// Connects to a path, whatever the address of the request says.
#[derive(Debug)]
pub(super) struct SocketConnector(pub(super) PathBuf);

/// A connection. No timeouts: commands wait for their host as long as it works.
#[derive(Debug)]
pub(super) struct SocketTransport {
    stream: UnixStream,
    buffers: LazyBuffers,
}

impl Connector for SocketConnector {
    type Out = SocketTransport;

    fn connect(&self, details: &ConnectionDetails, _: Option<()>) -> Result<Option<Self::Out>, Error> {
        let stream = UnixStream::connect(&self.0)?;
        let buffers = LazyBuffers::new(details.config.input_buffer_size(), details.config.output_buffer_size());
        Ok(Some(SocketTransport { stream, buffers }))
    }
}

impl Transport for SocketTransport {
    fn buffers(&mut self) -> &mut dyn Buffers {
        &mut self.buffers
    }

    fn transmit_output(&mut self, amount: usize, _: NextTimeout) -> Result<(), Error> {
        let output = &self.buffers.output()[..amount];
        match self.stream.write_all(output) {
            // The host has said no before it heard everything: what it says is there to be read.
            Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
            written => Ok(written?),
        }
    }

    fn await_input(&mut self, _: NextTimeout) -> Result<bool, Error> {
        let amount = loop {
            match self.stream.read(self.buffers.input_append_buf()) {
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                read => break read?,
            }
        };
        self.buffers.input_appended(amount);
        Ok(amount > 0)
    }

    fn is_open(&mut self) -> bool {
        // Not kept for another request.
        false
    }
}
