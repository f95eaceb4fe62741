//! How types describe themselves in the OpenAPI document: each extractor and each answer adds the
//! parameters, bodies, problems and headers that it causes, next to its own code.
//!
//! Requests are described by how they are read and answers by how they are written: a field with a
//! default is optional in a request and always present in an answer. Names of request schemas have
//! a suffix until the document is complete; then equal schemas are merged.

use std::cell::Cell;

use aide::generate::{self, GenContext};
use aide::openapi::{
    HeaderStyle, MediaType, Operation, Parameter, ParameterData, ParameterSchemaOrContent,
    PathItem, PathStyle, QueryStyle, ReferenceOr, RequestBody, Response, SchemaObject, StatusCode,
};
use aide::transform::TransformPathItem;
use schemars::generate::{Contract, SchemaGenerator, SchemaSettings};
use schemars::{JsonSchema, Schema};
use serde_json::Value;

use super::permission::Permission;
use super::problem::ProblemCode;
use memhost_types::Role;

/// The prefix of references to schemas.
pub const SCHEMAS: &str = "#/components/schemas/";
/// The suffix of a request schema's name until the document is complete.
pub const AS_REQUEST: &str = ".request";

thread_local! {
    /// Whether routes are being built for the document. Routes that serve requests skip the
    /// descriptions.
    static WRITING: Cell<bool> = const { Cell::new(false) };
}

fn generator(contract: Contract, inline: bool) -> SchemaGenerator {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.definitions_path = SCHEMAS.into();
        settings.meta_schema = None;
        settings.contract = contract;
        settings.inline_subschemas = inline;
    });
    settings.into_generator()
}

/// Builds routes for the document, with descriptions.
pub fn documented<T>(build: impl FnOnce() -> T) -> T {
    generate::reset_context();
    generate::in_context(|ctx| ctx.schema = generator(Contract::Serialize, false));
    WRITING.set(true);
    let built = build();
    WRITING.set(false);
    generate::reset_context();
    built
}

/// Builds routes that serve requests, without descriptions.
pub fn undocumented<T>(build: impl FnOnce() -> T) -> T {
    generate::infer_responses(false);
    let built = build();
    generate::reset_context();
    built
}

fn object(json_schema: Schema) -> SchemaObject {
    SchemaObject { json_schema, example: None, external_docs: None }
}

/// Changes every string member of this name, at any depth.
pub fn each_member(value: &mut Value, name: &str, change: &mut impl FnMut(&mut Value)) {
    match value {
        Value::Object(members) => {
            for (key, member) in members {
                if key == name && member.is_string() {
                    change(member);
                } else {
                    each_member(member, name, change);
                }
            }
        }
        Value::Array(elements) => {
            elements.iter_mut().for_each(|element| each_member(element, name, change));
        }
        _ => {}
    }
}

/// The schema of a request body.
fn as_request<T: JsonSchema>(ctx: &mut GenContext) -> Schema {
    let mut generator = generator(Contract::Deserialize, false);
    let mut mark = |reference: &mut Value| {
        if let Value::String(text) = reference
            && text.starts_with(SCHEMAS)
        {
            text.push_str(AS_REQUEST);
        }
    };
    let mut schema = generator.subschema_for::<T>().to_value();
    each_member(&mut schema, "$ref", &mut mark);
    for (name, mut definition) in generator.take_definitions(true) {
        each_member(&mut definition, "$ref", &mut mark);
        ctx.schema.definitions_mut().insert(format!("{name}{AS_REQUEST}"), definition);
    }
    Schema::try_from(schema).unwrap_or_default()
}

/// The schema of a parameter. Addresses and headers cannot hold null.
fn as_parameter<T: JsonSchema>() -> Value {
    let mut schema = generator(Contract::Deserialize, true).subschema_for::<T>().to_value();
    without_null(&mut schema);
    schema
}

