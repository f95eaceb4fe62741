//! Command lines, by which our entries are told from those of others.

/// Whether a command line calls `memhost agent-hooks TOOL`, wherever the program is. A line in
/// which other words come first belongs to somebody else.
pub(super) fn is_ours(command: &str, tool: &str) -> bool {
    let marker = format!(" agent-hooks {tool}");
    let Some((program, rest)) = command.split_once(&marker) else { return false };
    let program = program.trim_end_matches(['\'', '"']);
    let name = program.rsplit('/').next().unwrap_or_default().trim_start_matches(['\'', '"']);
    name.starts_with("memhost") && !name.contains(' ') && (rest.is_empty() || rest.starts_with(' '))
}

/// Words as one command line for a shell.
pub(super) fn shell_line<S: AsRef<str>>(words: &[S]) -> String {
    let quoted = |word: &S| {
        let word = word.as_ref();
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-:@%+=,".contains(c);
        if !word.is_empty() && word.chars().all(is_plain) {
            word.to_owned()
        } else {
            format!("'{}'", word.replace('\'', r"'\''"))
        }
    };
    words.iter().map(quoted).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_our_own_commands_are_ours() {
        for (line, is) in [
            ("memhost agent-hooks claude", true),
            ("'/opt/my tools/memhost' agent-hooks claude --company x", true),
            ("/x/memhost-0.2 agent-hooks claude", true),
            ("memhost agent-hooks codex", false),
            ("memhost agent-hooks claudette", false),
            ("my-memhost-wrapper x agent-hooks claude", false),
            ("echo memhost agent-hooks claude", false),
            ("prettier --write", false),
        ] {
            assert_eq!(is_ours(line, "claude"), is, "{line}");
        }
    }

    #[test]
    fn words_reach_the_shell_as_they_are() {
        assert_eq!(shell_line(&["memhost", "--url", "http://a:1"]), "memhost --url http://a:1");
        assert_eq!(shell_line(&["a b", "", "it's"]), r"'a b' '' 'it'\''s'");
    }
}
