//! Exports all records of a binding as lines of its provider, and imports them.

use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::json;

use crate::answer::Answer;
use crate::args::ScopeArgs;
use crate::argument::new_file;
use crate::session::Session;
use crate::{CliError, Result};
use memhost_types::limits::MAX_TRANSFER_BYTES;
use memhost_types::{ExportPage, ImportResponse, Pages, counted};

#[derive(Debug, Args)]
pub(crate) struct ExportArgs {
    /// Output file, which must not exist [default: standard output].
    #[arg(long, value_name = "FILE")]
    to: Option<PathBuf>,
    #[command(flatten)]
    scope: ScopeArgs,
}

#[derive(Debug, Args)]
pub(crate) struct ImportArgs {
    /// Export file of the same provider; `-` reads standard input.
    file: PathBuf,
    #[command(flatten)]
    scope: ScopeArgs,
}

pub(super) async fn export(args: ExportArgs) -> Result<()> {
    let session = args.scope.open().await?;
    let Some(path) = &args.to else {
        return write_to(&session, &args.scope, &mut std::io::stdout().lock()).await.map(drop);
    };
    let wrong = |error: std::io::Error| CliError::file(path, &error);
    // Under another name until it is complete, so that nobody takes a part for the whole.
    let part = path.with_added_extension("part");
    new_file("--to", path)?;
    let mut file = BufWriter::new(memhost_files::private::create(&part).map_err(wrong)?);
    let written = write_to(&session, &args.scope, &mut file).await;
    if written.is_err() {
        // An empty or partial file says nothing that the error does not say.
        let _ = std::fs::remove_file(&part);
    }
    let count = written?;
    file.into_inner().map_err(|error| wrong(error.into_error()))?.sync_all().map_err(wrong)?;
    memhost_files::durable::rename(&part, path).map_err(wrong)?;
    eprintln!("exported {} to {}", counted(count, "line", "lines"), path.display());
    Ok(())
}

async fn write_to(session: &Session, scope: &ScopeArgs, out: &mut impl Write) -> Result<usize> {
    let (mut pages, mut count) = (Pages::default(), 0);
    while let Some(cursor) = pages.next() {
        let part: Answer<ExportPage> =
            session.send(scope, "export", json!({ "cursor": cursor })).await?;
        let part = part.read()?;
        out.write_all(part.lines.as_bytes())?;
        count += part.lines.lines().count();
        pages.go_on(part.next_cursor);
    }
    out.flush()?;
    Ok(count)
}

pub(super) async fn import(args: ImportArgs) -> Result<()> {
    let session = args.scope.open().await?;
    let (mut taken, mut known, mut from) = (0_u64, 0_u64, 1);
    let mut lines = open(&args.file)?;
    loop {
        let (part, count) = next_part(&mut *lines, &args.file)?;
        if count == 0 {
            break;
        }
        let answer: Answer<ImportResponse> = session
            .send(&args.scope, "import", json!({ "lines": part }))
            .await
            .inspect_err(|error| {
                eprintln!("{}", stopped(from, count, error.exit_code() == 5));
            })?;
        let answer = answer.read()?;
        taken += u64::from(answer.imported);
        known += u64::from(answer.unchanged);
        from += count;
    }
    let summary = json!({ "imported": taken, "unchanged": known });
    session.tell(&summary, || {
        format!("imported {}; {known} unchanged", counted(taken, "record", "records"))
    })
}

/// What an import that failed at a part has done, and whether repeating it helps.
fn stopped(from: usize, count: usize, is_busy: bool) -> String {
    let imported = match from - 1 {
        0 => "no line was imported".to_owned(),
        last => format!("lines 1 to {last} were imported"),
    };
    let next = if is_busy { "; repeat the import to continue" } else { "" };
    format!("lines {from} to {} failed, {imported}{next}", from + count - 1)
}

fn open(path: &Path) -> Result<Box<dyn BufRead>> {
    if path == Path::new("-") {
        return Ok(Box::new(std::io::stdin().lock()));
    }
    Ok(Box::new(BufReader::new(File::open(path).map_err(|error| CliError::file(path, &error))?)))
}

/// As many whole lines as one call takes.
fn next_part(lines: &mut dyn BufRead, path: &Path) -> Result<(String, usize)> {
    let wrong = |message: String| CliError::input("FILE", format!("{}: {message}", path.display()));
    let (mut part, mut count) = (String::new(), 0);
    loop {
        let buffered = lines.fill_buf().map_err(|error| wrong(error.to_string()))?;
        // A line may be longer than the buffer. It is read, and is an error only if it alone is too
        // long.
        let next =
            buffered.iter().position(|byte| *byte == b'\n').map_or(buffered.len(), |end| end + 1);
        if next == 0 || (count > 0 && part.len() + next > MAX_TRANSFER_BYTES / 2) {
            return Ok((part, count));
        }
        lines.read_line(&mut part).map_err(|error| wrong(error.to_string()))?;
        count += 1;
        if part.len() > MAX_TRANSFER_BYTES {
            return Err(wrong(format!("has a line of more than {MAX_TRANSFER_BYTES} bytes")));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_import_says_what_was_done_and_whether_to_repeat_it() {
        assert_eq!(stopped(1, 77, false), "lines 1 to 77 failed, no line was imported");
        let busy =
            "lines 78 to 80 failed, lines 1 to 77 were imported; repeat the import to continue";
        assert_eq!(stopped(78, 3, true), busy);
    }
}