/// Removes null from what a value may be. An optional member is left out instead.
pub(crate) fn without_null(schema: &mut Value) {
    let Some(members) = schema.as_object_mut() else { return };
    if let Some(Value::Array(types)) = members.get_mut("type") {
        types.retain(|one| one != "null");
        if let [one] = types.as_slice() {
            let one = one.clone();
            members.insert("type".to_owned(), one);
        }
    }
    if let Some(Value::Array(values)) = members.get_mut("enum") {
        values.retain(|one| !one.is_null());
    }
    if members.get("default").is_some_and(Value::is_null) {
        members.remove("default");
    }
    if let Some(Value::Array(mut either)) = members.remove("anyOf") {
        either.retain(|one| one["type"] != "null");
        match either.as_mut_slice() {
            [Value::Object(one)] => {
                for (key, member) in std::mem::take(one) {
                    members.entry(key).or_insert(member);
                }
            }
            _ => drop(members.insert("anyOf".to_owned(), Value::Array(either))),
        }
    }
}

/// A parameter of this schema. The schema's description becomes the parameter's.
fn data(name: &str, mut schema: Value, required: bool) -> ParameterData {
    let description = schema.as_object_mut().and_then(|members| members.remove("description"));
    ParameterData {
        name: name.to_owned(),
        description: description.and_then(|text| text.as_str().map(str::to_owned)),
        required,
        deprecated: None,
        format: ParameterSchemaOrContent::Schema(object(
            Schema::try_from(schema).unwrap_or_default(),
        )),
        example: None,
        examples: Default::default(),
        explode: None,
        extensions: Default::default(),
    }
}

fn push(operation: &mut Operation, parameter: Parameter) {
    operation.parameters.push(ReferenceOr::Item(parameter));
}

/// Adds an optional request header.
pub fn header<T: JsonSchema>(operation: &mut Operation, name: &str, description: &str) {
    if !WRITING.get() {
        return;
    }
    let mut parameter_data = data(name, as_parameter::<T>(), false);
    parameter_data.description = Some(description.to_owned());
    push(operation, Parameter::Header { parameter_data, style: HeaderStyle::Simple });
}

/// Adds a parameter of the path.
pub(crate) fn path_parameter<T: JsonSchema>(operation: &mut Operation, name: &str) {
    if WRITING.get() {
        let parameter_data = data(name, as_parameter::<T>(), true);
        push(operation, Parameter::Path { parameter_data, style: PathStyle::Simple });
    }
}

/// Adds one parameter for each property of a query.
pub(crate) fn query_parameters<T: JsonSchema>(operation: &mut Operation) {
    if !WRITING.get() {
        return;
    }
    let schema = as_parameter::<T>();
    let required = |name: &str| {
        schema["required"].as_array().is_some_and(|all| all.iter().any(|one| one == name))
    };
    for (name, member) in schema["properties"].as_object().into_iter().flatten() {
        let mut member = member.clone();
        without_null(&mut member);
        let parameter_data = data(name, member, required(name));
        let style = QueryStyle::Form;
        push(
            operation,
            Parameter::Query {
                parameter_data,
                allow_reserved: false,
                style,
                allow_empty_value: None,
            },
        );
    }
}

/// Sets a JSON body.
pub(crate) fn json_body<T: JsonSchema>(ctx: &mut GenContext, operation: &mut Operation) {
    if WRITING.get() {
        let media =
            MediaType { schema: Some(object(as_request::<T>(ctx))), ..MediaType::default() };
        body(operation, "application/json", media);
    }
}

/// Sets a body of a media type.
pub(crate) fn body(operation: &mut Operation, name: &str, media: MediaType) {
    let content = std::iter::once((name.to_owned(), media)).collect();
    let body =
        RequestBody { description: None, content, required: true, extensions: Default::default() };
    operation.request_body = Some(ReferenceOr::Item(body));
}

/// Sets the roles that may do something.
pub(crate) fn roles<P: Permission>(operation: &mut Operation) {
    let may = memhost_core::roles(P::ACT).filter(|role| !P::IS_FOR_ALL || *role != Role::Agent);
    let roles: Vec<&str> = may.map(|role| role.as_str()).collect();
    operation.extensions.insert("x-roles".to_owned(), roles.into());
}

/// Adds the answers of problems, one for each status of these codes.
pub(crate) fn problems(operation: &mut Operation, codes: impl IntoIterator<Item = ProblemCode>) {
    if !WRITING.get() {
        return;
    }
    let responses = &mut operation.responses.get_or_insert_default().responses;
    for status in codes.into_iter().map(ProblemCode::status) {
        let key = StatusCode::Code(status.http().as_u16());
        responses.entry(key).or_insert_with(|| component("responses", status.component()));
    }
}

