//! `abuses-files` makes the host work and remember for it, with raw WASI calls, in a query of the
//! form `HOW COUNT`: `list` lists its directory again and again, `listings`, `files` and `streams`
//! keep what they open, `removed` keeps files of one MiB open that it has removed, `nested` makes
//! one directory in the other, `large` makes and frees large files, `swap` changes a name between a
//! file and a link out of the directory, `random` asks for random bytes and `poll` waits for a
//! clock many times at once. It answers how often it succeeded, and the first error.

use std::mem::forget;

use wasip2::clocks::monotonic_clock::subscribe_duration;
use wasip2::filesystem::preopens::get_directories;
use wasip2::filesystem::types::{Descriptor, DescriptorFlags, ErrorCode, OpenFlags, PathFlags};
use well_behaved::sdk::types::*;
use well_behaved::{Guest, Reference, answer};

struct AbusesFiles;

impl Guest for AbusesFiles {
    const KEY: &str = "abuses-files";

    fn describe() -> Description {
        let description = well_behaved::describe(Self::KEY);
        Description { permissions: Vec::new(), ..description }
            .require(Permission::Directory(1 << 30), "To be abused")
    }

    fn query(_: &mut Reference, request: QueryRequest) -> Result<ContextBundle, Error> {
        let (how, count) = request.query.split_once(' ').unwrap_or((&request.query, "1"));
        let (mut got, mut refused) = (0_u64, "not refused".to_owned());
        for n in 0..count.parse().unwrap_or(1) {
            match abuse(how, n) {
                Ok(more) => got += more,
                Err(error) => {
                    refused = error.name().to_owned();
                    break;
                }
            }
        }
        Ok(answer([("got", got.to_string()), ("refused", refused)]))
    }
}

fn abuse(how: &str, n: u64) -> Result<u64, ErrorCode> {
    let directories = get_directories();
    let Some((data, _)) = directories.first() else { return Err(ErrorCode::NoEntry) };
    match how {
        "list" => {
            let listing = data.read_directory()?;
            let mut entries = 0;
            while listing.read_directory_entry()?.is_some() {
                entries += 1;
            }
            return Ok(entries);
        }
        "listings" => {
            let listing = data.read_directory()?;
            listing.read_directory_entry()?;
            forget(listing);
        }
        "files" => forget(create(data, &format!("file-{n}"))?),
        "streams" => {
            let file = create(data, "streamed")?;
            file.write(&[b'x'; 64 << 10], 0)?;
            let stream = file.read_via_stream(0)?;
            let _ = stream.read(64 << 10);
            stream.subscribe().block();
            forget(stream);
        }
        "removed" => {
            let file = create(data, "removed")?;
            file.set_size(1 << 20)?;
            data.unlink_file_at("removed")?;
            forget(file);
        }
        "nested" => nest(data, 400)?,
        "large" => {
            let file = create(data, "large")?;
            file.write(&vec![b'x'; 8 << 20], 0)?;
            file.sync_data()?;
            file.set_size(1)?;
            file.write(&vec![b'x'; 8 << 20], 0)?;
            data.rename_at("large", data, "larger")?;
            drop(create(data, "large")?);
            data.rename_at("large", data, "larger")?;
            drop(open(data, "larger", OpenFlags::TRUNCATE)?);
            data.unlink_file_at("larger")?;
            file.sync()?;
        }
        "swap" => {
            let _ = data.unlink_file_at("swapped");
            let _ = data.symlink_at("../../../vault.key", "swapped");
            let _ = data.unlink_file_at("swapped");
            create(data, "swapped")?.write(b"harmless", 0)?;
        }
        "random" => drop(wasip2::random::random::get_random_bytes(1 << 40)),
        _ => {
            let pollable = subscribe_duration(0);
            let all: Vec<_> = (0..20_000).map(|_| &pollable).collect();
            return Ok(wasip2::io::poll::poll(&all).len() as u64);
        }
    }
    Ok(1)
}

/// Each directory is opened from the one above: no path says how deep it is.
fn nest(data: &Descriptor, levels: u32) -> Result<(), ErrorCode> {
    let mut last: Option<Descriptor> = None;
    for _ in 0..levels {
        let above = last.as_ref().unwrap_or(data);
        match above.create_directory_at("d") {
            Err(error) if error != ErrorCode::Exist => return Err(error),
            _ => {}
        }
        last = Some(above.open_at(
            PathFlags::empty(),
            "d",
            OpenFlags::DIRECTORY,
            DescriptorFlags::READ,
        )?);
    }
    Ok(())
}

fn create(from: &Descriptor, path: &str) -> Result<Descriptor, ErrorCode> {
    open(from, path, OpenFlags::CREATE)
}

fn open(from: &Descriptor, path: &str, how: OpenFlags) -> Result<Descriptor, ErrorCode> {
    from.open_at(PathFlags::empty(), path, how, DescriptorFlags::READ | DescriptorFlags::WRITE)
}

well_behaved::export!(AbusesFiles);
