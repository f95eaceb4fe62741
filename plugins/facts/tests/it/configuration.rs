//! What a binding may set.

use memhost_facts::Facts;
use memhost_sdk::{Provider, check_config};
use serde_json::{Value, json};

#[test]
fn wrong_values_are_named() {
    for (config, pointer) in [
        (json!({"maxFacts": 0}), "/maxFacts"),
        (json!({"maxFacts": 201}), "/maxFacts"),
        (json!({"maxCharacters": 1_001}), "/maxCharacters"),
        (json!({"tokenBudget": 49}), "/tokenBudget"),
        (json!({"tokenBudget": "many"}), "/tokenBudget"),
        (json!({"maxFact": 1}), "/maxFact"),
    ] {
        let errors = check_config::<Facts>(&config.to_string()).unwrap_err();
        assert_eq!(
            errors.iter().map(|one| one.pointer.as_str()).collect::<Vec<_>>(),
            [pointer],
            "{config}"
        );
    }
}

#[test]
fn the_schema_names_every_field_and_its_default() {
    let schema: Value = serde_json::from_str(&Facts::describe().config_schema.unwrap()).unwrap();
    let properties = schema["properties"].as_object().unwrap();
    let default = serde_json::to_value(memhost_facts::Config::default()).unwrap();
    assert_eq!(
        properties.keys().collect::<Vec<_>>(),
        default.as_object().unwrap().keys().collect::<Vec<_>>()
    );
    for (name, property) in properties {
        assert_eq!(property["default"], default[name], "{name}");
    }
    assert_eq!(
        (&default["maxFacts"], &default["maxCharacters"], &default["tokenBudget"]),
        (&json!(50), &json!(200), &json!(500))
    );
    check_config::<Facts>(&default.to_string()).unwrap();
}
