//! Bodies that are large, deep, compressed, or many.

use std::io::Write;

use serde_json::json;

use super::Attack;
use super::harness::{Answer, Host};

pub(super) const ATTACKS: &[Attack] = &[
    Attack { name: "ids of megabytes", threads: 2, rounds: 12, run: big_ids },
    Attack { name: "metadata of megabytes in events", threads: 2, rounds: 6, run: big_metadata },
    Attack { name: "refusals with a revoked token", threads: 4, rounds: 300, run: refusals },
    Attack { name: "refusals of a valid token", threads: 4, rounds: 100, run: valid_refusals },
    Attack { name: "the largest pages", threads: 4, rounds: 5, run: huge_pages },
    Attack { name: "pages of long records", threads: 4, rounds: 5, run: long_records },
    Attack { name: "pages of the log that have nothing", threads: 4, rounds: 3, run: empty_pages },
    Attack { name: "deep JSON", threads: 2, rounds: 30, run: deep_json },
    Attack { name: "objects of many keys", threads: 2, rounds: 4, run: many_keys },
    Attack { name: "odd numbers and repeated keys", threads: 1, rounds: 16, run: odd_json },
    Attack { name: "gzip bombs", threads: 2, rounds: 3, run: gzip },
    Attack { name: "imports that are none", threads: 2, rounds: 6, run: imports },
    Attack { name: "preambles of many records", threads: 2, rounds: 4, run: preambles },
    Attack { name: "cursors of others", threads: 2, rounds: 20, run: cursors },
    Attack { name: "idempotency keys", threads: 4, rounds: 50, run: idempotency },
    Attack { name: "texts for the search of personal data", threads: 2, rounds: 7, run: patterns },
];

/// The host must say no: with a problem, or by closing the connection before it has read
/// everything.
pub(super) fn refused(what: &str, answer: Result<Answer, String>) -> Result<(), String> {
    match answer {
        Ok((0 | 400..=499, _)) => Ok(()),
        Ok((status, text)) => {
            Err(format!("{what}: {status} {}", text.chars().take(200).collect::<String>()))
        }
        Err(error) => Err(format!("{what}: {error}")),
    }
}

/// The host must not fail, whatever it says.
pub(super) fn survived(what: &str, answer: Result<Answer, String>) -> Result<(), String> {
    match answer {
        Ok((200..=499, _)) => Ok(()),
        Ok((503 | 507, _)) => Ok(()),
        Ok((status, text)) => {
            Err(format!("{what}: {status} {}", text.chars().take(200).collect::<String>()))
        }
        Err(error) => Err(format!("{what}: {error}")),
    }
}

fn big_ids(host: &Host, round: u64) -> Result<(), String> {
    let long = "x".repeat(7 << 20);
    let field = ["projectId", "issueId", "sessionKey", "subjectId"]
        [usize::try_from(round % 4).unwrap_or(0)];
    let mut body = json!({"scope": {"companyId": "evil"}, "query": "x"});
    body["scope"][field] = long.into();
    refused(field, host.post("/runtime/v1/companies/evil/query", &body.to_string()))
}

fn big_metadata(host: &Host, round: u64) -> Result<(), String> {
    let long = "x".repeat(7 << 20);
    let hook = json!({
        "hookKind": "manual_capture", "hookId": format!("big{round}"),
        "triggeredAt": "2026-11-20T10:00:00Z", "scope": {"companyId": "evil"},
        "source": {"kind": "manual_note", "companyId": "evil"}, "payload": {"text": "x"},
        "metadata": {"x": long},
    });
    refused("metadata", host.post("/runtime/v1/companies/evil/hooks", &hook.to_string()))
}

fn refusals(host: &Host, _: u64) -> Result<(), String> {
    match host.send("GET", "/control/v1/companies/evil/bindings", &host.revoked, &[], b"")? {
        (401, _) => Ok(()),
        (status, text) => Err(format!("a revoked token: {status} {text}")),
    }
}

