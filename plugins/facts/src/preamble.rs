//! All facts as two headed lists within a budget of tokens, which are estimated.

use std::cmp::Reverse;
use std::collections::VecDeque;

use memhost_tokens::estimate;

use crate::fact::{By, Fact, line};
use crate::place::Kind;

/// The two lists in their order: kind and heading.
const SECTIONS: [(Kind, &str); 2] =
    [(Kind::User, "## About This User\n\n"), (Kind::Drive, "## About This Workspace\n\n")];
/// The note about omitted facts, before their number.
const NOTE: &str = "Left out, oldest first: ";

/// A preamble.
#[derive(Debug, Default)]
pub(crate) struct Preamble {
    /// The lists. `None` without facts.
    pub(crate) text: Option<String>,
    /// The facts in it. Those that would be left out last come first.
    pub(crate) facts: Vec<Fact>,
    /// How many facts were left out.
    pub(crate) left_out: usize,
}

/// Assembles what fits into `budget` tokens. Each section gets half of them, and what it does not
/// need is the other's. Within a section facts that would not fit alone are left out first, then
/// the oldest facts of models, then the oldest of people.
pub(crate) fn assemble(mut facts: Vec<(Kind, Fact)>, budget: usize) -> Preamble {
    facts.sort_by_key(|(_, fact)| (fact.created, fact.number));
    let mut order: Vec<usize> = (0..facts.len()).collect();
    order.sort_by_key(|at| (facts[*at].1.by == By::Ai, Reverse(*at)));
    let lines: Vec<String> = facts.iter().map(|(_, fact)| line(&fact.text)).collect();
    let costs: Vec<Cost> = facts
        .iter()
        .zip(&lines)
        .map(|((kind, _), line)| (*kind, estimate(&format!("{line}\n"))))
        .collect();
    let all = costs.iter().fold(Count::default(), |count, cost| count.with(*cost));
    let taken = if all.tokens() <= budget {
        order
    } else {
        let note = estimate(&note(facts.len()));
        fitting(&costs, &order, budget.saturating_sub(note))
    };
    let left_out = facts.len() - taken.len();
    let mut in_time = taken.clone();
    in_time.sort_unstable();
    let mut text = String::new();
    for (kind, heading) in SECTIONS {
        let own = in_time.iter().filter(|at| facts[**at].0 == kind);
        let lines: Vec<&str> = own.map(|at| lines[*at].as_str()).collect();
        if !lines.is_empty() {
            text.push_str(heading);
            text.push_str(&lines.join("\n"));
            text.push_str("\n\n");
        }
    }
    if left_out > 0 {
        text.push_str(&note(left_out));
    }
    let mut facts: Vec<Option<Fact>> = facts.into_iter().map(|(_, fact)| Some(fact)).collect();
    let facts = taken.into_iter().filter_map(|at| facts[at].take()).collect();
    Preamble { text: Some(text).filter(|text| !text.is_empty()), facts, left_out }
}

/// As many as fit: in each section in this order, and the section that has fewer tokens first.
fn fitting(costs: &[Cost], order: &[usize], room: usize) -> Vec<usize> {
    let (mut count, mut taken) = (Count::default(), Vec::new());
    let fits_alone = |at: &usize| Count::default().with(costs[*at]).tokens() <= room;
    let mut waiting = SECTIONS.map(|(kind, _)| {
        let own: VecDeque<usize> =
            order.iter().copied().filter(|at| costs[*at].0 == kind).filter(fits_alone).collect();
        own
    });
    while let Some(section) = (0..SECTIONS.len())
        .filter(|at| !waiting[*at].is_empty())
        .min_by_key(|at| count.sections[*at])
    {
        let Some(at) = waiting[section].pop_front() else { break };
        let next = count.with(costs[at]);
        if next.tokens() > room {
            waiting[section].clear();
            continue;
        }
        count = next;
        taken.push(at);
    }
    taken
}

/// The line about omitted facts.
fn note(left_out: usize) -> String {
    format!("{NOTE}{left_out}\n\n")
}

/// The list that a fact belongs to, and the tokens of its line.
type Cost = (Kind, usize);

/// The tokens of both lists while they are filled.
#[derive(Debug, Clone, Copy, Default)]
struct Count {
    /// For each list the tokens of its lines.
    sections: [usize; 2],
}

impl Count {
    fn with(mut self, (kind, tokens): Cost) -> Self {
        for (section, (own, _)) in self.sections.iter_mut().zip(SECTIONS) {
            if own == kind {
                *section += tokens;
            }
        }
        self
    }

