//! `dials-out` tries to reach the network in a query, at the address in the query's text or else
//! 127.0.0.1:80, and answers one snippet for each attempt, with the text `done` or the error after
//! `refused: `. All must be refused.

use std::io::{Error as IoError, Write};
use std::net::{TcpListener, TcpStream, ToSocketAddrs, UdpSocket};

use well_behaved::sdk::types::*;
use well_behaved::{Guest, Reference, answer};

struct DialsOut;

impl Guest for DialsOut {
    const KEY: &str = "dials-out";

    fn query(_: &mut Reference, request: QueryRequest) -> Result<ContextBundle, Error> {
        let asked =
            if request.query.contains(':') { request.query.as_str() } else { "127.0.0.1:80" };
        let port = asked.rsplit(':').next().unwrap_or_default();
        Ok(answer([
            ("tcp", text(dial(asked))),
            ("tcp-mapped", text(dial(&format!("[::ffff:127.0.0.1]:{port}")))),
            ("tcp-metadata", text(dial("169.254.169.254:80"))),
            ("tcp-public", text(dial("192.0.2.1:443"))),
            (
                "udp",
                text(UdpSocket::bind("0.0.0.0:0").and_then(|socket| socket.send_to(b"out", asked))),
            ),
            ("listen", text(TcpListener::bind("127.0.0.1:0"))),
            ("lookup-local", text("localhost:80".to_socket_addrs())),
            ("lookup", text("example.com:443".to_socket_addrs())),
        ]))
    }
}

fn dial(address: &str) -> Result<(), IoError> {
    TcpStream::connect(address)?.write_all(b"GET / HTTP/1.0\r\n\r\n")
}

fn text<T>(tried: Result<T, IoError>) -> String {
    tried.map_or_else(|error| format!("refused: {error}"), |_| "done".to_owned())
}

well_behaved::export!(DialsOut);
