//! Bars: for something that has a limit, and for each part of a duration.

use maud::{Markup, html};

use super::format::duration_us;

/// Something that is used up to a limit, with a bar.
#[allow(clippy::cast_precision_loss, reason = "a bar")]
pub(crate) fn usage_meter(name: &str, used: u64, limit: u64, show: fn(u64) -> String) -> Markup {
    let (value, of) = (used.min(limit) as f64, limit.max(1) as f64);
    html! {
        li.used {
            div.between { span { (name) } span.soft { (show(used)) " of " (show(limit)) } }
            meter min="0" max=(of) low=(of * 0.75) high=(of * 0.95) optimum="0" value=(value)
                aria-label=(name) { (show(used)) }
        }
    }
}

/// One part. Times are microseconds from the beginning of the whole.
pub(crate) struct Bar {
    /// Its label.
    pub(crate) name: &'static str,
    /// Its start.
    pub(crate) start: u64,
    /// Its duration.
    pub(crate) took: u64,
    /// `s1`, `s2` or `s3`.
    pub(crate) class: &'static str,
}

/// A chart of the parts of `whole` microseconds.
#[allow(clippy::cast_precision_loss, reason = "pixels")]
pub(crate) fn waterfall(bars: &[Bar], whole: u64) -> Markup {
    let scale = 1_000.0 / whole.max(1) as f64;
    html! {
        ol.waterfall {
            @for bar in bars {
                @let (x, width) = (bar.start as f64 * scale, (bar.took as f64 * scale).max(3.0));
                li {
                    span.what { (bar.name) }
                    svg viewBox="0 0 1000 8" preserveAspectRatio="none" aria-hidden="true" {
                        rect.rail width="1000" height="8" {}
                        @let x = format!("{:.1}", x.min(1_000.0 - width));
                        rect class=(bar.class) x=(x) width=(format!("{width:.1}")) height="8" {}
                    }
                    span.took { (duration_us(bar.took)) }
                }
            }
        }
    }
}
