//! What is above a text in its file.

/// The lines of front matter, as a person may have written them.
#[derive(Debug, PartialEq)]
pub(super) struct Above<'c> {
    /// What is between the lines `---`.
    pub(super) head: &'c str,
    /// The number of the line before it, from 1.
    pub(super) line: usize,
    /// The byte of the content at which the text begins.
    pub(super) end: usize,
    /// Whether a line ends it.
    pub(super) is_closed: bool,
}

impl<'c> Above<'c> {
    /// None if the content does not begin with `---`, or if no line ends it and none is like one of
    /// front matter.
    pub(super) fn of(content: &'c str) -> Option<Self> {
        let visible = content.strip_prefix('\u{feff}').unwrap_or(content);
        let mut at = content.len() - visible.len();
        let mut lines = visible.split_inclusive('\n').enumerate();
        let opens_at = loop {
            let (number, line) = lines.next()?;
            at += line.len();
            match line.trim_end() {
                "" => {}
                "---" => break number + 1,
                _ => return None,
            }
        };
        let (begin, mut like_it) = (at, None);
        let mut is_like = true;
        for (_, line) in lines {
            if matches!(line.trim_end(), "---" | "...") {
                let head = &content[begin..at];
                let end = at + line.len();
                return Some(Self { head, line: opens_at, end, is_closed: true });
            }
            at += line.len();
            is_like = is_like && (is_name(line) || like_it.is_some() && is_below(line));
            if is_like {
                like_it = Some(at);
            }
        }
        let end = like_it?;
        Some(Self { head: &content[begin..end], line: opens_at, end, is_closed: false })
    }

    /// Whether a line has the name of a field.
    pub(super) fn has_names(&self) -> bool {
        self.head.lines().any(is_name)
    }
}

/// Whether a line begins a field, such as `title: Launch`.
fn is_name(line: &str) -> bool {
    let Some((name, rest)) = line.split_once(':') else { return false };
    let name = name.trim_matches(['"', '\'']);
    let is_plain = |sign: char| sign.is_alphanumeric() || matches!(sign, '_' | '-');
    !name.is_empty()
        && name.chars().all(is_plain)
        && (rest.is_empty() || rest.starts_with(char::is_whitespace))
}

/// Whether a line goes on with the field of the line before.
fn is_below(line: &str) -> bool {
    line.starts_with([' ', '\t', '-']) && !line.trim().is_empty()
}
