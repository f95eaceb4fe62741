//! The little of Markdown that descriptions have: paragraphs, lists, and code between backticks.

use maud::{Markup, html};

/// A description as paragraphs and lists.
pub(super) fn prose(text: &str) -> Markup {
    html! {
        @for block in text.split("\n\n").filter(|block| !block.trim().is_empty()) {
            @if block.starts_with("- ") {
                ul {
                    @for item in block.split("\n- ") {
                        li { (line(item.trim_start_matches("- "))) }
                    }
                }
            } @else { p { (line(block)) } }
        }
    }
}

/// Text in which what is between backticks is code.
fn line(text: &str) -> Markup {
    html! {
        @for (index, part) in text.split('`').enumerate() {
            @if index % 2 == 1 { code { (part) } } @else { (part) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptions_become_paragraphs_lists_and_code() {
        let found = prose("One `a<b`.\n\n- x: `y`\n- z\n").into_string();
        assert_eq!(
            found,
            "<p>One <code>a&lt;b</code>.</p><ul><li>x: <code>y</code></li><li>z\n</li></ul>"
        );
        assert_eq!(prose("").into_string(), "");
    }
}
