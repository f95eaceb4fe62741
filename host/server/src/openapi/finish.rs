//! What holds for many operations at once: planes, the token, headers, and the problems that there can be.

use serde_json::{Map, Value, json};

use memhost_http::{CODES, Code, Problem};

const METHODS: [&str; 5] = ["get", "post", "put", "patch", "delete"];

/// Statuses of problems, what they are called, and what they mean.
const PROBLEMS: &[(u16, &str, &str)] = &[
    (400, "BadRequest", "Something in the request will not do."),
    (401, "Unauthorized", "There is no token, or it is not accepted."),
    (402, "PaymentRequired", "A budget is used up."),
    (403, "Forbidden", "The token does not allow this."),
    (404, "NotFound", "There is no such thing, or nothing that could answer."),
    (405, "MethodNotAllowed", "The address does not take this method."),
    (406, "NotAcceptable", "No answer is of a type that the request accepts."),
    (409, "Conflict", "It cannot be done as things are, or the idempotency key says something else."),
    (410, "Gone", "The company was erased."),
    (412, "PreconditionFailed", "Somebody changed it meanwhile."),
    (413, "ContentTooLarge", "The body is larger than 8 MiB."),
    (415, "UnsupportedMediaType", "The body is not of a type that is read."),
    (422, "UnprocessableContent", "The provider does not do that, or does not accept it."),
    (429, "TooManyRequests", "Too fast."),
    (500, "InternalServerError", "The host itself failed."),
    (502, "BadGateway", "The provider failed."),
    (503, "ServiceUnavailable", "Not now."),
    (504, "GatewayTimeout", "The provider did not answer in time."),
    (507, "InsufficientStorage", "A limit on stored things is reached."),
];

/// Statuses that any operation behind the token can have.
const ANYWHERE: [u16; 6] = [400, 401, 403, 429, 500, 503];
/// Statuses that memory traffic can have beside those.
const MEMORY: [u16; 7] = [402, 404, 409, 422, 502, 504, 507];

/// Completes every operation.
pub(super) fn everywhere(document: &mut Value) {
    let paths = document["paths"].as_object_mut().map(std::mem::take).unwrap_or_default();
    let finished: Map<String, Value> = paths
        .into_iter()
        .map(|(path, mut item)| {
            for method in METHODS {
                if let Some(operation) = item.get_mut(method) {
                    finish(operation, &path, method);
                }
            }
            (path, item)
        })
        .collect();
    document["paths"] = finished.into();
    document["security"] = json!([{ "token": [] }]);
    let components = &mut document["components"];
    components["securitySchemes"] = json!({ "token": {
        "type": "http",
        "scheme": "bearer",
        "description": "A token: the operator's, shown at the first start, or one that was made by `createToken`.",
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

fn finish(operation: &mut Value, path: &str, method: &str) {
    let plane = match path.split('/').nth(1) {
        Some("runtime") => "runtime",
        Some("control") => "control",
        _ => "host",
    };
    operation["x-plane"] = plane.into();
    let is_open = operation.get("x-roles").is_none();
    if is_open {
        operation["security"] = json!([]);
    }
    let mut extra = vec![reference("parameters", "RequestId")];
    if plane != "host" && method != "get" {
        extra.push(reference("parameters", "IdempotencyKey"));
    }
    let parameters = &mut operation["parameters"];
    if parameters.is_null() {
        *parameters = json!([]);
    }
    let has_if_match = parameters.as_array().is_some_and(|all| all.iter().any(|one| one["name"] == "If-Match"));
    let names_a_thing = path.replace("{company}", "").contains('{');
    if let Some(parameters) = parameters.as_array_mut() {
        parameters.extend(extra);
    }
    let has_body = operation.get("requestBody").is_some();
    answers(operation, method != "get" && plane != "host");
    let applies = |status: u16| match status {
        _ if is_open => false,
        _ if ANYWHERE.contains(&status) => true,
        412 => has_if_match,
        413 | 415 => has_body,
        404 if names_a_thing || path.ends_with("/resolve") => true,
        409 | 422 if method != "get" => plane != "host",
        410 => path.contains("{company}"),
        _ => plane == "runtime" && MEMORY.contains(&status),
    };
    for (status, name, _) in PROBLEMS {
        if applies(*status) {
            operation["responses"][status.to_string()] = reference("responses", name);
        }
    }
    operation["responses"]["default"] = reference("responses", "Problem");
}

/// What every good answer has.
fn answers(operation: &mut Value, is_write: bool) {
    let is_tagged = matches!(
        operation["operationId"].as_str(),
        Some("createBinding" | "getBinding" | "updateBinding" | "resetBinding")
    );
    for (_, answer) in operation["responses"].as_object_mut().into_iter().flatten() {
        if answer["description"].as_str().is_none_or(str::is_empty) {
            answer["description"] = "As asked.".into();
        }
        answer["headers"]["x-request-id"] = reference("headers", "RequestId");
        if is_write {
            answer["headers"]["idempotency-replayed"] = reference("headers", "IdempotencyReplayed");
        }
        if is_tagged {
            answer["headers"]["etag"] = reference("headers", "EntityTag");
        }
    }
}

fn parameters() -> Value {
    json!({
        "RequestId": {
            "name": "x-request-id",
            "in": "header",
            "description": "What the caller calls this request: 1 to 64 printable characters. The answer, the host's log and \
                its traces have it. Where it is absent or will not do, the host makes one.",
            "schema": { "type": "string" },
        },
        "IdempotencyKey": {
            "name": "idempotency-key",
            "in": "header",
            "description": "A request that is sent again under the same key is done once, and answered as the first time; \
                `idempotency-replayed` says so. Another request under a key that was used is a problem.",
            "schema": { "type": "string", "minLength": 1, "maxLength": 128, "pattern": "^[!-~]+$" },
        },
    })
}

fn headers() -> Value {
    json!({
        "RequestId": { "description": "The request's id: the caller's, or one that was made.", "schema": { "type": "string" } },
        "IdempotencyReplayed": {
            "description": "`true` where this is the answer of an earlier request of the same key.",
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
        "Authenticate": { "description": "How to say who calls.", "schema": { "type": "string", "enum": ["Bearer"] } },
    })
}

/// One answer a status, and one for any other.
fn problems() -> Value {
    let answer = |description: &str, codes: Vec<&Code>| {
        let told: Vec<String> =
            codes.iter().map(|code| format!("- `{}`: {} {}", code.name, code.means, code.advice)).collect();
        let description = [description.to_owned(), told.join("\n")].join("\n\n").trim_end().to_owned();
        json!({
            "description": description,
            "headers": { "x-request-id": reference("headers", "RequestId") },
            "content": { "application/problem+json": { "schema": reference("schemas", "Problem") } },
        })
    };
    let mut all = Map::new();
    for (status, name, description) in PROBLEMS {
        let mut one = answer(description, CODES.iter().filter(|code| code.status == *status).collect());
        let codes = CODES.iter().filter(|code| code.status == *status);
        let codes = codes.map(
            |code| json!({ "code": code.name, "status": code.status, "means": code.means, "advice": code.advice }),
        );
        one["x-codes"] = codes.collect();
        if matches!(status, 429 | 503) {
            one["headers"]["retry-after"] = reference("headers", "RetryAfter");
        }
        if *status == 401 {
            one["headers"]["www-authenticate"] = reference("headers", "Authenticate");
        }
        all.insert((*name).to_owned(), one);
    }
    all.insert("Problem".to_owned(), answer("Any other problem.", Vec::new()));
    all.into()
}
