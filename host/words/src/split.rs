//! Splits a text into words.

use std::collections::VecDeque;
use std::str::Chars;

use unicode_normalization::char::{decompose_compatible, is_combining_mark};

use crate::spelling::{is_unseen, small_of_apart};

/// A word of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Word {
    /// The byte at which it begins.
    pub at: usize,
    /// The byte behind its last letter.
    pub end: usize,
    /// The word as [`small`](crate::small) makes it.
    pub text: String,
    /// Whether it is one letter of a script without spaces.
    pub is_letter: bool,
}

/// The words of a text that are still to come.
struct Words<'t> {
    text: &'t str,
    rest: Chars<'t>,
    open: Option<Word>,
    /// One sign can end a word and be several others.
    ready: VecDeque<Word>,
}

/// The words of a text in their order. A possessive `'s` is no word.
///
/// ```
/// let words = |text| memhost_words::words(text).map(|word| word.text).collect::<Vec<_>>();
/// assert_eq!(words("Caroline's RUN-42, Ünïcode!"), ["caroline", "run", "42", "ünïcode"]);
/// assert_eq!(words("ทุกวัน 標識ab"), ["ทุ", "ก", "วั", "น", "標", "識", "ab"]);
/// ```
pub fn words(text: &str) -> impl Iterator<Item = Word> + '_ {
    Words { text, rest: text.chars(), open: None, ready: VecDeque::new() }
}

/// The words of a text for a ranking that does not see where they stand: without accents, and in
/// scripts without spaces also each two letters that are beside each other.
///
/// ```
/// let terms = |text| memhost_words::terms(text).collect::<Vec<_>>();
/// assert_eq!(terms("Café 日本へ"), ["cafe", "日", "日本", "本", "本へ", "へ"]);
/// ```
pub fn terms(text: &str) -> impl Iterator<Item = String> + '_ {
    let mut words = words(text).peekable();
    std::iter::from_fn(move || {
        let word = words.next()?;
        let next =
            words.peek().filter(|next| word.is_letter && next.is_letter && next.at <= word.end);
        let pair =
            next.map(|next| crate::plain(&format!("{}{}", word.text, next.text)).into_owned());
        Some([Some(crate::plain(&word.text).into_owned()), pair])
    })
    .flatten()
    .flatten()
}

/// Whether a script has no spaces between words, or writes particles together with them. Then each
/// letter is a word.
#[must_use]
pub fn is_spaceless(letter: char) -> bool {
    matches!(
        u32::from(letter),
        // Thai and Lao; Burmese; Hangul in parts; Khmer.
        0xe00..=0xeff | 0x1000..=0x109f | 0x1100..=0x11ff | 0x1780..=0x17ff
            // Tai Le, New Tai Lue, Khmer, Tai Tham.
            | 0x1950..=0x19ff | 0x1a20..=0x1aaf
            // Chinese, Japanese, Korean and Yi.
            | 0x2e80..=0x2fdf | 0x3005..=0x3007 | 0x3021..=0x31bf | 0x31f0..=0x31ff
            | 0x3400..=0x4dbf | 0x4e00..=0xa4cf
            // More of Hangul, Burmese and Tai Viet.
            | 0xa960..=0xa97f | 0xa9e0..=0xa9ff | 0xaa60..=0xaadf | 0xac00..=0xd7ff
            | 0xf900..=0xfaff | 0xff66..=0xffdc | 0x1b000..=0x1b16f | 0x20000..=0x3ffff,
    )
}

/// Whether a sign belongs to the letter before it: accents, vowel signs, and what cannot be seen.
#[must_use]
pub fn is_mark(sign: char) -> bool {
    !sign.is_ascii() && (is_combining_mark(sign) || is_unseen(sign))
}

/// The vowels and last consonants of a syllable of Hangul, which are letters by themselves.
fn is_inside_hangul(letter: char) -> bool {
    matches!(u32::from(letter), 0x1160..=0x11ff | 0xd7b0..=0xd7ff)
}

