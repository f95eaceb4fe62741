//! The files of an author's project: the template, and the SDK and the contract of this version, which are part of this
//! binary. The project builds with the dependency versions that the SDK was tested with.

use std::collections::{BTreeMap, BTreeSet};

use toml_edit::{DocumentMut, Item, Table, Value, value};

/// Every file, under its path in our repository.
const FILES: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/template.rs"));
/// The template's name in this repository.
const TEMPLATE: &str = "memory-template";
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

/// The complete files of a project, by path.
///
/// # Errors
/// Where the embedded files are invalid, which a test excludes.
pub(super) fn project(name: &str, sdk: &Sdk, has_ci: bool) -> Result<BTreeMap<String, String>, String> {
    let named = |text: &str| text.replace(TEMPLATE, name).replace(&underscored(TEMPLATE), &underscored(name));
    let of_sdk = match sdk {
        Sdk::Vendored => "vendor/memhost-sdk",
        Sdk::At(path) => path,
    };
    let mut project = BTreeMap::from([("Cargo.lock".to_owned(), lock(name)?)]);
    for (path, text) in FILES {
        let Some(place) = place(path, has_ci) else { continue };
        let written = match *path {
            "sdk/Cargo.toml" => standalone(text, None)?,
            "sdk/template/Cargo.toml" => named(&standalone(text, Some(of_sdk))?),
            _ if place.starts_with("vendor/") => (*text).to_owned(),
            _ => named(text),
        };
        if *sdk == Sdk::Vendored || !place.starts_with("vendor/") {
            project.insert(place, written);
        }
    }
    Ok(project)
}

/// The path of one of our files in a project; none for files that a project does not need.
fn place(path: &str, has_ci: bool) -> Option<String> {
    let place = match path {
        "rust-toolchain.toml" => path.to_owned(),
        "LICENSE-APACHE" | "LICENSE-MIT" => format!("vendor/memhost-sdk/{path}"),
        "sdk/template/project/config.toml" => ".cargo/config.toml".to_owned(),
        "sdk/template/project/gitignore" => ".gitignore".to_owned(),
        "sdk/template/project/ci.yml" if has_ci => ".github/workflows/ci.yml".to_owned(),
        "sdk/template/project/ci.yml" => return None,
        "sdk/template/project/README.md" => "README.md".to_owned(),
        _ => match path.split_once('/')? {
            ("wit", _) => format!("vendor/{path}"),
            ("sdk", rest) => match rest.strip_prefix("template/") {
                Some(rest) => rest.to_owned(),
                None => format!("vendor/memhost-sdk/{rest}"),
            },
            _ => return None,
        },
    };
    Some(place)
}

/// A package's name as its library's.
pub(super) fn underscored(name: &str) -> String {
    name.replace('-', "_")
}

fn file(path: &str) -> Result<&'static str, String> {
    let found = FILES.iter().find(|(name, _)| *name == path);
    found.map(|(_, text)| *text).ok_or_else(|| format!("{path} is not in this binary"))
}

fn parse(path: &str, text: &str) -> Result<DocumentMut, String> {
    text.parse().map_err(|error| format!("{path}: {error}"))
}

