//! `notify` of a TOML file, as Codex has it: one program with its arguments. Comments and order
//! stay.

use toml_edit::DocumentMut;

use super::command_line::{is_ours, shell_line};

/// The settings with our program.
pub(super) fn add(settings: &str, tool: &str, command: &[String]) -> Result<String, String> {
    let mut document = parse(settings)?;
    if is_our_program(&document, tool) == Some(false) {
        return Err(
            "names another program for `notify`, and there can be only one; install without \
             --notify"
                .to_owned(),
        );
    }
    let words: toml_edit::Array = command.iter().map(String::as_str).collect();
    let is_same = document
        .get("notify")
        .is_some_and(|found| found.to_string().trim() == words.to_string().trim());
    if is_same {
        return Ok(settings.to_owned());
    }
    document["notify"] = toml_edit::value(words);
    Ok(document.to_string())
}

/// The settings without our program.
pub(super) fn remove(settings: &str, tool: &str) -> Result<String, String> {
    let mut document = parse(settings)?;
    if is_our_program(&document, tool) != Some(true) {
        return Ok(settings.to_owned());
    }
    document.remove("notify");
    Ok(document.to_string())
}

fn parse(settings: &str) -> Result<DocumentMut, String> {
    settings.parse().map_err(|error: toml_edit::TomlError| format!("is not TOML: {error}"))
}

/// Nothing where no program is named.
fn is_our_program(document: &DocumentMut, tool: &str) -> Option<bool> {
    let words = document.get("notify")?.as_array();
    let words: Vec<&str> =
        words.into_iter().flatten().filter_map(toml_edit::Value::as_str).collect();
    Some(is_ours(&shell_line(&words), tool))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_added_beside_comments_and_removed_again() {
        let before = "# mine\nmodel = \"o3\" # fast\n\n[tools]\nweb = true\n";
        let ours = ["/bin/memhost", "agent-hooks", "codex", "notify"].map(str::to_owned);
        let after = add(before, "codex", &ours).unwrap();
        assert!(
            after.contains("# fast") && after.contains("notify = [\"/bin/memhost\""),
            "{after}"
        );
        assert!(parse(&after).unwrap()["notify"].is_array());
        assert_eq!(add(&after, "codex", &ours).unwrap(), after);
        assert_eq!(remove(&after, "codex").unwrap(), before);
        assert!(
            add("notify = [\"terminal-notifier\"]", "codex", &ours)
                .unwrap_err()
                .contains("another program")
        );
        assert_eq!(remove("notify = [\"x\"]", "codex").unwrap(), "notify = [\"x\"]");
    }
}