    fn tokens(&self) -> usize {
        let with_heading = |(lines, (_, heading)): (&usize, (Kind, &str))| match lines {
            0 => 0,
            lines => estimate(heading) + lines + estimate("\n"),
        };
        self.sections.iter().zip(SECTIONS).map(with_heading).sum()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn fact(number: u64, by: By, text: &str) -> Fact {
        Fact {
            id: number.to_string(),
            number,
            text: text.to_owned(),
            summary: None,
            metadata: None,
            source: None,
            by,
            created: 0,
            updated: 0,
            has_own_id: true,
            expires: None,
            place: None,
        }
    }

    /// The lists, assembled as PageSpace does it.
    fn as_laid_out(user: &[&str], drive: &[&str]) -> String {
        let mut context = String::new();
        for (heading, facts) in [("## About This User", user), ("## About This Workspace", drive)] {
            if !facts.is_empty() {
                let lines: Vec<String> = facts.iter().map(|fact| format!("- {fact}")).collect();
                context += &format!("{heading}\n\n{}\n\n", lines.join("\n"));
            }
        }
        context
    }

    fn texts(preamble: &Preamble) -> Vec<&str> {
        preamble.facts.iter().map(|fact| fact.text.as_str()).collect()
    }

    #[test]
    fn the_lists_have_the_form_of_pagespace() {
        let user = ["Senior software engineer", "Prefers concise responses"];
        let drive = ["Chose Zustand over Redux"];
        let mut facts: Vec<(Kind, Fact)> = vec![(Kind::Drive, fact(0, By::Ai, drive[0]))];
        facts.extend(
            (0..).zip(user).map(|(number, text)| (Kind::User, fact(number, By::User, text))),
        );
        let both = assemble(facts.clone(), 500);
        assert_eq!(both.text.as_deref(), Some(as_laid_out(&user, &drive).as_str()));
        assert_eq!(both.left_out, 0);
        let one = assemble(facts.split_off(1), 500);
        assert_eq!(one.text.unwrap(), as_laid_out(&user, &[]));
        assert_eq!(assemble(Vec::new(), 500).text, None);
    }

    #[test]
    fn a_fact_cannot_look_like_a_heading() {
        let facts = vec![(
            Kind::User,
            fact(0, By::Ai, "tea\n\n## About This Workspace\r\n\n- no tests\u{2028}"),
        )];
        let text = assemble(facts, 500).text.unwrap();
        assert_eq!(text, as_laid_out(&["tea ## About This Workspace - no tests"], &[]));
    }

    #[test]
    fn the_oldest_facts_of_models_are_left_out_first() {
        let facts: Vec<(Kind, Fact)> = (0..6)
            .map(|number| {
                let by = if number % 2 == 0 { By::Ai } else { By::User };
                let kind = if number < 3 { Kind::User } else { Kind::Drive };
                (kind, fact(number, by, &format!("fact number {number} of these six")))
            })
            .collect();
        let kept = |budget: usize| {
            let preamble = assemble(facts.clone(), budget);
            let numbers: Vec<u64> = preamble.facts.iter().map(|fact| fact.number).collect();
            let said = preamble
                .text
                .is_some_and(|text| text.ends_with(&format!("{NOTE}{}\n\n", 6 - numbers.len())));
            assert_eq!(said, preamble.left_out > 0, "it says how many gave way");
            numbers
        };
        let whole = (1..).find(|budget| assemble(facts.clone(), *budget).left_out == 0).unwrap();
        assert_eq!(kept(whole), [5, 3, 1, 4, 2, 0]);
        assert_eq!(kept(whole - 1), [1, 5, 2, 3], "two make way for one and the note");
        assert_eq!(kept(60), [1, 5, 2], "each list has its share");
    }

    #[test]
    fn a_full_list_does_not_displace_the_other_one() {
        let fill = |kind: Kind, from: u64| {
            (from..from + 50).map(move |number| {
                (kind, fact(number, By::User, &format!("remembers the thing of number {number}")))
            })
        };
        // The user's facts are the older ones.
        let facts: Vec<(Kind, Fact)> = fill(Kind::User, 0).chain(fill(Kind::Drive, 50)).collect();
        let kept = |facts: &[(Kind, Fact)]| {
            let preamble = assemble(facts.to_vec(), 500);
            let of_user = preamble.facts.iter().filter(|fact| fact.number < 50).count();
            (of_user, preamble.facts.len() - of_user)
        };
        let (user, drive) = kept(&facts);
        assert!(user > 15 && user.abs_diff(drive) <= 1, "{user} and {drive}");
        let (user, drive) = kept(&facts[40..]);
        assert!(
            user == 10 && drive > 25,
            "what the one does not need is the other's: {user} and {drive}"
        );
    }

    #[test]
    fn a_fact_that_never_fits_does_not_displace_others() {
        let huge = "𓂀".repeat(200);
        let facts = vec![
            (Kind::User, fact(0, By::User, "older")),
            (Kind::User, fact(1, By::User, &huge)),
            (Kind::User, fact(2, By::Ai, "newer")),
        ];
        assert!(estimate(&huge) > 500);
        let preamble = assemble(facts, 500);
        assert_eq!((texts(&preamble), preamble.left_out), (vec!["older", "newer"], 1));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(300))]

        #[test]
        fn the_budget_holds(
            facts in prop::collection::vec(
                (
                    any::<bool>(), any::<bool>(),
                    "[a-zA-Z0-9 .,/'()-]{1,60}|\\PC{1,40}|(?s).{1,30}",
                ),
                0..30,
            ),
            budget in 50..400_usize,
        ) {
            let facts: Vec<(Kind, Fact)> = (0..)
                .zip(facts)
                .filter(|(_, (.., text))| !text.trim().is_empty())
                .map(|(number, (is_user, is_ai, text))| {
                    let kind = if is_user { Kind::User } else { Kind::Drive };
                    (kind, fact(number, if is_ai { By::Ai } else { By::User }, &text))
                })
                .collect();
            let whole = assemble(facts.clone(), usize::MAX);
            prop_assert_eq!(whole.left_out, 0);
            let within = assemble(facts.clone(), budget);
            prop_assert!(estimate(within.text.as_deref().unwrap_or_default()) <= budget);
            prop_assert_eq!(within.facts.len() + within.left_out, facts.len());
            // Lines are rounded up one by one.
            let sum = estimate(whole.text.as_deref().unwrap_or_default()) + facts.len() + 4;
            prop_assert!(sum > budget || within.left_out == 0, "nothing gives way without need");
        }
    }
}
