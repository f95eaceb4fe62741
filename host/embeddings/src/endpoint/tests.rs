//! An endpoint, without any network but this machine's own.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{Endpoint, EndpointOptions};
use crate::tests::embed;
use crate::{Embeddings, EmbeddingsOptions};
use memhost_ports::OutgoingCounter;
use memhost_types::Microcents;

/// Answers one request and gives what was asked.
fn serve(
    answer: impl FnOnce(&Value) -> String + Send + 'static,
) -> (String, std::thread::JoinHandle<(String, Value)>) {
    let (listener, url) = listen();
    let handle = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let (head, asked) = read(&stream);
        // Who is told too much closes the connection.
        let _ = stream.write_all(answer(&asked).as_bytes());
        (head, asked)
    });
    (url, handle)
}

fn listen() -> (TcpListener, String) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/v1/", listener.local_addr().unwrap());
    (listener, url)
}

fn read(stream: &TcpStream) -> (String, Value) {
    let mut reader = BufReader::new(stream);
    let (mut head, mut length) = (String::new(), 0);
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        if line.trim().is_empty() {
            break;
        }
        if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        head.push_str(&line);
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    (head, serde_json::from_slice(&body).unwrap())
}

fn ok(body: &Value) -> String {
    let body = body.to_string();
    format!("HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}", body.len())
}

fn endpoint(url: String) -> EmbeddingsOptions {
    EmbeddingsOptions::Endpoint(EndpointOptions {
        is_quiet: false,
        url,
        model: "small".to_owned(),
        dimensions: 2,
        key: Some("k3y".to_owned()),
        key_env: None,
        cents_per_million_tokens: 2.0,
    })
}

#[tokio::test]
async fn an_endpoint_answers_in_any_order_and_is_metered() {
    let home = tempfile::tempdir().unwrap();
    let (url, server) = serve(|_| {
        let data =
            json!([{"index": 1, "embedding": [0.0, 2.0]}, {"index": 0, "embedding": [3.0, 4.0]}]);
        ok(&json!({"data": data, "usage": {"prompt_tokens": 7, "total_tokens": 7}}))
    });
    let found = embed(endpoint(url), home.path(), &["a", ""]).await.unwrap();
    assert_eq!(found.vectors, [[0.6, 0.8], [0.0, 1.0]]);
    let usage = found.usage.unwrap();
    assert_eq!(
        (usage.embedding_tokens, usage.cost, usage.provider.as_str()),
        (Some(7), Some(Microcents(14)), "127.0.0.1")
    );
    let (head, asked) = server.join().unwrap();
    assert!(head.starts_with("POST /v1/embeddings ") && head.contains("Bearer k3y"), "{head}");
    assert_eq!(asked, json!({"model": "small", "input": ["a", " "], "encoding_format": "float"}));
}

#[tokio::test]
async fn an_endpoint_that_lies_or_refuses_is_told_of_without_its_words() {
    let home = tempfile::tempdir().unwrap();
    for (answer, says) in [
        (ok(&json!({"data": [{"index": 0, "embedding": [1.0, 2.0, 3.0]}]})), "not of 2 numbers"),
        (ok(&json!({"data": [{"index": 1, "embedding": [1.0, 2.0]}]})), "for no text"),
        (ok(&json!({"data": [{"index": 0, "embedding": [0.0, -0.0]}]})), "without a direction"),
        (ok(&json!({"data": [{"index": 0, "embedding": [1e39, 0.0]}]})), "failed"),
        (ok(&json!({"data": []})), "fewer vectors"),
        // More bytes than two numbers take, in one vector, in many, around them and without an end.
        (ok(&json!({"data": [{"index": 0, "embedding": vec![1; 1 << 20]}]})), "failed"),
        (
            ok(&json!({"data": vec![json!({"index": 0, "embedding": [1.0, 2.0]}); 1 << 14]})),
            "failed",
        ),
        (ok(&json!({"data": [], "other": "secret".repeat(1 << 14)})), "failed"),
        (format!("HTTP/1.1 200 OK\r\n\r\n{{\"deep\": {}", "[".repeat(1 << 20)), "failed"),
        (
            "HTTP/1.1 307 No\r\nlocation: http://127.0.0.1:9/secret\r\ncontent-length: 0\r\n\r\n"
                .to_owned(),
            "307",
        ),
        (ok(&json!({"nothing": true})), "failed"),
        // The parser's own message would have the word.
        (ok(&json!({"data": "secret"})), "failed"),
        (
            "HTTP/1.1 401 No\r\ncontent-length: 9\r\n\r\nsecret ab".to_owned(),
            "401; look at the key",
        ),
    ] {
        let (url, server) = serve(move |_| answer);
        let error = embed(endpoint(url), home.path(), &["a"]).await.unwrap_err().to_string();
        assert!(error.contains(says) && !error.contains("secret"), "{error}");
        server.join().unwrap();
    }
    for (url, field) in [("nothing", "url"), ("ftp://a.example", "url")] {
        let error =
            Embeddings::open(endpoint(url.to_owned()), home.path()).err().unwrap().to_string();
        assert!(error.contains(&format!("embeddings.{field}")), "{error}");
    }
}

