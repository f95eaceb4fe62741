//! Merges the schemas of requests and answers: equal ones become one, different ones get different
//! names.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use memhost_http::document::{AS_REQUEST, SCHEMAS, each_member};

/// The suffix of a request schema's name where an answer has a different schema of that name.
const INPUT: &str = "Input";

/// Gives every request schema its final name.
pub(super) fn merge_requests(document: &mut Value) {
    let Some(schemas) = document.pointer_mut("/components/schemas").map(Value::take) else {
        return;
    };
    let Value::Object(schemas) = schemas else { return };
    let (of_requests, of_answers): (Map<_, _>, Map<_, _>) =
        schemas.into_iter().partition(|(name, _)| name.ends_with(AS_REQUEST));
    let of_requests: BTreeMap<String, Value> = of_requests
        .into_iter()
        .map(|(name, schema)| (name.trim_end_matches(AS_REQUEST).to_owned(), schema))
        .collect();
    let differing = differing(&of_requests, &of_answers);
    let rename = |reference: &mut Value| {
        let Some(name) = reference
            .as_str()
            .and_then(|text| text.strip_prefix(SCHEMAS)?.strip_suffix(AS_REQUEST))
        else {
            return;
        };
        let end = if differing.contains(name) { INPUT } else { "" };
        *reference = format!("{SCHEMAS}{name}{end}").into();
    };
    let mut merged: BTreeMap<String, Value> = of_answers.into_iter().collect();
    for (name, schema) in of_requests {
        let name = if differing.contains(&name) { format!("{name}{INPUT}") } else { name };
        merged.entry(name).or_insert(schema);
    }
    document["components"]["schemas"] = merged.into_iter().collect();
    each_member(document, "$ref", &mut { rename });
}

/// The names whose schemas differ between requests and answers, in themselves or in what they refer
/// to.
fn differing(
    of_requests: &BTreeMap<String, Value>,
    of_answers: &Map<String, Value>,
) -> BTreeSet<String> {
    let mut differing = BTreeSet::new();
    loop {
        let before = differing.len();
        for (name, schema) in of_requests {
            let Some(answer) = of_answers.get(name).filter(|_| !differing.contains(name)) else {
                continue;
            };
            let mut plain = schema.clone();
            let mut refers = false;
            each_member(&mut plain, "$ref", &mut |reference| {
                if let Some(text) =
                    reference.as_str().and_then(|text| text.strip_suffix(AS_REQUEST))
                {
                    refers |=
                        text.strip_prefix(SCHEMAS).is_some_and(|name| differing.contains(name));
                    *reference = text.to_owned().into();
                }
            });
            if refers || plain != *answer {
                differing.insert(name.clone());
            }
        }
        if differing.len() == before {
            return differing;
        }
    }
}
