//! A bar for something that has a limit.

use maud::{Markup, html};

/// Something that is used up to a limit, with a bar.
#[allow(clippy::cast_precision_loss, reason = "a bar")]
pub(crate) fn usage_meter(name: &str, used: u64, limit: u64, show: fn(u64) -> String) -> Markup {
    let (value, of) = (used.min(limit) as f64, limit.max(1) as f64);
    html! {
        li.used {
            div.between { span { (name) } span.soft { (show(used)) " of " (show(limit)) } }
            meter min="0" max=(of) low=(of * 0.75) high=(of * 0.95) optimum="0" value=(value)
                aria-label=(name) {
                (show(used))
            }
        }
    }
}
