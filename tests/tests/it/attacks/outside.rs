//! Somebody whom the host asks: an endpoint for vectors that answers anything but vectors.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

use serde_json::{Value, json};

use super::Attack;
use super::bodies::bomb;
use super::harness::Host;

pub(super) const ATTACKS: &[Attack] =
    &[Attack { name: "answers of an endpoint for vectors", threads: 2, rounds: 15, run: vectors }];

/// The answers, and whether there are vectors in them.
const ANSWERS: [(&str, bool); 15] = [
    ("sound", true),
    ("the most tokens", true),
    ("byte by byte", false),
    ("without end", false),
    ("in chunks without end", false),
    ("a header without end", false),
    ("a vector without end", false),
    ("too many numbers", false),
    ("no number", false),
    ("no direction", false),
    ("deep", false),
    ("compressed", false),
    ("elsewhere", false),
    ("refused", false),
    ("nothing", false),
];

/// What an answer without an end has, in bytes. A host that reads all of it has too much memory.
const ENDLESS: usize = 512 << 20;

/// Serves until the process ends. Answers the address.
pub(super) fn serve() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            std::thread::spawn(move || answer(stream));
        }
    });
    url
}

/// What is asked, if it is a request.
fn asked(stream: &TcpStream) -> Option<Value> {
    stream.set_read_timeout(Some(Duration::from_secs(10))).ok()?;
    let mut reader = BufReader::new(stream);
    let mut length = 0;
    for line in reader.by_ref().lines() {
        let line = line.ok()?.to_lowercase();
        if line.is_empty() {
            break;
        }
        length = line
            .strip_prefix("content-length:")
            .and_then(|value| value.trim().parse().ok())
            .unwrap_or(length);
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    serde_json::from_slice(&body).ok()
}

fn answer(mut stream: TcpStream) -> Option<()> {
    let asked = asked(&stream)?;
    let texts = asked["input"].as_array()?;
    let (how, _) = ANSWERS
        .iter()
        .find(|(how, _)| texts[0].as_str().is_some_and(|text| text.starts_with(how)))?;
    let data = |vector: Value| {
        (0..texts.len()).map(|n| json!({"index": n, "embedding": vector})).collect::<Value>()
    };
    let sound = |vector: Value, tokens: u64| {
        json!({"data": data(vector), "usage": {"total_tokens": tokens}}).to_string()
    };
    let head = |more: &str| format!("HTTP/1.1 200 OK\r\nconnection: close\r\n{more}\r\n");
    let whole =
        |body: String| format!("{}{body}", head(&format!("content-length: {}\r\n", body.len())));
    let begin = r#"{"data":[{"index":0,"embedding":["#;
    let sent = match *how {
        "sound" => stream.write_all(whole(sound(json!([3, 4]), 2)).as_bytes()),
        "the most tokens" => stream.write_all(whole(sound(json!([3, 4]), u64::MAX)).as_bytes()),
        "byte by byte" => head("content-length: 400\r\n").as_bytes().iter().try_for_each(|byte| {
            std::thread::sleep(Duration::from_millis(5));
            stream.write_all(&[*byte])
        }),
        "without end" => endless(&mut stream, &head(""), &" ".repeat(1 << 16)),
        "in chunks without end" => endless(
            &mut stream,
            &head("transfer-encoding: chunked\r\n"),
            &format!("10000\r\n{}\r\n", " ".repeat(1 << 16)),
        ),
        "a header without end" => {
            endless(&mut stream, "HTTP/1.1 200 OK\r\nx: ", &"x".repeat(1 << 16))
        }
        "a vector without end" => {
            endless(&mut stream, &format!("{}{begin}", head("")), &"0,".repeat(1 << 15))
        }
        "too many numbers" => stream.write_all(whole(sound(json!([3, 4, 5]), 2)).as_bytes()),
        "no number" => stream.write_all(whole(format!("{begin}NaN,-Infinity]}}]}}")).as_bytes()),
        "no direction" => stream.write_all(whole(sound(json!([0, 0]), 2)).as_bytes()),
        "deep" => stream.write_all(whole("{\"a\":".repeat(1 << 13)).as_bytes()),
        "compressed" => {
            let bomb = bomb();
            let head =
                head(&format!("content-encoding: gzip\r\ncontent-length: {}\r\n", bomb.len()));
            stream.write_all(&[head.as_bytes(), &bomb].concat())
        }
        "elsewhere" => {
            stream.write_all(b"HTTP/1.1 307 Elsewhere\r\nlocation: http://169.254.169.254/\r\n\r\n")
        }
        "refused" => {
            stream.write_all(b"HTTP/1.1 400 No\r\nconnection: close\r\ncontent-length: 0\r\n\r\n")
        }
        _ => Ok(()),
    };
    sent.ok()
}

fn endless(stream: &mut TcpStream, head: &str, more: &str) -> std::io::Result<()> {
    stream.write_all(head.as_bytes())?;
    (0..ENDLESS / more.len()).try_for_each(|_| stream.write_all(more.as_bytes()))
}

/// A provider asks for two vectors, and gets them or is told why not.
fn vectors(host: &Host, round: u64) -> Result<(), String> {
    let (how, is_sound) = ANSWERS[usize::try_from(round).unwrap_or(0) % ANSWERS.len()];
    let ask = json!({
        "scope": {"companyId": "evil"}, "bindingKey": "vectors",
        "query": format!("2 {how} {round}"),
    });
    let (status, text) = host.as_operator("/runtime/v1/companies/evil/query", &ask)?;
    let is_right =
        if is_sound { text.contains("Some([0.6, 0.8])") } else { text.contains("refused: ") };
    match status == 200 && is_right {
        true => Ok(()),
        false => Err(format!("{how}: {status} {text:.300}")),
    }
}
