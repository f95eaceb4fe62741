//! Providers from a registry, with a real one on this machine: pushed, pulled, checked, granted,
//! answering, and updated.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use memhost_core::plugins::Trust;
use memhost_tests::{TestHost, needed, provider_file, stamped};
use memhost_types::Digest;
use serde_json::{Value, json};

use crate::cli::{Done, Terminal};
use crate::plugins::Publisher;

/// A registry without users, or with `ada`, whose password is `secret`.
pub(crate) struct Registry {
    child: Child,
    pub(crate) host: String,
    _directory: tempfile::TempDir,
}

impl Drop for Registry {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// `secret` as `htpasswd -B` writes it.
const ADA: &str = "ada:$2b$05$abcdefghijklmnopqrstuuOQiyCxlgf/oeuTqixKmWdcYUh4Hjl0a\n";

impl Registry {
    /// `None` where the program is not installed.
    pub(crate) fn start(has_users: bool) -> Option<Self> {
        let found = Command::new("docker-registry").arg("--version").output();
        needed(found.map_err(|_| "docker-registry is not on the path: apt-get install it"))?;
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        std::fs::write(path("users"), ADA).unwrap();
        let users = path("users").display().to_string();
        let auth = json!({ "htpasswd": { "realm": "test", "path": users } });
        let mut config = json!({
            "version": "0.1",
            "storage": { "filesystem": { "rootdirectory": path("data") } },
            "http": { "addr": address.to_string() },
        });
        if has_users {
            config["auth"] = auth;
        }
        // JSON is YAML, too.
        std::fs::write(path("config.yml"), config.to_string()).unwrap();
        let mut program = Command::new("docker-registry");
        let child = program
            .arg("serve")
            .arg(path("config.yml"))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let registry = Self { child, host: address.to_string(), _directory: directory };
        let began = Instant::now();
        while ureq::get(format!("http://{address}/")).call().is_err() {
            assert!(began.elapsed() < Duration::from_secs(30), "the registry does not answer");
            std::thread::sleep(Duration::from_millis(20));
        }
        Some(registry)
    }

    /// Writes a blob as it is. Answers its digest.
    fn blob(&self, name: &str, bytes: &[u8]) -> Digest {
        let digest = Digest::of(bytes);
        let url = format!("http://{}/v2/{name}/blobs/uploads/", self.host);
        let begun = ureq::post(url).send_empty().unwrap();
        let place = begun.headers()["location"].to_str().unwrap().to_owned();
        let put = ureq::put(format!("{place}&digest={digest}"));
        put.header("content-type", "application/octet-stream").send(bytes).unwrap();
        digest
    }

