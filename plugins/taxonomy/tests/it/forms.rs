//! Sentences of forms that the rules once missed or took for something else, with neighbours that
//! are to stay as they are: the form, the kind or `none`, the sentence. They were written before
//! the rules for them. Only totals of the half `forms-held-out.tsv` are printed.

use std::collections::BTreeMap;

use memhost_taxonomy::{Kind, extract};

/// From here on a candidate is approved.
const APPROVED: f64 = 0.60;

/// How many sentences of each form there are, and of how many exactly the wanted kind is found.
fn measure(half: &str, show: bool) -> BTreeMap<String, (usize, usize)> {
    let path = format!("{}/tests/labelled/forms-{half}.tsv", env!("CARGO_MANIFEST_DIR"));
    let mut counts: BTreeMap<String, (usize, usize)> = BTreeMap::new();
    for line in std::fs::read_to_string(path).unwrap().lines() {
        let mut fields = line.splitn(3, '\t');
        let [form, kind, text] = std::array::from_fn(|_| fields.next().unwrap());
        let wanted: Vec<Kind> = Kind::parse(kind).into_iter().collect();
        let found = extract(text).into_iter().filter(|candidate| candidate.confidence >= APPROVED);
        let found: Vec<(Kind, &str)> =
            found.map(|candidate| (candidate.kind, candidate.rule)).collect();
        let is_right = found.iter().map(|(kind, _)| *kind).eq(wanted);
        if show && !is_right {
            println!("{form}\t{kind}\t{text}\t{found:?}");
        }
        let (all, right) = counts.entry(form.to_owned()).or_default();
        *all += 1;
        *right += usize::from(is_right);
    }
    counts
}

/// Fails if fewer than `floor` of ten sentences of a form are right.
fn check(half: &str, show: bool, floor: usize) {
    let counts = measure(half, show);
    println!("{half}: {counts:?}");
    for (form, (all, right)) in counts {
        assert!(right * 10 >= all * floor, "{half}, {form}: {right} of {all}");
    }
}

#[test]
fn of_each_form_nearly_all_are_right() {
    check("dev", true, 9);
}

#[test]
fn of_each_form_most_are_right_that_nobody_looked_at() {
    check("held-out", false, 7);
}
