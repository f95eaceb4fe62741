//! A server's socket with trouble.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{UnixListener, UnixStream};
use tokio::task::AbortHandle;

const SOCKET: &str = ".s.PGSQL.5432";
/// How long after its connection broke a late commit arrives.
const LATE: Duration = Duration::from_millis(500);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trouble {
    None,
    /// The connection of the next `COMMIT` breaks, and the server gets the `COMMIT` later.
    LateCommit,
    /// What clients send does not arrive.
    Silence,
}

/// Passes on what clients and a server say to each other, until it is dropped.
pub(crate) struct Proxy {
    /// The server's address by way of the proxy.
    pub(crate) address: String,
    directory: PathBuf,
    trouble: Arc<Mutex<Trouble>>,
    accepting: AbortHandle,
}

impl Proxy {
    /// Call it in a runtime.
    pub(crate) fn start(address: &str) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let (front, back) = address.split_once('@').unwrap();
        let (server, database) = back.split_once('/').unwrap();
        let server = PathBuf::from(server.replace("%2F", "/")).join(SOCKET);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("memhost-proxy-{}-{number}", std::process::id());
        let directory = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&directory).unwrap();
        let listener = UnixListener::bind(directory.join(SOCKET)).unwrap();
        let shown = directory.display().to_string().replace('/', "%2F");
        let trouble = Arc::new(Mutex::new(Trouble::None));
        let accepting = tokio::spawn({
            let trouble = Arc::clone(&trouble);
            async move {
                while let Ok((client, _)) = listener.accept().await {
                    let server = UnixStream::connect(&server).await.unwrap();
                    tokio::spawn(pass(client, server, Arc::clone(&trouble)));
                }
            }
        });
        Self {
            address: format!("{front}@{shown}/{database}"),
            directory,
            trouble,
            accepting: accepting.abort_handle(),
        }
    }

    pub(crate) fn set(&self, trouble: Trouble) {
        *self.trouble.lock() = trouble;
    }

    pub(crate) fn trouble(&self) -> Trouble {
        *self.trouble.lock()
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.accepting.abort();
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

async fn pass(mut client: UnixStream, mut server: UnixStream, trouble: Arc<Mutex<Trouble>>) {
    let (mut asked, mut answered) = (vec![0; 1 << 16], vec![0; 1 << 16]);
    loop {
        tokio::select! {
            count = client.read(&mut asked) => {
                let Ok(count @ 1..) = count else { return };
                let asked = &asked[..count];
                let is_commit = asked.windows(7).any(|part| part == b"COMMIT\0");
                let present = *trouble.lock();
                match present {
                    Trouble::Silence => continue,
                    Trouble::LateCommit if is_commit => {
                        *trouble.lock() = Trouble::None;
                        drop(client);
                        tokio::time::sleep(LATE).await;
                        let _ = server.write_all(asked).await;
                        // Closing the connection at once would end the transaction.
                        tokio::time::sleep(LATE).await;
                        return;
                    }
                    Trouble::None | Trouble::LateCommit => {}
                }
                if server.write_all(asked).await.is_err() {
                    return;
                }
            }
            count = server.read(&mut answered) => {
                let Ok(count @ 1..) = count else { return };
                if client.write_all(&answered[..count]).await.is_err() {
                    return;
                }
            }
        }
    }
}
