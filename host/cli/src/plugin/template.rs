//! The files of an author's project: the template, and the SDK and the contract of this version,
//! which are part of this binary. The project builds with the dependency versions that the SDK was
//! tested with.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read as _;

use flate2::read::DeflateDecoder;
use toml_edit::{DocumentMut, Item, Table, Value, value};

/// Every file, packed by the build script: each with its path in our repository, its length in
/// bytes, and its text.
static PACKED: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/template.deflate"));
/// What is the same in each template is here.
const COMMON: &str = "sdk/template/project/";
/// The names of lints, profiles and packages in our manifests.
const WORKSPACE: &str = "Cargo.toml";

/// The SDK of a project.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Sdk {
    /// A copy of this host's SDK, in the project.
    Vendored,
    /// A directory, such as one in a checkout.
    At(String),
}

/// What a project begins with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Template {
    /// Records in the binding's storage.
    Storage,
    /// Records at a service, over HTTP.
    Http,
}

impl Template {
    /// Its name in this repository.
    fn name(self) -> &'static str {
        match self {
            Self::Storage => "memory-template",
            Self::Http => "memory-template-http",
        }
    }

    /// The beginning of its files' paths.
    fn directory(self) -> &'static str {
        match self {
            Self::Storage => "sdk/template/",
            Self::Http => "sdk/template-http/",
        }
    }
}

/// The complete files of a project, by path.
///
/// # Errors
/// Where the embedded files are invalid, which a test excludes.
pub(super) fn project(
    name: &str,
    template: Template,
    sdk: &Sdk,
    has_ci: bool,
) -> Result<BTreeMap<String, String>, String> {
    let ours = template.name();
    // The longer name first, because it contains the other one, which the common files have.
    let named = |text: &str| {
        [ours, Template::Storage.name()].into_iter().fold(text.to_owned(), |text, ours| {
            text.replace(ours, name).replace(&underscored(ours), &underscored(name))
        })
    };
    let of_sdk = match sdk {
        Sdk::Vendored => "vendor/memhost-sdk",
        Sdk::At(path) => path,
    };
    let files = files()?;
    let mut project = BTreeMap::from([("Cargo.lock".to_owned(), lock(&files, name, ours)?)]);
    for (path, text) in &files {
        let Some(place) = place(path, template, has_ci) else { continue };
        let written = match place.as_str() {
            "vendor/memhost-sdk/Cargo.toml" | "vendor/memhost-words/Cargo.toml" => {
                standalone(&files, text, None)?
            }
            "Cargo.toml" => named(&standalone(&files, text, Some(of_sdk))?),
            _ if place.starts_with("vendor/") => text.clone(),
            _ => named(text),
        };
        if *sdk == Sdk::Vendored || !place.starts_with("vendor/") {
            project.insert(place, written);
        }
    }
    Ok(project)
}

/// The path of one of our files in a project; none for files that a project does not need.
fn place(path: &str, template: Template, has_ci: bool) -> Option<String> {
    if let Some(own) = path.strip_prefix(template.directory()) {
        if own == "project/README.md" {
            return Some("README.md".to_owned());
        }
        if !own.starts_with("project/") {
            return Some(own.to_owned());
        }
    }
    if let Some(common) = path.strip_prefix(COMMON) {
        let place = match common {
            "config.toml" => ".cargo/config.toml",
            "gitignore" => ".gitignore",
            "ci.yml" if has_ci => ".github/workflows/ci.yml",
            _ => return None,
        };
        return Some(place.to_owned());
    }
    match path {
        "rust-toolchain.toml" => Some(path.to_owned()),
        "LICENSE-APACHE" | "LICENSE-MIT" => Some(format!("vendor/memhost-sdk/{path}")),
        _ => match path.split_once('/')? {
            ("wit", _) => Some(format!("vendor/{path}")),
            ("host", rest) => Some(format!("vendor/memhost-{rest}")),
            ("sdk", rest) if !rest.starts_with("template") => {
                Some(format!("vendor/memhost-sdk/{rest}"))
            }
            _ => None,
        },
    }
}

/// A package's name as its library's.
pub(super) fn underscored(name: &str) -> String {
    name.replace('-', "_")
}

/// Files by path.
type Files = BTreeMap<String, String>;

/// Unpacks every file, by its path in our repository.
pub(super) fn files() -> Result<Files, String> {
    let mut text = String::new();
    DeflateDecoder::new(PACKED).read_to_string(&mut text).map_err(|error| error.to_string())?;
    let (mut rest, mut files) = (text.as_str(), Files::new());
    while let Some((path, after)) = rest.split_once('\n') {
        let length = after
            .split_once('\n')
            .and_then(|(length, after)| Some((length.parse::<usize>().ok()?, after)));
        let parts = length.and_then(|(length, after)| after.split_at_checked(length));
        let (text, after) = parts.ok_or_else(|| format!("{path} is damaged in this binary"))?;
        files.insert(path.to_owned(), text.to_owned());
        rest = after;
    }
    Ok(files)
}

