//! Guests that misbehave: each one fails its own call only. Meanwhile another binding, `innocent`,
//! serves.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use memhost_core::{CreateBinding, ServiceError};
use memhost_sandbox::{AdmissionError, Component, Sandbox, SandboxOptions};
use memhost_tests::{TestHost, caller, capture, guest_file, list, parse, upsert};
use memhost_types::{
    BindingLimits, Grants, JsonObject, OperationErrorCode, OperationErrorCode as Code, Outcome,
    Snippet, VersionChoice,
};
use tokio::task::JoinSet;

/// Short limits, so that tests are quick.
pub(super) fn tight() -> BindingLimits {
    BindingLimits {
        memory_bytes: 32 << 20,
        // Far more than a call that another limit ends takes, also on a busy machine.
        call_timeout_ms: 60_000,
        call_cpu_ms: 500,
        transfer_bytes: 8 << 20,
        ..BindingLimits::default()
    }
}

pub(super) async fn host_with(guest: &str) -> TestHost {
    host_with_limits(guest, tight()).await
}

pub(super) async fn host_with_limits(guest: &str, limits: BindingLimits) -> TestHost {
    let host = TestHost::new(&[guest, "echo"]).await.unwrap();
    host.bind("hostile", guest, limits).await.unwrap();
    host.bind("innocent", "echo", BindingLimits::default()).await.unwrap();
    host
}

pub(super) fn code(error: &ServiceError) -> (OperationErrorCode, Outcome) {
    match error {
        ServiceError::Operation { error, outcome, .. } => (error.code, *outcome),
        other => panic!("{other}"),
    }
}

