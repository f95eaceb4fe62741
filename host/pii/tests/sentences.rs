//! The detector on sentences that were written before its rules were read.
//!
//! Each line of a file in `sentences/` has a level, a country and a sentence. The files are the
//! random halves of one list. The rules were mended with `seen.tsv` only; `unseen.tsv` measures
//! what they find in other sentences.

#![allow(clippy::expect_used, reason = "a file that is not as it must be fails the test")]

use memhost_pii::{PiiRisk, redact, risk};

struct Sentence {
    level: u8,
    country: &'static str,
    text: &'static str,
}

fn read(file: &'static str) -> Vec<Sentence> {
    let line = |line: &'static str| {
        let mut fields = line.splitn(3, '\t');
        let mut field = || fields.next().expect("three fields");
        Sentence { level: field().parse().expect("a level"), country: field(), text: field() }
    };
    file.lines().map(line).collect()
}

/// What a file's sentences are found to be.
struct Figures {
    /// The share of the sentences of level 2 that is found to be of level 2.
    recall: f64,
    /// The share of the sentences found to be of level 2 that is of level 2.
    precision: f64,
    /// The share of the sentences of level 1 that is found to be of level 1 or 2.
    flagged: f64,
    /// The sentences at another level than theirs.
    wrong: Vec<String>,
}

fn measure(sentences: &[Sentence]) -> Figures {
    let found: Vec<(u8, u8)> =
        sentences.iter().map(|one| (one.level, risk(one.text).level())).collect();
    let count = |wanted: &dyn Fn(u8, u8) -> bool| {
        found.iter().filter(|&&(is, got)| wanted(is, got)).count()
    };
    #[expect(clippy::cast_precision_loss, reason = "there are a few hundred sentences")]
    let share = |part: usize, whole: usize| part as f64 / whole as f64;
    let both = count(&|is, got| is == 2 && got == 2);
    let different = |one: &&Sentence| risk(one.text).level() != one.level;
    let line = |one: &Sentence| {
        format!("{} {} -> {} {}", one.country, one.level, risk(one.text).level(), one.text)
    };
    Figures {
        recall: share(both, count(&|is, _| is == 2)),
        precision: share(both, count(&|_, got| got == 2)),
        flagged: share(count(&|is, got| is == 1 && got > 0), count(&|is, _| is == 1)),
        wrong: sentences.iter().filter(different).map(line).collect(),
    }
}

#[test]
fn finds_raw_data_in_the_seen_half() {
    let figures = measure(&read(include_str!("sentences/seen.tsv")));
    println!(
        "recall {:.3} precision {:.3} flagged {:.3}",
        figures.recall, figures.precision, figures.flagged
    );
    let enough = figures.recall >= 0.95 && figures.precision >= 0.95 && figures.flagged >= 0.9;
    assert!(enough, "{}", figures.wrong.join("\n"));
}

/// The sentences themselves are not printed, so that nobody mends the rules with them.
#[test]
fn finds_raw_data_in_the_unseen_half() {
    let figures = measure(&read(include_str!("sentences/unseen.tsv")));
    println!(
        "recall {:.3} precision {:.3} flagged {:.3}",
        figures.recall, figures.precision, figures.flagged
    );
    assert!(figures.recall >= 0.95, "recall of level 2: {:.3}", figures.recall);
    assert!(figures.precision >= 0.95, "precision of level 2: {:.3}", figures.precision);
    assert!(figures.flagged >= 0.9, "level 1 that is flagged: {:.3}", figures.flagged);
}

#[test]
fn both_halves_cover_six_countries_and_all_levels() {
    for file in [include_str!("sentences/seen.tsv"), include_str!("sentences/unseen.tsv")] {
        let sentences = read(file);
        assert!(sentences.len() >= 150);
        for country in ["DE", "AT", "CH", "FR", "GB", "US", "CN", "JP", "IN"] {
            assert!(sentences.iter().any(|one| one.country == country), "{country}");
        }
        let share = |level: u8| {
            sentences.iter().filter(|one| one.level == level).count() * 10 / sentences.len()
        };
        assert!(share(2) >= 3 && share(0) >= 4 && share(1) >= 1);
    }
}

#[test]
fn redaction_leaves_no_raw_data() {
    for file in [include_str!("sentences/seen.tsv"), include_str!("sentences/unseen.tsv")] {
        for one in read(file) {
            let redacted = redact(one.text);
            assert!(risk(&redacted) < PiiRisk::High, "{}", one.text);
            assert_eq!(redact(&redacted), redacted);
        }
    }
}
