//! One `POST` to a host with `ureq`. The deadline covers everything: name look-up, connecting,
//! sending and receiving.

use std::path::Path;
use std::time::{Duration, Instant};

use ureq::Agent;
use ureq::unversioned::resolver::DefaultResolver;

use super::trust::trusting;
use super::unix_socket::UnixConnector;

/// How long connecting to a host on this machine may take.
const CONNECT_LOCAL: Duration = Duration::from_millis(20);
/// How long connecting to another machine may take.
const CONNECT_REMOTE: Duration = Duration::from_millis(500);
/// The longest answer that is read, in bytes.
const MAX_ANSWER: u64 = 4 << 20;

/// Why there is no answer.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum RequestError {
    /// The host cannot be reached, or does not speak HTTP.
    Unreachable(String),
    /// The deadline passed before the whole answer was there.
    TimedOut,
}

impl From<ureq::Error> for RequestError {
    fn from(error: ureq::Error) -> Self {
        match error {
            ureq::Error::Timeout(_) => Self::TimedOut,
            ureq::Error::Io(error) if error.kind() == std::io::ErrorKind::TimedOut => {
                Self::TimedOut
            }
            error => Self::Unreachable(error.to_string()),
        }
    }
}

/// The status and the body of an answer, also of a refusal.
pub(super) type Answer = Result<(u16, Vec<u8>), RequestError>;

/// A host, and the file of the certificate authorities that sign for it, if not the well-known
/// ones.
#[derive(Debug, Clone, Copy)]
pub(super) struct Host<'a> {
    /// `http://…`, `https://…` or `unix:` and the path of a socket.
    pub(super) url: &'a str,
    pub(super) ca: Option<&'a Path>,
}

/// Sends a JSON body to the host's `path` and returns the answer, if all of it arrives before
/// `until`. Redirects are not followed: they would carry the token to another address.
pub(super) fn post(
    host: Host<'_>,
    token: Option<&str>,
    path: &str,
    body: &[u8],
    until: Instant,
) -> Answer {
    let remaining = until.saturating_duration_since(Instant::now());
    if remaining < Duration::from_millis(1) {
        return Err(RequestError::TimedOut);
    }
    let (base, agent) = agent_for(host, remaining)?;
    let mut request =
        agent.post(format!("{base}{path}")).header("content-type", "application/json");
    if let Some(token) = token {
        request = request.header("authorization", format!("Bearer {token}"));
    }
    let mut response = request.send(body)?;
    let body = response.body_mut().with_config().limit(MAX_ANSWER).read_to_vec()?;
    Ok((response.status().as_u16(), body))
}

/// Asks for the host's `path`, and returns the status of the answer.
pub(super) fn status(
    host: Host<'_>,
    token: &str,
    path: &str,
    limit: Duration,
) -> Result<u16, RequestError> {
    let (base, agent) = agent_for(host, limit)?;
    let request =
        agent.get(format!("{base}{path}")).header("authorization", format!("Bearer {token}"));
    Ok(request.call()?.status().as_u16())
}

/// The first part of the address, and the client for it.
fn agent_for(
    Host { url, ca }: Host<'_>,
    remaining: Duration,
) -> Result<(&str, Agent), RequestError> {
    let mut config = Agent::config_builder()
        .http_status_as_error(false)
        .max_redirects(0)
        .timeout_global(Some(remaining));
    if let Some(socket) = url.strip_prefix("unix:") {
        let agent = Agent::with_parts(
            config.proxy(None).build(),
            UnixConnector::new(socket.into()),
            DefaultResolver::default(),
        );
        return Ok(("http://localhost", agent));
    }
    if let Some(ca) = ca.filter(|_| url.starts_with("https://")) {
        config = config.tls_config(trusting(ca).map_err(RequestError::Unreachable)?);
    }
    let config = match url.strip_prefix("http://") {
        // Hosts of plain HTTP are near, and no proxy is between.
        Some(rest) => config.proxy(None).timeout_connect(Some(connect_limit(rest))).build(),
        None => config.build(),
    };
    Ok((url.trim_end_matches('/'), Agent::new_with_config(config)))
}