#[tokio::test]
async fn an_endpoint_makes_no_bill_longer_than_the_text_and_no_vector_longer_than_one() {
    let home = tempfile::tempdir().unwrap();
    for given in [[3e38, 3e38], [1e-42, 1e-42]] {
        let answer = json!({
            "data": [{"index": 0, "embedding": given}], "usage": {"total_tokens": u64::MAX},
        });
        let (url, server) = serve(move |_| ok(&answer));
        let found = embed(endpoint(url), home.path(), &["four"]).await.unwrap();
        let is_half = |number: &f32| (number - std::f32::consts::FRAC_1_SQRT_2).abs() < 1e-3;
        assert!(found.vectors[0].iter().all(is_half), "{:?}", found.vectors);
        let usage = found.usage.unwrap();
        assert_eq!((usage.embedding_tokens, usage.cost), (Some(20), Some(Microcents(40))));
        server.join().unwrap();
    }
}

#[test]
fn all_requests_of_a_batch_have_one_deadline() {
    let (listener, url) = listen();
    let EmbeddingsOptions::Endpoint(options) = endpoint(url) else { panic!("it is one") };
    let endpoint = Endpoint::new(options).unwrap();
    let requests = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&requests);
    // Refuses everything, each time after a while.
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let (mut asked, mut part) = (Vec::new(), [0; 4_096]);
            while !asked.ends_with(b"}") {
                match stream.read(&mut part) {
                    Ok(read @ 1..) => asked.extend_from_slice(&part[..read]),
                    _ => break,
                }
            }
            count.fetch_add(1, Ordering::Relaxed);
            std::thread::sleep(Duration::from_millis(100));
            let _ = stream
                .write_all(b"HTTP/1.1 400 No\r\nconnection: close\r\ncontent-length: 0\r\n\r\n");
        }
    });
    let (long, sent) = ("ä".repeat(32 << 10), OutgoingCounter::default());
    let error = endpoint
        .ask_or_cut(&[long], Instant::now() + Duration::from_millis(250), &sent)
        .unwrap_err()
        .to_string();
    assert!(error.contains("failed"), "{error}");
    // Eight would be needed until it is short.
    assert!(requests.load(Ordering::Relaxed) < 5);
    // Each of them took the text to the endpoint, and says so.
    let to = sent.take().into_vec();
    assert!(to.len() == 1 && to[0].by_host && to[0].counts.requests >= 1, "{to:?}");
    assert!(to[0].counts.bytes_sent > 64 << 10, "{to:?}");
}

/// Takes texts of up to 1,000 characters, and none about secrets; answers their length.
fn serve_short() -> (String, Arc<AtomicUsize>) {
    let (listener, url) = listen();
    let requests = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&requests);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let (_, asked) = read(&stream);
            count.fetch_add(1, Ordering::Relaxed);
            let texts: Vec<&str> = asked["input"]
                .as_array()
                .unwrap()
                .iter()
                .map(|text| text.as_str().unwrap())
                .collect();
            let answer =
                if texts.iter().any(|text| text.chars().count() > 1_000 || text.contains("secret"))
                {
                    "HTTP/1.1 400 Bad Request\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"
                        .to_owned()
                } else {
                    let vector = |(index, text): (usize, &&str)| {
                        json!({
                            "index": index, "embedding": [text.len(), 0],
                        })
                    };
                    let data: Vec<Value> = texts.iter().enumerate().map(vector).collect();
                    ok(&json!({"data": data, "usage": {"total_tokens": texts.len()}}))
                };
            stream.write_all(answer.as_bytes()).unwrap();
        }
    });
    (url, requests)
}

#[tokio::test]
async fn an_endpoint_gets_as_much_of_a_text_as_it_takes() {
    let home = tempfile::tempdir().unwrap();
    let (url, requests) = serve_short();
    let long = "ä".repeat(9_000);
    let mut texts = vec!["short"; 20];
    texts[13] = &long;
    let found = embed(endpoint(url.clone()), home.path(), &texts).await.unwrap();
    assert_eq!(
        (found.vectors.len(), found.usage.unwrap().embedding_tokens),
        (20, Some(20)),
        "each text once"
    );
    assert!(found.vectors.iter().all(|vector| *vector == [1.0, 0.0]), "{:?}", found.vectors);
    assert_eq!(requests.load(Ordering::Relaxed), 15);
    // What is refused in every length is named, after a bounded number of requests.
    requests.store(0, Ordering::Relaxed);
    let error = embed(endpoint(url), home.path(), &["secret"; 256]).await.unwrap_err().to_string();
    assert!(error.contains("400") && error.contains("`model`"), "{error}");
    assert_eq!(requests.load(Ordering::Relaxed), 9);
}