fn valid_refusals(host: &Host, round: u64) -> Result<(), String> {
    match round % 3 {
        0 => refused(
            "no right",
            host.post("/control/v1/companies/evil/tokens", r#"{"name":"n","role":"auditor"}"#),
        ),
        1 => refused(
            "elsewhere",
            host.post(
                "/runtime/v1/companies/neighbour/query",
                r#"{"scope":{"companyId":"neighbour"},"query":"x"}"#,
            ),
        ),
        _ => refused(
            "invalid",
            host.post(
                "/runtime/v1/companies/evil/query",
                r#"{"scope":{"companyId":"evil"},"query":"x","topK":0}"#,
            ),
        ),
    }
}

fn huge_pages(host: &Host, round: u64) -> Result<(), String> {
    let text = format!("{round} {}", "a long text ".repeat(5_000));
    let body = json!({"scope": {"companyId": "evil"}, "records": [{"text": text}]});
    survived("a long record", host.post("/runtime/v1/companies/evil/records", &body.to_string()))?;
    let list = json!({"scope": {"companyId": "evil"}, "limit": 1_000});
    survived("a page of records", host.post("/runtime/v1/companies/evil/list", &list.to_string()))?;
    survived("a page of operations", host.get("/control/v1/companies/evil/operations?limit=1000"))
}

/// The most records that are no long page, each as long as it may be.
fn long_records(host: &Host, round: u64) -> Result<(), String> {
    let text = format!("{round} {}", "a long text ".repeat(5_000));
    let body = json!({"scope": {"companyId": "evil"}, "records": [{"text": text}]});
    survived("a long record", host.post("/runtime/v1/companies/evil/records", &body.to_string()))?;
    let list = json!({"scope": {"companyId": "evil"}, "limit": 100}).to_string();
    let query =
        json!({"scope": {"companyId": "evil"}, "query": "long text", "topK": 100}).to_string();
    survived("a page", host.post("/runtime/v1/companies/evil/list", &list))?;
    survived("an answer", host.post("/runtime/v1/companies/evil/query", &query))
}

/// Each page reads much of the log and finds nothing.
fn empty_pages(host: &Host, _: u64) -> Result<(), String> {
    let query = json!({"scope": {"companyId": "evil"}, "query": "x"}).to_string();
    for _ in 0..10 {
        survived("a query", host.post("/runtime/v1/companies/evil/query", &query))?;
    }
    survived(
        "a page",
        host.get("/control/v1/companies/evil/operations?providerRecordId=none&limit=100"),
    )
}

fn deep_json(host: &Host, round: u64) -> Result<(), String> {
    let depth = 1_000 << (round % 8);
    let (open, close) = if round.is_multiple_of(2) { ("[", "]") } else { ("{\"a\":", "}") };
    let inner = if round.is_multiple_of(2) { "" } else { "1" };
    let metadata = format!("{}{inner}{}", open.repeat(depth), close.repeat(depth));
    let body = format!(
        r#"{{"scope":{{"companyId":"evil"}},"records":[{{"text":"x",
            "metadata":{{"a":{metadata}}}}}]}}"#
    );
    refused("deep metadata", host.post("/runtime/v1/companies/evil/records", &body))?;
    refused("a deep body", host.post("/runtime/v1/companies/evil/records", &metadata))
}

fn many_keys(host: &Host, round: u64) -> Result<(), String> {
    // Keys that a weak hash would put into one bucket are among them: all pairs of `Ez` and `FY`
    // have the same sum.
    let key =
        |n: u32| (0..16).map(|bit| if n >> bit & 1 == 0 { "Ez" } else { "FY" }).collect::<String>();
    let members: Vec<String> = (0..50_000).map(|n| format!("\"{}{round}\":1", key(n))).collect();
    let body = format!(
        r#"{{"scope":{{"companyId":"evil"}},"records":[{{"text":"x","metadata":{{{}}}}}]}}"#,
        members.join(",")
    );
    refused("many keys", host.post("/runtime/v1/companies/evil/records", &body))
}

fn odd_json(host: &Host, round: u64) -> Result<(), String> {
    let bodies = [
        r#"{"scope":{"companyId":"evil"},"query":"x","topK":1e999999}"#,
        r#"{"scope":{"companyId":"evil"},"query":"x","topK":-1}"#,
        r#"{"scope":{"companyId":"evil"},"query":"x","topK":184467440737095516160}"#,
        r#"{"scope":{"companyId":"evil","companyId":"neighbour"},"query":"fact"}"#,
        r#"{"scope":{"companyId":"neighbour"},"scope":{"companyId":"evil"},"query":"fact"}"#,
        "\u{feff}{\"scope\":{\"companyId\":\"evil\"},\"query\":\"x\"}",
        "null",
    ];
    let body = bodies[usize::try_from(round).unwrap_or(0) % bodies.len()];
    refused(body, host.post("/runtime/v1/companies/evil/query", body))
}