/// Asks the hostile binding while the innocent one keeps serving; answers how the hostile call
/// ended.
async fn beside_an_innocent(host: &TestHost, text: &str) -> ServiceError {
    host.query("innocent", "hello").await.unwrap();
    let (service, has_ended) = (Arc::clone(host.service()), Arc::new(AtomicBool::new(false)));
    let ended = Arc::clone(&has_ended);
    let innocent = tokio::spawn(async move {
        let (mut meanwhile, mut afterwards) = (0, 0);
        while afterwards < 3 {
            let answer = service
                .operations()
                .query(&caller(), memhost_tests::query("innocent", "hello"))
                .await
                .unwrap();
            assert_eq!(answer.snippets.len(), 5);
            *if ended.load(Ordering::Relaxed) { &mut afterwards } else { &mut meanwhile } += 1;
        }
        meanwhile
    });
    let error = host.query("hostile", text).await.unwrap_err();
    has_ended.store(true, Ordering::Relaxed);
    let meanwhile = innocent.await.unwrap();
    // If the other binding had to wait for the hostile call, it would have been served once, at the
    // end.
    let is_long = code(&error).1 == Outcome::TimedOut;
    assert!(!is_long || meanwhile >= 3, "the innocent binding was served {meanwhile} times");
    error
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn loops_in_call() {
    let host = host_with("loops-in-call").await;
    let error = beside_an_innocent(&host, "x").await;
    assert_eq!(code(&error), (Code::TimedOut, Outcome::TimedOut));
    assert!(error.to_string().contains("callCpuMs"), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sleeps() {
    let host =
        host_with_limits("sleeps", BindingLimits { call_timeout_ms: 2_000, ..tight() }).await;
    let error = beside_an_innocent(&host, "x").await;
    assert_eq!(code(&error), (Code::TimedOut, Outcome::TimedOut));
    assert!(error.to_string().contains("callTimeoutMs"), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn eats_memory() {
    let host = host_with("eats-memory").await;
    let error = beside_an_innocent(&host, "x").await;
    assert_eq!(code(&error), (Code::LimitExceeded, Outcome::Trapped));
    assert!(error.to_string().contains("memoryBytes"), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn grows_table() {
    let host = host_with("grows-table").await;
    // Growing is refused at the limit, and the guest continues.
    let answer = host.query("hostile", "x").await.unwrap();
    let grown: u64 = answer[0].text.parse().unwrap();
    assert!(grown < tight().table_elements, "the table grew by {grown}");
    host.query("innocent", "hello").await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn traps() {
    let host = host_with("traps").await;
    let error = beside_an_innocent(&host, "trap").await;
    assert_eq!(code(&error), (Code::Trapped, Outcome::Trapped));
    // The next call gets a fresh instance.
    host.query("hostile", "fine").await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answers_100_mb() {
    let host = host_with("answers-100-mb").await;
    let error = beside_an_innocent(&host, "x").await;
    assert!(matches!(code(&error).0, Code::LimitExceeded), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answers_100_mb_with_room_for_it() {
    let host = TestHost::new(&["answers-100-mb"]).await.unwrap();
    let limits = BindingLimits { memory_bytes: 512 << 20, ..tight() };
    host.bind("hostile", "answers-100-mb", limits).await.unwrap();
    let error = host.query("hostile", "x").await.unwrap_err();
    assert_eq!(code(&error).0, Code::LimitExceeded);
    assert!(error.to_string().contains("transferBytes"), "{error}");
}

macro_rules! bad_answers {
    ($($name:ident: $guest:literal $(, $text:literal)? => $says:literal;)+) => {
        $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn $name() {
            #[allow(unused_mut, unused_assignments)]
            let mut text = "x";
            $(text = $text;)?
            let host = host_with($guest).await;
            let error = beside_an_innocent(&host, text).await;
            assert_eq!(code(&error), (Code::BadAnswer, Outcome::Failed), "{error}");
            assert!(error.to_string().contains($says), "{error}");
        })+
    };
}

bad_answers! {
    answers_too_many: "answers-too-many" => "snippets";
}

/// The answer of the hostile binding without what the host has left out, and what its log says of
/// that. The circuit stays closed however often it happens.
async fn left_out(guest: &str, text: &str) -> (Vec<Snippet>, String) {
    let host = host_with(guest).await;
    let mut answer = Vec::new();
    for _ in 0..10 {
        answer = host.query("hostile", text).await.unwrap();
    }
    let operation = host.operations("hostile").await.unwrap().remove(0);
    assert_eq!(operation.outcome, Outcome::Succeeded);
    let views = host.service().control().bindings(&parse("hostile")).await.unwrap();
    let warning = views[0].warnings.join("; ");
    assert!(warning.starts_with("10 things were left out of answers"), "{warning}");
    let found = host.service().monitor().doctor().await;
    let check = found.iter().find(|check| check.name == "bindings").unwrap();
    assert!(check.found.contains("10 things were left out of answers"), "{check:?}");
    (answer, operation.log.iter().map(|line| format!("{} {}\n", line.level, line.text)).collect())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answers_nan() {
    for text in ["x", "infinite", "large", "negative"] {
        let (answer, log) = left_out("answers-nan", text).await;
        assert_eq!((answer[0].score, answer[0].score_kind), (None, None), "{text}");
        assert!(log.contains("warn host: the score of record \"scored\" is left out: "), "{log}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answers_foreign() {
    let (answer, log) = left_out("answers-foreign", "x").await;
    assert!(answer[0].text == "of another company" && answer[0].source.is_none(), "{answer:?}");
    assert!(log.contains("a source belongs to another company"), "{log}");
    for (text, says) in [("long id", "a record id"), ("empty id", "a record id is empty")] {
        let (answer, log) = left_out("answers-foreign", text).await;
        assert_eq!(answer.iter().map(|one| one.text.as_str()).collect::<Vec<_>>(), ["sound"]);
        assert!(log.contains("warn host: record is left out: ") && log.contains(says), "{log}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bad_json() {
    for text in ["x", "array", "large"] {
        let (answer, log) = left_out("bad-json", text).await;
        assert!(answer[0].metadata.is_none(), "{answer:?}");
        assert!(log.contains("the metadata of record"), "{log}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn deep_json() {
    let (answer, log) = left_out("deep-json", "x").await;
    assert!(answer[0].metadata.is_none() && log.contains("the metadata of record"), "{log}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lying_list() {
    let host = host_with("lying-list").await;
    let listed =
        host.service().operations().list(&caller(), list("hostile", 3, None)).await.unwrap_err();
    assert_eq!(code(&listed), (Code::BadAnswer, Outcome::Failed));
    let written = host
        .service()
        .operations()
        .upsert(&caller(), upsert("hostile", &["a", "b"]))
        .await
        .unwrap_err();
    assert_eq!(code(&written), (Code::BadAnswer, Outcome::Failed));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn floods_log() {
    let host = host_with("floods-log").await;
    let _ = host.query("hostile", "x").await;
    let log = &host.operations("hostile").await.unwrap()[0].log;
    let kept: usize = log.iter().map(|line| line.text.len()).sum();
    assert!(kept <= 16 << 10, "{kept} bytes of log were kept");
    assert!(log.last().unwrap().text.contains("left out"), "{:?}", log.last());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn floods_storage() {
    // What the host computes to store it counts, too.
    let host =
        host_with_limits("floods-storage", BindingLimits { call_cpu_ms: 60_000, ..tight() }).await;
    let answer = host.query("hostile", "x").await.unwrap();
    let refused = answer
        .iter()
        .find(|snippet| snippet.handle.provider_record_id.as_str() == "refused")
        .unwrap();
    assert!(refused.text.contains("storageBytes"), "{}", refused.text);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn remembers() {
    let host = TestHost::new(&["remembers"]).await.unwrap();
    for company in ["one", "two"] {
        host.bind(company, "remembers", BindingLimits::default()).await.unwrap();
    }
    for n in 0..20 {
        host.query("one", &format!("secret of one {n}")).await.unwrap();
        let seen = host.query("two", "what was asked before?").await.unwrap();
        assert!(seen.iter().all(|snippet| !snippet.text.contains("secret of one")), "{seen:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn escapes_directory() {
    let host = host_with("escapes-directory").await;
    let outside = host.directory().join("outside.txt");
    std::fs::write(&outside, "outside").unwrap();
    let captured = host
        .service()
        .operations()
        .capture(&caller(), capture("hostile", &outside.display().to_string()))
        .await;
    if let Ok(captured) = captured {
        let succeeded: Vec<_> =
            captured.records.iter().map(|handle| handle.provider_record_id.to_string()).collect();
        assert!(succeeded.iter().all(|id| !id.contains("escaped")), "{succeeded:?}");
    }
    assert_eq!(std::fs::read_to_string(&outside).unwrap(), "outside");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn dials_out() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let host = host_with("dials-out").await;
    let address = listener.local_addr().unwrap().to_string();
    let answer = host.query("hostile", &address).await;
    assert!(listener.accept().is_err(), "the guest reached a listener of the host: {answer:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reads_environment() {
    let host = host_with("reads-environment").await;
    let mut request = memhost_tests::query("hostile", "x");
    request.top_k = Some(100);
    let answer = host.service().operations().query(&caller(), request).await.unwrap().snippets;
    let all: String = answer.iter().map(|snippet| snippet.text.as_str()).collect();
    for secret in ["PATH", "HOME", "/proc", "CARGO"] {
        assert!(!all.contains(&format!("{secret}=")), "{all}");
    }
}

async fn refused(guest: &str) -> AdmissionError {
    let sandbox = Sandbox::new(SandboxOptions::default()).unwrap();
    let bytes = std::fs::read(guest_file(guest)).unwrap();
    Component::admit(&sandbox, bytes, None).await.unwrap_err()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn loops_in_start() {
    let error = refused("loops-in-start").await;
    assert!(matches!(error, AdmissionError::Describe(_)), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bad_description() {
    let error = refused("bad-description").await;
    assert!(matches!(error, AdmissionError::Description { field: "providerKey", .. }), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn needs_more() {
    let error = refused("needs-more").await;
    assert!(matches!(error, AdmissionError::Unlinkable(_)), "{error}");
    assert!(error.to_string().contains("missing"), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn old_contract() {
    let error = refused("old-contract").await;
    assert!(
        matches!(&error, AdmissionError::UnknownContract { found, .. } if found == "9.0.0"),
        "{error}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn exports_nothing() {
    let error = refused("exports-nothing").await;
    assert!(matches!(error, AdmissionError::NoProvider { .. }), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn spins_cpu() {
    let host = host_with("spins-cpu").await;
    // Within its budget it answers. Beyond it the call is ended.
    host.query("hostile", "50").await.unwrap();
    let error = beside_an_innocent(&host, "60000").await;
    assert_eq!(code(&error), (Code::TimedOut, Outcome::TimedOut));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_queue_is_refused_and_the_pool_stays_for_others() {
    let host = host_with_limits(
        "sleeps",
        BindingLimits { concurrent_calls: 1, queued_calls: 2, ..tight() },
    )
    .await;
    let mut calls = JoinSet::new();
    for _ in 0..8 {
        let service = Arc::clone(host.service());
        calls.spawn(async move {
            service.operations().query(&caller(), memhost_tests::query("hostile", "x")).await
        });
    }
    // One call sleeps and two wait for it, so the other five are refused.
    for _ in 0..5 {
        let refused = calls.join_next().await.unwrap().unwrap().unwrap_err();
        assert_eq!(code(&refused).0, Code::Busy);
    }
    assert_eq!(host.usage("hostile", "sleeps").await.unwrap().calls_waiting, 2);
    host.query("innocent", "hello").await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hoards_handles() {
    let host = host_with("hoards-handles").await;
    for what in ["pollables", "fields", "streams"] {
        let error = host.query("hostile", what).await.unwrap_err();
        assert_eq!(code(&error).0, Code::Trapped, "{what}: {error}");
        assert!(error.to_string().contains("no free keys"), "{what}: {error}");
    }
    host.query("innocent", "hello").await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn floods_headers() {
    let host = host_with("floods-headers").await;
    for how in ["small", "large"] {
        let error = host.query("hostile", how).await.unwrap_err();
        assert_eq!(code(&error).0, Code::Trapped, "{how}: {error}");
        assert!(error.to_string().contains("total size of fields"), "{how}: {error}");
    }
    host.query("innocent", "hello").await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn large_arguments() {
    let host = TestHost::new(&["large-arguments", "echo"]).await.unwrap();
    let limits = BindingLimits {
        memory_bytes: 256 << 20,
        transfer_bytes: 16 << 20,
        ..BindingLimits::default()
    };
    host.bind("hostile", "large-arguments", limits).await.unwrap();
    for what in ["value", "list"] {
        let told = match host.query("hostile", what).await {
            Ok(answer) => answer[0].text.clone(),
            Err(error) => error.to_string(),
        };
        let names_it = ["transferBytes", "limit", "bytes"].iter().any(|word| told.contains(word));
        assert!(names_it && told != "nothing", "{what}: {told}");
    }
    assert_eq!(host.usage("hostile", "large-arguments").await.unwrap().storage_bytes, 0);
}

/// Every hostile guest has a test of the same name.
#[test]
fn every_guest_has_its_test() {
    let source = concat!(include_str!("hostile.rs"), include_str!("files.rs"));
    let well_behaved = [
        "complete",
        "echo",
        "embeds",
        "extracts",
        "hosted",
        "reference",
        "notes",
        "stamped",
        "well-behaved",
        "wrong",
        "target",
    ];
    for entry in std::fs::read_dir(memhost_tests::repository().join("tests/guests")).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        if !entry.path().is_dir() || well_behaved.contains(&name.as_str()) || name.starts_with('.')
        {
            continue;
        }
        let test = name.replace('-', "_");
        let there = source.contains(&format!("async fn {test}()"))
            || source.contains(&format!("    {test}: \""));
        assert!(there, "the guest `{name}` has no test `{test}`");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn floods_directory() {
    let host = TestHost::new(&["floods-directory"]).await.unwrap();
    let grants = Grants { directory_bytes: 1 << 20, ..Grants::default() };
    let limits = BindingLimits { directory_files: 100, ..BindingLimits::default() };
    let request = CreateBinding {
        policy: memhost_types::BindingPolicy::default(),
        key: parse("default"),
        provider_key: parse("floods-directory"),
        version: VersionChoice::default(),
        config: JsonObject::new(),
        grants: Some(grants),
        limits,
        default: true,
    };
    // The provider reports the system's error, and the host names the limit.
    let grants = Grants { storage_bytes: 64 << 20, directory_bytes: 1 << 20, ..Grants::default() };
    let small = CreateBinding {
        provider_key: parse("local-markdown"),
        grants: Some(grants),
        ..request.clone()
    };
    host.service().control().create_binding(&caller(), &parse("small"), small).await.unwrap();
    let mut told = String::new();
    for _ in 0..64 {
        if let Err(error) = host.write("small", &"long ".repeat(10_000)).await {
            told = error.to_string();
            break;
        }
    }
    assert!(told.contains("directoryBytes"), "{told}");
    for (how, most) in
        [("bytes", 1 << 20), ("sparse", 1), ("holes", 1), ("files", 100), ("links", 100)]
    {
        host.service()
            .control()
            .create_binding(&caller(), &parse(how), request.clone())
            .await
            .unwrap();
        let answer = host.query(how, how).await.unwrap();
        let said = |id: &str| {
            answer
                .iter()
                .find(|snippet| snippet.handle.provider_record_id.as_str() == id)
                .unwrap()
                .text
                .clone()
        };
        assert!(said("got").parse::<u64>().unwrap() <= most, "{how}: {}", said("got"));
        // WASI's libc has one error for all failures of a stream.
        let refused = said("refused").to_lowercase();
        assert!(
            refused.contains("quota")
                || (["bytes", "holes"].contains(&how) && refused.contains("i/o")),
            "{how}: {refused}"
        );
    }
}
