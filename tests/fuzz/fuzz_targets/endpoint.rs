//! What an endpoint for embeddings answers, byte for byte: vectors as they must be, or an error.

#![no_main]

use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, OnceLock};

use libfuzzer_sys::fuzz_target;
use memhost_embeddings::{Embeddings, EmbeddingsOptions, EndpointOptions};
use memhost_types::BindingId;
use tokio::runtime::Runtime;

struct Fuzzed {
    runtime: Runtime,
    embeddings: Arc<Embeddings>,
    answers: Sender<Vec<u8>>,
}

fn fuzzed() -> &'static Fuzzed {
    static FUZZED: OnceLock<Fuzzed> = OnceLock::new();
    FUZZED.get_or_init(|| {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/v1", listener.local_addr().unwrap());
        let (answers, next) = channel::<Vec<u8>>();
        std::thread::spawn(move || {
            for answer in next {
                let (mut stream, _) = listener.accept().unwrap();
                drop(stream.read(&mut [0; 4_096]));
                drop(stream.write_all(&answer));
            }
        });
        let (model, dimensions) = ("small".to_owned(), 2);
        let options = EndpointOptions {
            is_quiet: false,
            url,
            model,
            dimensions,
            key: None,
            key_env: None,
            cents_per_million_tokens: 1.0,
        };
        let embeddings =
            Embeddings::open(EmbeddingsOptions::Endpoint(options), &std::env::temp_dir()).unwrap();
        Fuzzed { runtime: Runtime::new().unwrap(), embeddings, answers }
    })
}

fuzz_target!(|input: (Vec<(String, String)>, Option<Vec<u8>>, Vec<(u8, Vec<f32>)>, u64)| {
    let (headers, body, vectors, tokens) = input;
    let data: Vec<_> = vectors
        .iter()
        .map(|(index, embedding)| serde_json::json!({"index": index, "embedding": embedding}))
        .collect();
    let sound = || {
        serde_json::json!({"data": data, "usage": {"total_tokens": tokens}})
            .to_string()
            .into_bytes()
    };
    let body = body.unwrap_or_else(sound);
    let mut answer =
        format!("HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: {}\r\n", body.len());
    for (name, value) in headers {
        answer.push_str(&format!("{name}: {value}\r\n"));
    }
    let answer = [answer.as_bytes(), b"\r\n", &body].concat();
    let fuzzed = fuzzed();
    fuzzed.answers.send(answer).unwrap();
    // Another binding each time, and other texts: nothing is remembered.
    let text = |n: u8| format!("{n} {:?}", uuid::Uuid::new_v4());
    let embedder =
        fuzzed.embeddings.for_binding(&"acme".parse().unwrap(), BindingId(uuid::Uuid::new_v4()));
    if let Ok(embedded) =
        fuzzed.runtime.block_on(embedder.embed(vec![text(1), text(2)], <_>::default()))
    {
        assert_eq!(embedded.vectors.len(), 2);
        for vector in embedded.vectors {
            let length: f32 = vector.iter().map(|number| number * number).sum();
            assert!(vector.len() == 2 && (length - 1.0).abs() < 1e-3, "{vector:?}");
        }
    }
});
