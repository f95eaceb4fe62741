//! A rule of the contract and how it is tested.

use std::pin::Pin;

use serde::Serialize;

use super::subject::{Candidate, Subject};
use super::verdict::Verdict;
use memhost_sandbox::{AdmissionError, OptionalInterface};
use memhost_types::{Exception, HostWork};

/// The source in the contract.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Sentence {
    /// The file, from the repository's root.
    pub file: &'static str,
    /// The function, type or field that the sentence stands at.
    pub item: &'static str,
    /// The sentence, word by word.
    pub text: &'static str,
}

/// The checks that test the rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// Every check.
    Quick,
    /// Only thorough checks: the test takes long or needs much space.
    Thorough,
}

pub(super) type Trial<'a> = Pin<Box<dyn Future<Output = Verdict> + Send + 'a>>;

/// How a rule is tested.
#[derive(Clone, Copy)]
pub(super) enum Run {
    /// Admission alone decides it.
    Admission,
    /// On the component, before it has a binding.
    Component(for<'a> fn(&'a Candidate) -> Trial<'a>),
    /// On a binding of its own.
    Binding(for<'a> fn(&'a Subject) -> Trial<'a>),
}

/// One rule of the contract.
#[derive(Clone, Copy, Serialize)]
pub struct Rule {
    /// Stable: the id of a removed rule is never used again.
    pub id: &'static str,
    /// The rule, in one line.
    pub title: &'static str,
    /// The suite's steps, and the required answer of the provider.
    pub expects: &'static str,
    /// The source in the contract.
    pub contract: Sentence,
    /// The checks that test it.
    pub mode: Mode,
    /// The optional interface that it is about. `None`: the rule is for every provider.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interface: Option<OptionalInterface>,
    /// The declaration that exempts a provider from it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unless: Option<Exception>,
    /// The work that a provider may leave to the host and still keep it.
    #[serde(skip_serializing_if = "<[HostWork]>::is_empty")]
    pub left: &'static [HostWork],
    #[serde(skip)]
    pub(super) run: Run,
    /// Whether a component that admission refuses for this reason breaks the rule.
    #[serde(skip)]
    pub(super) refusal: fn(&AdmissionError) -> bool,
}

impl std::fmt::Debug for Rule {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.id)
    }
}

/// A table of rules: the optional interface that all of them are about, if any, and a row for each
/// rule. A row has an id, a title, what is expected, and the sentence of the contract. Behind `=>`
/// it has the test: `admission` if admission alone decides, `component(TEST)` or `binding(TEST)`
/// for those kinds of [`Run`]. `.thorough()` and `.refused_with(REFUSAL)` may follow.
macro_rules! rules {
    (@admission) => { $crate::rule::Run::Admission };
    (@component $test:path) => {
        $crate::rule::Run::Component(|candidate| Box::pin($test(candidate)))
    };
    (@binding $test:path) => { $crate::rule::Run::Binding(|subject| Box::pin($test(subject))) };
    ($interface:expr; $(
        $id:tt $title:literal $expects:literal $contract:expr
        => $run:ident $(($test:path))? $(.$modifier:ident($($argument:tt)*))*;
    )*) => {
        &[$($crate::rule::Rule {
            id: $id,
            title: $title,
            expects: $expects,
            contract: $contract,
            mode: $crate::rule::Mode::Quick,
            interface: $interface,
            unless: None,
            left: &[],
            run: rules!(@$run $($test)?),
            refusal: |_| false,
        }$(.$modifier($($argument)*))*),*]
    };
}
pub(super) use rules;

impl Rule {
    pub(super) const fn refused_with(mut self, refusal: fn(&AdmissionError) -> bool) -> Self {
        self.refusal = refusal;
        self
    }

    /// A provider that declares this exception need not keep it.
    pub(super) const fn unless(mut self, exception: Exception) -> Self {
        self.unless = Some(exception);
        self
    }

    /// The host keeps it for a provider that leaves one of these to the host.
    pub(super) const fn left(mut self, work: &'static [HostWork]) -> Self {
        self.left = work;
        self
    }

    pub(super) const fn thorough(mut self) -> Self {
        self.mode = Mode::Thorough;
        self
    }
}

pub(super) const fn provider(item: &'static str, text: &'static str) -> Sentence {
    Sentence { file: "wit/provider.wit", item, text }
}

pub(super) const fn optional(item: &'static str, text: &'static str) -> Sentence {
    Sentence { file: "wit/optional.wit", item, text }
}

pub(super) const fn types(item: &'static str, text: &'static str) -> Sentence {
    Sentence { file: "wit/types.wit", item, text }
}

pub(super) const fn world(item: &'static str, text: &'static str) -> Sentence {
    Sentence { file: "wit/worlds.wit", item, text }
}
