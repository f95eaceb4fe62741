//! What a vendor answers, byte for byte, to a provider that may use the network: nothing that comes
//! back has the secret in it, and the host goes on.

#![no_main]

use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::OnceLock;
use std::sync::mpsc::{Sender, channel};

use libfuzzer_sys::fuzz_target;
use memhost_core::{CreateBinding, SetSecret};
use memhost_tests::{TestHost, caller, parse, stamped};
use memhost_types::{BindingLimits, Grants, HttpGrant, VersionChoice};
use serde_json::json;
use tokio::runtime::Runtime;

const SECRET: &str = "s3cr3t-value-of-the-fuzzer";

struct Fuzzed {
    runtime: Runtime,
    host: TestHost,
    authority: String,
    answers: Sender<Vec<u8>>,
}

fn fuzzed() -> &'static Fuzzed {
    static FUZZED: OnceLock<Fuzzed> = OnceLock::new();
    FUZZED.get_or_init(|| {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let authority = format!("localhost:{}", listener.local_addr().unwrap().port());
        let (answers, next) = channel::<Vec<u8>>();
        std::thread::spawn(move || {
            for answer in next {
                let (mut stream, _) = listener.accept().unwrap();
                drop(stream.read(&mut [0; 4_096]));
                drop(stream.write_all(&answer));
            }
        });
        let runtime = Runtime::new().unwrap();
        let host = runtime.block_on(bound(&format!("http://{authority}")));
        Fuzzed { runtime, host, authority, answers }
    })
}

async fn bound(origin: &str) -> TestHost {
    let host = TestHost::new(&[]).await.unwrap();
    let build =
        stamped(json!({"key": "sends", "version": "1.0.0", "origin": origin, "secret": "KEY"}))
            .unwrap();
    std::fs::write(host.directory().join("plugins/sends.wasm"), build).unwrap();
    host.service().control().scan_plugins().await;
    let ranges = ["127.0.0.0/8", "::1/128"].map(|range| range.parse().unwrap()).to_vec();
    let grant =
        HttpGrant { origin: origin.parse().unwrap(), methods: Vec::new(), private_ranges: ranges };
    let request = CreateBinding {
        policy: Default::default(),
        key: parse("default"),
        provider_key: parse("sends"),
        version: VersionChoice::default(),
        config: Default::default(),
        grants: Some(Grants {
            http: vec![grant],
            secrets: vec!["KEY".to_owned()],
            ..Grants::default()
        }),
        limits: BindingLimits::default(),
        default: true,
    };
    host.service().control().create_binding(&caller(), &parse("acme"), request).await.unwrap();
    let (origins, used_as) =
        (vec![origin.parse().unwrap()], "header:authorization:Bearer".parse().unwrap());
    let secret = SetSecret { value: SECRET.to_owned(), origins, used_as };
    host.service().control().set_secret(&caller(), &parse("acme"), "KEY", secret).await.unwrap();
    host
}

fuzz_target!(|input: (bool, Vec<(String, String)>, Vec<u8>)| {
    let (is_raw, headers, body) = input;
    let fuzzed = fuzzed();
    // The fuzzer finds the secret sooner with some help.
    let body = String::from_utf8_lossy(&body).replace('\u{1}', SECRET).into_bytes();
    let mut answer = Vec::new();
    if !is_raw {
        let mut head =
            format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n", body.len());
        for (name, value) in headers {
            head.push_str(&format!("{name}: {}\r\n", value.replace('\u{1}', SECRET)));
        }
        answer.extend_from_slice(head.as_bytes());
        answer.extend_from_slice(b"\r\n");
    }
    answer.extend_from_slice(&body);
    fuzzed.answers.send(answer).unwrap();
    let ask = json!({"method": "GET", "scheme": "http", "path": "/", "authority": fuzzed.authority,
        "headers": {"authorization": "Bearer {{secret:KEY}}"}});
    if let Ok(found) = fuzzed.runtime.block_on(fuzzed.host.query("acme", &ask.to_string())) {
        assert!(found.iter().all(|snippet| !snippet.text.contains(SECRET)), "{found:?}");
    }
});
