//! Backup of a whole store into one file while the store is in use, and restore from such a file.
//!
//! The file: a line with its format, then frames (put or remove, tree, key, value), then the number
//! of frames and a BLAKE3 digest of everything before it. A key that was written during the copy
//! occurs again at the end, with its value at that moment: the last frame of a key counts.

use std::fs::File;
use std::io::{BufReader, BufWriter, Read, Write};
use std::path::Path;

use sled::Batch;

use super::backed_up::Contents;
use super::disk::{self, Disk};
use super::trees::Trees;
use crate::directory::{self, FORMAT};
use crate::error::failed;
use crate::reserve::Reserve;
use crate::{BackupReport, StoreError};

const MAGIC: &str = "memhost-backup 1 data ";
const END: u8 = 0;
const PUT: u8 = 1;
const REMOVE: u8 = 2;
/// The longest key or value, in bytes; a longer one means that the file is damaged.
const MAX_PART: u32 = 64 << 20;
const BATCH: usize = 1_024;

/// Why a file is not a usable backup.
#[derive(Debug, thiserror::Error)]
#[error("{path} is not a whole backup: {message}; use another one, nothing was restored")]
pub struct BackupError {
    /// Which file.
    pub path: String,
    /// The error.
    pub message: String,
}

/// A writer that counts and digests its bytes.
struct Summed<W> {
    inner: W,
    hasher: blake3::Hasher,
    bytes: u64,
}

impl<W: Write> Summed<W> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.hasher.update(bytes);
        self.bytes += bytes.len() as u64;
        self.inner.write_all(bytes)
    }

    fn frame(&mut self, tag: u8, tree: &str, key: &[u8], value: &[u8]) -> std::io::Result<()> {
        let length = |part: usize| u32::try_from(part).unwrap_or(u32::MAX).to_le_bytes();
        self.write(&[tag, u8::try_from(tree.len()).unwrap_or(u8::MAX)])?;
        self.write(tree.as_bytes())?;
        self.write(&length(key.len()))?;
        self.write(&length(value.len()))?;
        self.write(key)?;
        self.write(value)
    }
}

/// Writes the file.
pub(super) fn write(
    trees: &Trees,
    path: &Path,
    at_the_end: Box<dyn FnOnce() + Send>,
) -> Result<BackupReport, StoreError> {
    let io = |error: &dyn std::fmt::Display| {
        failed("writing the backup")(format!("{}: {error}", path.display()))
    };
    let file = memhost_files::private::create_new(path).map_err(|error| io(&error))?;
    let mut out = Summed { inner: BufWriter::new(&file), hasher: blake3::Hasher::new(), bytes: 0 };
    let mut report = BackupReport::default();
    out.write(format!("{MAGIC}{FORMAT}\n").as_bytes()).map_err(|error| io(&error))?;
    let _watching = trees.gate.watch();
    for (name, tree) in trees.kept() {
        for entry in tree.iter() {
            let (key, value) = entry.map_err(failed("reading"))?;
            out.frame(PUT, name, &key, &value).map_err(|error| io(&error))?;
            report.keys += 1;
        }
    }
    let (door, written) = trees.gate.shut();
    at_the_end();
    for (name, key) in &written {
        let Some((_, tree)) = trees.kept().find(|(kept, _)| kept == name) else { continue };
        let value = tree.get(key).map_err(failed("reading"))?;
        let tag = if value.is_some() { PUT } else { REMOVE };
        out.frame(tag, name, key, value.as_deref().unwrap_or_default())
            .map_err(|error| io(&error))?;
        report.copied_again += 1;
    }
    drop(door);
    out.write(&[END]).map_err(|error| io(&error))?;
    out.write(&(report.keys + report.copied_again).to_le_bytes()).map_err(|error| io(&error))?;
    let digest = out.hasher.finalize();
    out.inner
        .write_all(digest.as_bytes())
        .and_then(|()| out.inner.flush())
        .map_err(|error| io(&error))?;
    report.bytes = out.bytes + digest.as_bytes().len() as u64;
    drop(out);
    let directory =
        path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    file.sync_all()
        .and_then(|()| memhost_files::durable::sync_directory(directory))
        .map_err(|error| io(&error))?;
    Ok(report)
}

/// Makes an empty store in a data directory that has none.
pub(super) fn new_store(data_dir: &Path) -> Result<Trees, StoreError> {
    let store = data_dir.join("store");
    if store.join("db").exists() {
        return Err(failed("making the store")(format!("{} has one already", data_dir.display())));
    }
    disk::prepare(&store).map_err(failed("making the store"))?;
    let config =
        sled::Config::new().path(&store).mode(sled::Mode::HighThroughput).flush_every_ms(None);
    let db = disk::open_db(&config).map_err(failed("making the store"))?;
    let room = Reserve::new(data_dir, 0, None);
    let disk = Disk::open(db, &store, room, None, None).map_err(failed("making the store"))?;
    Trees::open(disk, 0)
}

/// One frame, as it is read.
enum Frame {
    Put(String, Vec<u8>, Vec<u8>),
    Remove(String, Vec<u8>),
    End,
}

struct Reader<'a> {
    path: &'a Path,
    inner: BufReader<File>,
    hasher: blake3::Hasher,
    frames: u64,
}

