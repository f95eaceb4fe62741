//! The agent tools whose hooks this crate runs, and what each of them must say about itself.
//!
//! # How to add an agent tool
//!
//! A tool is declared in three places:
//!
//! 1. `src/tools/NAME.rs`: a unit struct that implements [`AgentTool`]. It holds all that is the
//!    tool's own: its name, its settings files and their format, its hook events and what each of
//!    them means, the lines of its transcripts with a table of what the tool itself writes into
//!    messages of the user, and (where they differ from the others') its
//!    payloads and its output.
//! 2. This file: one line in [`TOOLS`], and the `mod` line above it. The subcommand, its help, and
//!    the check whether a command line is a hook's follow from the list.
//! 3. `tests/agent-hooks/NAME/`: one recorded payload for each hook event (`EVENT.json`),
//!    `transcript.jsonl`, and `expected.json`, which says for each payload what the host must learn
//!    from it. The integration test `agent_hooks` finds the directory by the name.
//!    `tests/agent-hooks/README.md` explains the columns.
//!
//! Then say in `host/docs/agents.md` what a user does with it, and accept the new help text (`cargo
//! insta review`).
//!
//! A tool whose settings have a form that no other tool has needs a variant of `SettingsFormat`,
//! too: see `settings_entries.rs`.

mod claude;
mod codex;

use super::agent_tool::AgentTool;

/// Every tool. The order is that of the help.
pub(crate) const TOOLS: &[Tool] = &[&claude::Claude, &codex::Codex];

/// One of [`TOOLS`].
pub(crate) type Tool = &'static dyn AgentTool;

/// The tool of this name on the command line.
pub(crate) fn find(name: &str) -> Option<Tool> {
    TOOLS.iter().copied().find(|tool| tool.name() == name)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn every_tool_has_recorded_payloads() {
        let recorded = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/agent-hooks");
        for tool in TOOLS {
            for name in ["expected.json", "transcript.jsonl"] {
                let file = recorded.join(tool.name()).join(name);
                assert!(
                    file.exists(),
                    "{} is missing: see the recipe at the head of tools.rs",
                    file.display()
                );
            }
        }
    }

    #[test]
    fn no_two_tools_have_one_name_and_none_has_that_of_another_command() {
        for (index, tool) in TOOLS.iter().enumerate() {
            assert!(
                TOOLS[..index].iter().all(|other| other.name() != tool.name()),
                "{}",
                tool.name()
            );
            assert!(!["spool", "help"].contains(&tool.name()));
            assert_eq!(find(tool.name()).unwrap().title(), tool.title());
        }
        assert!(find("claudette").is_none());
    }
}
