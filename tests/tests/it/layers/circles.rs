//! Circles of files within a crate: a file uses another one, and that one uses it back, directly or
//! over others. A parent that only declares and re-exports its children uses none of them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// A module's path from the root of its crate.
type Module = Vec<String>;

/// One file of a crate.
#[derive(Default)]
struct File {
    /// The absolute path of each name that the file imports or re-exports.
    names: BTreeMap<String, Vec<String>>,
    /// The absolute paths that it uses.
    used: BTreeSet<Vec<String>>,
    /// Whether it only declares and re-exports.
    is_index: bool,
}

/// The files of a crate that are part of a circle. Test files do not count.
pub(super) fn in_circles(sources: &Path) -> BTreeSet<String> {
    let mut texts = BTreeMap::new();
    read(sources, &mut Vec::new(), &mut texts);
    let modules: BTreeSet<Module> = texts.keys().cloned().collect();
    let files: BTreeMap<Module, File> =
        texts.iter().map(|(module, text)| (module.clone(), file(module, text, &modules))).collect();
    let mut arrows: BTreeMap<&Module, BTreeSet<Module>> = BTreeMap::new();
    for (module, file) in &files {
        let targets = file.used.iter().map(|path| defining(path, &files, 0));
        let others = targets.filter(|target| target != module && !files[target].is_index);
        arrows.insert(module, others.collect());
    }
    let is_in_circle = |start: &&Module| {
        let (mut seen, mut open) = (BTreeSet::new(), vec![*start]);
        while let Some(module) = open.pop() {
            for target in &arrows[module] {
                if target == *start {
                    return true;
                }
                if seen.insert(target) {
                    open.push(target);
                }
            }
        }
        false
    };
    let name = |module: &Module| if module.is_empty() { "lib".into() } else { module.join("/") };
    files.keys().filter(is_in_circle).map(name).collect()
}

fn read(directory: &Path, module: &mut Module, into: &mut BTreeMap<Module, String>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        if name == "tests" || name == "main" {
            continue;
        }
        module.push(name);
        if path.is_dir() {
            read(&path, module, into);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let is_root = module.len() == 1 && module[0] == "lib";
            let text = without_tests(&fs::read_to_string(&path).unwrap());
            into.insert(if is_root { Vec::new() } else { module.clone() }, text);
        }
        module.pop();
    }
}

/// The code of a file without comments, attributes and its own tests.
fn without_tests(text: &str) -> String {
    let mut code = String::new();
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        let is_tests = line == "#[cfg(test)]"
            && lines.peek().is_some_and(|next| next.contains("mod ") && next.ends_with('{'));
        if is_tests {
            lines.by_ref().find(|line| *line == "}");
        } else if !line.trim_start().starts_with("//") && !line.trim_start().starts_with("#[") {
            code.push_str(line);
            code.push('\n');
        }
    }
    code
}

fn file(module: &Module, text: &str, modules: &BTreeSet<Module>) -> File {
    let (mut imports, mut body) = (Vec::new(), String::new());
    let mut rest = text;
    while let Some(line) = rest.split_inclusive('\n').next() {
        let trimmed = line.trim_start();
        let visible = trimmed.strip_prefix("pub").map_or(trimmed, |after| {
            let scope =
                after.starts_with('(').then(|| after.find(") ").map(|end| &after[end + 1..]));
            scope.flatten().unwrap_or(after).trim_start()
        });
        let end = rest.find(';').map_or(line.len(), |end| end + 1);
        if let Some(tree) = visible.strip_prefix("use ").filter(|_| end > 1) {
            let start = rest.len() - (rest.len() - line.len()) - tree.len();
            let tree = rest[start..end - 1].split_whitespace().collect::<Vec<_>>().join(" ");
            let is_public = trimmed.starts_with("pub");
            expand(&tree, &[], &mut |path, name| imports.push((path, name, is_public)));
            rest = &rest[end..];
        } else {
            body.push_str(line);
            rest = &rest[line.len()..];
        }
    }
    let words: BTreeSet<&str> = body.split(|c: char| !c.is_alphanumeric() && c != '_').collect();
    let mut file = File::default();
    for (path, name, is_public) in &imports {
        if let Some(path) = absolute(module, path, modules) {
            file.names.insert(name.clone(), path.clone());
            if !is_public || words.contains(name.as_str()) {
                file.used.insert(path);
            }
        }
    }
    let is_part = |c: char| c.is_alphanumeric() || c == '_' || c == ':';
    for path in body.split(|c| !is_part(c)).filter(|path| path.contains("::")) {
        let path: Vec<String> = path.split("::").map(str::to_owned).collect();
        file.used.extend(absolute(module, &path, modules));
    }
    let declares = |line: &str| line.contains("mod ") && line.ends_with(';');
    file.is_index = body.lines().map(str::trim).all(|line| line.is_empty() || declares(line));
    file
}

