//! Dependencies of crates, and the shape of files. Cargo refuses circles; this test refuses
//! dependencies that go up or sideways.

use std::fs;
use std::path::{Path, PathBuf};

use memhost_tests::repository;

mod circles;

/// From the top down. Crates of one row do not know each other. A dependency goes to a lower row
/// only.
const ROWS: &[&[&str]] = &[
    &["memhost", "bridge"],
    &["cli"],
    &["server", "agent-hooks"],
    &["explorer", "conformance", "benchmark"],
    &["integrations"],
    &["http"],
    &["core"],
    &["background", "transfer"],
    &["control"],
    &["operations"],
    &["tenancy"],
    &["registry", "oplog", "queues"],
    &["access", "records", "postgres"],
    &["store", "sandbox", "embeddings", "pii", "builtin", "oci"],
    &["ports"],
    &["types", "tokens", "config-schema", "executor", "files", "journal", "words"],
];

/// Libraries that these crates alone may use.
const OWNED: &[(&str, &[&str])] = &[
    ("wasmtime", &["sandbox"]),
    ("wasmtime-wasi", &["sandbox"]),
    ("wasmtime-wasi-http", &["sandbox"]),
    ("hyper", &["sandbox", "server"]),
    ("prometheus-client", &["oplog"]),
    ("chacha20poly1305", &["registry"]),
    ("notify", &["registry", "cli"]),
    ("minisign-verify", &["registry"]),
    ("docker_credential", &["oci"]),
    ("http-auth", &["oci"]),
    ("ring", &["registry"]),
    ("boon", &["config-schema"]),
    ("regex", &["pii"]),
    ("sled", &["store"]),
    ("rusqlite", &["bridge"]),
    ("tokio-postgres", &["postgres"]),
    ("deadpool-postgres", &["postgres"]),
    ("refinery", &["postgres"]),
    ("rten-gemm", &["embeddings"]),
    ("safetensors", &["embeddings"]),
    ("zip", &["embeddings"]),
    ("axum", &["http", "explorer", "integrations", "server"]),
    ("maud", &["explorer"]),
    ("rmcp", &["http"]),
    ("clap", &["cli", "agent-hooks"]),
    ("tikv-jemallocator", &["cli"]),
    ("tikv-jemalloc-sys", &["cli"]),
];

/// The owner of each table: it alone reads the rows and builds their keys. `Host` has marks of
/// several owners, each below a prefix of its own, and `Sums` is written by the store.
const TABLES: &[(&str, &str)] = &[
    ("Activity", "registry"),
    ("Bindings", "registry"),
    ("Budgets", "oplog"),
    ("Companies", "tenancy"),
    ("CostEvents", "oplog"),
    ("CostOrder", "oplog"),
    ("Deliveries", "queues"),
    ("Due", "queues"),
    ("EventIndex", "oplog"),
    ("Events", "oplog"),
    ("FinanceEvents", "oplog"),
    ("ForgottenSources", "records"),
    ("Idempotency", "operations"),
    ("JobIndex", "queues"),
    ("Jobs", "queues"),
    ("PrivateWrites", "records"),
    ("RecordSources", "records"),
    ("RecordExpiries", "records"),
    ("Records", "records"),
    ("Reviews", "queues"),
    ("Secrets", "registry"),
    ("Targets", "registry"),
    ("Tokens", "access"),
    ("Waiting", "queues"),
];

/// Files that name tables of others and build no key: an export, because a line of it is a row as
/// it is, and the feed, which publishes the jobs among the rows of an operation.
const NAMES_TABLES: &[&str] = &[
    "cli/src/company/lines.rs",
    "oplog/src/feed.rs",
    "transfer/src/export.rs",
    "transfer/src/import.rs",
];

fn row(name: &str) -> usize {
    ROWS.iter()
        .position(|row| row.contains(&name))
        .unwrap_or_else(|| panic!("the crate host/{name} has no row; give it one"))
}

fn sources(directory: &Path, into: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, into);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            into.push(path);
        }
    }
}

/// The names in `[dependencies]` of a manifest.
fn dependencies(manifest: &Path) -> Vec<String> {
    let text = fs::read_to_string(manifest).unwrap();
    let (_, section) = text.split_once("\n[dependencies]\n").unwrap_or_default();
    let lines = section.lines().take_while(|line| !line.starts_with('['));
    lines
        .filter_map(|line| {
            line.split(['.', ' ', '=']).next().filter(|name| !name.is_empty() && *name != "#")
        })
        .map(str::to_owned)
        .collect()
}

