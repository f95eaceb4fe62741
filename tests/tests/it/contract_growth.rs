//! A change to `wit/` within a minor version only adds. The present text is compared with the
//! frozen copy of each version in `tests/compat`, so that components built for it run on the
//! present host.

use std::collections::BTreeMap;
use std::path::Path;

use wit_parser::{
    Function, Handle, Interface, PackageId, Resolve, Type, TypeDefKind, TypeId, World, WorldItem,
};

/// The definitions of a package, by name.
struct Contract {
    /// `interface provider, function query` and its signature, or `world memory-provider, export
    /// provider` and what it is.
    items: BTreeMap<String, String>,
    /// The interfaces that some world exports.
    exported: Vec<String>,
    version: String,
}

impl Contract {
    fn of(resolve: &Resolve, package: PackageId) -> Self {
        let package = &resolve.packages[package];
        let own = format!("{}:{}/", package.name.namespace, package.name.name);
        let (mut items, mut exported) = (BTreeMap::new(), Vec::new());
        for (name, id) in &package.interfaces {
            let interface: &Interface = &resolve.interfaces[*id];
            items.insert(format!("interface {name}"), String::new());
            for (ty, id) in &interface.types {
                items.insert(format!("interface {name}, type {ty}"), definition(resolve, *id));
            }
            for (function, what) in &interface.functions {
                items.insert(
                    format!("interface {name}, function {function}"),
                    signature(resolve, what),
                );
            }
        }
        for (name, id) in &package.worlds {
            let world: &World = &resolve.worlds[*id];
            items.insert(format!("world {name}"), String::new());
            for (verb, of_world) in [("import", &world.imports), ("export", &world.exports)] {
                for (key, item) in of_world {
                    let key = resolve.name_world_key(key);
                    let key = key.split('@').next().unwrap();
                    // What is of another package keeps that package's name.
                    let key = key.strip_prefix(&own).unwrap_or(key);
                    let what = match item {
                        WorldItem::Interface { .. } => "interface".to_owned(),
                        WorldItem::Function(function) => signature(resolve, function),
                        WorldItem::Type { id, .. } => definition(resolve, *id),
                    };
                    if verb == "export" {
                        exported.push(key.to_owned());
                    }
                    items.insert(format!("world {name}, {verb} {key}"), what);
                }
            }
        }
        let version = package.name.version.as_ref().map(ToString::to_string).unwrap_or_default();
        Self { items, exported, version }
    }

    fn read(directory: &Path) -> Self {
        let mut resolve = Resolve::default();
        let (package, _) = resolve.push_dir(directory).unwrap();
        Self::of(&resolve, package)
    }

    fn parse(text: &str) -> Self {
        let mut resolve = Resolve::default();
        let package = resolve.push_str("test.wit", text).unwrap();
        Self::of(&resolve, package)
    }
}

fn signature(resolve: &Resolve, function: &Function) -> String {
    let params: Vec<String> = function
        .params
        .iter()
        .map(|param| format!("{}: {}", param.name, shown(resolve, &param.ty)))
        .collect();
    let result =
        function.result.as_ref().map_or_else(|| "nothing".to_owned(), |ty| shown(resolve, ty));
    format!("{:?} func({}) -> {result}", function.kind, params.join(", "))
}

/// A type as it is used: its name, and the interface that defines it.
fn shown(resolve: &Resolve, ty: &Type) -> String {
    let Type::Id(id) = ty else { return format!("{ty:?}").to_lowercase() };
    match &resolve.types[*id].name {
        Some(name) => name.clone(),
        None => definition(resolve, *id),
    }
}