fn file<'f>(files: &'f Files, path: &str) -> Result<&'f str, String> {
    files.get(path).map(String::as_str).ok_or_else(|| format!("{path} is not in this binary"))
}

fn parse(path: &str, text: &str) -> Result<DocumentMut, String> {
    text.parse().map_err(|error| format!("{path}: {error}"))
}

/// A standalone copy of a manifest of our workspace, with the inherited values. `sdk` is the SDK's
/// path in a project; none for the manifests in `vendor`.
fn standalone(files: &Files, manifest: &str, sdk: Option<&str>) -> Result<String, String> {
    let root = parse(WORKSPACE, file(files, WORKSPACE)?)?;
    let mut document = parse("a manifest", manifest)?;
    let inherited = |what: &str, key: &str| {
        let found = root.get("workspace").and_then(|workspace| workspace.get(what)?.get(key));
        found.cloned().ok_or_else(|| format!("the workspace has no `{key}` to inherit"))
    };
    if let Some(package) = document.get_mut("package").and_then(Item::as_table_mut) {
        for (key, item) in package.iter_mut() {
            if is_inherited(item) {
                *item = inherited("package", key.get())?;
            }
        }
        // The author may publish the project.
        if sdk.is_some() {
            package.remove("publish");
        }
    }
    if let Some(dependencies) = document.get_mut("dependencies").and_then(Item::as_table_mut) {
        for (key, item) in dependencies.iter_mut().filter(|(_, item)| is_inherited(item)) {
            let mut written = inherited("dependencies", key.get())?;
            if written.get("path").is_some() {
                // What the SDK needs of ours is beside it.
                let beside = format!("../{}", key.get());
                written["path"] = value(sdk.map_or(beside, str::to_owned));
                if let Some(features) = item.get("features") {
                    written["features"] = features.clone();
                }
            }
            *item = inline(&written);
        }
    }
    document.remove("lints");
    if sdk.is_some() {
        document["profile"] = Item::Table(profile(&root)?);
        // A workspace of its own, also inside another project. The crates in `vendor` are not
        // members.
        let mut workspace = Table::new();
        workspace["exclude"] = value(Value::from_iter(["vendor"]));
        document["workspace"] = Item::Table(workspace);
    }
    Ok(document.to_string())
}

fn is_inherited(item: &Item) -> bool {
    item.get("workspace").and_then(Item::as_bool) == Some(true)
}

/// A dependency as one value on one line.
fn inline(item: &Item) -> Item {
    match item.clone().into_value() {
        Ok(mut written) => {
            written.decor_mut().clear();
            value(written)
        }
        Err(item) => item,
    }
}

/// The release profile of a project: our profile `guest`.
fn profile(root: &DocumentMut) -> Result<Table, String> {
    let guest = root.get("profile").and_then(|profiles| profiles.get("guest")?.as_table());
    let guest = guest.ok_or("there is no profile `guest`")?;
    let mut release = Table::new();
    for (key, item) in guest.iter().filter(|(key, _)| *key != "inherits") {
        release[key] = inline(item);
    }
    let mut profiles = Table::new();
    profiles.set_implicit(true);
    profiles["release"] = Item::Table(release);
    Ok(profiles)
}

