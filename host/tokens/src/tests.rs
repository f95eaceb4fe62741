//! Counts that another implementation made, and the definition of the encoding.

use std::collections::HashMap;
use std::sync::LazyLock;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use proptest::prelude::*;
use sha2::{Digest, Sha256};

use super::*;

/// Made with `bpe-openai` 0.3.2.
const COUNTS: &[(&str, usize)] = &[
    ("", 0),
    ("a", 1),
    (" ", 1),
    ("Hello, world!", 4),
    ("- Prefers concise answers (issue PAP-7, 2026-11-20)\n", 19),
    ("the gate code is 17", 6),
    ("don't I'M WE'LL they've it'ſ", 10),
    ("ning'DRa", 3),
    ("AT'MSteve", 3),
    (".\n/", 1),
    ("x.\n// y", 3),
    ("iPhone camelCase HTTPServer snake_case", 8),
    ("1234567 3.14 ½ ² Ⅷ ٣٤", 17),
    ("   leading", 2),
    ("trailing   ", 3),
    ("a  b   c\td", 6),
    ("\n\n\n", 1),
    (" \n \n x", 2),
    ("a\r\nb\r\n", 4),
    ("\u{a0}\u{2028}\u{3000}\u{85}x", 6),
    ("fn main() { println!(\"{}\", 1 << 20); }", 13),
    ("https://example.com/a/b?c=d#e", 11),
    ("path/\n//\n/", 4),
    ("===== ----- _____", 3),
    ("日本語のテキスト", 6),
    ("中文分词没有空格", 6),
    ("한국어 문장입니다.", 6),
    ("Привет, мир", 4),
    ("مرحبا بالعالم", 4),
    ("שלום עולם", 2),
    ("मानक हिन्दी", 3),
    ("ภาษาไทยไม่เว้นวรรค", 7),
    ("ΑΒΓ αβγ", 6),
    ("é e\u{301} ǅungla ʰª", 12),
    ("😀👩\u{200d}👩\u{200d}👧\u{200d}👦🇩🇪✌🏽", 20),
    ("\u{0}\u{1}\u{1b}[0m\u{7f}", 7),
    ("\u{feff}\u{200b}\u{200d}", 3),
    ("<|endoftext|>", 7),
    ("\u{10400}\u{16e40}\u{3da5e}", 12),
    ("asdkjhqwezxc", 6),
    ("𝔘𝔫𝔦𝔠𝔬𝔡𝔢", 21),
    ("|a|b|\n|-|-|\n", 8),
    ("{\"key\": [1, 2.5e10, null]}", 15),
];

/// A text, and the tokens of 50 000 of it. Made with `bpe-openai` 0.3.2. An encoder that is not
/// linear takes minutes.
const REPEATED: &[(&str, usize)] = &[
    ("a", 6250),
    (" ", 392),
    ("=", 781),
    ("0", 16667),
    ("中", 50000),
    ("\n", 3125),
    (" \t", 49999),
    ("ab", 25000),
    ("é", 50000),
    ("😀", 50000),
    ("Aa", 50000),
];

#[test]
fn counts_are_those_of_another_implementation() {
    for (text, tokens) in COUNTS {
        assert_eq!(count(text), *tokens, "{text:?}");
    }
}

#[test]
fn long_texts_without_a_seam_are_counted_too() {
    for (text, tokens) in REPEATED {
        assert_eq!(count(&text.repeat(50_000)), *tokens, "{text:?}");
    }
}

#[test]
fn the_vocabulary_is_the_published_one() {
    let lines = (0..)
        .zip(vocabulary())
        .map(|(rank, token): (u32, _)| format!("{} {rank}\n", STANDARD.encode(token)));
    let digest = Sha256::digest(lines.collect::<String>());
    let hex: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(hex, "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d");
}

#[test]
fn no_token_is_longer_than_the_limit_assumes() {
    assert_eq!(vocabulary().iter().map(|token| token.len()).max(), Some(LONGEST));
}

static RANKS: LazyLock<HashMap<&[u8], usize>> = LazyLock::new(|| {
    vocabulary().into_iter().enumerate().map(|(rank, token)| (token, rank)).collect()
});

/// The definition: of all neighbours that make a token together, those of the lowest rank are
/// merged, until none do.
fn merged(piece: &[u8]) -> usize {
    let mut ends: Vec<usize> = (0..=piece.len()).collect();
    let rank = |ends: &[usize]| RANKS.get(&piece[ends[0]..ends[2]]).copied();
    while let Some((_, at)) =
        ends.windows(3).enumerate().filter_map(|(at, ends)| Some((rank(ends)?, at))).min()
    {
        ends.remove(at + 1);
    }
    ends.len() - 1
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn pieces_are_merged_as_defined(
        text in "[a-z]{1,40}|[ab]{1,60}|[a-zA-Z]{1,20}|\\PC{1,20}|(?s).{1,20}|[ \
                 =\n-]{1,40}|[一-龟]{1,15}"
    ) {
        let (table, _) = LOADED.as_ref().unwrap();
        prop_assert_eq!(Encoder::new(table).count(text.as_bytes()), merged(text.as_bytes()));
    }

    #[test]
    fn pieces_are_the_whole_text(text in "(?s)(.|[ \t\n]|[a-z]){0,40}") {
        let (_, pattern) = LOADED.as_ref().unwrap();
        prop_assert_eq!(Pieces { pattern, left: &text }.collect::<String>(), text);
    }

    #[test]
    fn a_limit_is_met_exactly(text in "(?s)(.|[ \t\n]|[a-z]){0,40}|a{0,2000}") {
        let tokens = count(&text);
        prop_assert_eq!(count_up_to(&text, tokens), Some(tokens));
        prop_assert_eq!(count_up_to(&text, tokens + 1), Some(tokens));
        if let Some(less) = tokens.checked_sub(1) {
            prop_assert_eq!(count_up_to(&text, less), None);
        }
    }
}
