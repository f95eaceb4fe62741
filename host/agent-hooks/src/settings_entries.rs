//! Our entries in the settings of a tool: what they look like, and how they are told from the
//! entries of others.
//!
//! Each form has a file. A new one needs a variant of [`SettingsFormat`], a file beside the two,
//! and one line in each of the two functions here.

mod hooks_json;
mod json_edit;
mod notify_toml;

/// The form of our entries in a settings file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SettingsFormat {
    /// Under `hooks` of a JSON file: for each event a list of groups, each with a list of commands.
    HooksJson,
    /// `notify` of a TOML file: one program with its arguments.
    NotifyToml,
}

/// The entries of one tool in one form.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Entries<'a> {
    pub(crate) format: SettingsFormat,
    /// The tool's name on the command line.
    pub(crate) tool: &'a str,
}

impl Entries<'_> {
    /// The settings with our entries for these events. Settings that have them already are returned
    /// unchanged, and older entries of ours are replaced.
    ///
    /// # Errors
    /// Why the settings cannot be changed, for the person who wrote them.
    pub(crate) fn add(
        self,
        settings: &str,
        events: &[&str],
        command: &[String],
    ) -> Result<String, String> {
        match self.format {
            SettingsFormat::HooksJson => {
                hooks_json::add(settings, self.tool, events, &shell_line(command))
            }
            SettingsFormat::NotifyToml => notify_toml::add(settings, self.tool, command),
        }
    }

    /// The settings without our entries, and without lists and objects that are empty for want of
    /// them.
    ///
    /// # Errors
    /// As for [`Self::add`].
    pub(crate) fn remove(self, settings: &str) -> Result<String, String> {
        match self.format {
            SettingsFormat::HooksJson => hooks_json::remove(settings, self.tool),
            SettingsFormat::NotifyToml => notify_toml::remove(settings, self.tool),
        }
    }
}

/// Whether a command line calls `memhost agent-hooks TOOL`, wherever the program is. A line in
/// which other words come first belongs to somebody else.
fn is_ours(command: &str, tool: &str) -> bool {
    let marker = format!(" agent-hooks {tool}");
    let Some((program, rest)) = command.split_once(&marker) else { return false };
    let program = program.trim_end_matches(['\'', '"']);
    let name = program.rsplit('/').next().unwrap_or_default().trim_start_matches(['\'', '"']);
    name.starts_with("memhost") && !name.contains(' ') && (rest.is_empty() || rest.starts_with(' '))
}

/// Words as one command line for a shell.
fn shell_line<S: AsRef<str>>(words: &[S]) -> String {
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