impl<'a> Reader<'a> {
    fn open(path: &'a Path) -> Result<Self, BackupError> {
        let wrong = |message: String| BackupError { path: path.display().to_string(), message };
        let file = File::open(path).map_err(|error| wrong(error.to_string()))?;
        let mut reader =
            Self { path, inner: BufReader::new(file), hasher: blake3::Hasher::new(), frames: 0 };
        let mut line = Vec::new();
        while line.last() != Some(&b'\n') && line.len() < 64 {
            line.extend(reader.take(1)?);
        }
        let text = String::from_utf8_lossy(&line);
        let format =
            text.strip_prefix(MAGIC).and_then(|format| format.trim_end().parse::<u32>().ok());
        match format {
            Some(FORMAT) => Ok(reader),
            Some(format) => Err(wrong(format!(
                "it has format {format}, and this version of memhost reads {FORMAT}"
            ))),
            None => Err(wrong("it does not begin as one".to_owned())),
        }
    }

    fn wrong(&self, message: impl Into<String>) -> BackupError {
        BackupError { path: self.path.display().to_string(), message: message.into() }
    }

    fn take(&mut self, count: u32) -> Result<Vec<u8>, BackupError> {
        let mut bytes = vec![0; count as usize];
        self.inner
            .read_exact(&mut bytes)
            .map_err(|error| self.wrong(format!("it ends early: {error}")))?;
        self.hasher.update(&bytes);
        Ok(bytes)
    }

    fn length(&mut self) -> Result<u32, BackupError> {
        let bytes = self.take(4)?.try_into().unwrap_or_default();
        match u32::from_le_bytes(bytes) {
            length if length <= MAX_PART => Ok(length),
            length => Err(self.wrong(format!("a part of it is {length} bytes long"))),
        }
    }

    fn next(&mut self) -> Result<Frame, BackupError> {
        let tag = self.take(1)?;
        if tag == [END] {
            let counted = u64::from_le_bytes(self.take(8)?.try_into().unwrap_or_default());
            let digest = self.hasher.finalize();
            let mut found = [0; 32];
            self.inner
                .read_exact(&mut found)
                .map_err(|error| self.wrong(format!("it ends early: {error}")))?;
            return match digest == found && counted == self.frames {
                true => Ok(Frame::End),
                false => Err(self.wrong("its digest does not fit")),
            };
        }
        let length = self.take(1)?[0];
        let name = String::from_utf8_lossy(&self.take(u32::from(length))?).into_owned();
        let (key, value) = (self.length()?, self.length()?);
        let (key, value) = (self.take(key)?, self.take(value)?);
        self.frames += 1;
        match tag.as_slice() {
            [PUT] => Ok(Frame::Put(name, key, value)),
            [REMOVE] => Ok(Frame::Remove(name, key)),
            _ => Err(self.wrong("a frame is neither put nor remove")),
        }
    }
}

/// Reads a backup to its end without writing anything.
fn check_whole(path: &Path) -> Result<(), BackupError> {
    let mut reader = Reader::open(path)?;
    while !matches!(reader.next()?, Frame::End) {}
    Ok(())
}

/// Reads a backup to its end, and compares what is in it. Answers one line for each difference.
pub(super) fn check(path: &Path) -> Result<Vec<String>, BackupError> {
    let (mut reader, mut contents) = (Reader::open(path)?, Contents::default());
    loop {
        match reader.next()? {
            Frame::Put(tree, key, value) => contents.take(&tree, &key, Some(&value)),
            Frame::Remove(tree, key) => contents.take(&tree, &key, None),
            Frame::End => return Ok(contents.findings()),
        }
    }
}

/// Makes a store from a backup, in a directory that is empty or does not exist. A damaged file is
/// refused before anything is written.
pub(super) fn restore(path: &Path, data_dir: &Path) -> Result<(), StoreError> {
    let broken = |error: BackupError| StoreError::Corrupt {
        what: "backup".to_owned(),
        message: error.to_string(),
    };
    check_whole(path).map_err(broken)?;
    let mut reader = Reader::open(path).map_err(broken)?;
    let lock = directory::take(data_dir)?;
    let trees = new_store(data_dir)?;
    let mut batches: std::collections::HashMap<String, (Batch, usize)> =
        std::collections::HashMap::new();
    let flush = |name: &str, batch: Batch| match trees.kept().find(|(kept, _)| *kept == name) {
        Some((_, tree)) => trees.disk.wrote("restoring", tree.apply_batch(batch)),
        None => Err(failed("restoring")(format!("this memhost knows no tree `{name}`"))),
    };
    loop {
        let (name, key, value) = match reader.next().map_err(broken)? {
            Frame::Put(name, key, value) => (name, key, Some(value)),
            Frame::Remove(name, key) => (name, key, None),
            Frame::End => break,
        };
        let (batch, count) = batches.entry(name.clone()).or_default();
        match value {
            Some(value) => batch.insert(key, value),
            None => batch.remove(key),
        }
        *count += 1;
        if *count == BATCH {
            let full = std::mem::take(batch);
            *count = 0;
            flush(&name, full)?;
        }
    }
    for (name, (batch, _)) in batches {
        flush(&name, batch)?;
    }
    trees.disk.flush()?;
    directory::write_format(data_dir)?;
    drop((trees, lock));
    Ok(())
}
