//! The commands in a page of Markdown: those of its blocks, and those in its text.

/// A command with its arguments, as a shell would pass them.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Command {
    pub(super) words: Vec<String>,
}

/// A line that a reader types; it may go on over several lines of the page.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Line {
    /// Without its comment.
    pub(super) text: String,
    /// The commands of its pipeline. None: it only sets a variable.
    pub(super) commands: Vec<Command>,
}

/// A block of lines for a shell.
pub(super) struct Block {
    /// The number of its first line in the page.
    pub(super) line: usize,
    pub(super) lines: Vec<Line>,
}

/// Programs at which a span of text is a command.
const PROGRAMS: [&str; 3] = ["memhost", "just", "cargo"];

/// The blocks that are for a shell: those that say so, and those without a language in which a line
/// begins with `memhost`.
pub(super) fn blocks(page: &str) -> Vec<Block> {
    let mut found = Vec::new();
    let mut open: Option<(String, usize, String)> = None;
    for (index, line) in page.lines().enumerate() {
        let Some(language) = line.trim_start().strip_prefix("```") else {
            if let Some((.., text)) = &mut open {
                *text = format!("{text}{line}\n");
            }
            continue;
        };
        match open.take() {
            None => open = Some((language.trim().to_owned(), index + 2, String::new())),
            Some((language, line, text)) => {
                let is_shell = match language.as_str() {
                    "sh" | "console" | "bash" | "shell" => true,
                    "" => text.lines().any(|line| line.starts_with("memhost ")),
                    _ => false,
                };
                if is_shell {
                    found.push(Block { line, lines: lines(&text) });
                }
            }
        }
    }
    assert!(open.is_none(), "a block does not end");
    found
}

/// The commands between backticks in the text of a page.
pub(super) fn spans(page: &str) -> Vec<Line> {
    let (mut text, mut is_block) = (String::new(), false);
    for line in page.lines() {
        is_block ^= line.trim_start().starts_with("```");
        if !is_block && !line.trim_start().starts_with("```") {
            text.push_str(line);
        }
        // A span may go on in the next line, but not in the next paragraph.
        text.push_str(if line.trim().is_empty() { "\n\n" } else { " " });
    }
    let spans = text.split("\n\n").flat_map(|part| part.split('`').skip(1).step_by(2));
    let spans = spans.map(str::trim).filter(|span| {
        let mut words = span.split_whitespace();
        words.next().is_some_and(|first| PROGRAMS.contains(&first))
            // A line of a manifest has an equals sign there.
            && words.next().is_some_and(|second| second != "=")
    });
    spans.flat_map(lines).collect()
}

/// The lines of a text for a shell.
fn lines(text: &str) -> Vec<Line> {
    let (mut all, mut whole) = (Vec::new(), String::new());
    for line in text.lines() {
        let line = line.strip_prefix("$ ").unwrap_or(line);
        whole.push_str(&without_comment(line));
        if let Some(rest) = whole.strip_suffix('\\') {
            whole = rest.to_owned();
        } else if whole.ends_with('|') {
            whole.push(' ');
        } else if !whole.is_empty() {
            let text = std::mem::take(&mut whole);
            all.push(Line { commands: commands(&text), text });
        }
    }
    all
}

fn without_comment(line: &str) -> String {
    let (mut quote, mut before) = (None, ' ');
    for (at, c) in line.char_indices() {
        match (c, quote) {
            ('#', None) if before == ' ' => return line[..at].trim_end().to_owned(),
            ('\'' | '"', None) => quote = Some(c),
            (c, Some(open)) if c == open => quote = None,
            _ => {}
        }
        before = c;
    }
    line.trim_end().to_owned()
}

/// The commands of a line. Variables that are set before a command, and where its input comes
/// from, are left out.
fn commands(line: &str) -> Vec<Command> {
    let (mut all, mut command) = (Vec::new(), Command::default());
    let (mut word, mut is_word, mut quote, mut is_file) = (String::new(), false, None, false);
    let mut letters = line.chars().chain([' ']).peekable();
    while let Some(c) = letters.next() {
        match (c, quote) {
            ('\\', Some('"')) => word.extend(letters.next()),
            (c, Some(open)) if c == open => quote = None,
            (c, Some(_)) => word.push(c),
            ('\'' | '"', None) => (quote, is_word) = (Some(c), true),
            (' ' | '|' | '&' | ';' | '<' | '>', None) => {
                let taken = std::mem::take(&mut word);
                let is_set = command.words.is_empty()
                    && taken.split_once('=').is_some_and(|(name, _)| {
                        name.bytes().all(|b| b.is_ascii_uppercase() || b == b'_')
                    });
                if (is_word || !taken.is_empty()) && !is_set && !std::mem::take(&mut is_file) {
                    command.words.push(taken);
                }
                is_word = false;
                is_file |= ['<', '>'].contains(&c);
                if ['|', '&', ';'].contains(&c) && !command.words.is_empty() {
                    all.push(std::mem::take(&mut command));
                }
            }
            (c, None) => word.push(c),
        }
    }
    if !command.words.is_empty() {
        all.push(command);
    }
    all
}

#[test]
fn lines_are_read_as_a_shell_reads_them() {
    let page = r#"text `memhost note
x` and `x`
```sh
A=1 memhost note 'a # b' -c "x \"y\"" < key # c
URL=https://a
echo "$A" |
  memhost secret create K \
  --as basic && cd x
```
```json
{}
```
```
memhost doctor
```
"#;
    let found = blocks(page);
    let words = |block: &Block| -> Vec<Vec<Vec<String>>> {
        let lines = block.lines.iter();
        lines.map(|line| line.commands.iter().map(|one| one.words.clone()).collect()).collect()
    };
    assert_eq!(
        words(&found[0]),
        [
            vec![vec!["memhost", "note", "a # b", "-c", "x \"y\""]],
            vec![],
            vec![
                vec!["echo", "$A"],
                vec!["memhost", "secret", "create", "K", "--as", "basic"],
                vec!["cd", "x"]
            ],
        ]
    );
    assert_eq!((found.len(), found[0].line, words(&found[1])[0][0].len()), (2, 4, 2));
    assert_eq!(spans(page).len(), 1);
}
