//! What a binding may set.

use memhost_local_markdown::{Config, LocalMarkdown};
use memhost_sdk::types::{ConfigError, Permission};
use memhost_sdk::{Provider, check_config};
use serde_json::{Value, json};

fn errors(config: &Value) -> Vec<ConfigError> {
    check_config::<LocalMarkdown>(&config.to_string()).err().unwrap_or_default()
}

#[test]
fn errors_have_pointers() {
    let pointers =
        |config: Value| errors(&config).into_iter().map(|error| error.pointer).collect::<Vec<_>>();
    assert!(pointers(json!({})).is_empty());
    assert!(pointers(json!({"language": "none", "ranking": {"k1": 10, "b": 0}})).is_empty());
    assert_eq!(
        pointers(json!({"ranking": {"b": 1.5, "names": -0.1}})),
        ["/ranking/b", "/ranking/names"]
    );
    assert_eq!(pointers(json!({"ranking": {"k1": "much"}})), ["/ranking/k1"]);
    assert_eq!(pointers(json!({"durabel": true})), ["/durabel"]);
    let message = errors(&json!({"language": "klingon"})).remove(0).message;
    assert!(message.contains("klingon") && message.contains("`english`"), "{message}");
}

#[test]
fn the_schema_has_the_defaults() {
    let schema: Value =
        serde_json::from_str(&LocalMarkdown::describe().config_schema.unwrap()).unwrap();
    let default = json!(Config::default());
    let properties = schema["properties"].as_object().unwrap();
    assert_eq!(
        properties.keys().collect::<Vec<_>>(),
        default.as_object().unwrap().keys().collect::<Vec<_>>()
    );
    for (name, value) in default.as_object().unwrap().iter().filter(|(name, _)| *name != "ranking")
    {
        assert_eq!(&properties[name]["default"], value, "{name}");
    }
    let weights = properties["ranking"]["properties"].as_object().unwrap();
    assert_eq!(weights.len(), default["ranking"].as_object().unwrap().len());
    for (name, weight) in weights {
        let stated = weight["default"].as_f64().unwrap();
        assert!((stated - default["ranking"][name].as_f64().unwrap()).abs() < 1e-6, "{name}");
        assert!(!weight["description"].as_str().unwrap().is_empty());
        let beyond = json!({"ranking": {name: weight["maximum"].as_f64().unwrap() + 0.1}});
        assert_eq!(errors(&beyond).len(), 1, "{name}");
    }
}

#[test]
fn it_asks_for_the_permissions_that_it_needs() {
    let description = LocalMarkdown::describe();
    assert_eq!(
        (description.provider_key.as_str(), description.max_concurrency),
        ("local-markdown", 1)
    );
    let asked: Vec<_> = description
        .permissions
        .iter()
        .map(|request| (&request.permission, request.optional))
        .collect();
    assert_eq!(
        asked,
        [
            (&Permission::Directory(1 << 30), true),
            (&Permission::Storage(512 << 20), false),
            (&Permission::Clock, true),
            (&Permission::Embeddings, true),
        ]
    );
}

#[test]
fn the_readme_has_the_defaults() {
    let readme = include_str!("../../README.md");
    let default = json!(Config::default());
    for (name, value) in default["ranking"].as_object().unwrap() {
        let rounded = (value.as_f64().unwrap() * 1e6).round() / 1e6;
        let row = format!("| `ranking.{name}` | {rounded} |");
        assert!(readme.contains(&row), "{row}");
    }
}
