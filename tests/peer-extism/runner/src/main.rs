//! Times a warm query of an Extism plug-in, JSON in and typed answer out, and prints `p50_ns
//! p99_ns`: `peer-extism FILE.wasm COUNT`. The plug-in is called the way Extism's documentation
//! shows.

use std::time::Instant;

use extism::convert::Json;
use extism::{Manifest, Plugin, Wasm};
use serde::{Deserialize, Serialize};

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct QueryRequest {
    scope: Scope,
    query: String,
    top_k: u32,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Scope {
    company_id: String,
}

#[derive(Deserialize)]
struct Bundle {
    snippets: Vec<Snippet>,
}

#[derive(Deserialize)]
#[allow(dead_code, reason = "read as a caller would have it")]
struct Snippet {
    id: String,
    text: String,
    rank: f64,
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let (Some(file), Some(count)) =
        (arguments.next(), arguments.next().and_then(|count| count.parse().ok()))
    else {
        eprintln!("usage: peer-extism FILE.wasm COUNT");
        std::process::exit(2);
    };
    let count: usize = count;
    let manifest = Manifest::new([Wasm::data(std::fs::read(file).expect("the plug-in is there"))]);
    let mut plugin = Plugin::new(&manifest, [], false).expect("the plug-in loads");
    let mut all = Vec::with_capacity(count);
    for n in 0..count + count / 10 {
        let started = Instant::now();
        let request = QueryRequest {
            scope: Scope { company_id: "acme".to_owned() },
            query: "hello".to_owned(),
            top_k: 10,
        };
        let Json(bundle): Json<Bundle> =
            plugin.call("query", Json(request)).expect("the plug-in answers");
        if n >= count / 10 {
            all.push(started.elapsed().as_nanos());
        }
        assert_eq!(bundle.snippets.len(), 5);
    }
    all.sort_unstable();
    println!("{} {}", all[count / 2], all[count * 99 / 100]);
}
