//! Makes `data/o200k_base.bin` of `o200k_base.tiktoken`, whose lines are a token in base64 and its
//! rank.
//!
//! `cargo run --release -p memhost-tokens --example pack -- o200k_base.tiktoken
//! host/tokens/data/o200k_base.bin`
#![allow(clippy::unwrap_used, reason = "a tool that runs once may stop at the first mistake")]

use std::collections::HashMap;
use std::io::Write;
use std::{env, fs};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::DeflateEncoder;

fn main() {
    let mut paths = env::args().skip(1);
    let published = fs::read_to_string(paths.next().unwrap()).unwrap();
    let mut tokens: Vec<(Vec<u8>, u32)> = published
        .lines()
        .map(|line| {
            let (token, rank) = line.split_once(' ').unwrap();
            (STANDARD.decode(token).unwrap(), rank.parse().unwrap())
        })
        .collect();
    tokens.sort();
    let ranks: HashMap<&[u8], u32> =
        tokens.iter().map(|(token, rank)| (&token[..], *rank)).collect();
    let (mut shared, mut more, mut left, mut bytes) =
        (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let mut before: &[u8] = &[];
    for (token, _) in &tokens {
        let same = token.iter().zip(before).take_while(|(one, other)| one == other).count();
        shared.push(u8::try_from(same).unwrap());
        more.push(u8::try_from(token.len() - same).unwrap());
        left.push(u8::try_from(left_half(token, &ranks)).unwrap());
        bytes.extend(&token[same..]);
        before = token;
    }
    let planes =
        (1..4).flat_map(|byte| tokens.iter().map(move |(_, rank)| rank.to_be_bytes()[byte]));
    let mut packed = DeflateEncoder::new(Vec::new(), Compression::best());
    packed.write_all(&[shared, more, left, planes.collect(), bytes].concat()).unwrap();
    fs::write(paths.next().unwrap(), packed.finish().unwrap()).unwrap();
}

/// How many bytes of a token are in the left one of the two tokens that its last merge is of; 0 for
/// a single byte.
fn left_half(token: &[u8], ranks: &HashMap<&[u8], u32>) -> usize {
    let mut parts: Vec<&[u8]> = token.chunks(1).collect();
    let mut left = 0;
    while parts.len() > 1 {
        let joined = |at: usize| {
            &token[parts[..at].concat().len()..][..parts[at].len() + parts[at + 1].len()]
        };
        let (_, at) =
            (0..parts.len() - 1).filter_map(|at| Some((ranks.get(joined(at))?, at))).min().unwrap();
        left = parts[at].len();
        parts[at] = joined(at);
        parts.remove(at + 1);
    }
    left
}
