//! Attacks by callers, and by an endpoint that the host asks: the real program, an attacker, a
//! neighbour who asks its own company, and somebody who looks whether the host is well.
//!
//! Each attack runs with the other tests for some rounds, a third of them in the short form, with
//! what must hold whatever the machine does. `just attacks` runs each one for seconds on a host of
//! its own, beside measured neighbours.

mod bodies;
mod computing;
mod connections;
mod harness;
mod measured;
mod names;
mod outside;
mod spool;
mod tokens;
mod words;

use std::time::{Duration, Instant};

use self::harness::{Host, Round};
use memhost_tests::is_whole;

/// One attack.
#[derive(Clone, Copy)]
struct Attack {
    name: &'static str,
    /// Attackers at the same time.
    threads: usize,
    /// Rounds of each one beside the other tests.
    rounds: u64,
    /// One round. An error says what the host did wrong.
    run: Round,
}

/// Every attack.
fn all() -> Vec<Attack> {
    [
        bodies::ATTACKS,
        computing::ATTACKS,
        connections::ATTACKS,
        names::ATTACKS,
        outside::ATTACKS,
        tokens::ATTACKS,
        words::ATTACKS,
    ]
    .concat()
}

#[test]
fn attacks_are_answered_and_bounded() {
    let host = Host::start("info,memhost=debug");
    let mut wrong = Vec::new();
    for attack in all() {
        let (before, started) = (host.resident(), Instant::now());
        let rounds = if is_whole() { attack.rounds } else { attack.rounds.div_ceil(3) };
        let (errors, reached) = host.besieged(&attack, rounds);
        let (name, took) = (attack.name, started.elapsed());
        eprintln!("{name}: {} MiB, at most {} MiB, {took:.1?}", mib(before), mib(reached));
        wrong.extend(errors.into_iter().map(|error| format!("{name}: {error}")));
        let most = 2 * host.quiet_bytes() + (256 << 20);
        if reached > most {
            wrong.push(format!(
                "{name}: {} MiB, from {} MiB; at most {} MiB",
                mib(reached),
                mib(before),
                mib(most)
            ));
        }
        if let Err(error) = host.is_well() {
            wrong.push(format!("after {}: {error}", attack.name));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The figures: the host's memory, the neighbours' p99, and the answer about the host's health.
#[test]
#[ignore = "takes minutes and measures; `just attacks` runs it"]
fn attacks_leave_the_neighbours_alone() {
    let seconds =
        std::env::var("ATTACK_SECONDS").ok().and_then(|text| text.parse().ok()).unwrap_or(5);
    let named = std::env::var("ATTACK").ok();
    let (time, mut rows, mut wrong) = (Duration::from_secs(seconds), Vec::new(), Vec::new());
    for attack in all()
        .into_iter()
        .filter(|attack| named.as_ref().is_none_or(|named| attack.name.contains(named.as_str())))
    {
        let measured = measured::measure(&attack, time);
        wrong.extend(measured.wrong(attack.name));
        rows.push(measured.row(attack.name));
    }
    memhost_tests::measure::table(
        "Attacks",
        &[
            "attack",
            "RSS quiet",
            "RSS max",
            "neighbours' p99 quiet",
            "harmless",
            "attacked",
            "/healthz max",
        ],
        &rows,
    );
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn mib(bytes: u64) -> u64 {
    bytes >> 20
}