/// The paths of a tree of imports, each with the name that it has here.
fn expand(tree: &str, before: &[String], found: &mut impl FnMut(Vec<String>, String)) {
    let tree = tree.trim();
    if let Some((head, inner)) = tree.strip_suffix('}').and_then(|tree| tree.split_once('{')) {
        let head = head.split("::").map(str::trim).filter(|part| !part.is_empty());
        let before: Vec<String> = before.iter().cloned().chain(head.map(str::to_owned)).collect();
        let (mut depth, mut start) = (0, 0);
        for (at, c) in inner.char_indices().chain([(inner.len(), ',')]) {
            match c {
                '{' => depth += 1,
                '}' => depth -= 1,
                ',' if depth == 0 => {
                    expand(&inner[start..at], &before, found);
                    start = at + 1;
                }
                _ => {}
            }
        }
    } else if !tree.is_empty() {
        let (path, name) = tree.split_once(" as ").unwrap_or((tree, ""));
        let parts = path.split("::").map(str::to_owned);
        let mut path: Vec<String> = before.iter().cloned().chain(parts).collect();
        if path.len() > 1 && path.last().is_some_and(|last| last == "self") {
            path.pop();
        }
        let last = path.last().cloned().unwrap_or_default();
        found(path, if name.is_empty() { last } else { name.to_owned() });
    }
}

/// A path from the root of the crate. `None`: it leads to another crate.
fn absolute(module: &Module, path: &[String], modules: &BTreeSet<Module>) -> Option<Vec<String>> {
    let supers = path.iter().take_while(|part| *part == "super").count();
    let (base, rest) = match path[0].as_str() {
        "crate" => (&module[..0], &path[1..]),
        "self" => (&module[..], &path[1..]),
        "super" => (&module[..module.len().checked_sub(supers)?], &path[supers..]),
        child => {
            let own: Module = module.iter().cloned().chain([child.to_owned()]).collect();
            (&module[..], path.get(..).filter(|_| modules.contains(&own))?)
        }
    };
    Some(base.iter().chain(rest).cloned().collect())
}

/// The file that defines what a path leads to, also over re-exports.
fn defining(path: &[String], files: &BTreeMap<Module, File>, depth: usize) -> Module {
    let length = (0..=path.len()).rev().find(|length| files.contains_key(&path[..*length]));
    let (module, rest) = path.split_at(length.unwrap_or(0));
    let exported = rest.first().and_then(|name| files.get(module)?.names.get(name));
    match exported.filter(|_| depth < 9) {
        Some(target) => {
            let target: Vec<String> = target.iter().chain(&rest[1..]).cloned().collect();
            defining(&target, files, depth + 1)
        }
        None => module.to_vec(),
    }
}

#[test]
fn circles_are_found_over_reexports_and_an_index_is_none() {
    let directory = tempfile::tempdir().unwrap();
    let sources = directory.path();
    fs::create_dir(sources.join("inner")).unwrap();
    for (name, text) in [
        ("lib", "//! An index.\nmod a;\nmod b;\nmod c;\nmod inner;\npub use a::A;\n"),
        ("a", "use super::b::B;\npub struct A(B);\n"),
        ("b", "use crate::inner::{C, one};\npub struct B(C);\n"),
        ("c", "use super::A;\n#[cfg(test)]\nmod tests {\n    use super::*;\n}\n"),
        ("inner", "mod one;\npub(crate) use self::one::C;\n"),
        ("inner/one", "pub(crate) fn c() -> crate::A {\n    todo!()\n}\n"),
    ] {
        fs::write(sources.join(name).with_extension("rs"), text).unwrap();
    }
    let found: Vec<String> = in_circles(sources).into_iter().collect();
    assert_eq!(found, ["a", "b", "inner/one"]);
}
