//! A socket of a database behind which what clients send may arrive late: later than they wait for
//! an answer, or even than they live.

use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

const SOCKET: &str = ".s.PGSQL.5432";

/// Passes on what clients and a server say to each other.
pub(crate) struct LateSocket {
    /// The server's address by way of this socket.
    pub(crate) address: String,
    is_late: Arc<AtomicBool>,
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
        let is_late = Arc::<AtomicBool>::default();
        let late = Arc::clone(&is_late);
        std::thread::spawn(move || {
            for client in listener.incoming() {
                // The server refuses connections at times.
                let (Ok(client), Ok(server)) = (client, UnixStream::connect(&server)) else {
                    continue;
                };
                let back = (server.try_clone().unwrap(), client.try_clone().unwrap());
                let late = Arc::clone(&late);
                std::thread::spawn(move || pass(client, server, &late));
                std::thread::spawn(move || pass(back.0, back.1, &AtomicBool::default()));
            }
        });
        let address = format!("{front}@{shown}/{database}");
        Self { address, is_late, _directory: directory }
    }

    /// Holds what clients send for so long, and passes it on then.
    pub(crate) fn hold(&self, long: Duration) {
        self.is_late.store(true, Ordering::SeqCst);
        std::thread::sleep(long);
        self.is_late.store(false, Ordering::SeqCst);
    }
}

fn pass(mut from: UnixStream, mut to: UnixStream, is_late: &AtomicBool) {
    let mut part = [0; 64 << 10];
    while let Ok(length @ 1..) = from.read(&mut part) {
        while is_late.load(Ordering::SeqCst) {
            std::thread::sleep(Duration::from_millis(5));
        }
        if to.write_all(&part[..length]).is_err() {
            break;
        }
    }
    // The server ends its side by itself once it has done what came before.
    let _ = to.shutdown(Shutdown::Write);
}
