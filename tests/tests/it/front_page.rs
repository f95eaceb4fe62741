//! What strangers see first: the list of pages, the table of neighbours, and the entry for
//! registries of MCP servers.

use std::collections::BTreeSet;
use std::fs;

use boon::{Compiler, Schemas};
use memhost_tests::repository;
use serde_json::Value;

fn read(path: &str) -> String {
    fs::read_to_string(repository().join(path)).unwrap()
}

fn json(path: &str) -> Value {
    serde_json::from_str(&read(path)).unwrap()
}

/// What is wrong with a value, by the schema of registries.
fn problem(server: &Value) -> Option<String> {
    let address = "memhost:///server.schema.json";
    let (mut compiler, mut schemas) = (Compiler::new(), Schemas::new());
    compiler.add_resource(address, json("tests/mcp/server.schema.json")).unwrap();
    let schema = compiler.compile(address, &mut schemas).unwrap();
    schemas.validate(server, schema).err().map(|error| error.to_string())
}

#[test]
fn the_entry_for_registries_is_valid_and_has_this_version() {
    let mut server = json("host/deploy/mcp/server.json");
    assert_eq!(problem(&server), None);
    assert_eq!(server["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(server["$schema"], json("tests/mcp/server.schema.json")["$id"]);
    // It names nothing that a stranger could have published.
    assert!(server.get("packages").is_none(), "{server}");
    server["name"] = "memhost".into();
    assert!(problem(&server).is_some_and(|said| said.contains("name")));
}

/// The book has the pages of these tables, in their order.
#[test]
fn every_page_is_in_the_tables_of_its_directory() {
    for directory in ["host/docs", "host/docs/decisions"] {
        let text = read(&format!("{directory}/README.md"));
        let rows = text.lines().filter(|line| line.starts_with("| ["));
        let listed: BTreeSet<&str> = rows
            .filter_map(|row| row.split_once("](")?.1.split(')').next())
            .filter(|target| !target.contains('/'))
            .collect();
        let entries = fs::read_dir(repository().join(directory)).unwrap();
        let names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        let pages: BTreeSet<&str> = names
            .iter()
            .map(String::as_str)
            .filter(|name| name.ends_with(".md") && *name != "README.md")
            .collect();
        assert_eq!(listed, pages, "{directory}/README.md");
    }
}

/// The rows of the tables of a page, without their heads.
fn rows(text: &str) -> impl Iterator<Item = Vec<&str>> {
    text.lines()
        .filter(|line| line.starts_with("| ") && !line.starts_with("| ---"))
        .map(|line| line.trim_matches('|').split(" | ").map(str::trim).collect())
        .filter(|cells: &Vec<&str>| !cells[0].is_empty())
}

#[test]
fn every_cell_about_a_neighbour_has_a_source() {
    let page = read("host/docs/neighbours.md");
    let mut wrong = Vec::new();
    let mut count = 0;
    for cells in rows(&page) {
        count += 1;
        for cell in &cells[1..] {
            if !cell.contains("][") && *cell != "not found" {
                wrong.push(format!("{}: {cell}", cells[0]));
            }
        }
        assert_eq!(cells.len(), 6, "{cells:?}");
    }
    assert!(count >= 15, "{count} neighbours");
    // Every name of a source leads to an address, and no address is left over.
    let named: BTreeSet<&str> =
        page.split("][").skip(1).filter_map(|rest| rest.split(']').next()).collect();
    let addresses: BTreeSet<&str> = page
        .lines()
        .filter_map(|line| line.strip_prefix('[')?.split_once("]: https://"))
        .map(|(name, _)| name)
        .collect();
    assert_eq!(named, addresses);
    assert!(wrong.is_empty(), "these say neither a source nor `not found`:\n{}", wrong.join("\n"));
}
