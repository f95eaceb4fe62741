//! Our entries in the settings of a tool: what they look like, and how they are told from the
//! entries of others.
//!
//! Each form has a file. A new one needs a variant of [`SettingsFormat`], a file beside the two,
//! and one line in each of the two functions here.

mod command_line;
mod hooks_json;
mod json_edit;
mod notify_toml;

use self::command_line::shell_line;

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

    /// Whether one of our entries in these settings has a flag.
    pub(crate) fn have(self, settings: &str, flag: &str) -> bool {
        match self.format {
            SettingsFormat::HooksJson => hooks_json::have(settings, self.tool, flag),
            SettingsFormat::NotifyToml => false,
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
