//! Names that look like others, texts that mean something to a file, words for the log, and files
//! of settings.

use std::path::Path;

use serde_json::{Value, json};

use super::Attack;
use super::bodies::survived;
use super::harness::{FORGED, Host};

pub(super) const ATTACKS: &[Attack] = &[
    Attack { name: "names that look like another", threads: 1, rounds: 10, run: names },
    Attack { name: "texts for files", threads: 2, rounds: 12, run: texts },
    Attack { name: "words for the log", threads: 2, rounds: 14, run: words },
    Attack { name: "files of settings", threads: 1, rounds: 11, run: settings },
];

fn encoded(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02X}")).collect()
}

/// Somebody who may ask for every company gets the one whose bytes were named.
fn names(host: &Host, round: u64) -> Result<(), String> {
    let names = [
        "neighb\u{43e}ur",
        "neighbour\u{200b}",
        "\u{202e}ruobhgien",
        "neighbou\u{200d}r",
        "neighbour\u{fe0f}",
        "NEIGHBOUR",
        "ｎeighbour",
        "neighbou\u{155}",
        "neighbour\u{301}",
        "neighbour\u{e0041}",
    ];
    let name = names[usize::try_from(round).unwrap_or(0) % names.len()];
    let ask = json!({"scope": {"companyId": name}, "query": "fact"});
    let answer =
        host.as_operator(&format!("/runtime/v1/companies/{}/query", encoded(name)), &ask)?;
    if answer.1.contains("a fact of") {
        return Err(format!("{name:?} is answered {:.200}", answer.1));
    }
    survived(name, Ok(answer))?;
    // The company in the address and the one in the body are compared as bytes, too.
    match host.as_operator("/runtime/v1/companies/neighbour/query", &ask)? {
        (400..=499, _) => Ok(()),
        (status, text) => Err(format!("{name:?} in the body: {status} {text:.200}")),
    }
}

/// Records come back as they were written, and are in one directory, whatever their texts, ids and
/// fields are.
fn texts(host: &Host, round: u64) -> Result<(), String> {
    let texts = [
        "---\nid: \"other\"\nscope: {}\n---\nnot the text",
        "---\n---\n---\n",
        "\n---\nid: x\n",
        "[a](file:///etc/passwd) ![b](http://127.0.0.1/x.png) <script>alert(1)</script>",
        "=HYPERLINK(\"http://attacker.example\")",
        "../../../../owned",
        "\u{feff}---\r\nid: x\r\n---\r\n",
        "&anchor *anchor !!python/object:os.system {{7*7}} ${7*7} %s%n",
        "CON\0.md",
        "a\u{2028}b\u{85}c\u{0}d",
        "e\u{301}\u{e9}\u{202e}",
        "| a | b |\n|---|---|\n```\n",
    ];
    let text = texts[usize::try_from(round).unwrap_or(0) % texts.len()];
    let metadata =
        json!({"---": "---", "id": "x", "a\nb: c": "\n---\n", "..": "..", "": "", text: text});
    let id = format!("../{round}/..\u{2215}owned-{text:.8}").replace(char::is_control, "-");
    let scope = json!({"companyId": "evil", "agentId": "ada"});
    let record = json!({"id": id, "text": text, "summary": text, "metadata": metadata});
    let body = json!({"scope": scope, "records": [record]}).to_string();
    let (status, written) = host.post("/runtime/v1/companies/evil/records", &body)?;
    let written: Value =
        serde_json::from_str(&written).map_err(|error| format!("{text:?}: {status}: {error}"))?;
    let Some(handle) = written["records"].get(0) else {
        return survived(&format!("{text:?}"), Ok((status, written.to_string())));
    };
    let body = json!({"scope": scope, "handle": handle}).to_string();
    let (status, read) = host.post("/runtime/v1/companies/evil/get", &body)?;
    let read: Value =
        serde_json::from_str(&read).map_err(|error| format!("{text:?}: {status}: {error}"))?;
    let read = &read["record"];
    if (&read["text"], &read["summary"], &read["metadata"])
        != (&json!(text), &json!(text), &metadata)
    {
        return Err(format!("{text:?} comes back as {read}"));
    }
    let mut strange = Vec::new();
    look(&host.directory().join("data/memory/evil"), &mut strange);
    strange.pop().map_or(Ok(()), Err)
}

/// Files that no text of ours should have made.
fn look(directory: &Path, strange: &mut Vec<String>) {
    for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
        let (name, kind) = (entry.file_name().to_string_lossy().into_owned(), entry.file_type());
        let is_plain = name.chars().all(|c| c.is_ascii_alphanumeric() || "-._".contains(c));
        match kind {
            Ok(kind) if kind.is_dir() && is_plain => look(&entry.path(), strange),
            Ok(kind) if kind.is_file() && is_plain => {}
            // It may have been renamed a moment ago.
            Err(_) => {}
            Ok(kind) => strange.push(format!("{}: {kind:?}", entry.path().display())),
        }
    }
}

