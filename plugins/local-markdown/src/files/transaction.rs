//! Writing several files, all of them or none.
//!
//! New contents are written to `.memhost/`, which is in the same directory, so that a rename puts
//! them into place at once. For more than one file a journal of the renames is written first. After
//! a crash before the journal is complete, the new contents are deleted when the directory is
//! opened. After a later crash the renames of the journal are completed. An error in the middle
//! undoes the renames.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Component, Path};

use super::{Directory, Stamp, Write, folder};

const WORK: &str = ".memhost";
const JOURNAL: &str = ".memhost/journal";

/// A file whose content is written under a temporary name.
#[derive(serde::Serialize, serde::Deserialize)]
struct Step {
    temporary: String,
    target: String,
    /// The temporary path of the file that was there before.
    aside: Option<String>,
}

impl Directory {
    /// Completes or undoes the writes that a crash interrupted. Answers whether files may have
    /// changed.
    pub(crate) fn repair(&mut self) -> io::Result<bool> {
        let entries = match fs::read_dir(self.at(WORK)) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            Err(error) => return Err(error),
        };
        let names: Vec<_> =
            entries.map(|entry| entry.map(|entry| entry.path())).collect::<io::Result<_>>()?;
        let mut changed = false;
        if let Ok(journal) = fs::read(self.at(JOURNAL))
            && let Ok(steps) = postcard::from_bytes::<Vec<Step>>(&journal)
        {
            changed = true;
            for step in steps.iter().filter(|step| step.is_inside()) {
                if self.at(&step.temporary).exists() {
                    self.publish_one(step)?;
                }
            }
        }
        self.remove(JOURNAL)?;
        for path in names {
            // Something that a person put there and that cannot be removed does no harm.
            let _ = fs::remove_file(path);
        }
        Ok(changed)
    }

    /// Writes files and answers their states, in their order.
    pub(crate) fn write_all(&mut self, writes: &[Write]) -> io::Result<Vec<Stamp>> {
        let mut steps = Vec::with_capacity(writes.len());
        let result = self.prepare(writes, &mut steps).and_then(|()| self.publish(&steps));
        if result.is_err() {
            for step in &steps {
                let _ = fs::remove_file(self.at(&step.temporary));
            }
        }
        result
    }

    fn prepare(&mut self, writes: &[Write], steps: &mut Vec<Step>) -> io::Result<()> {
        let is_alone = writes.len() == 1;
        for write in writes {
            self.written += 1;
            let temporary = format!("{WORK}/{}.new", self.written);
            let aside =
                (write.replaces && !is_alone).then(|| format!("{WORK}/{}.old", self.written));
            steps.push(Step { temporary: temporary.clone(), target: write.path.clone(), aside });
            self.write_one(&temporary, write.content.as_bytes())?;
        }
        if !is_alone {
            let journal = postcard::to_allocvec(steps).map_err(io::Error::other)?;
            let draft = format!("{WORK}/journal.new");
            self.write_one(&draft, &journal)?;
            fs::rename(self.at(&draft), self.at(JOURNAL))?;
            // No file takes its place before the journal is where a crash leaves it.
            self.flush(WORK);
        }
        Ok(())
    }

    fn publish(&self, steps: &[Step]) -> io::Result<Vec<Stamp>> {
        for (number, step) in steps.iter().enumerate() {
            if let Err(error) = self.publish_one(step) {
                self.take_back(&steps[..=number]);
                return Err(error);
            }
        }
        self.flush_folders(steps.iter().map(|step| step.target.as_str()));
        if steps.len() > 1 {
            fs::remove_file(self.at(JOURNAL))?;
        }
        for aside in steps.iter().filter_map(|step| step.aside.as_ref()) {
            self.remove(aside)?;
        }
        steps.iter().map(|step| Ok(self.stamp(&step.target)?.unwrap_or_default())).collect()
    }

    fn publish_one(&self, step: &Step) -> io::Result<()> {
        if let Some(aside) = &step.aside {
            match fs::rename(self.at(&step.target), self.at(aside)) {
                // A person removed it meanwhile.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                other => other?,
            }
        }
        self.with_folder(folder(&step.target), || {
            fs::rename(self.at(&step.temporary), self.at(&step.target))
        })
    }

    /// Undoes steps, of which the last one may be half done. New contents get their temporary names
    /// again, so that the journal can still complete the write after a crash in here.
    fn take_back(&self, steps: &[Step]) {
        for step in steps.iter().rev() {
            if let Err(error) = self.take_back_one(step) {
                log::error!("{} could not be restored: {error}; check its content", step.target);
            }
        }
        let _ = fs::remove_file(self.at(JOURNAL));
    }

    fn take_back_one(&self, step: &Step) -> io::Result<()> {
        if !self.at(&step.temporary).exists() {
            fs::rename(self.at(&step.target), self.at(&step.temporary))?;
        }
        match &step.aside {
            Some(aside) if self.at(aside).exists() => {
                fs::rename(self.at(aside), self.at(&step.target))
            }
            _ => Ok(()),
        }
    }

    /// Does something in a folder, and creates the folder only if it is missing. Checking first
    /// would cost every write two calls to the host.
    fn with_folder<T>(&self, folder: &str, act: impl Fn() -> io::Result<T>) -> io::Result<T> {
        match act() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                fs::create_dir_all(self.at(folder))?;
                // The names of new folders are in those above them.
                Path::new(folder)
                    .ancestors()
                    .skip(1)
                    .filter_map(Path::to_str)
                    .for_each(|above| self.flush(above));
                act()
            }
            other => other,
        }
    }

    /// Flushes the names in the folders of these paths, each once: a new file is there after a
    /// power failure, and one that was removed does not come back.
    pub(crate) fn flush_folders<'a>(&self, paths: impl Iterator<Item = &'a str>) {
        let folders: BTreeSet<&str> = paths.map(folder).collect();
        folders.into_iter().for_each(|folder| self.flush(folder));
    }

    /// Flushes the names in a folder, so that they outlive a power failure.
    fn flush(&self, folder: &str) {
        if !self.durable {
            return;
        }
        #[cfg(test)]
        tests::FLUSHED.with_borrow_mut(|flushed| flushed.push(folder.to_owned()));
        // Where a folder cannot be flushed by itself, the file system orders its renames.
        let _ = File::open(self.at(folder)).and_then(|folder| folder.sync_all());
    }

    fn write_one(&self, path: &str, content: &[u8]) -> io::Result<()> {
        let mut file = self.with_folder(WORK, || File::create(self.at(path)))?;
        file.write_all(content)?;
        if self.durable { file.sync_all() } else { Ok(()) }
    }
}

