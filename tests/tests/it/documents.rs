//! The commands of the documents, read from the pages themselves. Each line of a block is run in a
//! shell, in its order, or only parsed where a [`Why`] says so. The commands in the text between
//! the blocks are parsed.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use memhost_cli::{LineError, check_line};
use memhost_core::Caller;
use memhost_server::Method;
use memhost_tests::{Serving, TestHost, provider_file, repository, stamped};
use memhost_types::CompanyId;
use serde_json::json;

use super::shell::{Block, Line, blocks, spans};
use super::support::Api;

const TOKEN: &str = "a-token-of-the-documents";

/// Why a command is not run here. A recipe of `just`, or another test, runs most of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Why {
    /// It is a program, or needs the data, of others.
    Vendor,
    /// It compiles for minutes, or needs what the reader has compiled.
    Build,
    /// It does not end by itself.
    Endless,
    /// It asks on a terminal.
    Asks,
    /// It names a thing that only the reader has, such as FILE.
    Placeholder,
}

/// The beginnings of commands that are not run.
const NOT_RUN: [(&str, Why); 33] = [
    ("aws", Why::Vendor),
    ("claude", Why::Vendor),
    ("memhost bridge", Why::Vendor),
    // Its database is the reader's.
    ("memhost store copy", Why::Vendor),
    ("memhost plugin pull", Why::Vendor),
    ("memsearch", Why::Vendor),
    ("minisign", Why::Vendor),
    ("npm", Why::Vendor),
    ("paperclipai", Why::Vendor),
    ("pip", Why::Vendor),
    // `host/deploy/release/try` runs these, from the page of packages.
    ("export", Why::Build),
    ("npx", Why::Build),
    ("podman", Why::Build),
    ("sha256sum", Why::Build),
    ("sudo", Why::Build),
    ("tar", Why::Build),
    ("uv", Why::Build),
    ("uvx", Why::Build),
    ("./build.sh", Why::Build),
    ("cargo", Why::Build),
    ("just", Why::Build),
    ("memhost plugin check", Why::Build),
    ("memhost plugin dev", Why::Build),
    // Its provider comes with a package, or with the line before.
    ("memhost plugin install", Why::Build),
    ("memhost plugin update", Why::Build),
    ("memhost plugin new", Why::Build),
    ("memhost plugin run", Why::Build),
    // The project of `plugin new`.
    ("cd", Why::Build),
    // Its request is sent without it: see `curl`.
    ("curl", Why::Vendor),
    ("memhost mcp", Why::Endless),
    ("memhost serve", Why::Endless),
    ("memhost tail", Why::Endless),
    ("memhost forget --whole-scope", Why::Asks),
];

/// Other programs that are run.
const RUN: [&str; 3] = ["memhost", "echo", "install"];

/// Words that stand for a thing of the reader's.
const PLACEHOLDERS: [&str; 6] = ["FILE", "ID", "KEY", "OPERATION", "CALL", "COMMAND"];

/// The providers that the host of the test has beside the embedded one.
const PROVIDERS: [&str; 10] = [
    "agentcore",
    "claude-mem",
    "cross-agent",
    "facts",
    "mem0",
    "memos",
    "memsearch",
    "openviking",
    "supermemory",
    "taxonomy",
];

/// Stand-ins for providers that the reader has written.
const STAND_INS: [(&str, &str); 2] = [("my-provider", "1.2.0"), ("red-thread", "0.1.0")];

fn pages() -> Vec<PathBuf> {
    fn below(directory: &Path, found: &mut Vec<PathBuf>) {
        let mut entries: Vec<PathBuf> = std::fs::read_dir(directory)
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .filter(|path| !["target", "node_modules"].iter().any(|name| path.ends_with(name)))
            .collect();
        entries.sort();
        for path in entries {
            if path.is_dir() {
                below(&path, found);
            } else if path.extension().is_some_and(|extension| extension == "md") {
                found.push(path);
            }
        }
    }
    let mut found = vec![repository().join("README.md"), repository().join("CONTRIBUTING.md")];
    for directory in ["host/docs", "host/paperclip", "plugins", "sdk"] {
        below(&repository().join(directory), &mut found);
    }
    found
}

fn why(line: &Line, directory: &Path) -> Option<Why> {
    // The longest beginning counts.
    for command in &line.commands {
        let words = &command.words;
        let spoken = words.join(" ");
        let is_it = |begin: &str| spoken == begin || spoken.starts_with(&format!("{begin} "));
        if let Some((_, why)) = NOT_RUN.iter().find(|(begin, _)| is_it(begin)) {
            return Some(*why);
        }
        assert!(
            RUN.contains(&words[0].as_str()),
            "`{}`: say in RUN or NOT_RUN how `{}` is tested",
            line.text,
            words[0]
        );
        if words.iter().any(|word| PLACEHOLDERS.contains(&word.as_str()) || word.contains('…')) {
            return Some(Why::Placeholder);
        }
        let is_missing = |word: &&String| {
            let is_built = [".wasm", ".minisig", ".whl"].iter().any(|end| word.ends_with(end));
            is_built && !directory.join(word).exists()
        };
        if words.iter().any(|word| is_missing(&word)) {
            return Some(Why::Build);
        }
        let provider = words.iter().position(|word| word == "--provider");
        if let Some(key) = provider.and_then(|at| words.get(at + 1)) {
            let is_known = PROVIDERS.contains(&key.as_str())
                || key == "local-markdown"
                || STAND_INS.iter().any(|(known, _)| known == key);
            if !is_known {
                return Some(Why::Build);
            }
        }
    }
    None
}

