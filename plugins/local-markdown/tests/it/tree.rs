//! The directory as a tree.

use memhost_sdk::types::*;
use memhost_sdk::{Browse, testing};

use super::Home;

fn children(
    home: &mut Home,
    path: &str,
    cursor: Option<String>,
    limit: u32,
) -> Result<NodePage, Error> {
    home.provider.list_children(path.to_owned(), testing::scope(), cursor, limit)
}

#[test]
fn folders_and_files_are_listed_by_name() {
    let mut home = Home::new();
    for name in ["b/two.md", "b/one.md", "b/deep/three.md", "a.md"] {
        let path = home.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, "text").unwrap();
    }
    home.restart();
    let root = children(&mut home, "", None, 10).unwrap();
    let shown: Vec<_> =
        root.nodes.iter().map(|node| (node.path.as_str(), node.has_children)).collect();
    assert_eq!(shown, [("a.md", false), ("b", true)]);
    assert_eq!(root.nodes[0].record_id.as_deref(), Some("file:a.md"));
    assert_eq!(root.nodes[1].record_id, None);
    let first = children(&mut home, "b", None, 2).unwrap();
    let rest = children(&mut home, "b", first.next_cursor.clone(), 2).unwrap();
    let paths: Vec<_> =
        first.nodes.iter().chain(&rest.nodes).map(|node| node.path.as_str()).collect();
    assert_eq!(paths, ["b/deep", "b/one.md", "b/two.md"]);
    assert!(first.next_cursor.is_some() && rest.next_cursor.is_none());
    assert!(matches!(children(&mut home, "c", None, 10), Err(Error::NotFound(_))));
    assert!(matches!(children(&mut home, "b/one.md", None, 10), Err(Error::NotFound(_))));
}

#[test]
fn folders_with_only_invisible_records_are_hidden() {
    let mut home = Home::new();
    let scope = |agent: &str| Scope { agent_id: Some(agent.to_owned()), ..testing::scope() };
    let write = RecordWrite { text: "adas".to_owned(), ..RecordWrite::default() };
    home.write("op", vec![write], scope("ada"));
    assert_eq!(
        home.provider.list_children(String::new(), scope("ada"), None, 10).unwrap().nodes.len(),
        1
    );
    assert!(
        home.provider
            .list_children(String::new(), scope("bob"), None, 10)
            .unwrap()
            .nodes
            .is_empty()
    );
}
