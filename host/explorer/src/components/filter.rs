//! Filters of lists. A list declares its filters once, as a table of [`FilterField`]s. The form,
//! the address and the browser tests all read that table.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use serde::de::value::{Error as ValueError, StrDeserializer};
use serde::de::{DeserializeOwned, IntoDeserializer};

use super::format::words;
use super::query::{QueryParams, fields};
use super::view::View;
use memhost_http::Problem;
use memhost_types::nearest;

/// A value of a select and its label.
pub(crate) type Choice = (String, String);

/// The appearance of a filter, and the values it offers.
#[derive(Clone, Copy)]
pub(crate) enum Control {
    /// Any text.
    Text,
    /// A day, in UTC.
    Day,
    /// One of these values, or any.
    Select(fn() -> Vec<Choice>),
    /// One of the company's bindings, or any.
    Binding,
    /// Always one of these values. The first one is the default.
    Required(fn() -> Vec<Choice>),
}

/// One filter of a list.
pub(crate) struct FilterField<F> {
    /// Its name in the address: the name of the API's parameter.
    pub(crate) name: &'static str,
    pub(crate) label: &'static str,
    pub(crate) control: Control,
    /// Whether the field is folded away under "More filters".
    pub(crate) is_advanced: bool,
    /// Reads a value of the address into the filter. The error says what is wrong with the value.
    pub(crate) read: fn(&mut F, &str) -> Result<(), String>,
}

/// The filter of a list, with the table of its fields.
pub(crate) trait ListFilter: Default + 'static {
    const FIELDS: &'static [FilterField<Self>];
}

/// A list without filters.
impl ListFilter for () {
    const FIELDS: &'static [FilterField<Self>] = &[];
}

/// Declares the filters of a list, one line each: the name in the address, the label, the control,
/// the reader, and the field that it writes. Filters behind `advanced` are folded away.
macro_rules! filter_fields {
    ($filter:ty {
        $($name:literal, $label:literal, $control:expr, $read:ident($($field:ident).+);)+
        $(advanced:
            $(
                $more_name:literal, $more_label:literal, $more_control:expr,
                $more_read:ident($($more_field:ident).+);
            )+
        )?
    }) => {
        impl $crate::components::ListFilter for $filter {
            const FIELDS: &'static [$crate::components::FilterField<Self>] = &[
                $($crate::components::FilterField {
                    name: $name,
                    label: $label,
                    control: $control,
                    is_advanced: false,
                    read: |filter, value| $crate::components::$read(&mut filter.$($field).+, value),
                },)+
                $($($crate::components::FilterField {
                    name: $more_name,
                    label: $more_label,
                    control: $more_control,
                    is_advanced: true,
                    read: |filter, value| $crate::components::$more_read(
                        &mut filter.$($more_field).+, value,
                    ),
                },)+)?
            ];
        }

        #[cfg(test)]
        #[test]
        fn every_filter_reads_its_own_values() {
            $crate::components::check_fields::<$filter>();
        }
    };
}
pub(crate) use filter_fields;

/// The query of a list's address: the filter and the position of the page.
pub(crate) struct ListQuery<F> {
    pub(crate) filter: F,
    pub(crate) cursor: Option<String>,
}

/// The query of a list's address, as an argument of a handler.
pub(crate) type ListParams<F> = QueryParams<ListQuery<F>>;

impl<F: ListFilter, S: Sync> FromRequestParts<S> for ListParams<F> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Problem> {
        let pairs = fields(parts.uri.query().unwrap_or_default())?;
        Ok(Self { query: read_filter(&pairs)?, pairs })
    }
}

/// Reads the names and values of an address by the table.
fn read_filter<F: ListFilter>(pairs: &[(String, String)]) -> Result<ListQuery<F>, Problem> {
    let mut query = ListQuery { filter: F::default(), cursor: None };
    for (name, value) in pairs {
        if name == "cursor" {
            query.cursor = Some(value.clone());
            continue;
        }
        let read = match F::FIELDS.iter().find(|field| field.name == name) {
            Some(field) => (field.read)(&mut query.filter, value),
            None => Err(no_filter::<F>(name)),
        };
        read.map_err(|wrong| {
            // An error about an id begins with the id's own name.
            let wrong = wrong.strip_prefix(&format!("{name} ")).unwrap_or(&wrong);
            Problem::invalid(format!("{name}: {wrong}")).at(name)
        })?;
    }
    Ok(query)
}

fn no_filter<F: ListFilter>(name: &str) -> String {
    let known: Vec<_> = F::FIELDS.iter().map(|field| field.name).collect();
    let near = nearest(name, known.iter().copied());
    let near = near.map(|near| format!("; did you mean `{near}`")).unwrap_or_default();
    let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
    format!("is not a filter of this page{near}; there are {known}")
}

/// Reads a value that JSON has as a string.
pub(crate) fn read_text<T: DeserializeOwned>(
    slot: &mut Option<T>,
    value: &str,
) -> Result<(), String> {
    let deserializer: StrDeserializer<'_, ValueError> = value.into_deserializer();
    *slot = Some(T::deserialize(deserializer).map_err(|error| error.to_string())?);
    Ok(())
}

