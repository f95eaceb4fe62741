//! Values of arguments: text that may come from a file or standard input, JSON, and the names of
//! choices.

use std::io::{IsTerminal as _, Read};
use std::path::Path;

use clap::ValueEnum;
use clap::builder::PossibleValuesParser;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::{CliError, Result};
use memhost_types::{DigestError, IpNet, JsonObject, VersionChoice, nearest, repair_surrogates};

/// The text itself, or standard input where the text is `-`.
pub(super) fn text(text: &str) -> Result<String> {
    if text == "-" { input(None) } else { Ok(text.to_owned()) }
}

/// The content of a file, or of standard input if no file is given or the file is `-`.
pub(super) fn input(file: Option<&Path>) -> Result<String> {
    let Some(file) = file.filter(|file| *file != Path::new("-")) else {
        let mut read = String::new();
        std::io::stdin()
            .read_to_string(&mut read)
            .map_err(|error| CliError::input("standard input", error))?;
        return Ok(read);
    };
    std::fs::read_to_string(file).map_err(|error| CliError::file(file, &error))
}

/// Refuses an output file that exists, or whose directory does not; `flag` names it.
pub(super) fn new_file(flag: &str, file: &Path) -> Result<()> {
    if file.exists() {
        return Err(CliError::input(flag, format!("{} exists; give another file", file.display())));
    }
    match file.parent().filter(|parent| !parent.as_os_str().is_empty() && !parent.is_dir()) {
        Some(parent) => {
            let message = format!(
                "the directory {} is not there; make it, or give another file",
                parent.display()
            );
            Err(CliError::input(flag, message))
        }
        None => Ok(()),
    }
}

/// Asks on a terminal. Elsewhere nobody can answer.
pub(super) fn confirm(yes: bool, question: &str) -> Result<()> {
    if yes {
        return Ok(());
    }
    if !std::io::stdin().is_terminal() {
        return Err(CliError::input(
            "--yes",
            format!("is missing, and there is no terminal to ask on. {question}"),
        ));
    }
    eprint!("{question} [y/N] ");
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer)?;
    match answer.trim().to_ascii_lowercase().as_str() {
        "y" | "yes" => Ok(()),
        _ => Err(CliError::Failed("nothing was changed".to_owned())),
    }
}

/// The error of an update that names nothing to change; `flags` can.
pub(super) fn nothing_to_change(flags: &str) -> CliError {
    CliError::input("nothing was given to change", format!("give one or more of {flags}"))
}

/// Reads JSON; `what` names the argument or the file in errors.
pub(super) fn json<T: DeserializeOwned>(what: &str, text: &str) -> Result<T> {
    serde_json::from_slice(&repair_surrogates(text.as_bytes()))
        .map_err(|error| CliError::input(what, format!("is no valid JSON: {error}")))
}

/// Reads a JSON object, if one is given, or the one in the file after `@`; `argument` names it in
/// errors.
pub(super) fn object(argument: &str, text: Option<&str>) -> Result<Option<JsonObject>> {
    let file =
        text.and_then(|text| text.strip_prefix('@')).map(|file| input(Some(Path::new(file))));
    let file = file.transpose()?;
    let text = file.as_deref().or(text);
    let wrong = |found: &str| {
        CliError::input(
            argument,
            format!("is {found}; a JSON object is needed, such as '{{\"team\":\"red\"}}'"),
        )
    };
    let read = text.map(|text| match serde_json::from_slice(&repair_surrogates(text.as_bytes())) {
        Ok(Value::Object(members)) => Ok(members),
        Ok(Value::Array(_)) => Err(wrong("a JSON list")),
        Ok(Value::Null) => Err(wrong("null")),
        Ok(_) => Err(wrong("a single JSON value")),
        Err(error) => Err(wrong(&format!("no valid JSON ({error})"))),
    });
    read.transpose()
}