fn connect_limit(authority: &str) -> Duration {
    let is_local = ["127.", "localhost", "[::1]"].iter().any(|name| authority.starts_with(name));
    if is_local { CONNECT_LOCAL } else { CONNECT_REMOTE }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};
    use std::os::unix::net::UnixListener;

    use super::*;

    const DEADLINE: Duration = Duration::from_millis(150);
    const LONG: Duration = Duration::from_secs(60);

    /// Reads a whole request, so that closing the connection does not reset it.
    fn read_request(stream: &mut impl Read) -> String {
        let (mut request, mut buffer) = (Vec::new(), [0; 4096]);
        while !request.ends_with(b"{}") {
            let count = stream.read(&mut buffer).unwrap();
            assert_ne!(count, 0, "the request is complete");
            request.extend_from_slice(&buffer[..count]);
        }
        String::from_utf8(request).unwrap()
    }

    /// Serves one connection, and answers what the request was.
    fn serve(
        answer: impl FnOnce(&mut TcpStream) + Send + 'static,
    ) -> (String, std::thread::JoinHandle<String>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let served = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let request = read_request(&mut stream);
            answer(&mut stream);
            request
        });
        (url, served)
    }

    fn call(url: &str, deadline: Duration) -> Answer {
        post(Host { url, ca: None }, Some("secret"), "/events", b"{}", Instant::now() + deadline)
    }

    #[test]
    fn an_answer_ends_where_its_head_says() {
        for (answer, status, body) in [
            ("HTTP/1.1 202 Accepted\r\nContent-Length: 4\r\n\r\nabcd", 202, "abcd"),
            (
                "HTTP/1.1 200 OK\r\ntransfer-encoding: \
                 chunked\r\n\r\n3\r\nabc\r\n1\r\nd\r\n0\r\n\r\n",
                200,
                "abcd",
            ),
            ("HTTP/1.1 204 No Content\r\n\r\n", 204, ""),
            ("HTTP/1.1 401 Unauthorized\r\ncontent-length: 2\r\n\r\nno", 401, "no"),
        ] {
            // The server keeps the connection open until the client has its answer.
            let (wait, hold) = std::sync::mpsc::channel::<()>();
            let (url, served) = serve(move |stream| {
                stream.write_all(answer.as_bytes()).unwrap();
                let _ = hold.recv();
            });
            assert_eq!(call(&url, LONG), Ok((status, body.as_bytes().to_vec())), "{answer}");
            drop(wait);
            let request = served.join().unwrap().to_ascii_lowercase();
            assert!(request.starts_with("post /events http/1.1\r\n"), "{request}");
            assert!(request.contains("authorization: bearer secret\r\n"), "{request}");
            assert!(request.contains("content-type: application/json\r\n"), "{request}");
        }
    }

    #[test]
    fn a_redirect_does_not_get_the_token() {
        let trap = TcpListener::bind("127.0.0.1:0").unwrap();
        let to = trap.local_addr().unwrap();
        let (url, _served) = serve(move |stream| {
            let head = format!(
                "HTTP/1.1 307 Temporary Redirect\r\nlocation: http://{to}/\r\ncontent-length: \
                 0\r\n\r\n"
            );
            stream.write_all(head.as_bytes()).unwrap();
        });
        assert_eq!(call(&url, LONG), Ok((307, Vec::new())));
        trap.set_nonblocking(true).unwrap();
        assert_eq!(trap.accept().unwrap_err().kind(), std::io::ErrorKind::WouldBlock);
    }

    #[test]
    fn the_deadline_covers_an_answer_that_arrives_byte_by_byte() {
        let (url, _served) = serve(|stream| {
            // Each byte comes well within the deadline; all of them do not.
            for byte in
                b"HTTP/1.1 200 OK\r\ncontent-length: 4000\r\n\r\n".iter().chain([b'x'; 4000].iter())
            {
                if stream.write_all(&[*byte]).is_err() {
                    return;
                }
                std::thread::sleep(Duration::from_millis(5));
            }
        });
        let started = Instant::now();
        assert_eq!(call(&url, DEADLINE), Err(RequestError::TimedOut));
        assert!(started.elapsed() < Duration::from_secs(5), "{:?}", started.elapsed());
        assert_eq!(call(&url, Duration::ZERO), Err(RequestError::TimedOut));
    }

    #[test]
    fn a_host_that_is_silent_is_told_from_one_that_is_not_there() {
        let (url, _served) = serve(|stream| drop(stream.read(&mut [0; 1])));
        assert_eq!(call(&url, DEADLINE), Err(RequestError::TimedOut));
        let nobody = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        assert!(matches!(
            call(&format!("http://{nobody}"), LONG),
            Err(RequestError::Unreachable(_))
        ));
        let (url, _served) = serve(|stream| stream.write_all(b"SSH-2.0-OpenSSH\r\n\r\n").unwrap());
        assert!(matches!(call(&url, LONG), Err(RequestError::Unreachable(_))));
        let (url, _served) = serve(|stream| {
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 8000000\r\n\r\n");
            let _ = stream.write_all(&vec![b'x'; 8_000_000]);
        });
        assert!(
            matches!(call(&url, LONG), Err(RequestError::Unreachable(_))),
            "too long to be read"
        );
    }

    #[test]
    fn a_host_on_a_unix_socket_is_asked_with_the_same_deadline() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("host.sock");
        let url = format!("unix:{}", path.display());
        assert!(matches!(call(&url, LONG), Err(RequestError::Unreachable(_))));
        let listener = UnixListener::bind(&path).unwrap();
        let (wait, hold) = std::sync::mpsc::channel::<()>();
        std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            read_request(&mut stream);
            stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok").unwrap();
            // The second caller is accepted, and gets no answer.
            let (mut stream, _) = listener.accept().unwrap();
            read_request(&mut stream);
            let _ = hold.recv();
        });
        assert_eq!(call(&url, LONG), Ok((200, b"ok".to_vec())));
        assert_eq!(call(&url, DEADLINE), Err(RequestError::TimedOut));
        drop(wait);
    }
}
