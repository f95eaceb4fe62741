//! One request to a host, in as little time as can be: plain HTTP/1.1 over a socket of its own, within a deadline that
//! covers everything. Other addresses than `http:` and `unix:` go through the client that the other commands use.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::os::unix::net::UnixStream;
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// How long a host on this machine may take to accept.
const CONNECT_LOCAL: Duration = Duration::from_millis(20);
/// How long another one may.
const CONNECT_REMOTE: Duration = Duration::from_millis(500);
/// What whoever is late may be late by, since it says better what went wrong.
const GRACE: Duration = Duration::from_millis(10);
/// The longest answer that is read, in bytes.
const MAX_ANSWER: u64 = 4 << 20;

/// Why there is no answer.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Failed {
    /// There is nobody.
    Down(String),
    /// Somebody accepted and did not answer in time.
    Silent,
}

/// The status and the body.
pub(super) type Answer = Result<(u16, Vec<u8>), Failed>;

/// Sends a JSON body and answers the status and the body that come back before `until`.
pub(super) fn post(url: &str, token: Option<&str>, path: &str, body: &[u8], until: Instant) -> Answer {
    let (url, token) = (url.to_owned(), token.map(str::to_owned));
    let (path, body) = (path.to_owned(), body.to_vec());
    within(until, move || send(&url, token.as_deref(), &path, &body, until))
}

/// Finding an address has no deadline of its own, and neither has a socket whose queue is full: where it takes too long, a
/// thread is left behind.
fn within(until: Instant, work: impl FnOnce() -> Answer + Send + 'static) -> Answer {
    let (done, is_done) = mpsc::channel();
    std::thread::spawn(move || done.send(work()));
    is_done.recv_timeout(until.saturating_duration_since(Instant::now()) + GRACE).unwrap_or(Err(Failed::Silent))
}

fn send(url: &str, token: Option<&str>, path: &str, body: &[u8], until: Instant) -> Answer {
    if let Some(socket) = url.strip_prefix("unix:") {
        let stream = UnixStream::connect(socket).map_err(|error| down(&error))?;
        return talk(Socket::Unix(stream), "localhost", token, path, body, until);
    }
    let Some(rest) = url.strip_prefix("http://") else { return by_client(url, token, path, body, until) };
    let (authority, base) = rest.split_once('/').unwrap_or((rest, ""));
    let path = if base.is_empty() { path.to_owned() } else { format!("/{}{path}", base.trim_end_matches('/')) };
    let stream = connect(authority, until)?;
    talk(Socket::Tcp(stream), authority, token, &path, body, until)
}

fn connect(authority: &str, until: Instant) -> Result<TcpStream, Failed> {
    let has_port = authority.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
    let with_port = if has_port { authority.to_owned() } else { format!("{authority}:80") };
    let addresses = match with_port.parse::<SocketAddr>() {
        Ok(address) => vec![address],
        Err(_) => with_port.to_socket_addrs().map_err(|error| down(&error))?.collect(),
    };
    let mut last = Failed::Down(format!("{authority} has no address"));
    for address in addresses {
        let most = if address.ip().is_loopback() { CONNECT_LOCAL } else { CONNECT_REMOTE };
        match TcpStream::connect_timeout(&address, left(until)?.min(most)) {
            Ok(stream) => return Ok(stream),
            Err(error) if error.kind() == std::io::ErrorKind::TimedOut => last = Failed::Silent,
            Err(error) => last = down(&error),
        }
    }
    Err(last)
}

fn down(error: &std::io::Error) -> Failed {
    Failed::Down(error.to_string())
}

fn left(until: Instant) -> Result<Duration, Failed> {
    let left = until.saturating_duration_since(Instant::now());
    if left < Duration::from_millis(1) { Err(Failed::Silent) } else { Ok(left) }
}

enum Socket {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Socket {
    /// Every step may take what is left of the whole, so that an answer that drips in does not take longer.
    fn limit(&self, left: Duration) -> std::io::Result<()> {
        match self {
            Self::Tcp(stream) => {
                stream.set_read_timeout(Some(left))?;
                stream.set_write_timeout(Some(left))
            }
            Self::Unix(stream) => {
                stream.set_read_timeout(Some(left))?;
                stream.set_write_timeout(Some(left))
            }
        }
    }

    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.read(into),
            Self::Unix(stream) => stream.read(into),
        }
    }

    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.write(bytes),
            Self::Unix(stream) => stream.write(bytes),
        }
    }
}