/// A choice between the names of an enumeration. A wrong one is told the nearest.
pub(super) fn one_of<T: Copy>(
    all: &'static [T],
    name: fn(T) -> &'static str,
) -> PossibleValuesParser {
    PossibleValuesParser::new(all.iter().map(|value| name(*value)))
}

/// The end of a message about a word that is not known: the nearest known one.
pub(super) fn did_you_mean<'a>(given: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    nearest(given, known).map(|near| format!("; did you mean `{near}`?")).unwrap_or_default()
}

/// A moment.
pub(super) fn time(text: &str) -> Result<String, String> {
    match text.parse::<jiff::Timestamp>() {
        Ok(_) => Ok(text.to_owned()),
        Err(_) => Err("is no time; write it like 2026-11-20T10:00:00Z".to_owned()),
    }
}

/// A day.
pub(super) fn day(text: &str) -> Result<String, String> {
    match text.parse::<jiff::civil::Date>() {
        Ok(_) => Ok(text.to_owned()),
        Err(_) => Err("is no day; write it like 2026-11-20".to_owned()),
    }
}

/// A range of addresses.
pub(super) fn addresses(text: &str) -> Result<IpNet, String> {
    text.parse()
        .map_err(|_| "is no range of addresses; write it like 10.0.0.0/8 or fd00::/8".to_owned())
}

/// A number of bytes: a whole number, alone or with a unit.
pub(super) fn bytes(text: &str) -> Result<u64, String> {
    const WRONG: &str = "is no size; write a whole number of bytes, or one with a unit, such as \
                         64MiB, 1GiB or 10MB";
    let unit = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(unit);
    let factor: u64 = match unit.trim().to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "kb" => 1_000,
        "mb" => 1_000_000,
        "gb" => 1_000_000_000,
        "k" | "kib" => 1 << 10,
        "m" | "mib" => 1 << 20,
        "g" | "gib" => 1 << 30,
        _ => return Err(WRONG.to_owned()),
    };
    let number: u64 = number.parse().map_err(|_| WRONG.to_owned())?;
    number.checked_mul(factor).ok_or_else(|| "is too large".to_owned())
}

/// A range of versions or the digest of a build, in the host's form. A version alone could mean
/// this one only, or all that are compatible.
pub(super) fn versions(text: &str) -> Result<VersionChoice, String> {
    if text.starts_with("sha256:") {
        return text
            .parse()
            .map(VersionChoice::Pin)
            .map_err(|error: DigestError| error.to_string());
    }
    let is_bare = text.split(',').map(str::trim).any(|part| {
        let numbers: Vec<_> = part.split('.').collect();
        numbers.len() == 3 && part.starts_with(|c: char| c.is_ascii_digit()) && !part.contains('*')
    });
    if is_bare {
        return Err(format!(
            "could mean two things: write `={text}` for this version only, `^{text}` for it and \
             all compatible ones"
        ));
    }
    VersionChoice::follow(text)
        .ok_or("is no range of versions; write it like ^1.2, =1.2.3 or '>=1, <3'".to_owned())
}

/// A duration in seconds: whole numbers with `s`, `m`, `h` or `d`.
pub(super) fn duration(text: &str) -> Result<u32, String> {
    const WRONG: &str =
        "is no duration; write a whole number and a unit, such as 90s, 30m, 12h or 7d";
    let unit = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(unit);
    let seconds: u32 = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 3_600,
        "d" => 24 * 3_600,
        _ => return Err(WRONG.to_owned()),
    };
    let number: u32 = number.parse().map_err(|_| WRONG.to_owned())?;
    number.checked_mul(seconds).ok_or_else(|| "is too long; at most 49710d fit".to_owned())
}

/// The value without its null members.
pub(super) fn without_nulls(value: Value) -> Value {
    match value {
        Value::Object(members) => Value::Object(
            members.into_iter().filter(|(_, value)| !value.is_null()).collect::<Map<_, _>>(),
        ),
        other => other,
    }
}

/// The name of a choice, as on the command line.
pub(super) fn name(choice: &impl ValueEnum) -> String {
    choice.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
}
