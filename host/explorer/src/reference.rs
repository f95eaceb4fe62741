//! The reference: the OpenAPI document as one page that needs no script, no other host and no wide
//! screen.

use maud::{DOCTYPE, Markup, html};
use serde_json::Value;

mod prose;
mod schema;

use prose::prose;
use schema::{Schemas, follow};

/// The page's stylesheet.
pub const STYLE: &str = include_str!("reference/style.css");

const METHODS: [&str; 5] = ["get", "post", "put", "patch", "delete"];
/// A plane, what it is called, and what it is for.
type Plane = (&'static str, &'static str, &'static str);
const PLANES: [Plane; 3] = [
    ("runtime", "Runtime plane", "Memory traffic, below /runtime/v1."),
    ("control", "Control plane", "Governance, below /control/v1."),
    ("host", "Host", "The state of the host."),
];

/// One operation and where it is.
struct Operation<'a> {
    method: &'static str,
    path: &'a str,
    json: &'a Value,
}

impl Operation<'_> {
    fn id(&self) -> &str {
        text(self.json, "operationId")
    }
}

/// The operations of a plane that have a tag.
struct Group<'a> {
    tag: &'a Value,
    operations: Vec<Operation<'a>>,
}

/// The page. `style` is the address of [`STYLE`].
pub fn page(document: &Value, style: &str) -> Markup {
    let schemas = Schemas::of(document);
    let planes = PLANES.map(|plane| (plane, groups(document, plane.0)));
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { "memhost: reference" }
                link rel="stylesheet" href=(style);
            }
            body {
                a.skip href="#reference" { "Skip to the reference" }
                nav aria-label="Operations" { (contents(&planes)) }
                main id="reference" {
                    header {
                        h1 { "memhost " small { (text(&document["info"], "version")) } }
                        (prose(text(&document["info"], "description")))
                        p { a href="openapi.json" { "openapi.json" } " is the same for programs." }
                    }
                    @for ((name, title, about), groups) in &planes {
                        section id=(name) {
                            h2 { (title) }
                            p { (about) }
                            @for group in groups {
                                section id={ (name) "-" (text(group.tag, "name")) } {
                                    h3 { (text(group.tag, "name")) }
                                    (prose(text(group.tag, "description")))
                                    @for operation in &group.operations {
                                        (article(document, &schemas, operation))
                                    }
                                }
                            }
                        }
                    }
                    section id="problems" { (problems(document)) }
                    section id="types" {
                        h2 { "Types" }
                        @for (name, schema) in schemas.all() {
                            article.type id={ "type-" (name) } {
                                h4 { code { (name) } }
                                (schemas.show(schema))
                            }
                        }
                    }
                }
            }
        }
    }
}

fn text<'a>(value: &'a Value, member: &str) -> &'a str {
    value[member].as_str().unwrap_or_default()
}

fn groups<'a>(document: &'a Value, plane: &str) -> Vec<Group<'a>> {
    let tags = document["tags"].as_array().map_or(&[] as &[Value], Vec::as_slice);
    let of_tag = |tag: &'a Value| {
        let paths = document["paths"].as_object().into_iter().flatten();
        let all = paths.flat_map(|(path, item)| {
            METHODS.into_iter().map(move |method| (method, path, &item[method]))
        });
        let is_in = |json: &Value| json["x-plane"] == plane && json["tags"][0] == tag["name"];
        let operations = all.filter(|(_, _, json)| is_in(json));
        Group {
            tag,
            operations: operations
                .map(|(method, path, json)| Operation { method, path, json })
                .collect(),
        }
    };
    tags.iter().map(of_tag).filter(|group| !group.operations.is_empty()).collect()
}

