//! `floods-directory` writes files in a query until it is refused: `bytes` in one growing file,
//! `files` in many empty ones, `links` in many names of one, `sparse` by asking for a size, `holes`
//! by one byte far after the end. It answers how much it wrote and the error. It must be refused at
//! its grant.

use std::fs::{self, File};
use std::io::{Seek, SeekFrom, Write};
use std::path::Path;

use well_behaved::sdk::types::*;
use well_behaved::{Guest, Reference, answer};

struct FloodsDirectory;

fn flood(how: &str) -> (u64, std::io::Error) {
    let directory = Path::new("/data").join(how);
    let mut got = 0;
    let outcome = fs::create_dir_all(&directory).and_then(|()| match how {
        "files" => loop {
            File::create(directory.join(got.to_string()))?;
            got += 1;
        },
        "links" => {
            File::create(directory.join("first"))?;
            loop {
                fs::hard_link(directory.join("first"), directory.join(got.to_string()))?;
                got += 1;
            }
        }
        "holes" => loop {
            let mut file = File::create(directory.join("holes"))?;
            file.seek(SeekFrom::Start((got + 1) << 20))?;
            file.write_all(b"x")?;
            file.sync_data()?;
            got += 1;
        },
        "sparse" => loop {
            File::create(directory.join("sparse"))?.set_len((got + 1) << 20)?;
            got += 1;
        },
        _ => {
            let mut file = File::create(directory.join("bytes"))?;
            let block = vec![b'x'; 64 << 10];
            loop {
                file.write_all(&block)?;
                file.sync_data()?;
                got += block.len() as u64;
            }
        }
    });
    match outcome {
        Ok(()) => (got, std::io::Error::other("the directory has no end")),
        Err(error) => (got, error),
    }
}

impl Guest for FloodsDirectory {
    const KEY: &str = "floods-directory";

    fn describe() -> Description {
        let description = well_behaved::describe(Self::KEY);
        Description { permissions: Vec::new(), ..description }
            .require(Permission::Directory(8 << 20), "To be flooded")
    }

    fn query(_: &mut Reference, request: QueryRequest) -> Result<ContextBundle, Error> {
        let (got, error) = flood(&request.query);
        Ok(answer([("got", got.to_string()), ("refused", error.to_string())]))
    }
}

well_behaved::export!(FloodsDirectory);