/// A standalone copy of a manifest of our workspace, with the inherited values. `sdk` is the SDK's path in a
/// project; none for the SDK's own manifest.
fn standalone(manifest: &str, sdk: Option<&str>) -> Result<String, String> {
    let root = parse(WORKSPACE, file(WORKSPACE)?)?;
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
        for (key, item) in dependencies.iter_mut() {
            let mut written = inherited("dependencies", key.get())?;
            if written.get("path").is_some() {
                written["path"] = value(sdk.unwrap_or_default());
            }
            *item = inline(&written);
        }
    }
    document.remove("lints");
    if sdk.is_some() {
        document["profile"] = Item::Table(profile(&root)?);
        // A workspace of its own, also inside another project. The crates in `vendor` are not members.
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

/// Our lock file without the packages that a project cannot need, so that it builds with the tested versions.
/// The first build removes a few more lines, for features that only our workspace uses.
fn lock(name: &str) -> Result<String, String> {
    let mut document = parse("Cargo.lock", file("Cargo.lock")?)?;
    let packages =
        document.get_mut("package").and_then(Item::as_array_of_tables_mut).ok_or("Cargo.lock has no packages")?;
    let text = |package: &Table, key: &str| package.get(key).and_then(Item::as_str).unwrap_or_default().to_owned();
    let (mut wanted, mut found) = (vec![TEMPLATE.to_owned()], BTreeSet::new());
    while let Some(next) = wanted.pop() {
        // `name`, or `name version` where there are several.
        let mut parts = next.split(' ');
        let (name, version) = (parts.next().unwrap_or_default(), parts.next());
        for (index, package) in packages.iter().enumerate() {
            let is_it =
                text(package, "name") == name && version.is_none_or(|version| text(package, "version") == version);
            if is_it && found.insert(index) {
                let all = package.get("dependencies").and_then(Item::as_array).into_iter().flatten();
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
        if text(package, "name") == TEMPLATE {
            package["name"] = value(name);
        }
        for dependency in
            package.get_mut("dependencies").and_then(Item::as_array_mut).into_iter().flat_map(|all| all.iter_mut())
        {
            let plain = dependency.as_str().and_then(|text| text.split(' ').next()).unwrap_or_default().to_owned();
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
        let project = project("red-thread", &Sdk::Vendored, true).unwrap();
        for path in [
            "Cargo.toml",
            "Cargo.lock",
            "README.md",
            "rust-toolchain.toml",
            "src/lib.rs",
            "tests/provider.rs",
            ".cargo/config.toml",
            ".gitignore",
            ".github/workflows/ci.yml",
            "vendor/wit/provider.wit",
            "vendor/memhost-sdk/Cargo.toml",
            "vendor/memhost-sdk/src/lib.rs",
            "vendor/memhost-sdk/LICENSE-MIT",
        ] {
            assert!(project.contains_key(path), "{path} is missing of {:?}", project.keys());
        }
        for (path, text) in &project {
            assert!(!text.contains("memory-template") && !text.contains("memory_template"), "{path}");
            assert!(!path.ends_with("Cargo.toml") || !text.contains("workspace = true"), "{path}: {text}");
        }
        assert!(
            project["src/lib.rs"].contains("\"red-thread\"") && project["tests/provider.rs"].contains("red_thread::")
        );
        let manifest: toml::Table = project["Cargo.toml"].parse().unwrap();
        assert_eq!(manifest["package"]["name"].as_str(), Some("red-thread"));
        assert_eq!(manifest["dependencies"]["memhost-sdk"]["path"].as_str(), Some("vendor/memhost-sdk"));
        assert_eq!(manifest["profile"]["release"]["panic"].as_str(), Some("abort"));
    }

    #[test]
    fn the_versions_are_those_that_the_sdk_was_tested_with() {
        let (ours, theirs): (toml::Table, toml::Table) =
            (file("Cargo.lock").unwrap().parse().unwrap(), lock("red-thread").unwrap().parse().unwrap());
        let all = |lock: &toml::Table| lock["package"].as_array().unwrap().clone();
        let names: Vec<toml::Value> = all(&theirs).iter().map(|package| package["name"].clone()).collect();
        assert!(names.contains(&"red-thread".into()) && names.contains(&"wit-bindgen".into()), "{names:?}");
        assert!(!names.contains(&"memhost".into()) && !names.contains(&"wasmtime".into()), "{names:?}");
        for package in all(&theirs).iter().filter(|package| package["name"].as_str() != Some("red-thread")) {
            let is_same =
                |other: &&toml::Value| other["name"] == package["name"] && other["version"] == package["version"];
            let same = all(&ours).iter().find(is_same).cloned().unwrap_or_else(|| panic!("{package:?} is not ours"));
            assert_eq!(same.get("checksum"), package.get("checksum"), "{package:?}");
        }
    }

    #[test]
    fn an_sdk_elsewhere_is_not_copied() {
        let project = project("a", &Sdk::At("../sdk".to_owned()), false).unwrap();
        assert!(!project.keys().any(|path| path.starts_with("vendor/") || path.starts_with(".github/")));
        assert!(project["Cargo.toml"].contains("\"../sdk\""), "{}", project["Cargo.toml"]);
    }
}