fn contents(planes: &[(Plane, Vec<Group<'_>>)]) -> Markup {
    html! {
        @for ((name, title, _), groups) in planes {
            details open[*name == "runtime"] {
                summary { (title) }
                @for group in groups {
                    a.tag href={ "#" (name) "-" (text(group.tag, "name")) }
                    { (text(group.tag, "name")) }
                    ul {
                        @for operation in &group.operations {
                            li {
                                a href={ "#" (operation.id()) }
                                { (text(operation.json, "summary")) }
                            }
                        }
                    }
                }
            }
        }
        a.tag href="#problems" { "problems" }
        a.tag href="#types" { "types" }
    }
}

fn article(document: &Value, schemas: &Schemas<'_>, operation: &Operation<'_>) -> Markup {
    let json = operation.json;
    let roles: Vec<&str> =
        json["x-roles"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let parameters: Vec<&Value> = json["parameters"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|one| follow(document, one))
        .collect();
    html! {
        article id=(operation.id()) {
            h4 {
                span class={ "method " (operation.method) } { (operation.method.to_uppercase()) }
                " " code.path { (breakable(operation.path)) }
            }
            p.summary {
                (text(json, "summary")) " " a.id href={ "#" (operation.id()) } { (operation.id()) }
            }
            (prose(text(json, "description")))
            p.roles {
                @if roles.is_empty() { "Public: no token is needed." } @else {
                    "For: " (roles.join(", ").replace('_', " ")) "."
                }
            }
            @if !parameters.is_empty() {
                h5 { "Parameters" }
                dl.members {
                    @for parameter in parameters {
                        dt {
                            code { (text(parameter, "name")) }
                            " " span.kind { (text(parameter, "in")) }
                            @if parameter["required"] == true { " " span.required { "required" } }
                        }
                        dd {
                            (schemas.inline(&parameter["schema"]))
                            (prose(text(parameter, "description")))
                        }
                    }
                }
            }
            @if let Some(content) = json["requestBody"]["content"].as_object() {
                h5 { "Body" }
                @for (media, body) in content {
                    p.media {
                        code { (media) }
                        @if body["schema"].is_object() { ": " (schemas.inline(&body["schema"])) }
                    }
                    (schemas.members(&body["schema"]))
                }
            }
            h5 { "Responses" }
            dl.members {
                @for (status, answer) in json["responses"].as_object().into_iter().flatten() {
                    @let is_problem = answer["$ref"].is_string();
                    @let answer = follow(document, answer);
                    dt { code { (status) } }
                    dd {
                        @if is_problem {
                            (text(answer, "description").lines().next().unwrap_or_default())
                        } @else {
                            (prose(text(answer, "description")))
                            @for (
                                media, body
                            ) in answer["content"].as_object().into_iter().flatten() {
                                p.media {
                                    code { (media) } @if body["schema"].is_object() {
                                        ": " (schemas.inline(&body["schema"]))
                                    }
                                }
                            }
                            @let headers = answer["headers"].as_object().into_iter().flatten();
                            @let headers: Vec<&str> = headers.map(
                                |(name, _)| name.as_str()
                            ).collect();
                            @if !headers.is_empty() { p.media { "Headers: " (headers.join(", ")) } }
                        }
                    }
                }
            }
        }
    }
}

/// Every code of a problem by status: where `type` of a problem can be looked up.
fn problems(document: &Value) -> Markup {
    html! {
        h2 { "Problems" }
        p {
            "Errors are returned as " code { "application/problem+json" }
            ", whose " code { "code" }
            " is one of these."
        }
        dl.members {
            @for (_, answer) in document[
                "components"
            ]["responses"].as_object().into_iter().flatten() {
                @for code in answer["x-codes"].as_array().into_iter().flatten() {
                    dt id={ "problem-" (text(code, "code")) } {
                        code { (text(code, "code")) } " " span.kind { (code["status"]) }
                    }
                    dd { p { (text(code, "description")) " " (text(code, "advice")) } }
                }
            }
        }
    }
}

/// A path that a narrow screen may break between its parts.
fn breakable(path: &str) -> Markup {
    html! { @for part in path.split_inclusive('/') { (part) wbr; } }
}