/// Checks what can be checked of a command without running it.
fn parse(page: &Path, words: &[String], is_whole: bool) -> Result<(), String> {
    let word = |at: usize| words.get(at).map_or("", String::as_str);
    let read = |path: &str| std::fs::read_to_string(repository().join(path)).unwrap();
    // A program that starts `memhost`, or builds it first.
    if word(0) != "memhost"
        && let Some(at) = words.iter().position(|word| word == "--")
        && (words.get(at + 1).is_some_and(|next| next == "memhost")
            || words[..2] == ["cargo", "run"] && !words.contains(&"--example".to_owned()))
    {
        let rest = words[at + 1..].iter().map(String::as_str);
        let rest = rest.skip_while(|word| *word == "memhost");
        return taken(std::iter::once("memhost").chain(rest), is_whole);
    }
    let fails = |what: &str| Err(format!("there is no {what}"));
    match word(0) {
        "memhost" => taken(words.iter().map(String::as_str), is_whole),
        "just" if word(1).starts_with(|c: char| c.is_ascii_lowercase()) => {
            let recipe = word(1);
            let is_it = |line: &str| {
                line.strip_prefix(recipe).is_some_and(|rest| rest.starts_with([' ', ':']))
            };
            if read("justfile").lines().any(is_it) { Ok(()) } else { fails("such recipe") }
        }
        "cargo" if word(1) == "wasm" => Ok(()),
        "cargo" => {
            let at = words.iter().position(|word| word == "-p");
            let Some(package) = at.and_then(|at| words.get(at + 1)) else { return Ok(()) };
            let name = package.strip_prefix("memhost-").unwrap_or(package);
            let places = ["plugins", "host", ""]
                .map(|directory| repository().join(directory).join(name).join("Cargo.toml"));
            if places.iter().any(|file| file.exists()) { Ok(()) } else { fails("such package") }
        }
        "./build.sh" => {
            let script = page.with_file_name("build.sh");
            if script.exists() { Ok(()) } else { fails("build.sh beside the page") }
        }
        _ => Ok(()),
    }
}

fn taken<'a>(words: impl Iterator<Item = &'a str>, is_whole: bool) -> Result<(), String> {
    let words: Vec<&str> = words.collect();
    if words.get(1).is_some_and(|word| PLACEHOLDERS.contains(word)) {
        return Ok(());
    }
    match check_line(words) {
        Err(LineError::Unknown(said)) => Err(said),
        Err(LineError::Incomplete(said)) if is_whole => Err(said),
        _ => Ok(()),
    }
}

/// What a page says to send, sent without the program.
async fn curl(api: &Api, words: &[String]) -> Result<(), String> {
    let path = words.iter().find_map(|word| word.strip_prefix("http://127.0.0.1:7600"));
    let body = words.iter().position(|word| word == "-d").and_then(|at| words.get(at + 1));
    let (Some(path), Some(body)) = (path, body) else { return Err("has no request".to_owned()) };
    let answer = api.send(Method::Post, path, Some(body.clone()), &[]).await;
    if answer.status == 200 { Ok(()) } else { Err(format!("{} {}", answer.status, answer.text)) }
}

/// A reader's directory: a home with a context, what earlier lines of the pages build, and
/// `memhost` on the path.
struct Reader {
    directory: tempfile::TempDir,
    agent: String,
}

impl Reader {
    fn new(url: &str, agent: String) -> Self {
        let reader = Self { directory: tempfile::tempdir().unwrap(), agent };
        let path = reader.directory.path();
        for made in ["home/.config/memhost", "bin", "memhost-data/plugins", "target/wasm32-wasip2"]
        {
            std::fs::create_dir_all(path.join(made)).unwrap();
        }
        let link = |from: &Path, to: &str| {
            std::os::unix::fs::symlink(from, path.join(to)).unwrap();
        };
        link(Path::new(env!("CARGO_BIN_EXE_memhost-cli")), "bin/memhost");
        link(provider_file("facts").parent().unwrap(), "target/wasm32-wasip2/guest");
        for key in ["key", "key.txt"] {
            std::fs::write(path.join(key), "a-key-of-the-reader\n").unwrap();
        }
        let context = format!(
            "default = \"local\"\n[contexts.local]\nurl = \"{url}\"\ntoken = \"{TOKEN}\"\n\
             company = \"acme\"\n"
        );
        memhost_files(&path.join("home/.config/memhost/config.toml"), &context);
        reader
    }

