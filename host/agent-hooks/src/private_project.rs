//! Projects in which nothing of what is said is captured, whichever installation's hook runs: a
//! tool runs the hooks of the user's settings and of the project's, and the stricter ones count.

use std::io::Read;
use std::path::Path;

use super::agent_tool::{InstallScope, Place};
use super::settings::env_path;
use super::settings_entries::Entries;
use super::state::open_regular;
use super::tools::Tool;

/// The longest settings that are read, in bytes.
const MAX_SETTINGS: u64 = 1 << 20;
/// How far above the working directory a project's settings are looked for.
const MAX_DEPTH: usize = 32;

/// Whether our hooks in the settings of the project have `--no-capture`. The settings of the user,
/// in the home directory, are not a project's.
pub(super) fn is_private(tool: Tool, directory: &Path) -> bool {
    let home = env_path("HOME");
    let above = directory.ancestors().take(MAX_DEPTH);
    above.take_while(|here| home.as_deref() != Some(here)).any(|here| {
        [InstallScope::Project, InstallScope::Local].into_iter().any(|scope| {
            let place = Place { scope, notify: false, here: here.to_owned() };
            let file = tool.settings_file(&place).ok();
            file.is_some_and(|file| {
                let entries = Entries { format: file.format, tool: tool.name() };
                read(&file.path).is_some_and(|text| entries.have(&text, "--no-capture"))
            })
        })
    })
}

fn read(path: &Path) -> Option<String> {
    let mut text = String::new();
    open_regular(path).ok()?.take(MAX_SETTINGS).read_to_string(&mut text).ok()?;
    Some(text)
}
