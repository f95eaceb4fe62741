//! Vectors for a provider: granted or not, with a model or without one, within limits, and counted.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};

use memhost::contract::{BindingLimits, BindingPolicy, Grants, JsonObject, Microcents, VersionChoice};
use memhost::embeddings::{EmbeddingsOptions, EndpointOptions};
use memhost::service::CreateBinding;
use memhost_tests::{TestHost, caller, parse};
use serde_json::{Value, json};

/// Answers every text with the vector (3, 4) and a token a character, until the process ends.
fn endpoint() -> EmbeddingsOptions {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || listener.incoming().for_each(|stream| answer(stream.unwrap())));
    EmbeddingsOptions::Endpoint(EndpointOptions {
        url,
        model: "three-four".to_owned(),
        dimensions: 2,
        key: None,
        key_env: None,
        cents_per_million_tokens: 3.0,
    })
}

fn answer(mut stream: TcpStream) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut length = 0;
    for line in reader.by_ref().lines().map(Result::unwrap).take_while(|line| !line.is_empty()) {
        if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    let asked: Value = serde_json::from_slice(&body).unwrap();
    let texts = asked["input"].as_array().unwrap();
    let tokens: usize = texts.iter().map(|text| text.as_str().unwrap().len()).sum();
    let data: Vec<Value> = (0..texts.len()).map(|index| json!({"index": index, "embedding": [3, 4]})).collect();
    let body = json!({"data": data, "usage": {"total_tokens": tokens}}).to_string();
    let head = format!("HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: {}\r\n\r\n", body.len());
    stream.write_all(format!("{head}{body}").as_bytes()).unwrap();
}

async fn host(options: EmbeddingsOptions, granted: bool) -> TestHost {
    let host = TestHost::with(&["embeds"], |all| all.embeddings = options).await.unwrap();
    let request = CreateBinding {
        key: parse("embeds"),
        provider_key: parse("embeds"),
        config: JsonObject::new(),
        version: VersionChoice::default(),
        grants: Some(Grants { embeddings: granted, ..Grants::default() }),
        limits: BindingLimits::default(),
        policy: BindingPolicy::default(),
        default: true,
    };
    host.service().create_binding(&caller(), &parse("acme"), request).await.unwrap();
    host
}

async fn ask(host: &TestHost, question: &str) -> String {
    host.query("acme", question).await.unwrap().remove(0).text
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn vectors_come_to_whoever_may_have_them_and_are_counted() {
    let host = host(endpoint(), true).await;
    let text = ask(&host, "1 hello").await;
    assert_eq!(text, "Some(\"three-four@127.0.0.1 2\") 1 Some([0.6, 0.8]) true");
    let operations = host.operations("acme").unwrap();
    let [usage] = operations[0].usage.as_slice() else { panic!("{:?}", operations[0].usage) };
    // Two calls of the import in one call of the provider.
    let tokens = ("hello".len() + "something else".len()) as u64;
    assert_eq!((usage.embedding_tokens, usage.cost), (Some(tokens), Some(Microcents(tokens * 3))));
    assert_eq!(operations[0].cost_event_ids.len(), 1, "an endpoint's bill is a cost");
    // The same question again is remembered, and costs nothing.
    ask(&host, "1 hello").await;
    assert!(host.operations("acme").unwrap()[0].usage.is_empty());
    assert!(ask(&host, "256 many").await.contains(" 256 Some([0.6, 0.8])"));
    let refused = ask(&host, "257 many").await;
    assert!(refused.starts_with("refused: ") && refused.contains("256"), "{refused}");
    let refused = ask(&host, &format!("3 {}", "long ".repeat(1_000))).await;
    assert!(!refused.starts_with("refused: "), "a text below 64 KiB is taken");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_grant_or_a_model_the_provider_is_told_which() {
    let host_without_grant = host(endpoint(), false).await;
    let refused = ask(&host_without_grant, "1 hello").await;
    assert!(refused.contains("not granted") && refused.contains("an operator can grant it"), "{refused}");
    let host_without_model = host(EmbeddingsOptions::default(), true).await;
    let refused = ask(&host_without_model, "1 hello").await;
    assert!(refused.contains("memhost embeddings install"), "{refused}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_endpoint_that_is_gone_fails_the_import_and_not_the_host() {
    let gone = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let EmbeddingsOptions::Endpoint(options) = endpoint() else { panic!("an endpoint") };
    let options = EndpointOptions { url: format!("http://{gone}"), ..options };
    let host = host(EmbeddingsOptions::Endpoint(options), true).await;
    let refused = ask(&host, "1 hello").await;
    assert!(refused.starts_with("refused: embedding failed"), "{refused}");
}