    /// Runs lines in one shell. Answers which failed, and what was said.
    fn run(&self, lines: &[&Line]) -> Result<(), String> {
        if lines.is_empty() {
            return Ok(());
        }
        let path = self.directory.path();
        let script = lines.iter().enumerate().map(|(index, line)| {
            let text = line.text.replace("mh_…", "$AGENT_TOKEN");
            format!("{{ {}\n}} || exit {}\n", text.replace("DATA/", "memhost-data/"), index + 100)
        });
        let mut command = Command::new("sh");
        for (name, _) in std::env::vars()
            .filter(|(name, _)| name.starts_with("MEMHOST_") || name.starts_with("XDG_"))
        {
            command.env_remove(name);
        }
        let system = std::env::var("PATH").unwrap_or_default();
        let done = command
            .arg("-c")
            .arg(script.collect::<String>())
            .env("PATH", format!("{}:{system}", path.join("bin").display()))
            .env("HOME", path.join("home"))
            .env("MEMHOST_CACHE_DIR", memhost_tests::cache_dir())
            .env("AGENT_TOKEN", &self.agent)
            .env("AWS_ACCESS_KEY_ID", "AKIAIOSFODNN7EXAMPLE")
            .env("AWS_SECRET_ACCESS_KEY", "a-secret-access-key-of-the-reader")
            .current_dir(path)
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&done.stderr);
        match done.status.code() {
            Some(0) => Ok(()),
            Some(code @ 100..) => {
                Err(format!("{}\n{said}", lines[usize::try_from(code - 100).unwrap()].text))
            }
            _ => Err(format!("the shell: {said}")),
        }
    }
}

/// Writes a file that its owner only reads.
fn memhost_files(path: &Path, text: &str) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::write(path, text).unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)).unwrap();
}

/// Removes what a block has made, since the next one may be for those who did not type it.
async fn clean(host: &TestHost, api: &Api) {
    let (control, acme): (_, CompanyId) = (host.service().control(), "acme".parse().unwrap());
    // The one that the host makes by itself stays.
    for key in control.binding_keys(&acme).into_iter().filter(|key| key.as_str() != "default") {
        control.delete_binding(&Caller::system(), &acme, &key, None).await.unwrap();
    }
    let secrets = api.get("/control/v1/companies/acme/secrets").await;
    for secret in secrets["items"].as_array().unwrap() {
        let path =
            format!("/control/v1/companies/acme/secrets/{}", secret["name"].as_str().unwrap());
        api.send(Method::Delete, &path, None, &[]).await.fine();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_command_of_the_documents_works() {
    let host = TestHost::with(&PROVIDERS, |options| {
        let plugins = options.plugins_dir.clone().unwrap();
        for (key, version) in STAND_INS {
            let stamp = json!({"key": key, "version": version, "storage": 1 << 20});
            let file = plugins.join(format!("{key}.wasm"));
            std::fs::write(file, stamped(stamp).unwrap()).unwrap();
        }
    });
    let host = host.await.unwrap();
    let serving = Serving::start(&host, TOKEN).await.unwrap();
    let api = Api::new(&host);
    let agent = api.agent("ada").await.token().to_owned();
    let (mut wrong, mut ran, mut used) = (Vec::new(), 0, BTreeSet::new());
    for page in pages() {
        let text = std::fs::read_to_string(&page).unwrap();
        let name = page.strip_prefix(repository()).unwrap().display().to_string();
        let reader = Reader::new(serving.url(), agent.clone());
        for Block { line: at, lines } in blocks(&text) {
            let (mut run, mut lacks_a_build) = (Vec::new(), false);
            for line in &lines {
                let reason = why(line, reader.directory.path());
                lacks_a_build |= reason == Some(Why::Build) && line.text.contains("--provider");
                let is_of_build = lacks_a_build && line.text.starts_with("memhost binding");
                for command in &line.commands {
                    let is_whole = reason != Some(Why::Placeholder);
                    if let Err(said) = parse(&page, &command.words, is_whole) {
                        wrong.push(format!("{name}, block at line {at}: {}\n{said}", line.text));
                    }
                }
                match (reason, &line.commands[..]) {
                    (Some(reason), [command, ..]) => {
                        used.insert(reason);
                        if command.words[0] == "curl"
                            && let Err(said) = curl(&api, &command.words).await
                        {
                            wrong.push(format!("{name}: {}\n{said}", line.text));
                        }
                    }
                    _ if is_of_build => {}
                    _ => run.push(line),
                }
            }
            ran += run.len();
            // The shell waits for the host of this test.
            let done = tokio::task::block_in_place(|| reader.run(&run));
            if let Err(said) = done {
                wrong.push(format!("{name}, block at line {at}: {said}"));
            }
            clean(&host, &api).await;
        }
        for span in spans(&text) {
            for command in &span.commands {
                if let Err(said) = parse(&page, &command.words, false) {
                    wrong.push(format!("{name}: {}\n{said}", span.text));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{} commands fail:\n{}", wrong.len(), wrong.join("\n\n"));
    assert!(ran > 50, "only {ran} lines ran");
    assert_eq!(used.len(), 5, "a reason that no command needs: {used:?}");
}
