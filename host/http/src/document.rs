//! What extractors and answers say of themselves in the OpenAPI document.
//!
//! A request is described as it is read and an answer as it is written: a field with a default may be left out of the
//! one and is always in the other. Schemas of requests are kept apart by the end of their name until the document is
//! finished; then those that are the same become one.

use std::cell::Cell;

use aide::OperationInput;
use aide::generate::{self, GenContext};
use aide::openapi::{
    HeaderStyle, MediaType, Operation, Parameter, ParameterData, ParameterSchemaOrContent, PathStyle, QueryStyle,
    ReferenceOr, RequestBody, SchemaObject,
};
use schemars::generate::{Contract, SchemaGenerator, SchemaSettings};
use schemars::{JsonSchema, Schema};
use serde_json::Value;

use super::allowed::{Authenticated, Authorized, Doing, Host};
use super::answer::JsonLines;
use super::extract::{Body, Company, Lines, Query};
use super::part::{Part, PathParam};
use memhost_core::Act;
use memhost_types::CompanyId;

/// Where schemas are.
pub const SCHEMAS: &str = "#/components/schemas/";
/// The end of a request's schema's name, until the document is finished.
pub const AS_REQUEST: &str = ".request";

thread_local! {
    /// Whether what is built now is for the document. A host that serves asks nobody to describe itself.
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

/// Builds routes for the document: whatever is in them describes itself.
pub fn documented<T>(build: impl FnOnce() -> T) -> T {
    generate::reset_context();
    generate::in_context(|ctx| ctx.schema = generator(Contract::Serialize, false));
    WRITING.set(true);
    let built = build();
    WRITING.set(false);
    generate::reset_context();
    built
}

/// Builds routes to serve them.
pub fn undocumented<T>(build: impl FnOnce() -> T) -> T {
    generate::infer_responses(false);
    let built = build();
    generate::reset_context();
    built
}

fn object(json_schema: Schema) -> SchemaObject {
    SchemaObject { json_schema, example: None, external_docs: None }
}

/// Does something with every member of this name, at any depth.
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
        Value::Array(elements) => elements.iter_mut().for_each(|element| each_member(element, name, change)),
        _ => {}
    }
}

/// The schema of something that is read.
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

/// The schema of a parameter: an address and a header hold no null.
fn as_parameter<T: JsonSchema>() -> Value {
    let mut schema = generator(Contract::Deserialize, true).subschema_for::<T>().to_value();
    without_null(&mut schema);
    schema
}

fn without_null(schema: &mut Value) {
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

/// A parameter of this schema, whose description becomes the parameter's.
fn data(name: &str, mut schema: Value, required: bool) -> ParameterData {
    let description = schema.as_object_mut().and_then(|members| members.remove("description"));
    ParameterData {
        name: name.to_owned(),
        description: description.and_then(|text| text.as_str().map(str::to_owned)),
        required,
        deprecated: None,
        format: ParameterSchemaOrContent::Schema(object(Schema::try_from(schema).unwrap_or_default())),
        example: None,
        examples: Default::default(),
        explode: None,
        extensions: Default::default(),
    }
}

fn push(operation: &mut Operation, parameter: Parameter) {
    operation.parameters.push(ReferenceOr::Item(parameter));
}

/// Describes a header that a request may have.
pub fn header<T: JsonSchema>(operation: &mut Operation, name: &str, description: &str) {
    if !WRITING.get() {
        return;
    }
    let mut parameter_data = data(name, as_parameter::<T>(), false);
    parameter_data.description = Some(description.to_owned());
    push(operation, Parameter::Header { parameter_data, style: HeaderStyle::Simple });
}

fn in_path<T: JsonSchema>(operation: &mut Operation, name: &str) {
    if WRITING.get() {
        let parameter_data = data(name, as_parameter::<T>(), true);
        push(operation, Parameter::Path { parameter_data, style: PathStyle::Simple });
    }
}

/// Says which roles may do something.
pub fn for_whom(operation: &mut Operation, act: Act) {
    let roles: Vec<&str> = act.roles().map(|role| role.as_str()).collect();
    operation.extensions.insert("x-roles".to_owned(), roles.into());
}

impl<T: JsonSchema> OperationInput for Body<T> {
    fn operation_input(ctx: &mut GenContext, operation: &mut Operation) {
        if !WRITING.get() {
            return;
        }
        let media = MediaType { schema: Some(object(as_request::<T>(ctx))), ..MediaType::default() };
        let content = std::iter::once(("application/json".to_owned(), media)).collect();
        let body = RequestBody { description: None, content, required: true, extensions: Default::default() };
        operation.request_body = Some(ReferenceOr::Item(body));
    }
}

impl<T: JsonSchema> OperationInput for Query<T> {
    fn operation_input(_: &mut GenContext, operation: &mut Operation) {
        if !WRITING.get() {
            return;
        }
        let schema = as_parameter::<T>();
        let required = |name: &str| schema["required"].as_array().is_some_and(|all| all.iter().any(|one| one == name));
        for (name, member) in schema["properties"].as_object().into_iter().flatten() {
            let mut member = member.clone();
            without_null(&mut member);
            let parameter_data = data(name, member, required(name));
            let style = QueryStyle::Form;
            push(operation, Parameter::Query { parameter_data, allow_reserved: false, style, allow_empty_value: None });
        }
    }
}

impl OperationInput for Authenticated {}

impl OperationInput for Lines {
    fn operation_input(ctx: &mut GenContext, operation: &mut Operation) {
        JsonLines::operation_input(ctx, operation);
    }
}

impl OperationInput for Company {
    fn operation_input(_: &mut GenContext, operation: &mut Operation) {
        in_path::<CompanyId>(operation, "company");
    }
}

impl<T: Part> OperationInput for PathParam<T> {
    fn operation_input(_: &mut GenContext, operation: &mut Operation) {
        in_path::<T>(operation, T::NAME);
    }
}

impl<D: Doing> OperationInput for Authorized<D> {
    fn operation_input(ctx: &mut GenContext, operation: &mut Operation) {
        Company::operation_input(ctx, operation);
        for_whom(operation, D::ACT);
    }
}

impl<D: Doing> OperationInput for Host<D> {
    fn operation_input(_: &mut GenContext, operation: &mut Operation) {
        for_whom(operation, D::ACT);
    }
}