impl Words<'_> {
    fn at(&self) -> usize {
        self.text.len() - self.rest.as_str().len()
    }

    fn close(&mut self) {
        if let Some(mut word) = self.open.take() {
            match word.text.is_ascii() {
                true => word.text.make_ascii_lowercase(),
                false => word.text = small_of_apart(&word.text),
            }
            self.ready.push_back(word);
        }
    }

    /// Adds a sign of the text, which may be several when it is decomposed.
    fn add(&mut self, sign: char, at: usize) {
        let end = at + sign.len_utf8();
        if sign.is_ascii() {
            return self.add_part(sign, at, end);
        }
        decompose_compatible(sign, |part| self.add_part(part, at, end));
    }

    fn add_part(&mut self, part: char, at: usize, end: usize) {
        let is_inside = !part.is_ascii() && (is_combining_mark(part) || is_inside_hangul(part));
        if !is_inside {
            let is_letter = is_spaceless(part);
            if !part.is_alphanumeric() {
                return;
            }
            if self.open.as_ref().is_none_or(|open| is_letter || open.is_letter) {
                self.close();
                self.open = Some(Word { at, end, text: String::new(), is_letter });
            }
        }
        if let Some(open) = &mut self.open {
            open.text.push(part);
            open.end = end;
        }
    }

    /// Goes behind a possessive `'s`.
    fn pass_possessive(&mut self) {
        let mut behind = self.rest.clone();
        let is_one = behind.next() == Some('s')
            && behind.clone().next().is_none_or(|next| !next.is_alphanumeric());
        if is_one && self.open.as_ref().is_some_and(|open| !open.is_letter) {
            self.rest = behind;
        }
    }
}

impl Iterator for Words<'_> {
    type Item = Word;

    fn next(&mut self) -> Option<Word> {
        loop {
            if let Some(word) = self.ready.pop_front() {
                return Some(word);
            }
            let at = self.at();
            let plain = self.rest.as_str().bytes().take_while(u8::is_ascii_alphanumeric).count();
            if plain > 0 && self.open.is_none() {
                // Most words of most texts, without a look at each sign.
                let (text, rest) = self.rest.as_str().split_at(plain);
                self.rest = rest.chars();
                let text = text.to_owned();
                self.open = Some(Word { at, end: at + plain, text, is_letter: false });
                continue;
            }
            let Some(sign) = self.rest.next() else {
                self.close();
                return self.ready.pop_front();
            };
            if sign.is_alphanumeric()
                || !sign.is_ascii() && is_combining_mark(sign) && !is_unseen(sign)
            {
                self.add(sign, at);
            } else if !is_unseen(sign) {
                if matches!(sign, '\'' | '’') {
                    self.pass_possessive();
                }
                self.close();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use unicode_normalization::UnicodeNormalization;

    use super::*;

    fn texts(text: &str) -> Vec<String> {
        words(text).map(|word| word.text).collect()
    }

    #[test]
    fn marks_are_inside_words_and_possessives_are_none() {
        assert_eq!(texts("it’s the 'sun's'; s"), ["it", "the", "sun", "s"]);
        assert_eq!(texts("cafe\u{301}s हिन्दी"), ["cafés", "हिन्दी"]);
        assert_eq!(texts("no\u{ad}te a\u{200b}b"), ["note", "a", "b"]);
        assert!(texts("… --- \u{0} \u{301}").is_empty());
    }

    #[test]
    fn decomposed_and_wide_letters_are_the_same_words() {
        for text in ["Đặng Thuỳ writes", "한국어를 씁니다", "ガイド", "ន្តី", "น้ำ ດ້ຳ", "မြန်မာ"]
        {
            let apart: String = text.nfd().collect();
            assert_eq!(texts(&apart), texts(text), "{text}");
            let compatible: String = text.nfkd().collect();
            assert_eq!(texts(&compatible), texts(text), "{text}");
        }
        assert_eq!(texts("ＧＯ ｶﾞ½㈠"), ["go", "ガ", "12", "一"]);
    }

    #[test]
    fn a_word_has_its_place_in_the_text() {
        let text = "I\u{307}zmir, ทุกวัน—Straße's";
        for word in words(text) {
            assert!(texts(&text[word.at..word.end]).iter().eq([&word.text]), "{word:?}");
        }
        assert_eq!(words(text).count(), 6);
    }

    /// A word inside a sentence has the same letters as alone.
    #[test]
    fn words_are_found_inside_sentences_without_spaces() {
        for (sentence, word) in [
            ("ระบบจะหยุดการปล่อยเวอร์ชันใหม่ทุกวันศุกร์", "วันศุกร์"),
            ("ทีมงานประชุมทุกวันจันทร์ที่สำนักงาน", "ประชุม"),
            ("ລະບົບຈະຢຸດທຸກວັນສຸກ", "ວັນສຸກ"),
            ("ប្រព័ន្ធនឹងឈប់រៀងរាល់ថ្ងៃសុក្រ", "ថ្ងៃសុក្រ"),
            ("စနစ်သည်သောကြာနေ့တိုင်းရပ်မည်", "သောကြာနေ့"),
            ("会议每周五举行", "周五"),
            ("사용자는 회의를 싫어한다", "회의"),
        ] {
            let (all, looked_for) = (texts(sentence), texts(word));
            assert!(
                all.windows(looked_for.len()).any(|some| some == looked_for),
                "{all:?} {looked_for:?}"
            );
        }
    }
}
