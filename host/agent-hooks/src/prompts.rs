//! What people asked, noted when they asked it: when the answer is there, the question may be far
//! back in the transcript, and the next question may be in it already.
//!
//! A note is a file of its own, so that two hooks of one event write the same one and none waits
//! for another. Notes are removed after a day.

use std::fs;
use std::io::{Read, Write};
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};

use super::json;
use super::state::{State, open_private, open_regular, remove_older, short_hash};

/// The directory of the notes.
const DIRECTORY: &str = "prompts";
/// A turn that began longer ago has no end that will be reported.
const MAX_AGE: Duration = Duration::from_secs(24 * 3600);
/// How much of a prompt is noted, in bytes. More than this is never captured.
pub(super) const MAX_PROMPT: usize = 4 << 10;
/// The longest file that is read, in bytes. A byte of a prompt can take six in JSON.
const MAX_FILE: u64 = 64 << 10;

/// What a person asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Prompt {
    /// The tool's id of the turn, if it has one.
    pub(super) turn: Option<String>,
    /// The person's words. `None`: the tool itself asked.
    pub(super) words: Option<String>,
}

/// The notes of one session.
#[derive(Debug)]
pub(super) struct Prompts<'a> {
    state: &'a State,
    /// What the names of its files begin with.
    session: String,
}

/// A note with its file, oldest first.
type Noted = Vec<(PathBuf, Prompt)>;

impl<'a> Prompts<'a> {
    pub(super) fn of(state: &'a State, tool: &str, session: &str) -> Self {
        Self { state, session: short_hash(&[tool, session]) }
    }

    /// Notes a prompt. `moment` tells two equal prompts of a session apart.
    pub(super) fn note(&self, prompt: &Prompt, moment: &str) -> std::io::Result<()> {
        let directory = self.state.directory(DIRECTORY)?;
        let words = prompt.words.as_deref().unwrap_or_default();
        // Within a turn of a known id a prompt is what it says, whenever its hook runs.
        let moment = if prompt.turn.is_some() { "" } else { moment };
        let which = short_hash(&[prompt.turn.as_deref().unwrap_or_default(), words, moment]);
        let name = format!("{}-{which}.json", self.session);
        if directory.join(&name).exists() {
            return Ok(());
        }
        let unfinished = directory.join(format!(".{name}.{}", std::process::id()));
        let written = open_private(&unfinished, true)
            .and_then(|mut file| file.write_all(&serde_json::to_vec(prompt)?));
        written.and_then(|()| fs::rename(&unfinished, directory.join(name)))
    }

    /// What was asked in a turn: all of it, if the person added something meanwhile. `None`: there
    /// is no note of the turn.
    pub(super) fn of_turn(&self, turn: &str) -> Option<Option<String>> {
        let noted =
            self.all().into_iter().filter(|(_, prompt)| prompt.turn.as_deref() == Some(turn));
        let words: Vec<Option<String>> = noted.map(|(_, prompt)| prompt.words).collect();
        if words.is_empty() {
            return None;
        }
        let words: Vec<String> = words.into_iter().flatten().collect();
        Some((!words.is_empty()).then(|| words.join("\n")))
    }

    /// The turn in which somebody said this last.
    pub(super) fn turn_of(&self, words: &str) -> Option<String> {
        let mut noted = self.all();
        noted.retain(|(_, prompt)| prompt.words.as_deref() == Some(words));
        noted.pop()?.1.turn
    }

    /// Whether all that was asked in a turn has another answer already. Claude Code answers the
    /// output of a shell command in the turn of the prompt before it.
    pub(super) fn has_another_answer(&self, turn: &str, answer: &str) -> bool {
        let mut noted = self.all();
        noted.retain(|(_, prompt)| prompt.turn.as_deref() == Some(turn));
        let own = hash_of(answer);
        let is_other = |path| fs::read_to_string(mark_of(path)).is_ok_and(|mark| mark != own);
        !noted.is_empty() && noted.iter().all(|(path, _)| is_other(path))
    }

    /// Whether something was asked in a turn, and no hook told the answer.
    pub(super) fn waits_for_answer(&self, turn: &str) -> bool {
        let mut noted = self.all();
        noted.retain(|(_, prompt)| prompt.turn.as_deref() == Some(turn));
        !noted.is_empty() && noted.iter().all(|(path, _)| !mark_of(path).exists())
    }

    /// What was asked last, if no other question waits for its answer. `None`: nothing was noted,
    /// or it can be one of several, or the question has another answer.
    pub(super) fn only(&self, answer: &str) -> Option<Option<String>> {
        let mut all = self.all();
        let answered = all.iter().rposition(|(path, _)| mark_of(path).exists());
        let last = all.pop()?;
        match answered.map_or(all.len() + 1, |at| all.len() - at) {
            1 => Some(last.1.words),
            // The hook of the same answer ran before, for another installation.
            0 => fs::read_to_string(mark_of(&last.0))
                .is_ok_and(|mark| mark == hash_of(answer))
                .then_some(last.1.words),
            _ => None,
        }
    }

    /// What was asked last, whatever waits.
    pub(super) fn last(&self) -> Option<Option<String>> {
        self.all().pop().map(|(_, prompt)| prompt.words)
    }