    /// Writes a manifest as it is.
    fn manifest(&self, name: &str, tag: &str, manifest: &Value) {
        let url = format!("http://{}/v2/{name}/manifests/{tag}", self.host);
        let kind = "application/vnd.oci.image.manifest.v1+json";
        ureq::put(url).header("content-type", kind).send(manifest.to_string()).unwrap();
    }
}

/// Where plugins of a host are.
pub(crate) fn files(terminal: &Terminal) -> Vec<String> {
    let directory = terminal.host.directory().join("plugins");
    let entries = std::fs::read_dir(directory).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// A host that trusts a key.
pub(crate) async fn trusting(publisher: &Publisher, requires_signature: bool) -> Terminal {
    let keys = vec![publisher.public()];
    let trust = Trust { keys, requires_signature, ..Trust::default() };
    Terminal::of(TestHost::with(&[], |options| options.trust = trust).await.unwrap()).await
}

/// A version of the guest `stamped` in a file, signed by somebody or nobody.
#[allow(clippy::needless_pass_by_value, reason = "callers write it in place")]
fn version(home: &Path, version: &str, more: Value, signer: Option<&Publisher>) -> PathBuf {
    let mut stamp = json!({ "key": "stamped", "version": version });
    for (name, value) in more.as_object().unwrap() {
        stamp[name] = value.clone();
    }
    let (bytes, path) = (stamped(stamp).unwrap(), home.join(format!("stamped-{version}.wasm")));
    std::fs::write(&path, &bytes).unwrap();
    if let Some(signer) = signer {
        let comment = format!("stamped {version}");
        std::fs::write(home.join(format!("stamped-{version}.wasm.minisig")), {
            signer.sign(&bytes, &comment)
        })
        .unwrap();
    }
    path
}

async fn push(terminal: &Terminal, file: &Path, to: &str) -> Value {
    terminal.json(&format!("plugin push {} {to}", file.display())).await
}

/// Which version answers.
async fn serving(terminal: &Terminal) -> String {
    let found = terminal.json("search anything --binding stamped").await;
    found["snippets"][0]["handle"]["providerRecordId"].as_str().unwrap().to_owned()
}

fn refused(done: &Done, code: i32, words: &[&str]) {
    assert_eq!(done.code, code, "{done:?}");
    for word in words {
        assert!(done.err.contains(word), "{word}: {done:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_provider_is_pushed_pulled_checked_granted_and_answers() {
    let Some(registry) = Registry::start(false) else { return };
    let publisher = Publisher::new(1);
    let terminal = trusting(&publisher, true).await;
    let home = terminal.home.path();
    let bytes = std::fs::read(provider_file("facts")).unwrap();
    let file = home.join("facts.wasm");
    std::fs::write(&file, &bytes).unwrap();
    std::fs::write(home.join("facts.wasm.minisig"), publisher.sign(&bytes, "facts")).unwrap();
    let sbom = json!({ "bomFormat": "CycloneDX", "components": [] }).to_string();
    std::fs::write(home.join("facts.cdx.json"), &sbom).unwrap();
    let to = format!("oci://{}/team/facts", registry.host);
    let pushed =
        terminal.json(&format!("plugin push {} {to} --sbom facts.cdx.json", file.display())).await;
    assert_eq!((&pushed["isSigned"], &pushed["hasSbom"]), (&json!(true), &json!(true)));
    // The same again is the same manifest.
    let again = push(&terminal, &file, &to).await;
    assert_eq!(again["manifest"], pushed["manifest"]);

    let began = Instant::now();
    let pull = format!("plugin pull {to} --bind facts --everything --default");
    refused(&terminal.run(&pull).await, 2, &["--yes", "no terminal"]);
    assert_eq!(files(&terminal), [""; 0], "nothing is taken before somebody agrees");
    let done = terminal.run(&format!("{pull} --yes")).await;
    assert_eq!(done.code, 0, "{done:?}");
    let key = publisher.public().id();
    let manifest = pushed["manifest"].as_str().unwrap();
    for shown in ["facts 0.1.0", "requests     storage", &key, manifest, "cyclonedx"] {
        assert!(done.err.contains(shown), "{shown}: {done:?}");
    }
    terminal.fine("note 'deploys are frozen on Fridays'").await;
    let found = terminal.fine("search 'deploys on Fridays'").await;
    assert!(found.contains("frozen on Fridays"), "{found}");
    let took = began.elapsed();
    eprintln!("pulled twice, granted and answering: {took:?}");
    assert!(took < Duration::from_secs(30), "{took:?}");

    let stem = format!("facts-0.1.0-{}", &Digest::of(&bytes).short()[..8]);
    let all = [".origin.json", ".sbom.json", ".wasm", ".wasm.minisig"];
    assert_eq!(files(&terminal), all.map(|end| format!("{stem}{end}")));
    let kept = terminal.host.directory().join("plugins").join(format!("{stem}.sbom.json"));
    assert_eq!(std::fs::read_to_string(kept).unwrap(), sbom);
    let listed = terminal.json("plugin show facts").await;
    assert_eq!(listed["signed"]["key"], key.as_str());
    // Once more changes nothing.
    let again = terminal.json(&format!("plugin pull {to} --yes")).await;
    assert_eq!(again["wasThere"], true);
    assert_eq!(files(&terminal).len(), 4);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_no_trusted_key_has_signed_is_refused_unless_said() {
    let Some(registry) = Registry::start(false) else { return };
    let (trusted, other) = (Publisher::new(1), Publisher::new(2));
    let terminal = trusting(&trusted, false).await;
    let home = terminal.home.path();
    let to = |name: &str| format!("oci://{}/{name}", registry.host);

    push(&terminal, &version(home, "1.0.0", json!({}), None), &to("unsigned")).await;
    let done = terminal.run(&format!("plugin pull {} --yes", to("unsigned"))).await;
    refused(&done, 1, &["it is not signed", "--trusted-key", "--allow-unsigned"]);

    push(&terminal, &version(home, "2.0.0", json!({}), Some(&other)), &to("others")).await;
    let done = terminal.run(&format!("plugin pull {} --yes", to("others"))).await;
    refused(&done, 1, &[&other.public().id(), "plugin trust"]);

    // A signature that does not fit is refused whatever is said.
    let changed = version(home, "3.0.0", json!({}), Some(&trusted));
    std::fs::write(&changed, stamped(json!({ "key": "stamped", "version": "3.0.1" })).unwrap())
        .unwrap();
    push(&terminal, &changed, &to("changed")).await;
    let changed = format!("plugin pull {} --yes --allow-unsigned", to("changed"));
    refused(&terminal.run(&changed).await, 1, &["does not fit the file"]);
    assert_eq!(files(&terminal), [""; 0]);

    let done = terminal.run(&format!("plugin pull {} --yes --allow-unsigned", to("others"))).await;
    assert_eq!(done.code, 0, "{done:?}");
    assert!(
        done.err.contains("warning:") && done.err.contains("nobody who is trusted"),
        "{done:?}"
    );
    assert_eq!(files(&terminal).len(), 2, "a component and its origin");

    // A key for this one pull, at a host that trusts nobody.
    let terminal = Terminal::open(&[]).await;
    let key = other.public();
    let pull = format!("plugin pull {} --yes --trusted-key {key}", to("others"));
    assert!(terminal.json(&pull).await["signedBy"].as_str().unwrap().contains(&key.id()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_the_host_refuses_is_removed_again() {
    let Some(registry) = Registry::start(false) else { return };
    let terminal = trusting(&Publisher::new(1), true).await;
    let to = format!("oci://{}/unsigned", registry.host);
    push(&terminal, &version(terminal.home.path(), "1.0.0", json!({}), None), &to).await;
    let done = terminal.run(&format!("plugin pull {to} --yes --allow-unsigned")).await;
    refused(&done, 1, &["the host refused it", "signed plugins only", "removed again"]);
    assert_eq!(files(&terminal), [""; 0]);
}

/// Attaches a signature as `cosign sign --key` does where a registry lists nothing.
fn cosign(registry: &Registry, name: &str, manifest: &str, signer: &rcgen::KeyPair) {
    use rcgen::SigningKey as _;
    let payload = json!({
        "critical": {
            "identity": { "docker-reference": name },
            "image": { "docker-manifest-digest": manifest },
            "type": "cosign container image signature",
        },
        "optional": null,
    });
    let payload = payload.to_string();
    let signature = BASE64.encode(signer.sign(payload.as_bytes()).unwrap());
    let layer = registry.blob(name, payload.as_bytes());
    let config = registry.blob(name, b"{}");
    registry.manifest(
        name,
        &format!("{}.sig", manifest.replace(':', "-")),
        &json!({
            "schemaVersion": 2,
            "mediaType": "application/vnd.oci.image.manifest.v1+json",
            "config": {
                "mediaType": "application/vnd.oci.image.config.v1+json",
                "digest": config, "size": 2,
            },
            "layers": [{
                "mediaType": "application/vnd.dev.cosign.simplesigning.v1+json",
                "digest": layer, "size": payload.len(),
                "annotations": { "dev.cosignproject.cosign/signature": signature },
            }],
        }),
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_signature_of_cosign_counts_for_its_key() {
    let Some(registry) = Registry::start(false) else { return };
    let terminal = Terminal::open(&[]).await;
    let home = terminal.home.path();
    let to = format!("oci://{}/stamped", registry.host);
    let pushed = push(&terminal, &version(home, "1.0.0", json!({}), None), &to).await;
    let (signer, other) =
        (rcgen::KeyPair::generate().unwrap(), rcgen::KeyPair::generate().unwrap());
    for (name, pair) in [("signer.pub", &signer), ("other.pub", &other)] {
        std::fs::write(home.join(name), pair.public_key_pem()).unwrap();
    }
    let pull = format!("plugin pull {to} --yes");
    // A signature of another manifest proves nothing.
    cosign(&registry, "stamped", &Digest::of(b"another").to_string(), &signer);
    refused(
        &terminal.run(&format!("{pull} --trusted-cosign-key signer.pub")).await,
        1,
        &["not signed"],
    );
    cosign(&registry, "stamped", pushed["manifest"].as_str().unwrap(), &signer);
    refused(&terminal.run(&pull).await, 1, &["no key of cosign", "--trusted-cosign-key"]);
    refused(
        &terminal.run(&format!("{pull} --trusted-cosign-key other.pub")).await,
        1,
        &["no trusted key made"],
    );
    let done = terminal.json(&format!("{pull} --trusted-cosign-key signer.pub")).await;
    assert!(done["signedBy"].as_str().unwrap().starts_with("cosign key "), "{done}");

    // A host that trusts the key checks it itself.
    let keys = vec![signer.public_key_pem().parse().unwrap()];
    let trust = Trust { cosign_keys: keys, requires_signature: true, ..Trust::default() };
    let host = TestHost::with(&[], |options| options.trust = trust).await.unwrap();
    let strict = Terminal::of(host).await;
    strict.fine(&pull).await;
    let shown = strict.json("plugin show stamped").await;
    assert_eq!(shown["signed"]["comment"], "with cosign", "{shown}");
    let is_proof = |name: &String| name.ends_with(".wasm.cosign");
    let proof = files(&strict).into_iter().find(is_proof).unwrap();
    let proof = strict.host.directory().join("plugins").join(proof);
    let text =
        std::fs::read_to_string(&proof).unwrap().replace("\"payload\":\"", "\"payload\":\"IAAA");
    std::fs::write(&proof, text).unwrap();
    strict.host.service().control().scan_plugins().await;
    let listed = strict.json("plugin list").await;
    let reason = listed["refused"][0]["reason"].as_str().unwrap();
    assert!(reason.contains("no trusted key made it"), "{listed}");

    // The next version has to come from the same key.
    let next = push(&terminal, &version(home, "1.1.0", json!({}), None), &to).await;
    refused(&terminal.run("plugin update --yes").await, 1, &["not signed"]);
    cosign(&registry, "stamped", next["manifest"].as_str().unwrap(), &signer);
    let done = terminal.json("plugin update --yes").await;
    assert_eq!(done["items"][0]["version"], "1.1.0");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_newer_version_is_told_taken_and_left_again_if_it_fails() {
    let Some(registry) = Registry::start(false) else { return };
    let publisher = Publisher::new(1);
    let terminal = trusting(&publisher, false).await;
    let home = terminal.home.path();
    let to = format!("oci://{}/stamped", registry.host);
    let none = json!({});
    push(&terminal, &version(home, "1.0.0", none.clone(), Some(&publisher)), &to).await;
    terminal.fine(&format!("plugin pull {to} --yes --bind stamped --everything")).await;
    assert_eq!(serving(&terminal).await, "1.0.0");
    let outdated = async || terminal.json("plugin outdated").await["items"][0].clone();
    assert_eq!(outdated().await["newest"], Value::Null);
    assert!(terminal.fine("plugin update --yes").await.contains("nothing is newer"));

    // A version is one build for ever.
    let again = version(home, "1.0.0", json!({ "clock": true }), Some(&publisher));
    let done = terminal.run(&format!("plugin push {} {to}", again.display())).await;
    refused(&done, 2, &["another build already", "--overwrite"]);
    let done = terminal.run(&format!("plugin push {} {to}:2.0.0", again.display())).await;
    refused(&done, 2, &["is version 1.0.0"]);

    push(&terminal, &version(home, "1.1.0", none.clone(), Some(&publisher)), &to).await;
    push(&terminal, &version(home, "2.0.0-rc.1", none.clone(), Some(&publisher)), &to).await;
    assert_eq!(outdated().await["newest"], "1.1.0");
    terminal.fine("plugin update stamped --yes").await;
    assert_eq!(serving(&terminal).await, "1.1.0");

    // One that fails is left again, and what is new in it is shown before.
    let traps = json!({ "traps": true, "origin": "https://api.example.com" });
    let traps = version(home, "1.2.0", traps, Some(&publisher));
    push(&terminal, &traps, &to).await;
    let done = terminal.run("plugin update --yes").await;
    assert_eq!(done.code, 0, "{done:?}");
    assert!(done.err.contains("asks more") && done.err.contains("api.example.com"), "{done:?}");
    assert_eq!(serving(&terminal).await, "1.1.0", "it waits for the grant");
    terminal.fine("binding grant stamped --everything").await;
    assert_eq!(serving(&terminal).await, "1.1.0", "it fails and is left");
    let binding = terminal.json("binding show stamped").await;
    assert_eq!(binding["rejectedVersions"][0]["version"], "1.2.0", "{binding}");
    let kept: Vec<String> =
        files(&terminal).into_iter().filter(|name| name.ends_with(".wasm")).collect();
    assert_eq!(kept.len(), 2, "the newest and the one before: {kept:?}");

    // Another signer is not trusted for it, nor another provider at the same place.
    let stolen = version(home, "1.3.0", none, Some(&Publisher::new(2)));
    push(&terminal, &stolen, &to).await;
    refused(&terminal.run("plugin update --yes").await, 1, &[&Publisher::new(2).public().id()]);
    refused(&terminal.run("plugin update none --yes").await, 3, &["`none`", "plugin outdated"]);
    // Whoever trusts that signer, too, is told that it is not the one of the version before.
    let pull = format!("plugin pull {to} --yes --trusted-key {}", Publisher::new(2).public());
    refused(&terminal.run(&pull).await, 2, &["another publisher's"]);

    // One that is damaged leaves the others.
    let plugins = terminal.host.directory().join("plugins");
    std::fs::write(plugins.join("broken.wasm"), "broken").unwrap();
    std::fs::write(plugins.join("broken.origin.json"), "{").unwrap();
    let done = terminal.run("plugin outdated").await;
    assert!(done.code == 0 && done.err.contains("broken.origin.json is left out"), "{done:?}");
    assert!(done.out.contains("stamped"), "{done:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_digest_names_one_build_for_ever() {
    let Some(registry) = Registry::start(false) else { return };
    let publisher = Publisher::new(1);
    let terminal = trusting(&publisher, false).await;
    let home = terminal.home.path();
    let to = format!("oci://{}/stamped", registry.host);
    let first = push(&terminal, &version(home, "1.0.0", json!({}), Some(&publisher)), &to).await;
    push(&terminal, &version(home, "1.1.0", json!({}), Some(&publisher)), &to).await;
    let pinned = format!("{to}@{}", first["manifest"].as_str().unwrap());
    let done = terminal.json(&format!("plugin pull {pinned} --yes")).await;
    assert_eq!((&done["version"], &done["manifest"]), (&json!("1.0.0"), &first["manifest"]));
    assert!(terminal.fine("plugin outdated").await.contains("as installed"));
    let unknown = format!("plugin pull {to}@{} --yes", Digest::of(b"x"));
    refused(&terminal.run(&unknown).await, 3, &["has no oci://"]);
    refused(&terminal.run(&format!("plugin pull {to}:9.9.9 --yes")).await, 3, &["check the name"]);
    // An old build at the tag of a new version.
    let url = |tag: &str| format!("http://{}/v2/stamped/manifests/{tag}", registry.host);
    let kind = "application/vnd.oci.image.manifest.v1+json";
    let old = ureq::get(url("1.0.0")).header("accept", kind).call().unwrap();
    let old = old.into_body().read_to_vec().unwrap();
    ureq::put(url("9.0.0")).header("content-type", kind).send(&old[..]).unwrap();
    let done = terminal.run(&format!("plugin pull {to} --yes")).await;
    refused(&done, 1, &["is version 1.0.0, and its tag says 9.0.0"]);
    // Without a tag it is the newest.
    push(&terminal, &version(home, "9.1.0", json!({}), Some(&publisher)), &to).await;
    assert_eq!(terminal.json(&format!("plugin pull {to} --yes")).await["version"], "9.1.0");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_registry_with_users_gets_the_credentials_of_docker_login() {
    let Some(registry) = Registry::start(true) else { return };
    let publisher = Publisher::new(1);
    let terminal = trusting(&publisher, false).await;
    let home = terminal.home.path();
    let file = version(home, "1.0.0", json!({}), Some(&publisher));
    let to = format!("oci://{}/stamped", registry.host);
    let push = format!("plugin push {} {to}", file.display());
    refused(&terminal.run(&push).await, 4, &["docker login", &registry.host]);
    let write = |host: &str, password: &str| {
        let auth = BASE64.encode(format!("ada:{password}"));
        let config = json!({ "auths": { host: { "auth": auth } } });
        std::fs::create_dir_all(home.join(".docker")).unwrap();
        std::fs::write(home.join(".docker/config.json"), config.to_string()).unwrap();
    };
    write("another.example", "secret");
    refused(&terminal.run(&push).await, 4, &["docker login"]);
    write(&registry.host, "wrong");
    let done = terminal.run(&push).await;
    refused(&done, 4, &["docker login"]);
    assert!(!done.err.contains("wrong"), "the password is shown: {done:?}");
    write(&registry.host, "secret");
    terminal.fine(&push).await;
    terminal.fine(&format!("plugin pull {to} --yes")).await;
    std::fs::write(home.join(".docker/config.json"), "{").unwrap();
    refused(&terminal.run(&push).await, 4, &["config.json", "docker login"]);
}

/// What `wkg` pushes is pulled, and what is pushed here `wkg` pulls.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn wkg_and_this_program_read_each_other() {
    let Some(registry) = Registry::start(false) else { return };
    // Its build takes many minutes, so not even CI has to have it.
    if Command::new("wkg").arg("--version").output().is_err() {
        eprintln!("skipped: wkg is not on the path; `cargo install wkg` builds it");
        return;
    }
    let terminal = Terminal::open(&[]).await;
    let home = terminal.home.path();
    let file = version(home, "1.0.0", json!({}), None);
    let wkg = |arguments: &[&str]| {
        let mut command = Command::new("wkg");
        command.args(arguments).args(["--insecure", &registry.host]);
        let done = command.current_dir(home).env("HOME", home).output().unwrap();
        assert!(done.status.success(), "wkg {arguments:?}: {done:?}");
    };
    let of_wkg = format!("{}/of-wkg:1.0.0", registry.host);
    wkg(&["oci", "push", &of_wkg, file.to_str().unwrap()]);
    let pull = format!("plugin pull oci://{of_wkg} --yes --allow-unsigned");
    assert_eq!(terminal.json(&pull).await["provider"], "stamped");
    let ours = format!("{}/ours:1.0.0", registry.host);
    push(&terminal, &file, &format!("oci://{ours}")).await;
    wkg(&["oci", "pull", &ours, "-o", "pulled.wasm"]);
    assert_eq!(std::fs::read(home.join("pulled.wasm")).unwrap(), std::fs::read(file).unwrap());
}