fn definition(resolve: &Resolve, id: TypeId) -> String {
    let show = |ty: &Type| shown(resolve, ty);
    let or_none = |ty: &Option<Type>| ty.as_ref().map_or_else(|| "_".to_owned(), show);
    let named = |name: &str, ty: &Type| format!("{name}: {}", show(ty));
    let id_of = |id: &TypeId| show(&Type::Id(*id));
    match &resolve.types[id].kind {
        TypeDefKind::Record(record) => {
            let fields: Vec<_> =
                record.fields.iter().map(|field| named(&field.name, &field.ty)).collect();
            format!("record {{ {} }}", fields.join(", "))
        }
        TypeDefKind::Variant(variant) => {
            let cases: Vec<_> = variant
                .cases
                .iter()
                .map(|case| format!("{}({})", case.name, or_none(&case.ty)))
                .collect();
            format!("variant {{ {} }}", cases.join(", "))
        }
        TypeDefKind::Enum(cases) => {
            format!(
                "enum {{ {} }}",
                cases.cases.iter().map(|case| case.name.as_str()).collect::<Vec<_>>().join(", ")
            )
        }
        TypeDefKind::Flags(flags) => {
            format!(
                "flags {{ {} }}",
                flags.flags.iter().map(|flag| flag.name.as_str()).collect::<Vec<_>>().join(", ")
            )
        }
        TypeDefKind::Resource => "resource".to_owned(),
        TypeDefKind::Handle(Handle::Own(id)) => format!("own<{}>", id_of(id)),
        TypeDefKind::Handle(Handle::Borrow(id)) => format!("borrow<{}>", id_of(id)),
        TypeDefKind::Tuple(tuple) => {
            format!("tuple<{}>", tuple.types.iter().map(show).collect::<Vec<_>>().join(", "))
        }
        TypeDefKind::Option(ty) => format!("option<{}>", show(ty)),
        TypeDefKind::Result(result) => {
            format!("result<{}, {}>", or_none(&result.ok), or_none(&result.err))
        }
        TypeDefKind::List(ty) => format!("list<{}>", show(ty)),
        TypeDefKind::Map(key, value) => format!("map<{}, {}>", show(key), show(value)),
        TypeDefKind::FixedLengthList(ty, length) => format!("list<{}, {length}>", show(ty)),
        TypeDefKind::Future(ty) => format!("future<{}>", or_none(ty)),
        TypeDefKind::Stream(ty) => format!("stream<{}>", or_none(ty)),
        TypeDefKind::Type(Type::Id(other)) => {
            format!("{} as {}", origin(resolve, *other), id_of(other))
        }
        TypeDefKind::Type(ty) => show(ty),
        TypeDefKind::Unknown => unreachable!("a parsed package has no unknown types"),
    }
}

/// The interface that a type is defined in.
fn origin(resolve: &Resolve, id: TypeId) -> String {
    match resolve.types[id].owner {
        wit_parser::TypeOwner::Interface(interface) => {
            let name = resolve.id_of(interface).unwrap_or_default();
            name.split('@').next().unwrap().to_owned()
        }
        _ => String::new(),
    }
}

/// Every way in which a component of the `frozen` contract would not fit a host of `today`.
fn breaks(frozen: &Contract, today: &Contract) -> Vec<String> {
    let mut found = Vec::new();
    for (name, was) in &frozen.items {
        match today.items.get(name) {
            None => found.push(format!("{name} is gone; put it back")),
            Some(is) if is != was => {
                found.push(format!("{name} was `{was}` and is `{is}`; put it back as it was"));
            }
            Some(_) => {}
        }
    }
    for name in today.items.keys().filter(|name| !frozen.items.contains_key(*name)) {
        let interface =
            name.strip_prefix("interface ").and_then(|rest| rest.split_once(", function "));
        if let Some((interface, _)) = interface
            && frozen.exported.iter().any(|exported| exported == interface)
        {
            found.push(format!(
                "{name} is new, and older components do not have it; put it into a new interface"
            ));
        }
        let world = name.strip_prefix("world ").and_then(|rest| rest.split_once(", export "));
        if let Some((world, _)) = world
            && frozen.items.contains_key(&format!("world {world}"))
        {
            found.push(format!(
                "{name} is new, and older components do not have it; put it into a new world"
            ));
        }
    }
    found
}

/// Whether a component of version `old` is to run on a host of version `new`: semantic versions
/// below 1.0 promise that within a minor version.
fn is_promised(old: &str, new: &str) -> bool {
    let parts = |version: &str| {
        version.split('.').map(|part| part.parse::<u64>().unwrap()).collect::<Vec<_>>()
    };
    let (old, new) = (parts(old), parts(new));
    old[0] == new[0] && (old[0] > 0 || old[1] == new[1])
}

#[test]
fn the_contract_only_grows() {
    let repository = memhost_tests::repository();
    let today = Contract::read(&repository.join("wit"));
    let mut compared = 0;
    for entry in std::fs::read_dir(repository.join("tests/compat")).unwrap() {
        let path = entry.unwrap().path();
        let Some(version) = path.file_name().and_then(|name| name.to_str()?.strip_prefix("wit-"))
        else {
            continue;
        };
        let frozen = Contract::read(&path);
        assert_eq!(frozen.version, version, "{}", path.display());
        if is_promised(version, &today.version) {
            let breaks = breaks(&frozen, &today);
            assert!(
                breaks.is_empty(),
                "components of {version} no longer fit:\n{}",
                breaks.join("\n")
            );
            compared += 1;
        }
    }
    assert!(compared > 0, "tests/compat holds no released version of {}", today.version);
}