    /// Notes that what was asked in the turn, or else the question with these words, has this
    /// answer.
    pub(super) fn answered(&self, turn: Option<&str>, words: Option<&str>, answer: &str) {
        let mark = hash_of(answer);
        let is_it = |prompt: &Prompt| match turn {
            Some(_) => prompt.turn.as_deref() == turn,
            None => prompt.words.as_deref() == words,
        };
        let noted = self.all().into_iter().rev().filter(|(_, prompt)| is_it(prompt));
        for (path, _) in noted.take(if turn.is_some() { usize::MAX } else { 1 }) {
            let is_new = !mark_of(&path).exists() || turn.is_none();
            let _ = is_new.then(|| open_private(&mark_of(&path), true)?.write_all(mark.as_bytes()));
        }
    }

    fn all(&self) -> Noted {
        let entries = fs::read_dir(self.state.root().join(DIRECTORY)).into_iter().flatten();
        let ours = entries.flatten().filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            let is_note = name.starts_with(&self.session) && name.ends_with(".json");
            let since = is_note.then(|| entry.metadata().ok()?.modified().ok())??;
            let mut bytes = Vec::new();
            let file = open_regular(&entry.path()).ok()?;
            file.take(MAX_FILE).read_to_end(&mut bytes).ok()?;
            Some((since, entry.path(), json::parse::<Prompt>(&bytes).ok()?))
        });
        let mut ours: Vec<(SystemTime, PathBuf, Prompt)> = ours.collect();
        ours.sort_by(|one, other| (one.0, &one.1).cmp(&(other.0, &other.1)));
        ours.into_iter().map(|(_, path, prompt)| (path, prompt)).collect()
    }
}

/// Removes the notes of turns whose end nobody reported.
pub(super) fn remove_old(state: &State) {
    remove_older(&state.root().join(DIRECTORY), MAX_AGE, |_| true);
}

/// An answer by its letters: a hook and a transcript have different blanks around it.
fn hash_of(answer: &str) -> String {
    short_hash(&[&answer.split_whitespace().collect::<String>()])
}

/// The file that says that a question has its answer.
fn mark_of(note: &std::path::Path) -> PathBuf {
    note.with_extension("answered")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prompt(turn: Option<&str>, words: &str) -> Prompt {
        let words = (!words.is_empty()).then(|| words.to_owned());
        Prompt { turn: turn.map(str::to_owned), words }
    }

    /// Dates the notes of this second: they are as far apart as those of people.
    fn date(state: &State, second: u64) {
        let long_ago = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000);
        for entry in fs::read_dir(state.root().join(DIRECTORY)).unwrap().flatten() {
            if entry.metadata().unwrap().modified().unwrap() > long_ago {
                let file = fs::File::options().append(true).open(entry.path()).unwrap();
                file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(second)).unwrap();
            }
        }
    }

    #[test]
    fn a_turn_has_its_own_prompts() {
        let directory = tempfile::tempdir().unwrap();
        let state = State::at(directory.path());
        let prompts = Prompts::of(&state, "claude", "s");
        assert_eq!((prompts.of_turn("1"), prompts.only("x"), prompts.last()), (None, None, None));
        let asked = [("1", "rename foo"), ("1", "and bar"), ("2", "why?"), ("3", "")];
        for (second, (turn, words)) in (1..).zip(asked) {
            // Each hook runs twice.
            prompts.note(&prompt(Some(turn), words), "0").unwrap();
            prompts.note(&prompt(Some(turn), words), "5").unwrap();
            date(&state, second);
        }
        assert_eq!(prompts.of_turn("1"), Some(Some("rename foo\nand bar".to_owned())));
        assert_eq!(prompts.of_turn("2"), Some(Some("why?".to_owned())));
        assert_eq!(prompts.of_turn("3"), Some(None), "nobody asked");
        assert_eq!(prompts.of_turn("4"), None);
        // A prompt has one answer, and the output of a shell command in its turn another.
        assert!(!prompts.has_another_answer("1", "Done."));
        prompts.answered(Some("1"), None, "Done.");
        assert!(prompts.has_another_answer("1", "The output is a list."));
        assert!(!prompts.has_another_answer("1", "Done."), "another installation asks, too");
        assert!(!prompts.has_another_answer("2", "x") && !prompts.has_another_answer("4", "x"));
        assert_eq!(Prompts::of(&state, "claude", "t").of_turn("1"), None);
        assert_eq!(Prompts::of(&state, "codex", "s").of_turn("1"), None);
    }

    #[test]
    fn without_turns_a_question_is_known_while_it_is_the_only_one() {
        let directory = tempfile::tempdir().unwrap();
        let state = State::at(directory.path());
        let prompts = Prompts::of(&state, "claude", "s");
        let ask = |words: &str, moment: &str| {
            prompts.note(&prompt(None, words), moment).unwrap();
            date(&state, moment.parse().unwrap());
        };
        let one = |words: &str| Some(Some(words.to_owned()));
        ask("go on", "10");
        assert_eq!(prompts.only("Gone."), one("go on"));
        prompts.answered(None, Some("go on"), "Gone.");
        assert_eq!(prompts.only("Gone."), one("go on"), "another installation asks, too");
        assert_eq!(prompts.only("By the way"), None, "nobody asked for it");
        ask("go on", "20");
        ask("and then?", "30");
        assert_eq!((prompts.only("Gone."), prompts.last()), (None, one("and then?")));
        prompts.answered(None, Some("go on"), "Gone.");
        assert_eq!(prompts.only("Home."), one("and then?"));
    }
}
