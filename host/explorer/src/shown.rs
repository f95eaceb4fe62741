//! The text of pages. Records, ids and errors were written by others: what would hide in them, or
//! change the order of what stands around it, is shown as its number.

use std::borrow::Cow;

use axum::body::{Body, to_bytes};
use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use axum::response::Response;

use memhost_executor::off_executor;
use memhost_types::foreign::visible_lines;

/// Elements whose content is sent back by a form, or is no text.
const AS_THEY_ARE: [&str; 3] = ["textarea", "script", "style"];

/// A page in whose text nothing is hidden; any other answer as it is.
pub(crate) async fn shown(response: Response) -> Response {
    let media = response.headers().get(CONTENT_TYPE);
    if !media.is_some_and(|media| media.as_bytes().starts_with(b"text/html")) {
        return response;
    }
    let (mut parts, body) = response.into_parts();
    // The pages are made as a whole.
    let bytes = to_bytes(body, usize::MAX).await.unwrap_or_default();
    let changed =
        off_executor(bytes.len(), || match visible_page(&String::from_utf8_lossy(&bytes)) {
            Cow::Borrowed(_) => None,
            Cow::Owned(page) => Some(page),
        });
    let body = match changed {
        None => Body::from(bytes),
        Some(page) => {
            parts.headers.remove(CONTENT_LENGTH);
            Body::from(page)
        }
    };
    Response::from_parts(parts, body)
}

/// What is between the tags of a page and what a tooltip says, with numbers for what hides. Other
/// attributes stay: forms send their values back.
fn visible_page(page: &str) -> Cow<'_, str> {
    if visible_lines(page) == page {
        return Cow::Borrowed(page);
    }
    let (mut shown, mut rest) = (String::with_capacity(page.len() + 64), page);
    while let Some(open) = rest.find('<') {
        shown.push_str(&visible_lines(&rest[..open]));
        let tag = &rest[open..];
        // `>` in the value of an attribute is escaped.
        let end = tag.find('>').map_or(tag.len(), |at| at + 1);
        let is_raw = |name: &&&str| {
            tag[1..].strip_prefix(**name).is_some_and(|more| more.starts_with([' ', '>']))
        };
        let raw = AS_THEY_ARE.iter().find(is_raw);
        let close = raw.and_then(|name| tag.find(&format!("</{name}>")));
        let end = close.unwrap_or(end);
        push_tag(&mut shown, &tag[..end], raw.is_some());
        rest = &tag[end..];
    }
    shown.push_str(&visible_lines(rest));
    Cow::Owned(shown)
}

/// A tag with its tooltip. `is_raw`: what follows the tag is a part of it, and stays.
fn push_tag(shown: &mut String, tag: &str, is_raw: bool) {
    const TITLE: &str = " title=\"";
    let tooltip = tag.split_once(TITLE).filter(|_| !is_raw);
    // `"` in the value of an attribute is escaped.
    match tooltip.and_then(|(before, rest)| Some((before, rest.split_once('"')?))) {
        None => shown.push_str(tag),
        Some((before, (value, after))) => {
            for part in [before, TITLE, &visible_lines(value), "\"", after] {
                shown.push_str(part);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use maud::html;

    #[test]
    fn a_page_hides_nothing_in_its_text_and_keeps_what_forms_send() {
        let hidden = "a\u{202e}\u{1b}b<\u{e0041}";
        let page = html! {
            p title=(hidden) { (hidden) }
            input value=(hidden);
            textarea rows="2" { (hidden) }
            pre { "x\n\ty 👩\u{200d}👧" }
        };
        let page = page.into_string();
        let shown = visible_page(&page);
        let raw = "a\u{202e}\u{1b}b&lt;\u{e0041}";
        assert!(shown.contains("title=\"a\\u{202e}\\u{1b}b&lt;\\u{e0041}\""), "{shown}");
        assert!(shown.contains("\">a\\u{202e}\\u{1b}b&lt;\\u{e0041}</p>"), "{shown}");
        assert!(shown.contains(&format!("value=\"{raw}\"")), "{shown}");
        assert!(shown.contains(&format!(">{raw}</textarea>")), "{shown}");
        assert!(shown.contains("x\n\ty 👩\u{200d}👧"), "{shown}");
        assert!(matches!(visible_page("<p>plain</p>"), Cow::Borrowed(_)));
    }
}