#[test]
fn the_contract_s_changelog_knows_its_version() {
    let repository = memhost_tests::repository();
    let today = Contract::read(&repository.join("wit"));
    let changelog = std::fs::read_to_string(repository.join("wit/CHANGELOG.md")).unwrap();
    let heading = format!("\n## {}", today.version);
    assert!(
        changelog.contains(&heading),
        "wit/CHANGELOG.md has no heading for {}; say what it adds",
        today.version
    );
}

const BASE: &str = "
    package test:memory@0.1.0;
    interface types { record scope { company: string, agent: option<string> } enum kind { run, \
    issue } type json = string; }
    interface storage { get: func(key: list<u8>) -> option<list<u8>>; }
    interface provider { use types.{scope, kind}; query: func(scope: scope, kind: kind) -> \
    result<list<string>, string>; }
    world memory-provider { import storage; export provider; }
";

/// What a change to the base breaks.
fn change(from: &str, to: &str) -> Vec<String> {
    assert!(BASE.contains(from), "{from}");
    breaks(&Contract::parse(BASE), &Contract::parse(&BASE.replacen(from, to, 1)))
}

#[test]
fn additions_are_allowed() {
    let fits = |from, to| assert_eq!(change(from, to), Vec::<String>::new(), "{to}");
    fits("interface storage {", "interface extra { more: func(); } interface storage {");
    fits("interface storage {", "interface storage { count: func() -> u32;");
    fits("interface types {", "interface types { record note { text: string }");
    fits("world memory-provider {", "world second { export provider; } world memory-provider {");
    fits("import storage;", "import storage; import types;");
}

#[test]
fn changes_that_break_older_components_are_refused() {
    let refused = |from, to, names: &str| {
        let breaks = change(from, to);
        assert!(breaks.iter().any(|what| what.contains(names)), "{to}: {breaks:?}");
    };
    let type_scope = "interface types, type scope was";
    refused("agent: option<string>", "agent: option<string>, project: option<string>", type_scope);
    refused(", agent: option<string>", "", type_scope);
    refused(
        "company: string, agent: option<string>",
        "agent: option<string>, company: string",
        type_scope,
    );
    refused("agent: option<string>", "agent: string", type_scope);
    refused("run, issue", "run, issue, note", "type kind was");
    refused("type json = string", "type json = list<u8>", "type json was");
    refused("type json = string;", "", "type json is gone");
    refused("kind: kind) ->", "kind: option<kind>) ->", "function query was");
    refused("result<list<string>, string>;", "result<list<string>>;", "function query was");
    refused("(scope: scope, kind: kind)", "(scope: scope)", "function query was");
    refused("query: func", "ask: func", "function query is gone");
    refused("query: func", "query: async func", "function query was");
    refused("query: func", "count: func() -> u32; query: func", "function count is new");
    refused("get: func(key: list<u8>)", "get: func(key: string)", "function get was");
    refused("import storage;", "", "import storage is gone");
    refused("export provider;", "", "export provider is gone");
    refused("export provider;", "export provider; export storage;", "export storage is new");
    refused("world memory-provider", "world provider-of-memory", "world memory-provider is gone");
}

/// WASI has an interface `types`, too.
#[test]
fn an_import_of_another_package_is_told_from_ours() {
    let with = |imports: &str| {
        Contract::parse(&format!(
            "package test:memory@0.1.0;
            interface types {{ type json = string; }}
            world memory-provider-http {{ {imports} }}
            package wasi:http@0.2.0 {{ interface types {{ type status = u16; }} }}"
        ))
    };
    let (both, ours) = (with("import types; import wasi:http/types@0.2.0;"), with("import types;"));
    let gone = "world memory-provider-http, import wasi:http/types is gone; put it back";
    assert_eq!(breaks(&both, &ours), [gone]);
    assert_eq!(breaks(&ours, &both), Vec::<String>::new());
}

#[test]
fn the_promise_holds_within_a_minor_version() {
    assert!(is_promised("0.1.0", "0.1.9"));
    assert!(!is_promised("0.1.0", "0.2.0"));
    assert!(is_promised("1.2.0", "1.9.0"));
    assert!(!is_promised("1.2.0", "2.0.0"));
}
