//! The protocol of homes as a model, of which every state is looked at. Its steps are those of the
//! SQL in `src/batch.rs` and `src/store.rs`: a transaction reads the row of `homes` and holds it,
//! writes, and commits; taking over is one `UPDATE`. A host may pause between any two steps, end at
//! any step, and be wrong about the time.

use stateright::{Checker, HasDiscoveries, Model, Property};

const HOSTS: usize = 3;
const MOST_WRITES: usize = 3;
const MOST_TAKE_OVERS: u8 = 3;
const MOST_CRASHES: u8 = 2;

/// A transaction that has begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct InFlight {
    /// The token with which it passed the fence.
    token: u8,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Host {
    is_up: bool,
    /// The token under which it thinks that it serves; 0: none.
    token: u8,
    /// The writes that it knows: those that were committed when it took the company over, and its
    /// own since.
    known: usize,
    writing: Option<InFlight>,
    /// The token that it read when it decided to take over.
    deciding: Option<u8>,
    /// Whether it keeps its lease. It may be wrong, or late.
    has_lease: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct State {
    hosts: [Host; HOSTS],
    /// The row of `homes`.
    home: usize,
    token: u8,
    /// The token and the host of each committed write, in their order.
    committed: Vec<(u8, usize)>,
    /// Whether some home wrote without knowing everything that was committed before.
    has_missed: bool,
    take_overs: u8,
    crashes: u8,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Step {
    Begin(usize),
    Commit(usize),
    Decide(usize),
    TakeOver(usize),
    LoseLease(usize),
    RenewLease(usize),
    Crash(usize),
    Restart(usize),
}

/// What the protocol has. Each of these is needed: without one of them the model finds a fault.
#[derive(Clone, Copy)]
struct Homes {
    /// A transaction compares host and token.
    has_fence: bool,
    /// It holds the row so that a take-over waits for it: `FOR SHARE`.
    holds_row: bool,
    /// A take-over succeeds only if the row still has the token that was read.
    is_conditional: bool,
}

const PROTOCOL: Homes = Homes { has_fence: true, holds_row: true, is_conditional: true };

const FALLS: &str = "tokens of committed writes never fall";
const SHARED: &str = "a token has one writer";
const MISSED: &str = "a home knows every write that was committed before its own";
const GOES_ON: &str = "another host writes after a take-over";
const REFUSED: &str = "a home that was replaced is refused";

impl Homes {
    fn is_held(self, state: &State) -> bool {
        self.holds_row && state.hosts.iter().any(|host| host.writing.is_some())
    }
}

impl Model for Homes {
    type State = State;
    type Action = Step;

    fn init_states(&self) -> Vec<State> {
        let host = |number| Host {
            is_up: true,
            token: u8::from(number == 0),
            known: 0,
            writing: None,
            deciding: None,
            has_lease: true,
        };
        vec![State {
            hosts: std::array::from_fn(host),
            home: 0,
            token: 1,
            committed: Vec::new(),
            has_missed: false,
            take_overs: 0,
            crashes: 0,
        }]
    }

    fn actions(&self, state: &State, steps: &mut Vec<Step>) {
        for (number, host) in state.hosts.iter().enumerate() {
            if !host.is_up {
                steps.push(Step::Restart(number));
                continue;
            }
            if host.token > 0 && host.writing.is_none() && state.committed.len() < MOST_WRITES {
                steps.push(Step::Begin(number));
            }
            if host.writing.is_some() {
                steps.push(Step::Commit(number));
            }
            let may_decide = number != state.home
                && host.deciding.is_none()
                && !state.hosts[state.home].has_lease
                && state.take_overs < MOST_TAKE_OVERS;
            if may_decide {
                steps.push(Step::Decide(number));
            }
            if host.deciding.is_some() && !self.is_held(state) {
                steps.push(Step::TakeOver(number));
            }
            steps.push(match host.has_lease {
                true => Step::LoseLease(number),
                false => Step::RenewLease(number),
            });
            if state.crashes < MOST_CRASHES {
                steps.push(Step::Crash(number));
            }
        }
    }

    fn next_state(&self, before: &State, step: Step) -> Option<State> {
        let mut state = before.clone();
        match step {
            Step::Begin(number) => {
                let is_home = number == state.home && state.hosts[number].token == state.token;
                let host = &mut state.hosts[number];
                if !self.has_fence || is_home {
                    host.writing = Some(InFlight { token: host.token });
                } else {
                    // It is told that it is not the home any more.
                    host.token = 0;
                }
            }
            Step::Commit(number) => {
                let host = &mut state.hosts[number];
                let InFlight { token } = host.writing.take()?;
                state.has_missed |= host.known < state.committed.len();
                host.known = state.committed.len() + 1;
                state.committed.push((token, number));
            }
            Step::Decide(number) => state.hosts[number].deciding = Some(state.token),
            Step::TakeOver(number) => {
                let read = state.hosts[number].deciding.take()?;
                if !self.is_conditional || read == state.token {
                    // Without the condition two hosts may raise it from the same token.
                    state.token = if self.is_conditional { state.token + 1 } else { read + 1 };
                    state.take_overs += 1;
                    state.home = number;
                    let host = &mut state.hosts[number];
                    (host.token, host.known) = (state.token, state.committed.len());
                }
            }
            Step::LoseLease(number) => state.hosts[number].has_lease = false,
            Step::RenewLease(number) => state.hosts[number].has_lease = true,
            Step::Crash(number) => {
                state.crashes += 1;
                state.hosts[number] = Host {
                    is_up: false,
                    token: 0,
                    known: 0,
                    writing: None,
                    deciding: None,
                    has_lease: false,
                };
            }
            Step::Restart(number) => {
                let host = &mut state.hosts[number];
                (host.is_up, host.has_lease) = (true, true);
            }
        }
        Some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always(FALLS, |_, state: &State| {
                state.committed.is_sorted_by_key(|(token, _)| *token)
            }),
            Property::always(SHARED, |_, state: &State| {
                let all = &state.committed;
                all.iter().all(|(token, writer)| {
                    all.iter().all(|(other, by)| token != other || writer == by)
                })
            }),
            Property::always(MISSED, |_, state: &State| !state.has_missed),
            Property::sometimes(GOES_ON, |_, state: &State| {
                state.committed.windows(2).any(|pair| pair[0].1 != pair[1].1)
            }),
            Property::sometimes(REFUSED, |_, state: &State| {
                state.hosts.iter().any(|host| host.token > 0 && host.token < state.token)
            }),
        ]
    }
}

/// What is broken in some state, and what was seen.
fn found(model: Homes) -> Vec<&'static str> {
    let checker = model.checker().finish_when(HasDiscoveries::AnyFailures).spawn_bfs().join();
    let mut found: Vec<_> = checker.discoveries().into_keys().collect();
    found.sort_unstable();
    found
}

#[test]
fn no_order_of_steps_breaks_the_protocol_and_somebody_goes_on() {
    assert_eq!(found(PROTOCOL), [REFUSED, GOES_ON]);
}

#[test]
fn the_model_finds_a_fault_without_any_of_the_three() {
    for (what, model) in [
        ("the fence", Homes { has_fence: false, ..PROTOCOL }),
        ("waiting for writes in flight", Homes { holds_row: false, ..PROTOCOL }),
        ("the condition", Homes { is_conditional: false, ..PROTOCOL }),
    ] {
        let broken = found(model);
        assert!(
            broken.iter().any(|name| [FALLS, SHARED, MISSED].contains(name)),
            "without {what} it finds {broken:?}"
        );
    }
}