/// What a caller chooses, wherever the log may have it.
fn words(host: &Host, round: u64) -> Result<(), String> {
    let evil = format!("\n{FORGED}\r\u{1b}]0;x\u{7}\u{9b}2J\u{85}{FORGED}");
    let (json_type, agent) = (("content-type", "application/json"), host.agent.as_str());
    let (encoded, query) = (encoded(&evil), "/runtime/v1/companies/evil/query");
    let ask = |scope: Value| json!({"scope": scope, "query": evil}).to_string();
    let mcp = |method: &str, params: Value| {
        json!({
            "jsonrpc": "2.0", "id": evil, "method": method, "params": params,
        })
    };
    let accept = ("accept", "application/json, text/event-stream");
    let answer = match round % 7 {
        0 => {
            host.send("GET", &format!("/{encoded}/{encoded}?{encoded}={encoded}"), agent, &[], b"")
        }
        1 => host.send(
            "POST",
            query,
            agent,
            &[json_type, ("idempotency-key", &encoded)],
            ask(json!({})).as_bytes(),
        ),
        2 => host.post(query, &ask(json!({"companyId": "evil", "runId": evil, "agentId": evil}))),
        3 => host.post(
            query,
            &json!({ evil.as_str(): evil.as_str(), "scope": {"companyId": "evil"} }).to_string(),
        ),
        4 => {
            let event =
                json!({"events": [{"type": evil, "id": evil, "scope": {"companyId": "evil"}}]});
            host.post("/runtime/v1/companies/evil/events", &event.to_string())
        }
        5 => {
            let client = json!({"name": evil, "version": evil});
            let hello = json!({"protocolVersion": evil, "capabilities": {}, "clientInfo": client});
            host.send(
                "POST",
                "/mcp",
                agent,
                &[json_type, accept],
                mcp("initialize", hello).to_string().as_bytes(),
            )
        }
        _ => {
            let line =
                format!("{{\"type\":\"company\",\"format\":1,\"companyId\":{}}}\n", json!(evil));
            host.import(&format!("words{round}"), line.as_bytes())
        }
    };
    survived("a word for the log", answer)
}

/// Settings that are no settings end a command with a message.
fn settings(host: &Host, round: u64) -> Result<(), String> {
    let many: String = (0..20_000).map(|n| format!("k{n} = 1\n")).collect();
    let texts = [
        format!("x = {}", "[".repeat(100_000)),
        format!("x = {}1{}", "[".repeat(20_000), "]".repeat(20_000)),
        format!("x = {}1{}", "{a=".repeat(20_000), "}".repeat(20_000)),
        format!("{}x = 1", "a.".repeat(5_000)),
        format!("[{}x]\ny = 1", "a.".repeat(5_000)),
        format!("x = \"\"\"{}", "\\".repeat(100_001)),
        "x = 1\nx = 2\n[x]\n[[x]]\n".to_owned(),
        "x = 99999999999999999999999999\ny = 1e999999999\nz = 0x1\nw = 9999-99-99T99:99:99Z"
            .to_owned(),
        "\"\u{202e}x\u{0}\" = '\u{1b}[2J'".to_owned(),
        "x".repeat(1 << 20),
        many,
    ];
    let number = usize::try_from(round).unwrap_or(0) % texts.len();
    let file = host.directory().join(format!("settings{number}.toml"));
    std::fs::write(&file, &texts[number]).unwrap();
    let [file, data] =
        [file, host.directory().join("other")].map(|path| path.to_string_lossy().into_owned());
    for arguments in [
        [
            "serve",
            "--config",
            file.as_str(),
            "--listen",
            "127.0.0.1:0",
            "--data-dir",
            data.as_str(),
        ]
        .as_slice(),
        &["agent-hooks", "spool", "--config", file.as_str()],
    ] {
        let done = host.command(arguments);
        let said = [done.stdout.as_slice(), &done.stderr].concat();
        let said = String::from_utf8_lossy(&said);
        if done.status.code().is_none() || said.contains("panicked") || said.len() > 64 << 10 {
            return Err(format!("{number}, {}: {} {said:.300}", arguments[0], done.status));
        }
        if let Some(bad) = said.chars().find(|c| c.is_control() && !matches!(c, '\n' | '\t')) {
            return Err(format!("{number}, {}: prints U+{:04X}", arguments[0], u32::from(bad)));
        }
    }
    Ok(())
}