/// Adds a header to an answer: the header's name, and its name below `components.headers`.
pub(crate) fn answer_header(answer: &mut Response, name: &str, key: &str) {
    answer.headers.insert(name.to_owned(), component("headers", key));
}

fn component<T>(kind: &str, key: &str) -> ReferenceOr<T> {
    ReferenceOr::ref_(&format!("#/components/{kind}/{key}"))
}

/// The operations of a path, each with whether it only reads.
fn operations(item: &mut PathItem) -> impl Iterator<Item = (bool, &mut Operation)> {
    let writes = [&mut item.post, &mut item.put, &mut item.patch, &mut item.delete];
    let writes = writes.into_iter().flatten().map(|operation| (false, operation));
    item.get.as_mut().map(|operation| (true, operation)).into_iter().chain(writes)
}

/// The answers of an operation that are no problems.
fn answers(operation: &mut Operation) -> impl Iterator<Item = &mut Response> {
    let responses = operation.responses.as_mut().map(|responses| responses.responses.values_mut());
    responses.into_iter().flatten().filter_map(|response| match response {
        ReferenceOr::Item(answer) => Some(answer),
        ReferenceOr::Reference { .. } => None,
    })
}

/// The parts of every request and answer: the request's id, and a problem if something else fails.
pub fn every_request(mut item: TransformPathItem<'_>) -> TransformPathItem<'_> {
    for (_, operation) in operations(item.inner_mut()) {
        operation.parameters.push(component("parameters", "RequestId"));
        for answer in answers(operation) {
            if answer.description.is_empty() {
                answer.description = "As asked.".to_owned();
            }
            answer_header(answer, "x-request-id", "RequestId");
        }
        operation.responses.get_or_insert_default().default =
            Some(component("responses", "Problem"));
    }
    item
}

/// What the idempotency layer adds to writes: its header, its problems, and the mark of a repeated
/// answer.
pub fn idempotent(mut item: TransformPathItem<'_>) -> TransformPathItem<'_> {
    for (_, operation) in operations(item.inner_mut()).filter(|(is_read, _)| !is_read) {
        operation.parameters.push(component("parameters", "IdempotencyKey"));
        for answer in answers(operation) {
            answer_header(answer, "idempotency-replayed", "IdempotencyReplayed");
        }
        let codes = [
            ProblemCode::InvalidRequest,
            ProblemCode::IdempotencyKeyReused,
            ProblemCode::IdempotencyUnknown,
        ];
        problems(operation, codes);
        // Anything that writes may find the disk full, or the company's quota used up.
        problems(operation, [ProblemCode::DiskFull, ProblemCode::QuotaExceeded]);
        // The layer reads a body as a whole before it passes it on.
        if operation.request_body.is_some() {
            problems(operation, [ProblemCode::BodyTooLarge]);
        }
    }
    item
}

/// The additions of the token layer.
pub fn behind_the_token(mut item: TransformPathItem<'_>) -> TransformPathItem<'_> {
    for (_, operation) in operations(item.inner_mut()) {
        // The headers that say for whom an integration acts are checked before anything else.
        let codes = [
            ProblemCode::Unauthenticated,
            ProblemCode::Forbidden,
            ProblemCode::InvalidRequest,
            ProblemCode::Host,
        ];
        problems(operation, codes);
    }
    item
}

/// The mark of routes without a token.
pub fn without_a_token(mut item: TransformPathItem<'_>) -> TransformPathItem<'_> {
    for (_, operation) in operations(item.inner_mut()) {
        // Not the field `security`: it is left out where it is empty, and only `[]` overrides that
        // of the document.
        operation.extensions.insert("security".to_owned(), Value::Array(Vec::new()));
    }
    item
}

/// The plane of a group of routes: `runtime`, `control` or `host`.
pub fn plane(name: &'static str) -> impl FnMut(TransformPathItem<'_>) -> TransformPathItem<'_> {
    move |mut item| {
        for (_, operation) in operations(item.inner_mut()) {
            operation.extensions.insert("x-plane".to_owned(), name.into());
        }
        item
    }
}
