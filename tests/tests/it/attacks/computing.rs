//! Guests that compute for as long as they may.

use serde_json::json;

use super::Attack;
use super::harness::Host;

pub(super) const ATTACKS: &[Attack] =
    &[Attack { name: "four guests that compute", threads: 4, rounds: 3, run: compute }];

/// A guest that computes for 300 ms and asks for nothing.
fn compute(host: &Host, _: u64) -> Result<(), String> {
    let scope = json!({"companyId": "evil", "agentId": "ada"});
    let ask = json!({"scope": scope, "bindingKey": "spins", "query": "300"});
    match host.post("/runtime/v1/companies/evil/query", &ask.to_string())? {
        (200, _) => Ok(()),
        (status, text) => Err(format!("{status} {text}")),
    }
}
