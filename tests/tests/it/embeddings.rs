//! The import `embeddings`: grants, models, limits and usage.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};

use memhost_core::CreateBinding;
use memhost_embeddings::{EmbeddingsOptions, EndpointOptions};
use memhost_tests::{TestHost, caller, capture, eventually, parse, query, scope};
use memhost_types::{
    BindingLimits, BindingPolicy, CorrectRequest, CorrectionPatch, ExportRequest, ForgetRequest,
    Grants, ImportRequest, Intent, JobFilter, JsonObject, Microcents, OperationKind, QueryRequest,
    RecordWrite, VersionChoice,
};
use serde_json::{Value, json};

/// Serves an endpoint until the process ends: the vector (3, 4) for a text, (4, -3) for one about
/// doors, and one token for each character.
fn endpoint() -> EmbeddingsOptions {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || listener.incoming().for_each(|stream| answer(stream.unwrap())));
    EmbeddingsOptions::Endpoint(EndpointOptions {
        is_quiet: false,
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
    let is_door = |text: &Value| {
        ["door", "entrance"].iter().any(|word| text.as_str().unwrap().contains(word))
    };
    let vector = |text: &Value| if is_door(text) { [4, -3] } else { [3, 4] };
    let embedded = texts
        .iter()
        .enumerate()
        .map(|(index, text)| json!({"index": index, "embedding": vector(text)}));
    let data: Vec<Value> = embedded.collect();
    let body = json!({"data": data, "usage": {"total_tokens": tokens}}).to_string();
    let head =
        format!("HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: {}\r\n\r\n", body.len());
    stream.write_all(format!("{head}{body}").as_bytes()).unwrap();
}

async fn host(options: EmbeddingsOptions, granted: bool) -> TestHost {
    host_of("embeds", options, Grants { embeddings: granted, ..Grants::default() }).await
}

async fn host_of(provider: &str, options: EmbeddingsOptions, grants: Grants) -> TestHost {
    let guests: &[&str] = if provider == "local-markdown" { &[] } else { &[provider] };
    let host = TestHost::with(guests, |all| all.embeddings = options).await.unwrap();
    let request = CreateBinding {
        key: parse("embeds"),
        provider_key: parse(provider),
        config: JsonObject::new(),
        version: VersionChoice::default(),
        grants: Some(grants),
        limits: BindingLimits::default(),
        policy: BindingPolicy::default(),
        default: true,
    };
    host.service().control().create_binding(&caller(), &parse("acme"), request).await.unwrap();
    host
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_that_many_captures_return_is_stored_once() {
    let grants = Grants {
        directory_bytes: 64 << 20,
        storage_bytes: 64 << 20,
        embeddings: true,
        ..Grants::default()
    };
    let host = host_of("cross-agent", endpoint(), grants).await;
    for round in 0..30 {
        let captured = (0..24).map(|n| {
            let service = std::sync::Arc::clone(host.service());
            tokio::spawn(async move {
                service
                    .operations()
                    .capture(&caller(), capture("acme", &format!("note {round} {n}")))
                    .await
            })
        });
        for one in captured.collect::<Vec<_>>() {
            one.await.unwrap().unwrap();
        }
    }
    let page = host
        .service()
        .control()
        .jobs(&parse("acme"), &JobFilter::default(), None, Some(1_000))
        .await
        .unwrap();
    let mut names: Vec<_> = page.items.iter().map(|job| job.provider_job_id.clone()).collect();
    let all = names.len();
    names.sort();
    names.dedup();
    assert_eq!(names.len(), all, "a job was stored twice");
    assert!(all > 0);
}

async fn ask(host: &TestHost, question: &str) -> String {
    host.query("acme", question).await.unwrap().remove(0).text
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn vectors_need_a_grant_and_are_counted() {
    let host = host(endpoint(), true).await;
    let text = ask(&host, "1 hello").await;
    assert_eq!(text, "Some(\"three-four@127.0.0.1 2\") 1 Some([0.6, 0.8]) true");
    let operations = host.operations("acme").await.unwrap();
    let [usage] = operations[0].usage.as_slice() else { panic!("{:?}", operations[0].usage) };
    // Two calls of the import in one call of the provider.
    let tokens = ("hello".len() + "something else".len()) as u64;
    assert_eq!((usage.embedding_tokens, usage.cost), (Some(tokens), Some(Microcents(tokens * 3))));
    assert_eq!(operations[0].cost_event_ids.len(), 1, "an endpoint's bill is a cost");
    // The same question again is remembered, and costs nothing.
    ask(&host, "1 hello").await;
    assert!(host.operations("acme").await.unwrap()[0].usage.is_empty());
    assert!(ask(&host, "256 many").await.contains(" 256 Some([0.6, 0.8])"));
    let refused = ask(&host, "257 many").await;
    assert!(refused.starts_with("refused: ") && refused.contains("256"), "{refused}");
    let refused = ask(&host, &format!("3 {}", "long ".repeat(1_000))).await;
    assert!(!refused.starts_with("refused: "), "a text below 64 KiB is taken");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_usage_of_a_summary_is_counted_with_its_query() {
    let host = host(endpoint(), true).await;
    let asked = QueryRequest { intent: Intent::AgentPreamble, ..query("acme", "1 hello") };
    let bundle = host.service().operations().query(&caller(), asked).await.unwrap();
    assert_eq!(bundle.profile_summary.as_deref(), Some("somebody"));
    let operations = host.operations("acme").await.unwrap();
    let tokens: u64 = operations[0].usage.iter().filter_map(|usage| usage.embedding_tokens).sum();
    assert_eq!(
        tokens as usize,
        ["hello", "something else", "who somebody is"].map(str::len).iter().sum::<usize>()
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_provider_learns_whether_grant_or_model_is_missing() {
    let host_without_grant = host(endpoint(), false).await;
    let refused = ask(&host_without_grant, "1 hello").await;
    assert!(
        refused.contains("not granted") && refused.contains("memhost binding grant"),
        "{refused}"
    );
    let host_without_model = host(EmbeddingsOptions::default(), true).await;
    let refused = ask(&host_without_model, "1 hello").await;
    assert!(refused.contains("memhost embeddings install"), "{refused}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_unreachable_endpoint_fails_only_the_import() {
    let gone = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let EmbeddingsOptions::Endpoint(options) = endpoint() else { panic!("an endpoint") };
    let options = EndpointOptions { url: format!("http://{gone}"), ..options };
    let host = host(EmbeddingsOptions::Endpoint(options), true).await;
    let refused = ask(&host, "1 hello").await;
    assert!(refused.starts_with("refused: embedding failed"), "{refused}");
}

/// The built-in provider in its sandbox: jobs embed the records, and the usage is that of the jobs.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_built_in_provider_finds_records_by_meaning() {
    let grants = Grants {
        embeddings: true,
        storage_bytes: 64 << 20,
        directory_bytes: 64 << 20,
        ..Grants::default()
    };
    let host = host_of("local-markdown", endpoint(), grants).await;
    host.write("acme", "The door is green.").await.unwrap();
    host.service()
        .operations()
        .capture(&caller(), capture("acme", "Lunch is at noon."))
        .await
        .unwrap();
    let embedded = async |kind: OperationKind| {
        let operations = host
            .operations("acme")
            .await
            .unwrap()
            .into_iter()
            .filter(move |operation| operation.kind == kind);
        operations
            .flat_map(|operation| operation.usage)
            .filter_map(|usage| usage.embedding_tokens)
            .sum::<u64>()
    };
    let both = ("The door is green.".len() + "Lunch is at noon.".len()) as u64;
    eventually("both are embedded", async || embedded(OperationKind::Extraction).await >= both)
        .await;
    let found = host.query("acme", "entrance").await.unwrap();
    assert_eq!(
        found.iter().map(|snippet| &*snippet.text).collect::<Vec<_>>(),
        ["The door is green."]
    );
    assert_eq!(embedded(OperationKind::Extraction).await, both, "each text once");
    assert_eq!(
        embedded(OperationKind::RecordUpsert).await + embedded(OperationKind::Capture).await,
        0,
        "the write does not wait for it"
    );
}

/// Their answers have no field for jobs.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn upserts_corrections_and_imports_are_embedded_by_a_job() {
    let grants = Grants { embeddings: true, storage_bytes: 64 << 20, ..Grants::default() };
    let host = host_of("cross-agent", endpoint(), grants).await;
    let (service, scope) = (host.service(), scope("acme"));
    let handle = host.write("acme", "Lunch is at noon.").await.unwrap();
    assert_eq!(jobs_that_ended(&host).await, 1);
    let write = RecordWrite { text: "The door is green.".to_owned(), ..RecordWrite::default() };
    let patch = CorrectionPatch { instruction: None, record: Some(write) };
    let correct =
        CorrectRequest { binding_key: None, scope: scope.clone(), handle: handle.clone(), patch };
    service.operations().correct(&caller(), correct).await.unwrap();
    assert_eq!(jobs_that_ended(&host).await, 2);
    let export = ExportRequest { binding_key: None, scope: scope.clone(), cursor: None };
    let lines = service.operations().export_records(&caller(), export).await.unwrap().lines;
    let forget = ForgetRequest { binding_key: None, scope: scope.clone(), handles: vec![handle] };
    service.operations().forget(&caller(), forget).await.unwrap();
    let import = ImportRequest { binding_key: None, scope: scope.clone(), lines };
    assert_eq!(service.operations().import_records(&caller(), import).await.unwrap().imported, 1);
    assert_eq!(jobs_that_ended(&host).await, 3);
}

/// How many jobs there are, when none waits any more. A waiting job also does the work of later
/// writes.
async fn jobs_that_ended(host: &TestHost) -> usize {
    let jobs = async || {
        host.service()
            .control()
            .jobs(&parse("acme"), &JobFilter::default(), None, Some(100))
            .await
            .unwrap()
            .items
    };
    eventually("all jobs end", async || jobs().await.iter().all(|job| job.status.is_end())).await;
    jobs().await.len()
}

/// Configuring an endpoint grants nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_endpoint_gets_no_texts_without_a_grant() {
    let host = TestHost::with(&[], |all| all.embeddings = endpoint()).await.unwrap();
    host.write("acme", "The door is green.").await.unwrap();
    host.query("acme", "entrance").await.unwrap();
    assert!(
        host.operations("acme").await.unwrap().iter().all(|operation| operation.usage.is_empty())
    );
}
