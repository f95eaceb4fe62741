//! How ids, digests, origins and amounts are written, as JSON Schema: what their parsers take, so
//! that a client can check before it sends. Lengths are counted in characters there; the parsers
//! count bytes where `limits` says so.

use schemars::{JsonSchema, Schema};
use serde_json::{Value, json};

use super::limits;

/// Unicode's control characters, which no id and no reference may hold.
const CONTROL: &str = r"\u0000-\u001f\u007f-\u009f";
/// Unicode's white space without control characters: no id begins or ends with it.
const SPACE: &str = r" \u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000";

fn set(schema: &mut Schema, members: Value) {
    if let Value::Object(members) = members {
        schema.ensure_object().extend(members);
    }
}

/// As `check_outside_id` takes it: 1 to 128 bytes, no separators, control characters or outer
/// spaces, not `.` or `..`.
pub fn outside_id(schema: &mut Schema) {
    let inner = format!(r"/\\{CONTROL}");
    let edge = format!("{inner}{SPACE}");
    set(
        schema,
        json!({
            "minLength": 1,
            "maxLength": limits::MAX_OUTSIDE_ID_BYTES,
            "pattern": format!("^[^{edge}]([^{inner}]*[^{edge}])?$"),
            "not": { "enum": [".", ".."] },
        }),
    );
}

/// As `check_key` takes it.
pub fn key(schema: &mut Schema) {
    set(schema, json!({ "minLength": 1, "maxLength": 64, "pattern": "^[a-z0-9][a-z0-9._-]*$" }));
}

/// As `check_record_id` takes it, and a document's key or an external reference, which may be paths
/// or addresses.
pub fn record_id(schema: &mut Schema) {
    let pattern = format!("^[^{CONTROL}]+$");
    set(
        schema,
        json!({ "minLength": 1, "maxLength": limits::MAX_RECORD_ID_BYTES, "pattern": pattern }),
    );
}

