//! The scope that a candidate names: `scope_type` and `scope_id` of the document.

use memhost_sdk::types::Error;
use serde_json::{Map, Value};

use crate::place::Place;

/// The type of what is one project's only.
pub(crate) const PROJECT: &str = "project";
/// The type of what is where its kind says.
const GLOBAL: &str = "global";
/// The members, as the document has them, too.
const TYPE: [&str; 2] = ["scopeType", "scope_type"];
const ID: [&str; 2] = ["scopeId", "scope_id"];

/// Takes the scope of a candidate out of its metadata, and answers whether it is bound to its
/// project. It never widens the scope of the request, and names no other one.
///
/// # Errors
/// `invalid-request` that names the member: an unknown type, or what the scope of the request does
/// not name.
pub(crate) fn is_bound(
    metadata: &mut Map<String, Value>,
    place: &Place,
    field: &str,
) -> Result<bool, Error> {
    let mut take = |names: [&'static str; 2]| {
        let found = names.map(|name| metadata.remove(name).filter(|value| !value.is_null()));
        names.into_iter().zip(found).find_map(|(name, value)| Some((name, value?)))
    };
    let (of_type, id) = (take(TYPE), take(ID));
    let wrong = |member: &str, message: String| {
        Err(Error::invalid(&format!("{field}.metadata.{member}"), message))
    };
    let is_project = match &of_type {
        None => None,
        Some((_, Value::String(name))) if name == GLOBAL => Some(false),
        Some((_, Value::String(name))) if name == PROJECT => Some(true),
        Some((member, value)) => {
            let message = format!("is {value}; `{GLOBAL}` and `{PROJECT}` are there");
            return wrong(member, message);
        }
    };
    match (is_project, id, &place.project) {
        (Some(true), None, Some(_)) => Ok(true),
        (Some(true), Some((_, Value::String(id))), Some(project)) if id == *project => Ok(true),
        (Some(true), Some((member, id)), _) => wrong(
            member,
            format!("is {id}, which is not the `projectId` of the request's scope; write it there"),
        ),
        (Some(true), None, None) => wrong(
            of_type.map_or(TYPE[0], |(member, _)| member),
            format!("is `{PROJECT}`, and the request's scope names none; give its `projectId`"),
        ),
        (_, Some((member, id)), _) => {
            let message = format!("is {id}; it goes with the type `{PROJECT}` only");
            wrong(member, message)
        }
        (_, None, _) => Ok(false),
    }
}