/// Our lock file without the packages that a project cannot need, so that it builds with the tested
/// versions. The first build removes a few more lines, for features that only our workspace uses.
fn lock(files: &Files, name: &str, template: &str) -> Result<String, String> {
    let mut document = parse("Cargo.lock", file(files, "Cargo.lock")?)?;
    let packages = document
        .get_mut("package")
        .and_then(Item::as_array_of_tables_mut)
        .ok_or("Cargo.lock has no packages")?;
    let text = |package: &Table, key: &str| {
        package.get(key).and_then(Item::as_str).unwrap_or_default().to_owned()
    };
    let (mut wanted, mut found) = (vec![template.to_owned()], BTreeSet::new());
    while let Some(next) = wanted.pop() {
        // `name`, or `name version` where there are several.
        let mut parts = next.split(' ');
        let (name, version) = (parts.next().unwrap_or_default(), parts.next());
        for (index, package) in packages.iter().enumerate() {
            let is_it = text(package, "name") == name
                && version.is_none_or(|version| text(package, "version") == version);
            if is_it && found.insert(index) {
                let all =
                    package.get("dependencies").and_then(Item::as_array).into_iter().flatten();
                wanted.extend(all.filter_map(|name| name.as_str().map(str::to_owned)));
            }
        }
    }
    let mut index = 0;
    packages.retain(|_| {
        index += 1;
        found.contains(&(index - 1))
    });
    // Where one version is left of several, cargo names it without the version.
    let mut versions: BTreeMap<String, usize> = BTreeMap::new();
    packages.iter().for_each(|package| *versions.entry(text(package, "name")).or_default() += 1);
    for package in packages.iter_mut() {
        if text(package, "name") == template {
            package["name"] = value(name);
        }
        for dependency in package
            .get_mut("dependencies")
            .and_then(Item::as_array_mut)
            .into_iter()
            .flat_map(|all| all.iter_mut())
        {
            let plain = dependency
                .as_str()
                .and_then(|text| text.split(' ').next())
                .unwrap_or_default()
                .to_owned();
            if versions.get(&plain) == Some(&1) {
                let decor = dependency.decor().clone();
                *dependency = plain.into();
                *dependency.decor_mut() = decor;
            }
        }
    }
    Ok(document.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_of_our_repository_is_left_in_a_project() {
        let both =
            [(Template::Storage, "tests/provider.rs"), (Template::Http, "tests/provider/main.rs")];
        for (template, tests) in both {
            assert_is_whole(&project("red-thread", template, &Sdk::Vendored, true).unwrap(), tests);
        }
    }

    fn assert_is_whole(project: &BTreeMap<String, String>, tests: &str) {
        for path in [
            "Cargo.toml",
            "Cargo.lock",
            "README.md",
            "rust-toolchain.toml",
            "src/lib.rs",
            tests,
            ".cargo/config.toml",
            ".gitignore",
            ".github/workflows/ci.yml",
            "vendor/wit/provider.wit",
            "vendor/memhost-sdk/Cargo.toml",
            "vendor/memhost-sdk/src/lib.rs",
            "vendor/memhost-sdk/LICENSE-MIT",
            "vendor/memhost-words/Cargo.toml",
            "vendor/memhost-words/src/lib.rs",
        ] {
            assert!(project.contains_key(path), "{path} is missing of {:?}", project.keys());
        }
        for (path, text) in project {
            assert!(
                !text.contains("memory-template") && !text.contains("memory_template"),
                "{path}"
            );
            assert!(
                !path.ends_with("Cargo.toml") || !text.contains("workspace = true"),
                "{path}: {text}"
            );
        }
        let named =
            |path: &str| path.starts_with("src/") && project[path].contains("\"red-thread\"");
        assert!(project.keys().any(|path| named(path)) && project[tests].contains("red_thread::"));
        let manifest: toml::Table = project["Cargo.toml"].parse().unwrap();
        assert_eq!(manifest["package"]["name"].as_str(), Some("red-thread"));
        assert_eq!(
            manifest["dependencies"]["memhost-sdk"]["path"].as_str(),
            Some("vendor/memhost-sdk")
        );
        assert_eq!(manifest["profile"]["release"]["panic"].as_str(), Some("abort"));
        let sdk: toml::Table = project["vendor/memhost-sdk/Cargo.toml"].parse().unwrap();
        let words = &sdk["dependencies"]["memhost-words"];
        assert_eq!(words["path"].as_str(), Some("../memhost-words"));
    }

    #[test]
    fn the_versions_are_those_that_the_sdk_was_tested_with() {
        let files = files().unwrap();
        let (ours, theirs): (toml::Table, toml::Table) = (
            file(&files, "Cargo.lock").unwrap().parse().unwrap(),
            lock(&files, "red-thread", Template::Storage.name()).unwrap().parse().unwrap(),
        );
        let all = |lock: &toml::Table| lock["package"].as_array().unwrap().clone();
        let names: Vec<toml::Value> =
            all(&theirs).iter().map(|package| package["name"].clone()).collect();
        assert!(
            names.contains(&"red-thread".into()) && names.contains(&"wit-bindgen".into()),
            "{names:?}"
        );
        assert!(
            !names.contains(&"memhost".into()) && !names.contains(&"wasmtime".into()),
            "{names:?}"
        );
        for package in
            all(&theirs).iter().filter(|package| package["name"].as_str() != Some("red-thread"))
        {
            let is_same = |other: &&toml::Value| {
                other["name"] == package["name"] && other["version"] == package["version"]
            };
            let same = all(&ours)
                .iter()
                .find(is_same)
                .cloned()
                .unwrap_or_else(|| panic!("{package:?} is not ours"));
            assert_eq!(same.get("checksum"), package.get("checksum"), "{package:?}");
        }
    }

    #[test]
    fn an_sdk_elsewhere_is_not_copied() {
        let project =
            project("a", Template::Storage, &Sdk::At("../sdk".to_owned()), false).unwrap();
        assert!(
            !project.keys().any(|path| path.starts_with("vendor/") || path.starts_with(".github/"))
        );
        assert!(project["Cargo.toml"].contains("\"../sdk\""), "{}", project["Cargo.toml"]);
    }
}