fn talk(mut socket: Socket, authority: &str, token: Option<&str>, path: &str, body: &[u8], until: Instant) -> Answer {
    let bearer = token.map(|token| format!("authorization: Bearer {token}\r\n")).unwrap_or_default();
    let mut request = format!(
        "POST {path} HTTP/1.1\r\nhost: {authority}\r\n{bearer}content-type: application/json\r\n\
         content-length: {}\r\nconnection: close\r\n\r\n",
        body.len()
    )
    .into_bytes();
    request.extend_from_slice(body);
    let broken = |error: &std::io::Error| match error.kind() {
        std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut => Failed::Silent,
        _ => down(error),
    };
    let mut sent = 0;
    while sent < request.len() {
        socket.limit(left(until)?).map_err(|error| down(&error))?;
        sent += socket.write(&request[sent..]).map_err(|error| broken(&error))?;
    }
    let (mut answer, mut buffer) = (Vec::new(), vec![0; 16 << 10]);
    loop {
        socket.limit(left(until)?).map_err(|error| down(&error))?;
        let count = socket.read(&mut buffer).map_err(|error| broken(&error))?;
        answer.extend_from_slice(&buffer[..count]);
        // Where the host says how long the body is, nobody waits for it to hang up.
        if let Some(done) = parse(&answer, count == 0) {
            return Ok(done);
        }
        if count == 0 || answer.len() as u64 > MAX_ANSWER {
            return Err(Failed::Down("the answer is no HTTP, or is too long".to_owned()));
        }
    }
}

/// The status and the body, once all of it is there.
fn parse(answer: &[u8], at_end: bool) -> Option<(u16, Vec<u8>)> {
    let head_end = answer.windows(4).position(|window| window == b"\r\n\r\n")?;
    let head = String::from_utf8_lossy(&answer[..head_end]).to_ascii_lowercase();
    let mut lines = head.split("\r\n");
    let status = lines.next()?.strip_prefix("http/1.")?.split(' ').nth(1)?.parse().ok()?;
    let field = |name: &str| {
        let line = head.split("\r\n").skip(1).find(|line| line.split(':').next() == Some(name))?;
        line.split_once(':').map(|(_, value)| value.trim().to_owned())
    };
    let body = &answer[head_end + 4..];
    if field("transfer-encoding").as_deref() == Some("chunked") {
        return unchunk(body).map(|body| (status, body));
    }
    match field("content-length").and_then(|length| length.parse::<usize>().ok()) {
        Some(length) => body.get(..length).map(|body| (status, body.to_vec())),
        None if at_end || status == 204 => Some((status, body.to_vec())),
        None => None,
    }
}

fn unchunk(mut rest: &[u8]) -> Option<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let line_end = rest.windows(2).position(|window| window == b"\r\n")?;
        let size = std::str::from_utf8(&rest[..line_end]).ok()?;
        let size = usize::from_str_radix(size.split(';').next()?.trim(), 16).ok()?;
        rest = &rest[line_end + 2..];
        if size == 0 {
            return Some(body);
        }
        body.extend_from_slice(rest.get(..size)?);
        rest = rest.get(size..)?.strip_prefix(b"\r\n")?;
    }
}

fn by_client(url: &str, token: Option<&str>, path: &str, body: &[u8], until: Instant) -> Answer {
    let config = ureq::Agent::config_builder().http_status_as_error(false).timeout_global(Some(left(until)?)).build();
    let agent = ureq::Agent::from(config);
    let mut call =
        agent.post(format!("{}{path}", url.trim_end_matches('/'))).header("content-type", "application/json");
    if let Some(token) = token {
        call = call.header("authorization", format!("Bearer {token}"));
    }
    let failed = |error: ureq::Error| match error {
        ureq::Error::Timeout(_) => Failed::Silent,
        error => Failed::Down(error.to_string()),
    };
    let mut response = call.send(body).map_err(failed)?;
    let status = response.status().as_u16();
    let body = response.body_mut().with_config().limit(MAX_ANSWER).read_to_vec().map_err(failed)?;
    Ok((status, body))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_no_deadline_of_its_own_has_ours() {
        let started = Instant::now();
        let slow = || {
            std::thread::sleep(Duration::from_secs(20));
            Ok((200, Vec::new()))
        };
        assert_eq!(within(started + Duration::from_millis(50), slow), Err(Failed::Silent));
        assert!(started.elapsed() < Duration::from_secs(2), "{:?}", started.elapsed());
        assert_eq!(within(started + Duration::from_secs(20), || Ok((204, Vec::new()))), Ok((204, Vec::new())));
    }

    #[test]
    fn an_answer_is_done_when_all_of_it_is_there() {
        let head = b"HTTP/1.1 202 Accepted\r\nContent-Length: 4\r\n\r\n".to_vec();
        assert_eq!(parse(&head, false), None);
        assert_eq!(parse(&[head.clone(), b"ab".to_vec()].concat(), true), None);
        assert_eq!(parse(&[head, b"abcd".to_vec()].concat(), false), Some((202, b"abcd".to_vec())));
        let chunked = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n1\r\nd\r\n".to_vec();
        assert_eq!(parse(&chunked, false), None);
        assert_eq!(parse(&[chunked, b"0\r\n\r\n".to_vec()].concat(), false), Some((200, b"abcd".to_vec())));
        assert_eq!(parse(b"HTTP/1.1 200 OK\r\n\r\nabcd", false), None);
        assert_eq!(parse(b"HTTP/1.1 200 OK\r\n\r\nabcd", true), Some((200, b"abcd".to_vec())));
        assert_eq!(parse(b"SSH-2.0\r\n\r\n", true), None);
    }
}
