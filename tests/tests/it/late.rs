//! A socket of a database behind which what clients send may arrive late: later than they wait for
//! an answer, or even than they live.

use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

const SOCKET: &str = ".s.PGSQL.5432";

/// Whether what clients send is held, and the news that it is not any more.
type Gate = Arc<(Mutex<bool>, Condvar)>;

/// Passes on what clients and a server say to each other.
pub(crate) struct LateSocket {
    /// The server's address by way of this socket.
    pub(crate) address: String,
    gate: Gate,
    _directory: tempfile::TempDir,
}

impl LateSocket {
    /// In front of the socket in an address, `postgres://USER@%2FDIRECTORY/DATABASE`.
    pub(crate) fn new(address: &str) -> Self {
        let (front, back) = address.split_once('@').unwrap();
        let (server, database) = back.split_once('/').unwrap();
        let server = PathBuf::from(server.replace("%2F", "/")).join(SOCKET);
        let directory = tempfile::tempdir().unwrap();
        let listener = UnixListener::bind(directory.path().join(SOCKET)).unwrap();
        let shown = directory.path().display().to_string().replace('/', "%2F");
        let gate = Gate::default();
        let held = Arc::clone(&gate);
        std::thread::spawn(move || {
            for client in listener.incoming() {
                // The server refuses connections at times.
                let (Ok(client), Ok(server)) = (client, UnixStream::connect(&server)) else {
                    continue;
                };
                let back = (server.try_clone().unwrap(), client.try_clone().unwrap());
                let held = Arc::clone(&held);
                std::thread::spawn(move || pass(client, server, &held));
                std::thread::spawn(move || pass(back.0, back.1, &Gate::default()));
            }
        });
        let address = format!("{front}@{shown}/{database}");
        Self { address, gate, _directory: directory }
    }

    /// Holds what clients send for so long, and passes it on then.
    pub(crate) fn hold(&self, long: Duration) {
        *self.gate.0.lock().unwrap() = true;
        std::thread::sleep(long);
        *self.gate.0.lock().unwrap() = false;
        self.gate.1.notify_all();
    }
}

fn pass(mut from: UnixStream, mut to: UnixStream, gate: &Gate) {
    let mut part = [0; 64 << 10];
    while let Ok(length @ 1..) = from.read(&mut part) {
        drop(gate.1.wait_while(gate.0.lock().unwrap(), |is_held| *is_held).unwrap());
        if to.write_all(&part[..length]).is_err() {
            break;
        }
    }
    // The server ends its side by itself once it has done what came before.
    let _ = to.shutdown(Shutdown::Write);
}
