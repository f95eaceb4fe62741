//! Whether a client takes JSON, which is what `/mcp` answers.

use axum::http::HeaderMap;
use axum::http::header::ACCEPT;

/// Whether the header `accept` takes JSON. The range that names it most closely decides (RFC 9110,
/// 12.5.1); without the header everything is taken.
pub(super) fn takes_json(headers: &HeaderMap) -> bool {
    let all = headers.get_all(ACCEPT).into_iter().filter_map(|value| value.to_str().ok());
    let ranges: Vec<&str> =
        all.flat_map(|value| value.split(',')).filter(|range| !range.trim().is_empty()).collect();
    let taken = ranges.iter().filter_map(|range| {
        let mut parts = range.split(';').map(str::trim);
        let closeness = match parts.next()?.to_ascii_lowercase().as_str() {
            "application/json" => 2,
            "application/*" => 1,
            "*/*" | "*" => 0,
            _ => return None,
        };
        let weight = parts.find_map(|part| {
            let (name, value) = part.split_once('=')?;
            name.trim().eq_ignore_ascii_case("q").then_some(value.trim())
        });
        let is_excluded = weight.and_then(|weight| weight.parse::<f32>().ok()) == Some(0.0);
        Some((closeness, !is_excluded))
    });
    ranges.is_empty() || taken.max().is_some_and(|(_, is_taken)| is_taken)
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::HeaderValue;

    #[test]
    fn the_range_that_names_json_most_closely_decides() {
        let takes = |accept: &[&'static str]| {
            let mut headers = HeaderMap::new();
            for value in accept {
                headers.append(ACCEPT, HeaderValue::from_static(value));
            }
            takes_json(&headers)
        };
        for fine in [
            &[][..],
            &[""],
            &["*/*"],
            &["*"],
            &["Application/JSON"],
            &["application/json, */*"],
            &["application/*, text/*"],
            &["text/event-stream", "application/json;q=0.5"],
            &["application/json; charset=utf-8"],
            &["application/*;q=0, application/json"],
            &["application/json;q=x"],
        ] {
            assert!(takes(fine), "{fine:?}");
        }
        for other in [
            &["text/html"][..],
            &["text/*"],
            &["application/json;q=0, */*"],
            &["*/*;q=0.0"],
            &["application/xml"],
        ] {
            assert!(!takes(other), "{other:?}");
        }
    }
}