impl Step {
    /// Checks a journal's paths, because a person may have written the file.
    fn is_inside(&self) -> bool {
        let is_inside = |path: &str| {
            Path::new(path).components().all(|part| matches!(part, Component::Normal(_)))
        };
        [Some(&self.temporary), Some(&self.target), self.aside.as_ref()]
            .into_iter()
            .flatten()
            .all(|path| is_inside(path))
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    thread_local! {
        /// The folders that were flushed.
        pub(super) static FLUSHED: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
    }

    #[test]
    fn the_names_of_new_folders_and_of_the_journal_are_flushed() {
        let directory = tempfile::tempdir().unwrap();
        let mut files = Directory::new(directory.path().to_owned(), true);
        files.write_all(&[write("a/b/one.md", "new", false)]).unwrap();
        // The root has the name of `.memhost`, then that of `a`; `a` has that of `b`, and `b` that
        // of the file.
        assert_eq!(FLUSHED.take(), ["", "a", "", "a/b"]);
        files
            .write_all(&[write("a/b/one.md", "newer", true), write("two.md", "new", false)])
            .unwrap();
        assert_eq!(FLUSHED.take(), [".memhost", "", "a/b"], "the journal before the files");
        files.flush_folders(["a/b/one.md", "two.md", "a/b/three.md"].into_iter());
        assert_eq!(FLUSHED.take(), ["", "a/b"], "each once");
    }

    fn write(path: &str, content: &str, replaces: bool) -> Write {
        Write { path: path.to_owned(), content: content.to_owned(), replaces }
    }

    fn read(files: &Directory, path: &str) -> Option<String> {
        fs::read_to_string(files.at(path)).ok()
    }

    #[test]
    fn a_failure_in_the_middle_changes_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let mut files = Directory::new(directory.path().to_owned(), true);
        files.write_all(&[write("a.md", "old", false)]).unwrap();
        // A folder of that name cannot be replaced by a file.
        fs::create_dir_all(directory.path().join("c.md/full")).unwrap();
        let writes =
            [write("a.md", "new", true), write("b.md", "new", false), write("c.md", "new", false)];
        assert!(files.write_all(&writes).is_err());
        assert_eq!(read(&files, "a.md").as_deref(), Some("old"));
        assert_eq!(read(&files, "b.md"), None);
        assert_eq!(fs::read_dir(directory.path().join(WORK)).unwrap().count(), 0);
        assert_eq!(files.write_all(&writes[..2]).unwrap().len(), 2);
        assert_eq!(read(&files, "a.md").as_deref(), Some("new"));
        assert_eq!(fs::read_dir(directory.path().join(WORK)).unwrap().count(), 0);
    }

    #[test]
    fn a_crash_is_undone_before_the_journal_and_finished_after_it() {
        let directory = tempfile::tempdir().unwrap();
        let mut files = Directory::new(directory.path().to_owned(), false);
        files.write_all(&[write("a.md", "old", false)]).unwrap();
        let writes = [write("a.md", "new", true), write("b.md", "new", false)];
        let mut steps = Vec::new();
        files.prepare(&writes, &mut steps).unwrap();
        fs::remove_file(files.at(JOURNAL)).unwrap();
        assert!(!files.repair().unwrap());
        assert_eq!((read(&files, "a.md").as_deref(), read(&files, "b.md")), (Some("old"), None));
        steps.clear();
        files.prepare(&writes, &mut steps).unwrap();
        files.publish_one(&steps[0]).unwrap();
        assert!(files.repair().unwrap());
        assert_eq!(read(&files, "a.md").as_deref(), Some("new"));
        assert_eq!(read(&files, "b.md").as_deref(), Some("new"));
        assert_eq!(fs::read_dir(directory.path().join(WORK)).unwrap().count(), 0);
    }

    #[test]
    fn a_journal_written_by_hand_cannot_leave_the_directory() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().join("root");
        let mut files = Directory::new(root.clone(), false);
        fs::create_dir_all(root.join(WORK)).unwrap();
        fs::write(root.join(WORK).join("1.new"), "text").unwrap();
        let step =
            Step { temporary: ".memhost/1.new".into(), target: "../out.md".into(), aside: None };
        fs::write(root.join(JOURNAL), postcard::to_allocvec(&vec![step]).unwrap()).unwrap();
        files.repair().unwrap();
        assert!(!directory.path().join("out.md").exists() && !root.join(JOURNAL).exists());
    }
}