#[test]
fn dependencies_go_down() {
    let (mut wrong, mut arrows) = (Vec::new(), 0);
    for entry in fs::read_dir(repository().join("host")).unwrap() {
        let directory = entry.unwrap().path();
        let manifest = directory.join("Cargo.toml");
        if !manifest.exists() {
            continue;
        }
        let own = directory.file_name().unwrap().to_str().unwrap();
        for dependency in dependencies(&manifest) {
            if let Some(other) = dependency.strip_prefix("memhost-") {
                arrows += 1;
                if row(other) <= row(own) {
                    wrong.push(format!("host/{own} depends on host/{other}"));
                }
            }
            for (library, owners) in OWNED {
                if dependency == *library && !owners.contains(&own) {
                    wrong.push(format!("host/{own} uses {library}, which belongs to {owners:?}"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "dependencies that go up or sideways:\n{}", wrong.join("\n"));
    assert!(arrows > 30, "only {arrows} dependencies were found");
}

#[test]
fn a_table_is_named_by_its_owner_only() {
    let host = repository().join("host");
    let mut files = Vec::new();
    sources(&host, &mut files);
    let (mut wrong, mut named) = (Vec::new(), 0);
    for path in files {
        let path = path.strip_prefix(&host).unwrap();
        let text = fs::read_to_string(host.join(path)).unwrap();
        let is_test = path.components().any(|part| part.as_os_str() == "tests")
            || path.ends_with("tests.rs")
            || path.ends_with("testing.rs");
        let is_export = NAMES_TABLES.iter().any(|name| path == Path::new(name))
            || path.starts_with("transfer/src/import");
        if is_test
            || is_export
            || path.starts_with("store")
            || path.starts_with("postgres")
            || !text.contains("memhost_store")
        {
            continue;
        }
        let code = text.split("\n#[cfg(test)]\n").next().unwrap();
        for name in code.split("Table::").skip(1) {
            let name = name.split(|letter: char| !letter.is_alphanumeric()).next().unwrap();
            let Some((_, owner)) = TABLES.iter().find(|(table, _)| *table == name) else {
                continue;
            };
            named += 1;
            if !path.starts_with(owner) {
                wrong.push(format!("host/{} names {name}, of host/{owner}", path.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "tables that belong to another crate:\n{}", wrong.join("\n"));
    assert!(named > 60, "only {named} uses of tables were found");
}

/// A library that is compiled without optimization shares its generic functions, and crates above
/// that are compiled for size call them instead of inlining their own. Above these two no crate is
/// compiled for size.
const UNOPTIMIZED: &[&str] = &["memhost-cli", "memhost-conformance"];

#[test]
fn nothing_below_the_command_line_is_compiled_without_optimization() {
    let manifest = fs::read_to_string(repository().join("Cargo.toml")).unwrap();
    let (_, packages) = manifest.split_once("\n[profile.release.package]\n").unwrap();
    let lines = packages.lines().take_while(|line| !line.starts_with('['));
    let names = lines.filter_map(|line| line.strip_suffix(".opt-level = 0"));
    assert_eq!(names.collect::<Vec<_>>(), UNOPTIMIZED);
    assert!(
        !manifest.contains("[profile.release.package."),
        "write packages in the one table that this test reads"
    );
}

#[test]
fn files_begin_with_a_description_and_have_at_most_600_lines() {
    let mut files = Vec::new();
    for place in ["host", "sdk/src", "plugins", "tests"] {
        sources(&repository().join(place), &mut files);
    }
    let mut wrong = Vec::new();
    for path in
        files.iter().filter(|path| !path.components().any(|part| part.as_os_str() == "target"))
    {
        let text = fs::read_to_string(path).unwrap();
        if !text.starts_with("//!") {
            wrong.push(format!("{} does not begin with what it is for", path.display()));
        }
        if text.lines().count() > 600 {
            wrong.push(format!("{} has {} lines; split it", path.display(), text.lines().count()));
        }
        if path.file_name().is_some_and(|name| name == "mod.rs") {
            wrong.push(format!("{}: name the module's file after the module", path.display()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(files.len() > 300, "only {} files were found", files.len());
}

#[test]
fn plugins_do_not_know_the_host() {
    let mut seen = 0;
    for entry in fs::read_dir(repository().join("plugins")).unwrap() {
        let manifest = entry.unwrap().path().join("Cargo.toml");
        if !manifest.exists() {
            continue;
        }
        for dependency in dependencies(&manifest).iter().filter(|name| name.starts_with("memhost"))
        {
            seen += 1;
            // These crates depend on no other crate of ours, so that guests can use them.
            let may = [
                "memhost-sdk",
                "memhost-journal",
                "memhost-pii",
                "memhost-tokens",
                "memhost-extract",
            ]
            .contains(&dependency.as_str());
            assert!(may, "{} depends on {dependency}", manifest.display());
        }
    }
    assert!(seen > 0);
}

/// The crates whose methods the surfaces call. Each has a type of the same name.
const PARTS: &[&str] = &["operations", "control", "background", "transfer"];

/// The crate that awaits an `async fn` compiles its body, so each surface would compile the
/// operations again (`host/docs/decisions/0029-build-time.md`).
#[test]
fn operations_return_boxed_futures() {
    let mut files = Vec::new();
    for name in PARTS {
        sources(&repository().join("host").join(name).join("src"), &mut files);
    }
    let (mut plain, mut boxed) = (Vec::new(), 0);
    for path in files {
        let text = fs::read_to_string(&path).unwrap();
        let mut is_service = false;
        let mut before = "";
        for line in text.lines() {
            if line.starts_with("impl") {
                is_service =
                    PARTS.iter().any(|name| line.to_lowercase() == format!("impl {name} {{"));
            }
            let is_generic = line.contains("fn operate<");
            if is_service && line.starts_with("    pub async fn ") && !is_generic {
                match before.trim() {
                    "#[boxed]" => boxed += 1,
                    _ => plain.push(format!("{}: {}", path.display(), line.trim())),
                }
            }
            before = line;
        }
    }
    assert!(plain.is_empty(), "put #[boxed] above these functions:\n{}", plain.join("\n"));
    assert!(boxed > 50, "only {boxed} operations were found");
}

/// What operations go through, from the outside in.
const CORE: &[&str] = &[
    "core",
    "background",
    "transfer",
    "control",
    "operations",
    "tenancy",
    "registry",
    "oplog",
    "queues",
    "access",
    "records",
];

/// The words of systems in front. Their rules are in `integrations`, behind `WritePolicy`,
/// `OperationSink` and `MetricSource`.
const OF_SYSTEMS_IN_FRONT: &[&str] = &["apropos", "drive", "drives", "fact", "facts"];

/// The words of a text in lower case. `FactOwners` and `fact_owners` have two each.
fn words(text: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut before = ' ';
    for letter in text.chars() {
        if !letter.is_alphabetic() || (letter.is_uppercase() && before.is_lowercase()) {
            words.push(String::new());
        }
        if letter.is_alphabetic() {
            words.last_mut().unwrap().extend(letter.to_lowercase());
        }
        before = letter;
    }
    words
}

#[test]
fn core_knows_no_system_in_front() {
    assert_eq!(
        words("DriveFacts a_fact, PageSpace's").join(" "),
        "drive facts a fact  page space s"
    );
    let (mut wrong, mut seen) = (Vec::new(), 0);
    for name in CORE {
        let directory = repository().join("host").join(name);
        let mut files = vec![directory.join("Cargo.toml")];
        sources(&directory, &mut files);
        for path in files {
            seen += 1;
            let text = fs::read_to_string(&path).unwrap();
            for (number, line) in text.lines().enumerate() {
                let is_named = line.to_lowercase().contains("pagespace");
                let is_wrong = |word: &String| OF_SYSTEMS_IN_FRONT.contains(&word.as_str());
                if is_named || words(line).iter().any(is_wrong) {
                    wrong.push(format!("{}:{}: {}", path.display(), number + 1, line.trim()));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "what belongs into `integrations`:\n{}", wrong.join("\n"));
    assert!(seen > 100, "only {seen} files were found");
}

/// How many files of a crate are part of a circle. A number may only go down; lower it with the
/// circle that you remove. Crates that are not named have none.
const IN_CIRCLES: &[(&str, usize)] = &[];

#[test]
fn files_of_a_crate_use_each_other_in_one_direction() {
    let (mut wrong, mut crates) = (Vec::new(), 0);
    for entry in fs::read_dir(repository().join("host")).unwrap() {
        let directory = entry.unwrap().path();
        let sources = directory.join("src");
        if !sources.join("lib.rs").exists() {
            continue;
        }
        crates += 1;
        let own = directory.file_name().unwrap().to_str().unwrap();
        let known = IN_CIRCLES.iter().find(|(name, _)| *name == own).map_or(0, |(_, known)| *known);
        let found = circles::in_circles(&sources);
        if found.len() > known {
            wrong.push(format!("host/{own}: {} files, at most {known}: {found:?}", found.len()));
        }
    }
    assert!(wrong.is_empty(), "files that use each other in circles:\n{}", wrong.join("\n"));
    assert!(crates > 15, "only {crates} crates were found");
}
