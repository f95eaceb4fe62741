//! Sentences of each kind in each language, and as many that are no memory. They were written
//! before their author saw the rules. The rules may be changed after the half `kinds-dev.tsv`; of
//! `kinds-held-out.tsv` only totals are printed.

use std::collections::BTreeMap;

use memhost_taxonomy::{Kind, extract};

/// From here on a candidate is approved.
const APPROVED: f64 = 0.60;

/// Counts of one kind or of all: how many were wanted, how many found, how many of these rightly.
#[derive(Debug, Default, Clone, Copy)]
struct Count {
    wanted: usize,
    found: usize,
    right: usize,
}

impl Count {
    fn precision(self) -> f64 {
        if self.found == 0 { 1.0 } else { self.right as f64 / self.found as f64 }
    }

    fn recall(self) -> f64 {
        if self.wanted == 0 { 1.0 } else { self.right as f64 / self.wanted as f64 }
    }
}

/// The counts of each language and kind; of each language over all kinds under `None`.
fn measure(half: &str, show: bool) -> BTreeMap<(String, Option<Kind>), Count> {
    let path = format!("{}/tests/labelled/kinds-{half}.tsv", env!("CARGO_MANIFEST_DIR"));
    let mut counts: BTreeMap<(String, Option<Kind>), Count> = BTreeMap::new();
    for line in std::fs::read_to_string(path).unwrap().lines() {
        let mut fields = line.splitn(3, '\t');
        let [language, kind, text] = std::array::from_fn(|_| fields.next().unwrap());
        let wanted = Kind::parse(kind);
        let mut found: Vec<(Kind, &str)> = extract(text)
            .into_iter()
            .filter(|c| c.confidence >= APPROVED)
            .map(|c| (c.kind, c.rule))
            .collect();
        found.sort_unstable();
        found.dedup_by_key(|(kind, _)| *kind);
        if show
            && (found.len() != usize::from(wanted.is_some())
                || found.iter().any(|(found, _)| Some(*found) != wanted))
        {
            println!("{language}\t{kind}\t{text}\t{found:?}");
        }
        for kind in wanted.iter().copied() {
            for key in [Some(kind), None] {
                counts.entry((language.to_owned(), key)).or_default().wanted += 1;
            }
        }
        for (kind, _) in found {
            for key in [Some(kind), None] {
                let count = counts.entry((language.to_owned(), key)).or_default();
                count.found += 1;
                count.right += usize::from(wanted == Some(kind));
            }
        }
    }
    counts
}

fn check(half: &str, show: bool) {
    let counts = measure(half, show);
    for ((language, kind), count) in &counts {
        let kind = kind.map_or("all", Kind::name);
        println!(
            "{half}\t{language}\t{kind}\t{:.3}\t{:.3}\t{count:?}",
            count.precision(),
            count.recall()
        );
    }
    for ((language, kind), count) in &counts {
        if kind.is_none() {
            assert!(
                count.precision() >= 0.93,
                "{half}, {language}: precision {:.3}",
                count.precision()
            );
        }
        let floor = if kind.is_none() { 0.85 } else { 0.70 };
        assert!(
            count.recall() >= floor,
            "{half}, {language}, {kind:?}: recall {:.3}",
            count.recall()
        );
    }
}

#[test]
fn the_half_that_the_rules_were_changed_after() {
    check("dev", true);
}

#[test]
fn the_half_that_nobody_looked_at() {
    check("held-out", false);
}
