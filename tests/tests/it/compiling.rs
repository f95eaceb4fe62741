//! Compiling what was made to compile slowly: in a process of its own, within limits, and in
//! nobody's way.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use memhost_core::{CompileLimits, Compiler, CompilerProcess, ServiceOptions};
use memhost_sandbox::{Sandbox, SandboxOptions};
use memhost_tests::{TestHost, cache_dir, eventually, is_whole, stamped};
use serde_json::{Value, json};
use ureq::http::Request;

use crate::cli::{TOKEN, run, words};

/// Limits that no bomb reaches while a test runs.
const PATIENT: &str =
    "compile_seconds = 600\ncompile_cpu_seconds = 600\ncompile_memory_bytes = 8589934592\n";

/// A component that takes a compiler minutes: every local has another value in every loop.
fn bomb(loops: usize, locals: usize) -> Vec<u8> {
    let change: String = (0..locals)
        .map(|n| format!("(local.set {n} (i32.add (local.get {n}) (i32.const 1)))"))
        .collect();
    let ends: String = (0..loops).map(|_| "(br_if 0 (local.get 0)) end ").collect();
    let body = format!("{}{change}{ends}", "loop ".repeat(loops));
    wat::parse_str(format!(
        "(component (core module (func (local{}) {body})))",
        " i32".repeat(locals)
    ))
    .unwrap()
}

fn compiler(limits: CompileLimits) -> Compiler {
    Compiler::Process(CompilerProcess {
        program: PathBuf::from(env!("CARGO_BIN_EXE_memhost-cli")),
        limits,
    })
}

/// The reason why the only refused file is refused.
fn reason(host: &TestHost) -> String {
    let refused = host.service().control().plugins().refused;
    assert_eq!(refused.len(), 1, "{refused:?}");
    refused[0].reason.clone()
}

