//! Writes the vocabulary of `o200k_base` as a table that is searched in place. So an instance has
//! nothing to unpack: the table of `memhost-tokens` takes 60 ms and 8 MB in each instance.
//!
//! `tokens.bin` is, all numbers little-endian: the number of tokens (u32); where each token begins
//! in the text of all of them, and at last where that ends (u32 each); the slots, each the rank of
//! a token (three bytes) or `EMPTY`; the text.

use std::env;
use std::path::PathBuf;

use hash::{EMPTY, SLOTS, first_slot};

#[path = "src/tokens/hash.rs"]
mod hash;

fn main() {
    for watched in ["build.rs", "src/tokens/hash.rs"] {
        println!("cargo::rerun-if-changed={watched}");
    }
    let tokens = memhost_tokens::vocabulary();
    let mut slots = vec![EMPTY; SLOTS];
    let mut starts = vec![0];
    let mut text = Vec::new();
    for (rank, token) in tokens.iter().enumerate() {
        text.extend_from_slice(token);
        starts.push(id(text.len()));
        let mut slot = first_slot(token);
        while slots[slot] != EMPTY {
            slot = (slot + 1) % SLOTS;
        }
        slots[slot] = id(rank);
    }
    let mut out = id(tokens.len()).to_le_bytes().to_vec();
    out.extend(starts.iter().flat_map(|start| start.to_le_bytes()));
    out.extend(slots.iter().flat_map(|rank| rank.to_le_bytes().into_iter().take(3)));
    out.extend(text);
    let path = PathBuf::from(env::var_os("OUT_DIR").unwrap_or_default()).join("tokens.bin");
    if let Err(error) = std::fs::write(&path, out) {
        println!("cargo::error={} could not be written: {error}", path.display());
        std::process::exit(1);
    }
}

fn id(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(EMPTY)
}
