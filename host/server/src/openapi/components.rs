//! The components that operations refer to: the token, headers, and the answer of each status of a
//! problem.

use serde_json::{Map, Value, json};

use memhost_http::{Problem, ProblemCode, ProblemStatus};

/// Adds the components.
pub(super) fn add(document: &mut Value) {
    document["security"] = json!([{ "token": [] }]);
    let components = &mut document["components"];
    components["securitySchemes"] = json!({ "token": {
        "type": "http",
        "scheme": "bearer",
        "description": "The operator's token, which the host prints when it first starts, or one \
                        of `createToken`.",
    } });
    components["parameters"] = parameters();
    components["headers"] = headers();
    components["responses"] = problems();
    let mut generator = schemars::generate::SchemaSettings::draft2020_12()
        .for_serialize()
        .with(|settings| settings.definitions_path = "#/components/schemas/".into())
        .into_generator();
    drop(generator.subschema_for::<Problem>());
    for (name, schema) in generator.take_definitions(true) {
        components["schemas"][name] = schema;
    }
}

fn reference(kind: &str, name: &str) -> Value {
    json!({ "$ref": format!("#/components/{kind}/{name}") })
}

fn parameters() -> Value {
    json!({
        "RequestId": {
            "name": "x-request-id",
            "in": "header",
            "description": "The caller's id for this request: 1 to 64 printable characters. The \
                            answer, the host's log \
                and its traces have it. The host makes one if it is absent or not valid.",
            "schema": { "type": "string" },
        },
        "IdempotencyKey": {
            "name": "idempotency-key",
            "in": "header",
            "description": "A request that is sent twice with one key is done once and has the \
                            same answer; \
                `idempotency-replayed` marks the second. A different request with a used key is \
                refused.",
            "schema": { "type": "string", "minLength": 1, "maxLength": 128, "pattern": "^[!-~]+$" },
        },
    })
}

fn headers() -> Value {
    json!({
        "RequestId": {
            "description": "The request's id: the caller's, or one that the host made.",
            "schema": { "type": "string" },
        },
        "IdempotencyReplayed": {
            "description": "`true` if this is the answer of an earlier request with the same key.",
            "schema": { "type": "string", "enum": ["true"] },
        },
        "EntityTag": {
            "description": "The binding's revision, for `if-match`.",
            "schema": { "type": "string", "pattern": "^\"[0-9]+\"$" },
        },
        "RetryAfter": {
            "description": "Whole seconds until another try makes sense.",
            "schema": { "type": "integer", "minimum": 0 },
        },
        "Authenticate": {
            "description": "The authentication scheme.",
            "schema": { "type": "string", "enum": ["Bearer"] },
        },
    })
}

/// One answer for each status, with the codes that have it, and one for any other problem.
fn problems() -> Value {
    let mut all = Map::new();
    for status in ProblemStatus::ALL {
        let codes: Vec<ProblemCode> =
            ProblemCode::ALL.iter().copied().filter(|code| code.status() == *status).collect();
        let lines = codes
            .iter()
            .map(|code| format!("- `{}`: {} {}", code.name(), code.description(), code.advice()));
        let lines = lines.collect::<Vec<_>>().join("\n");
        let mut answer = problem(&format!("{}\n\n{lines}", status.description()));
        let number = status.http().as_u16();
        let codes = codes.iter().map(|code| {
            let (name, description) = (code.name(), code.description());
            json!({
                "code": name, "status": number, "description": description, "advice": code.advice(),
            })
        });
        answer["x-codes"] = codes.collect();
        match status {
            ProblemStatus::TooManyRequests | ProblemStatus::ServiceUnavailable => {
                answer["headers"]["retry-after"] = reference("headers", "RetryAfter");
            }
            ProblemStatus::Unauthorized => {
                answer["headers"]["www-authenticate"] = reference("headers", "Authenticate");
            }
            _ => {}
        }
        all.insert(status.component().to_owned(), answer);
    }
    all.insert("Problem".to_owned(), problem("Any other problem."));
    all.into()
}

fn problem(description: &str) -> Value {
    json!({
        "description": description,
        "headers": { "x-request-id": reference("headers", "RequestId") },
        "content": { "application/problem+json": { "schema": reference("schemas", "Problem") } },
    })
}