/// A host whose compiler has these limits, and a file in its plugins directory.
async fn host_with(bytes: &[u8], limits: CompileLimits) -> TestHost {
    let bytes = bytes.to_vec();
    TestHost::with(&[], move |options: &mut ServiceOptions| {
        std::fs::write(options.plugins_dir.as_ref().unwrap().join("file.wasm"), bytes).unwrap();
        options.sandbox.compiler = compiler(limits);
    })
    .await
    .unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_compiles_too_long_is_stopped_and_remembered() {
    let second = CompileLimits { time: Duration::from_secs(1), ..CompileLimits::default() };
    let mut host = host_with(&bomb(400, 400), second).await;
    assert!(
        reason(&host).contains("longer than 1 s") && reason(&host).contains("compile_seconds"),
        "{}",
        reason(&host)
    );
    host.stop().await;
    host.start().await.unwrap();
    assert!(
        reason(&host).contains("not tried again") && reason(&host).contains("touch"),
        "{}",
        reason(&host)
    );
    // Another file with the same content is the same component.
    let file = host.directory().join("plugins/file.wasm");
    let written = std::fs::metadata(&file).unwrap().modified().unwrap();
    std::fs::rename(&file, host.directory().join("plugins/other.wasm")).unwrap();
    host.service().control().scan_plugins().await;
    assert!(reason(&host).contains("not tried again"), "{}", reason(&host));
    let other = std::fs::File::open(host.directory().join("plugins/other.wasm")).unwrap();
    other.set_modified(written + Duration::from_secs(1)).unwrap();
    host.service().control().scan_plugins().await;
    assert!(!reason(&host).contains("not tried again"), "{}", reason(&host));
    host.stop().await;
    let more = CompileLimits { time: Duration::from_millis(1_100), ..second };
    host.change(|options| options.sandbox.compiler = compiler(more));
    host.start().await.unwrap();
    assert!(
        !reason(&host).contains("not tried again"),
        "a higher limit is another chance: {}",
        reason(&host)
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn memory_and_computing_have_limits_of_their_own() {
    let cpu = CompileLimits { cpu_seconds: 1, ..CompileLimits::default() };
    let host = host_with(&bomb(400, 400), cpu).await;
    assert!(
        reason(&host).contains("1 s of computing") && reason(&host).contains("compile_cpu_seconds"),
        "{}",
        reason(&host)
    );
    let memory = CompileLimits { memory_bytes: 256 << 20, ..CompileLimits::default() };
    let host = host_with(&bomb(400, 400), memory).await;
    assert!(
        reason(&host).contains("256 MiB") && reason(&host).contains("compile_memory_bytes"),
        "{}",
        reason(&host)
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_another_process_compiled_serves_and_what_is_damaged_says_so() {
    let build = stamped(json!({"key": "stamped", "version": "1.0.0"})).unwrap();
    let scratch = tempfile::tempdir().unwrap();
    let compiled = scratch.path().join("compiled");
    let host = TestHost::with(&[], |options| {
        let plugins = options.plugins_dir.clone().unwrap();
        std::fs::write(plugins.join("bad.wasm"), &build[..build.len() / 2]).unwrap();
        std::fs::write(plugins.join("good.wasm"), &build).unwrap();
        options.compiled_dir = Some(compiled.clone());
        options.sandbox.compiler = compiler(CompileLimits::default());
    })
    .await
    .unwrap();
    assert!(reason(&host).contains("truncated"), "{}", reason(&host));
    host.bind("acme", "stamped", memhost_types::BindingLimits::default()).await.unwrap();
    assert_eq!(
        host.query("acme", "who is it?").await.unwrap()[0].handle.provider_record_id.as_str(),
        "1.0.0"
    );
    let kept = std::fs::read_dir(&compiled)
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect::<Vec<_>>();
    assert_eq!(
        kept.iter().filter(|name| name.to_string_lossy().starts_with("sha256-")).count(),
        2,
        "{kept:?}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_compiler_that_is_another_program_is_reported() {
    let build = stamped(json!({"key": "stamped", "version": "1.0.1"})).unwrap();
    for (program, part) in
        [("/does/not/exist", "/does/not/exist"), ("/bin/true", "compiling the component failed")]
    {
        let scratch = tempfile::tempdir().unwrap();
        let host = TestHost::with(&[], |options| {
            std::fs::write(options.plugins_dir.as_ref().unwrap().join("file.wasm"), &build)
                .unwrap();
            options.compiled_dir = Some(scratch.path().to_owned());
            let limits = CompileLimits::default();
            options.sandbox.compiler =
                Compiler::Process(CompilerProcess { program: program.into(), limits });
        });
        let host = host.await.unwrap();
        assert!(reason(&host).contains(part), "{}", reason(&host));
    }
}

/// Schemas that ask for more than anybody can compute: references that double by themselves and
/// with the depth of the configuration, a ring of references, patterns that take gigabytes.
fn hostile_schemas() -> Vec<(Value, Value)> {
    let mut found = Vec::new();
    for word in ["allOf", "oneOf"] {
        let mut defs = serde_json::Map::new();
        for level in 0..30 {
            let next = json!({"$ref": format!("#/$defs/{}", level + 1)});
            defs.insert(level.to_string(), json!({ word: [next, next] }));
        }
        defs.insert("30".to_owned(), json!({"type": "object"}));
        found.push((json!({"$defs": defs, "$ref": "#/$defs/0"}), json!({})));
    }
    let once = json!({"$ref": "#"});
    let deep = (0..40).fold(json!(1), |inner, _| json!({"a": inner}));
    found.push((json!({"properties": {"a": {"allOf": [once, once]}}}), deep));
    let chain: serde_json::Map<String, Value> = (0..6_000)
        .map(|n| (n.to_string(), json!({"$ref": format!("#/$defs/{}", (n + 1) % 6_000)})))
        .collect();
    found.push((json!({"$defs": chain, "$ref": "#/$defs/0"}), json!({})));
    let patterns: serde_json::Map<String, Value> =
        (0..2_000).map(|n| (format!("(\\w{{100}}){{100}}{n}"), json!({}))).collect();
    found.push((json!({"patternProperties": patterns}), json!({"a": 1})));
    let long = "a".repeat(200 << 10);
    found
        .push((json!({"properties": {"a": {"pattern": "[ab]*a[ab]{1000}c"}}}), json!({"a": long})));
    found
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hostile_schema_of_a_configuration_is_stopped_and_an_ordinary_one_is_quick() {
    let options = SandboxOptions {
        compiler: compiler(CompileLimits::default()),
        ..SandboxOptions::default()
    };
    let sandbox = Sandbox::new(options).unwrap();
    // The short form has one that computes for long and one that takes much memory.
    for (schema, config) in hostile_schemas().into_iter().step_by(if is_whole() { 1 } else { 4 }) {
        let began = Instant::now();
        let checked = sandbox.config_errors(&schema, &config).await;
        println!("{:.60} {checked:.100?} {:?}", schema.to_string(), began.elapsed());
        assert_ne!(checked, Ok(Vec::new()), "{:.100}", schema.to_string());
        assert!(began.elapsed() < Duration::from_secs(12), "{:?}", began.elapsed());
    }
    let schema = json!({
        "type": "object",
        "properties": {"url": {"type": "string", "format": "uri", "pattern": "^https://"}},
        "required": ["url"], "additionalProperties": false,
    });
    let began = Instant::now();
    for _ in 0..10 {
        let config = json!({"url": "https://x"});
        assert_eq!(sandbox.config_errors(&schema, &config).await, Ok(Vec::new()));
    }
    println!("{:?} for each check", began.elapsed() / 10);
    let found = sandbox.config_errors(&schema, &json!({"url": "ftp://x"})).await.unwrap();
    assert_eq!((found.len(), found[0].path.as_str()), (1, "/url"));
}

/// `memhost serve` in a process.
struct Served {
    process: Child,
    url: String,
    agent: ureq::Agent,
}

impl Served {
    fn start(directory: &Path, config: &str) -> Self {
        std::fs::write(directory.join("memhost.toml"), config).unwrap();
        let mut process = Command::new(env!("CARGO_BIN_EXE_memhost-cli"))
            .args([
                "serve",
                "--listen",
                "127.0.0.1:0",
                "--token",
                TOKEN,
                "--config",
                "memhost.toml",
            ])
            .current_dir(directory)
            .env("HOME", directory)
            .env("MEMHOST_CACHE_DIR", cache_dir())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let lines = BufReader::new(process.stdout.take().unwrap()).lines().map(Result::unwrap);
        let line = lines.into_iter().find(|line| line.contains("listening on")).unwrap();
        let url = line.rsplit(' ').next().unwrap().to_owned();
        let agent = ureq::Agent::config_builder()
            .http_status_as_error(false)
            // The host closes a connection that is idle for long, as here while others compile.
            .max_idle_connections(0)
            .build()
            .into();
        Self { process, url, agent }
    }

    /// The status, the time after which to try again, and the body.
    fn call(&self, method: &str, path: &str, body: &Value) -> (u16, String, Value) {
        let request = Request::builder().method(method).uri(format!("{}{path}", self.url));
        let request = request
            .header("authorization", format!("Bearer {TOKEN}"))
            .header("content-type", "application/json");
        let mut answer = self.agent.run(request.body(body.to_string()).unwrap()).unwrap();
        let retry =
            answer.headers().get("retry-after").map(|value| value.to_str().unwrap().to_owned());
        let text = answer.body_mut().read_to_string().unwrap();
        let body = serde_json::from_str(&text).unwrap_or(Value::String(text));
        (answer.status().as_u16(), retry.unwrap_or_default(), body)
    }

    fn plugins(&self) -> Value {
        self.call("GET", "/control/v1/plugins", &Value::Null).2
    }

    fn has(&self, version: &str) -> bool {
        self.plugins()["admitted"]
            .as_array()
            .unwrap()
            .iter()
            .any(|plugin| plugin["description"]["version"] == version)
    }

    /// The compilers that it started.
    fn compilers(&self) -> Vec<PathBuf> {
        let tasks = std::fs::read_dir(format!("/proc/{}/task", self.process.id())).unwrap();
        let children = tasks
            .filter_map(|task| std::fs::read_to_string(task.unwrap().path().join("children")).ok());
        let ids: Vec<String> = children
            .flat_map(|ids| ids.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
            .collect();
        let compilers = ids.iter().map(|id| PathBuf::from(format!("/proc/{id}")));
        compilers.filter(|compiler| is_compiler(compiler)).collect()
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The bombs may take ten minutes each, and nothing here waits for them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn slow_components_are_in_nobodys_way() {
    let directory = tempfile::tempdir().unwrap();
    let plugins = directory.path().join("memhost-data/plugins");
    std::fs::create_dir_all(&plugins).unwrap();
    for (name, loops) in [("a", 800), ("b", 801), ("c", 802)] {
        std::fs::write(plugins.join(format!("{name}.wasm")), bomb(loops, 800)).unwrap();
    }
    let good = |version: &str| stamped(json!({"key": "stamped", "version": version})).unwrap();
    std::fs::write(plugins.join("z.wasm"), good("1.0.0")).unwrap();
    let mut served = Served::start(directory.path(), PATIENT);
    assert_eq!(served.call("GET", "/healthz", &Value::Null).0, 200);
    let (status, retry, _) = served.call("GET", "/readyz", &Value::Null);
    assert_eq!((status, retry.as_str()), (503, "1"));
    // Its provider may be among those that are compiled.
    let binding = json!({"key": "default", "providerKey": "unknown", "default": true});
    let (status, retry, problem) =
        served.call("POST", "/control/v1/companies/acme/bindings", &binding);
    assert_eq!((status, &problem["code"]), (503, &json!("provider_loading")), "{problem}");
    assert!(!retry.is_empty());
    // The command line waits for a provider that is being compiled; with `--no-wait` it does not.
    let environment = [
        ("MEMHOST_URL", served.url.as_str()),
        ("MEMHOST_TOKEN", TOKEN),
        ("MEMHOST_COMPANY", "acme"),
    ];
    let create = |more: &str| words(&format!("binding create late --provider late {more}"));
    let done = run(directory.path(), &environment, &create("--no-wait"), "").await;
    assert!(done.code == 5 && done.err.contains("still compiling plugins"), "{done:?}");
    let mut command = Command::new(env!("CARGO_BIN_EXE_memhost-cli"));
    command.env("HOME", directory.path()).envs(environment).args(create(""));
    let mut waiting = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let (mut errors, mut told) = (BufReader::new(waiting.stderr.take().unwrap()), String::new());
    errors.read_line(&mut told).unwrap();
    assert!(told.contains("waiting up to 60 s for the provider late"), "{told}");
    std::fs::write(
        directory.path().join("late"),
        stamped(json!({"key": "late", "version": "1.0.0"})).unwrap(),
    )
    .unwrap();
    std::fs::rename(directory.path().join("late"), plugins.join("late.wasm")).unwrap();
    assert!(waiting.wait().unwrap().success(), "the provider is there");
    eventually("the good one is admitted beside the bombs", async || served.has("1.0.0")).await;
    let binding = json!({"key": "default", "providerKey": "stamped", "default": true});
    let (status, _, made) = served.call("POST", "/control/v1/companies/acme/bindings", &binding);
    assert_eq!(status, 201, "{made}");
    let question = json!({"scope": {"companyId": "acme"}, "query": "who is it?"});
    let (status, _, answer) = served.call("POST", "/runtime/v1/companies/acme/query", &question);
    assert_eq!(status, 200, "{answer}");
    // Neither a scan nor a file that comes later waits.
    eventually("all bombs take long", async || {
        std::fs::write(directory.path().join("next"), good("1.1.0")).unwrap();
        std::fs::rename(directory.path().join("next"), plugins.join("z.wasm")).unwrap();
        served.call("POST", "/control/v1/plugins/scan", &json!({}));
        served.has("1.1.0")
    })
    .await;
    assert_eq!(served.plugins()["admitting"].as_array().unwrap().len(), 3, "{}", served.plugins());
    assert_eq!(served.call("GET", "/readyz", &Value::Null).0, 503);
    eventually("a bomb is compiled", async || !served.compilers().is_empty()).await;
    let compilers = served.compilers();
    for compiler in &compilers {
        let environment = std::fs::read(compiler.join("environ")).unwrap_or_default();
        let environment = String::from_utf8_lossy(&environment);
        assert!(
            !environment.contains("MEMHOST_") && !environment.contains("HOME="),
            "{environment}"
        );
    }
    let ended =
        Command::new("kill").args(["-TERM", &served.process.id().to_string()]).status().unwrap();
    assert!(ended.success() && served.process.wait().unwrap().success(), "SIGTERM is a good end");
    none_is_left(&compilers).await;
}

/// A host that is killed takes its compilers with it, because they read to the end of what it gives
/// them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_compiler_ends_with_its_host() {
    let directory = tempfile::tempdir().unwrap();
    let plugins = directory.path().join("memhost-data/plugins");
    std::fs::create_dir_all(&plugins).unwrap();
    std::fs::write(plugins.join("a.wasm"), bomb(803, 800)).unwrap();
    let mut served = Served::start(directory.path(), PATIENT);
    // The first try ends soon by itself.
    let is_patient =
        |compiler: &PathBuf| command_of(compiler).ends_with("--cpu-seconds\x00600\x00");
    eventually("the bomb is compiled", async || served.compilers().iter().any(is_patient)).await;
    let compilers = served.compilers();
    served.process.kill().unwrap();
    served.process.wait().unwrap();
    none_is_left(&compilers).await;
}

/// The host does not leave to itself what it no longer waits for.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_compiler_that_took_too_long_is_gone() {
    let directory = tempfile::tempdir().unwrap();
    let plugins = directory.path().join("memhost-data/plugins");
    std::fs::create_dir_all(&plugins).unwrap();
    std::fs::write(plugins.join("a.wasm"), bomb(804, 800)).unwrap();
    let limits =
        "compile_seconds = 3\ncompile_cpu_seconds = 600\ncompile_memory_bytes = 8589934592\n";
    let served = Served::start(directory.path(), limits);
    eventually("the bomb is refused", async || {
        served.plugins()["refused"].as_array().is_some_and(|all| all.len() == 1)
    })
    .await;
    eventually("no compiler is left", async || served.compilers().is_empty()).await;
}

async fn none_is_left(compilers: &[PathBuf]) {
    eventually("no compiler is left", async || {
        compilers.iter().all(|compiler| !is_compiler(compiler))
    })
    .await;
}

/// Whether this process is a compiler that has begun.
fn is_compiler(process: &Path) -> bool {
    command_of(process).contains("compile-component")
}

/// The words of its command, each with a zero byte behind it.
fn command_of(process: &Path) -> String {
    String::from_utf8_lossy(&std::fs::read(process.join("cmdline")).unwrap_or_default())
        .into_owned()
}