/// 64 MiB of zeros.
pub(super) fn bomb() -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    for _ in 0..64 {
        encoder.write_all(&vec![0; 1 << 20]).unwrap();
    }
    encoder.finish().unwrap()
}

fn gzip(host: &Host, round: u64) -> Result<(), String> {
    let (bomb, json) = (bomb(), "application/json");
    let headers = [("content-type", json), ("content-encoding", "gzip")];
    let (path, token) = ("/runtime/v1/companies/evil/query", host.agent.as_str());
    refused("a compressed request", host.send("POST", path, token, &headers, &bomb))?;
    refused("a compressed import", host.import(&format!("bomb{round}"), &bomb))
}

fn imports(host: &Host, round: u64) -> Result<(), String> {
    let company = format!("import{round}");
    let head = json!({
        "type": "company", "format": 1, "companyId": company, "exportedAt": "2026-11-20T10:00:00Z",
    });
    let bodies = [
        " ".repeat(20 << 20),
        format!("{head}\n{}\n", "[".repeat(1 << 20)),
        format!("{head}\n[{}1]\n", "1,".repeat(4 << 20)),
        format!("{head}\n").repeat(100_000),
        "\n".repeat(1 << 16),
        format!("{head}\n{{\"type\":\"row\",\"table\":\"host\",\"key\":\"00\",\"value\":1}}\n"),
    ];
    let number = usize::try_from(round).unwrap_or(0) % bodies.len();
    refused(&format!("import {number}"), host.import(&company, bodies[number].as_bytes()))
}

fn preambles(host: &Host, round: u64) -> Result<(), String> {
    if round.is_multiple_of(4) {
        let records: Vec<_> = (0..100)
            .map(|n| json!({"text": format!("{n} {}", "a word or two ".repeat(300))}))
            .collect();
        let body = json!({"scope": {"companyId": "evil"}, "records": records});
        survived(
            "many records",
            host.post("/runtime/v1/companies/evil/records", &body.to_string()),
        )?;
    }
    let hook = json!({
        "hookKind": "pre_run_hydrate", "hookId": format!("p{round}"),
        "triggeredAt": "2026-11-20T10:00:00Z", "scope": {"companyId": "evil"},
        "query": "a word or two", "topK": 1_000, "tokenBudget": 100_000,
    });
    survived("a preamble", host.post("/runtime/v1/companies/evil/hooks", &hook.to_string()))
}

fn cursors(host: &Host, round: u64) -> Result<(), String> {
    let cursors = ["x", "", "AAAA", "../..", &"A".repeat(100_000), "eyJhIjoxfQ", "%00", "null"];
    let cursor = cursors[usize::try_from(round).unwrap_or(0) % cursors.len()];
    let list = json!({"scope": {"companyId": "evil"}, "cursor": cursor, "limit": 10});
    refused("a cursor in a body", host.post("/runtime/v1/companies/evil/list", &list.to_string()))
}

fn idempotency(host: &Host, round: u64) -> Result<(), String> {
    let body = json!({"scope": {"companyId": "evil"}, "query": "x"}).to_string();
    let key = format!("{round}-{}", "k".repeat(usize::try_from(round % 200).unwrap_or(0)));
    let headers = [("content-type", "application/json"), ("idempotency-key", key.as_str())];
    survived(
        "a key",
        host.send(
            "POST",
            "/runtime/v1/companies/evil/query",
            &host.agent,
            &headers,
            body.as_bytes(),
        ),
    )
}

/// Texts that nearly are what the patterns of personal data look for, again and again.
fn patterns(host: &Host, round: u64) -> Result<(), String> {
    let parts = [
        "a@",
        "a.",
        "foo at bar dot ",
        "0",
        "+49 30 1",
        "DE89 3704 0044 ",
        "4111 1111 1111 111",
        "Street 1, ",
        "born on 1.1.",
        "Dr. A",
        "192.168.1.",
        "password: ",
        "標",
        "\u{661}",
    ];
    let part = parts[usize::try_from(round).unwrap_or(0) % parts.len()];
    let text = part.repeat((256 << 10) / part.len());
    let body = json!({
        "scope": {"companyId": "evil"}, "bindingKey": "guarded", "records": [{"text": text}],
    });
    survived(part, host.as_operator("/runtime/v1/companies/evil/records", &body))
}