/// Reads a number.
pub(crate) fn read_number<T: std::str::FromStr<Err: ToString>>(
    slot: &mut Option<T>,
    value: &str,
) -> Result<(), String> {
    *slot = Some(value.parse().map_err(|error: T::Err| error.to_string())?);
    Ok(())
}

/// Reads the first day of a filter: its first moment, in UTC.
pub(crate) fn read_since(slot: &mut Option<Timestamp>, value: &str) -> Result<(), String> {
    *slot = Some(start(day(value)?)?);
    Ok(())
}

/// Reads the last day of a filter: the first moment after it, in UTC.
pub(crate) fn read_until(slot: &mut Option<Timestamp>, value: &str) -> Result<(), String> {
    *slot = Some(start(day(value)?.tomorrow().map_err(|error| error.to_string())?)?);
    Ok(())
}

fn day(value: &str) -> Result<Date, String> {
    value.parse().map_err(|error: jiff::Error| error.to_string())
}

fn start(day: Date) -> Result<Timestamp, String> {
    day.to_zoned(TimeZone::UTC).map(|start| start.timestamp()).map_err(|error| error.to_string())
}

/// The choices for values whose labels are their names: `timed_out` is labelled `timed out`.
pub(crate) fn choices(names: impl IntoIterator<Item: ToString>) -> Vec<Choice> {
    let names = names.into_iter().map(|name| name.to_string());
    names.map(|name| (name.clone(), words(&name))).collect()
}

/// The kinds of hooks that the contract names.
pub(crate) fn hook_kinds() -> Vec<Choice> {
    choices([
        "pre_run_hydrate",
        "post_run_capture",
        "issue_comment_capture",
        "issue_document_capture",
        "manual_capture",
    ])
}

/// The kinds of hooks that bring something to remember.
pub(crate) fn capture_hook_kinds() -> Vec<Choice> {
    hook_kinds().into_iter().filter(|(kind, _)| kind != "pre_run_hydrate").collect()
}

/// The company's bindings, by key.
pub(crate) fn binding_choices(view: &View) -> Vec<Choice> {
    let keys = view
        .company
        .as_ref()
        .map(|company| view.service.control().binding_keys(company))
        .unwrap_or_default();
    keys.iter().map(|key| (key.to_string(), key.to_string())).collect()
}

/// Fails where a table has a name twice, or offers a value that it does not read.
#[cfg(test)]
pub(crate) fn check_fields<F: ListFilter>() {
    let mut names = std::collections::BTreeSet::new();
    for field in F::FIELDS {
        assert!(names.insert(field.name), "{} is there twice", field.name);
        let values = match field.control {
            // A name, and an id of the host's, too.
            Control::Text | Control::Binding => {
                vec![("01a208e0-0e3d-7000-8000-000000000000".to_owned(), String::new())]
            }
            Control::Day => vec![("2026-11-20".to_owned(), String::new())],
            Control::Select(choices) | Control::Required(choices) => choices(),
        };
        // The empty value of a select is never in the address.
        for (value, _) in values.iter().filter(|(value, _)| !value.is_empty()) {
            let read = (field.read)(&mut F::default(), value);
            assert!(read.is_ok(), "{}={value}: {read:?}", field.name);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Default)]
    struct Few {
        name: Option<String>,
        level: Option<u8>,
        since: Option<Timestamp>,
        until: Option<Timestamp>,
    }

    filter_fields! {
        Few {
            "name", "Name", Control::Text, read_text(name);
            "level", "Level", Control::Select(|| choices([1, 2])), read_number(level);
            advanced:
            "since", "From", Control::Day, read_since(since);
            "until", "Until", Control::Day, read_until(until);
        }
    }

    fn read(query: &str) -> Result<ListQuery<Few>, String> {
        let read = fields(query).and_then(|pairs| read_filter(&pairs));
        read.map_err(|problem| problem.detail().to_owned())
    }

    #[test]
    fn an_address_is_read_by_the_table() {
        let query = read("name=a+b&level=2&cursor=next").unwrap();
        assert_eq!((query.filter.name.as_deref(), query.filter.level), (Some("a b"), Some(2)));
        assert_eq!(query.cursor.as_deref(), Some("next"));
        assert!(read("level=high").is_err_and(|error| error.contains("level: ")));
        assert!(read("colour=red").is_err_and(
            |error| error.contains("colour: is not a filter") && error.contains("level")
        ));
        assert!(read("since=yesterday").is_err());
    }

    #[test]
    fn days_are_whole() {
        let filter = read("since=2026-11-20&until=2026-11-21").unwrap().filter;
        assert_eq!(filter.since.unwrap().to_string(), "2026-11-20T00:00:00Z");
        assert_eq!(filter.until.unwrap().to_string(), "2026-11-22T00:00:00Z");
    }
}