macro_rules! texts {
    ($($(#[$doc:meta])* $name:ident = $transform:ident),+ $(,)?) => {$(
        $(#[$doc])*
        #[derive(JsonSchema)]
        #[schemars(transform = $transform)]
        #[expect(dead_code, reason = "it describes a field that is a plain text to us")]
        pub struct $name(String);
    )+};
}

texts! {
    /// An id that Paperclip or another embedder gives out: 1 to 128 bytes, no `/`, `\\`, control
    /// characters or outer spaces, not `.` or `..`.
    OutsideId = outside_id,
    /// 1 to 512 bytes without control characters, such as a path, an address or a name.
    Reference = record_id,
}

/// The id of an operation.
pub fn uuid_v7(schema: &mut Schema) {
    let pattern =
        "^[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-7[0-9A-Fa-f]{3}-[89ABab][0-9A-Fa-f]{3}-[0-9A-Fa-f]{12}$";
    set(schema, json!({ "format": "uuid", "pattern": pattern }));
}

/// The digest of a build.
pub fn digest(schema: &mut Schema) {
    set(schema, json!({ "pattern": "^sha256:[0-9A-Fa-f]{64}$" }));
}

/// Cents with six decimals, from 0 to 9 billion.
pub fn cents(schema: &mut Schema) {
    set(schema, json!({ "minimum": 0, "maximum": 9_000_000_000_u64 }));
}

/// Where HTTP may go.
pub fn origin(schema: &mut Schema) {
    let examples = ["https://api.example.com", "http://10.0.0.5:8080", "https://*.example.com"];
    set(
        schema,
        json!({
            "pattern": r"^[Hh][Tt][Tt][Pp][Ss]?://[^\s/?#@]+/?$", "maxLength": 270,
            "examples": examples,
        }),
    );
}

/// A range of versions in Cargo's grammar.
pub fn version_range(schema: &mut Schema) {
    set(
        schema,
        json!({ "maxLength": limits::MAX_RECORD_ID_BYTES, "examples": ["*", "^1.2", ">=1, <3"] }),
    );
}

/// A range of addresses.
pub fn ip_ranges(schema: &mut Schema) {
    let one = json!({
        "type": "string", "pattern": r"^[0-9A-Fa-f:.]+/\d{1,3}$",
        "examples": ["10.0.0.0/8", "fd00::/8"],
    });
    set(schema, json!({ "type": "array", "items": one, "maxItems": limits::MAX_FEW }));
}

/// A share.
pub fn share(schema: &mut Schema) {
    set(schema, json!({ "minimum": 0, "maximum": 1 }));
}

/// A cursor as `CursorKey::seal` makes it.
pub fn cursor(schema: &mut Schema) {
    let pattern = "^[A-Za-z0-9_-]+$";
    set(
        schema,
        json!({ "minLength": 1, "maxLength": limits::MAX_CURSOR_BYTES, "pattern": pattern }),
    );
}

/// Free-form JSON. The limits are in bytes of its compact form and in levels, for which JSON Schema
/// has no words.
pub fn free_json(schema: &mut Schema) {
    set(
        schema,
        json!({ "x-max-bytes": limits::MAX_JSON_BYTES, "x-max-depth": limits::MAX_JSON_DEPTH }),
    );
}

/// The free-form JSON of an event.
pub fn event_details(schema: &mut Schema) {
    set(
        schema,
        json!({
            "x-max-bytes": limits::MAX_EVENT_DETAILS_BYTES, "x-max-depth": limits::MAX_JSON_DEPTH,
        }),
    );
}

/// A media type, such as `text/markdown`.
pub fn media_type(schema: &mut Schema) {
    set(schema, json!({ "minLength": 1, "maxLength": limits::MAX_OUTSIDE_ID_BYTES }));
}

/// Shares by kind, at most 64.
pub fn thresholds(schema: &mut Schema) {
    few(schema);
    set(schema, json!({ "propertyNames": { "maxLength": limits::MAX_OUTSIDE_ID_BYTES } }));
}

/// A method of HTTP.
pub fn methods(schema: &mut Schema) {
    few(schema);
    set(
        schema,
        json!({ "items": { "type": "string", "pattern": "^[A-Z]{1,64}$", "maxLength": 64 } }),
    );
}

/// Names of secrets.
pub fn secret_names(schema: &mut Schema) {
    few(schema);
    set(
        schema,
        json!({
            "items": { "type": "string", "pattern": "^[A-Za-z0-9_-]{1,64}$", "maxLength": 64 },
        }),
    );
}

/// A list or a map of at most 64 entries.
pub fn few(schema: &mut Schema) {
    let word = if schema.get("type").is_some_and(|kind| kind == "object") {
        "maxProperties"
    } else {
        "maxItems"
    };
    set(schema, json!({ word: limits::MAX_FEW }));
}

/// Marks a field that only answers have.
pub fn read_only(schema: &mut Schema) {
    set(schema, json!({ "readOnly": true }));
}

/// The kinds of hooks that the plan names. Others are carried by name.
pub fn hook_kind(schema: &mut Schema) {
    let known = [
        "pre_run_hydrate",
        "post_run_capture",
        "issue_comment_capture",
        "issue_document_capture",
        "manual_capture",
    ];
    set(schema, json!({ "examples": known }));
}

/// How many elements one page may have.
pub fn page_size(schema: &mut Schema) {
    set(
        schema,
        json!({ "minimum": 1, "maximum": limits::MAX_PAGE, "default": limits::DEFAULT_LIMIT }),
    );
}

/// How many records a query may return.
pub fn top_k(schema: &mut Schema) {
    set(
        schema,
        json!({ "minimum": 1, "maximum": limits::MAX_PAGE, "default": limits::DEFAULT_TOP_K }),
    );
}

/// How many records, ids or handles one call may have.
pub fn items(schema: &mut Schema) {
    set(schema, json!({ "minItems": 1, "maxItems": limits::MAX_ITEMS }));
}
