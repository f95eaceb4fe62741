//! The one spelling of a word.

use std::borrow::Cow;

use unicode_normalization::UnicodeNormalization;

/// A text in small and composed letters, without what cannot be seen. Accents stay, because
/// stemmers know them.
///
/// ```
/// assert_eq!(memhost_words::small("Die ＳＴＲＡẞＥ in I\u{307}zmir"), "die strasse in izmir");
/// ```
#[must_use]
pub fn small(text: &str) -> Cow<'_, str> {
    if text.is_ascii() {
        return match text.bytes().any(|byte| byte.is_ascii_uppercase()) {
            true => text.to_ascii_lowercase().into(),
            false => text.into(),
        };
    }
    let apart: String = text.chars().filter(|sign| !is_unseen(*sign)).nfkd().collect();
    small_of_apart(&apart).into()
}

/// The same for what is decomposed already.
pub(crate) fn small_of_apart(apart: &str) -> String {
    let mut signs = apart.chars().peekable();
    let mut small = String::with_capacity(apart.len());
    while let Some(sign) = signs.next() {
        for sign in sign.to_lowercase() {
            match sign {
                'ß' => small.push_str("ss"),
                'ς' => small.push('σ'),
                sign => small.push(sign),
            }
        }
        // `İ` is an `I` with the dot that every `i` has.
        if matches!(sign, 'I' | 'i') {
            signs.next_if_eq(&'\u{307}');
        }
    }
    small.nfc().collect()
}

/// A text as [`small`] makes it, without accents and other marks that people leave out. Marks that
/// make another letter stay, such as those of Japanese, Thai and Hindi.
///
/// ```
/// use memhost_words::plain;
///
/// assert_eq!(plain("Café ανάπτυξη Đặng"), "cafe αναπτυξη dang");
/// assert_eq!(plain("か\u{3099}"), "が");
/// ```
#[must_use]
pub fn plain(text: &str) -> Cow<'_, str> {
    let small = small(text);
    if small.is_ascii() {
        return small;
    }
    let mut plain = String::with_capacity(small.len());
    for sign in small.nfd().filter(|sign| !is_left_out(*sign)) {
        match sign {
            'æ' => plain.push_str("ae"),
            'ð' => plain.push('d'),
            'þ' => plain.push_str("th"),
            'đ' => plain.push('d'),
            'ħ' => plain.push('h'),
            'ı' => plain.push('i'),
            'ł' => plain.push('l'),
            'ø' => plain.push('o'),
            'œ' => plain.push_str("oe"),
            'ŧ' => plain.push('t'),
            other => plain.push(other),
        }
    }
    plain.nfc().collect::<String>().into()
}

/// Whether a sign cannot be seen and is no part of a spelling: soft hyphens, joiners, marks of
/// direction and variants of a glyph.
pub(crate) fn is_unseen(sign: char) -> bool {
    matches!(
        u32::from(sign),
        0xad | 0x34f | 0x200c..=0x200f | 0x202a..=0x202e | 0x2060..=0x206f | 0xfe00..=0xfe0f
            | 0xfeff | 0xe0100..=0xe01ef,
    )
}

/// Accents of Latin, Greek and Cyrillic letters, points of Hebrew, and signs of Arabic vowels.
fn is_left_out(mark: char) -> bool {
    matches!(
        u32::from(mark),
        0x300..=0x36f | 0x483..=0x487 | 0x1ab0..=0x1aff | 0x1dc0..=0x1dff | 0x20d0..=0x20ff
            | 0xfe20..=0xfe2f
            // Hebrew.
            | 0x591..=0x5bd | 0x5bf | 0x5c1..=0x5c2 | 0x5c4..=0x5c5 | 0x5c7
            // Arabic, with the line that only makes a word longer.
            | 0x610..=0x61a | 0x640 | 0x64b..=0x65f | 0x670 | 0x6d6..=0x6dc | 0x6df..=0x6e4
            | 0x6e7..=0x6e8 | 0x6ea..=0x6ed,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn apart(text: &str) -> String {
        text.nfd().collect()
    }

    #[test]
    fn spellings_of_one_word_are_one() {
        for (one, other) in [
            ("İstanbul", "istanbul"),
            ("ISPARTA", "ısparta"),
            ("Straße", "STRASSE"),
            ("STRAẞE", "strasse"),
            ("ανάπτυξη", "ΑΝΑΠΤΥΞΗ"),
            ("ΟΔΟΣ", "οδός"),
            ("Đặng", "dang"),
            ("gaļa", "gala"),
            ("ＡＢＣ１２", "abc12"),
            ("ﬁnal", "final"),
            ("ｶﾞｲﾄﾞ", "ガイド"),
            ("Konfe\u{ad}renz", "konferenz"),
            ("ёлка", "елка"),
            ("שָׁלוֹם", "שלום"),
            ("كِتَابٌ", "كتاب"),
            ("Bjørn", "bjorn"),
        ] {
            assert_eq!(plain(one), plain(other), "{one} {other}");
            for text in [one, other] {
                assert_eq!(plain(&apart(text)), plain(text), "{text}");
                assert_eq!(small(&apart(text)), small(text), "{text}");
                assert_eq!(plain(&plain(text)), plain(text), "{text}");
            }
        }
    }

    #[test]
    fn other_words_stay_apart() {
        for (one, other) in [("が", "か"), ("คา", "ค่า"), ("한", "하"), ("कि", "की")]
        {
            assert_ne!(plain(one), plain(other));
        }
        assert_eq!(small(&apart("한국어")), "한국어");
        assert_eq!(small("Müller"), "müller");
    }
}
