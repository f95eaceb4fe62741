//! Charts as SVG, without scripts or style attributes, and with a text alternative. The drawing
//! stretches to the width of the page; the labels are text and do not.

use std::fmt::Write as _;

use maud::{Markup, html};

const WIDTH: f64 = 600.0;
const HEIGHT: f64 = 120.0;

/// Values over days or other steps, as stacked bars or as lines.
pub(crate) struct Chart<'a> {
    id: &'a str,
    title: &'a str,
    labels: &'a [String],
    series: Vec<(&'a str, &'static str, Vec<f64>)>,
    show: fn(f64) -> String,
}

impl<'a> Chart<'a> {
    /// `labels` are below the chart. `show` writes a value with its unit.
    pub(crate) fn new(
        id: &'a str,
        title: &'a str,
        labels: &'a [String],
        show: fn(f64) -> String,
    ) -> Self {
        Self { id, title, labels, series: Vec::new(), show }
    }

    /// Adds a series with one value for each label. `class` is `s1`, `s2`, `s3` or `bad`.
    pub(crate) fn series(mut self, name: &'a str, class: &'static str, values: Vec<f64>) -> Self {
        self.series.push((name, class, values));
        self
    }

    /// Bars, the series on top of each other.
    pub(crate) fn bars(&self) -> Markup {
        let total =
            |at: usize| self.series.iter().filter_map(|(_, _, values)| values.get(at)).sum::<f64>();
        let top = nice((0..self.labels.len()).map(total).fold(0.0, f64::max));
        let step = WIDTH / self.labels.len().max(1) as f64;
        self.figure(
            top,
            &html! {
                @for (at, label) in self.labels.iter().enumerate() {
                    g {
                        title { (self.said(at, label)) }
                        rect.hit x=(num(step * at as f64)) y="0" width=(num(step))
                            height=(num(HEIGHT)) {}
                        @for (class, y, height) in self.stack(at, top) {
                            @let x = step * (at as f64 + 0.12);
                            rect class=(class) x=(num(x)) y=(num(y)) width=(num(step * 0.76))
                                height=(num(height)) {}
                        }
                    }
                }
            },
        )
    }

    /// Lines. A value that is not a number leaves a gap.
    pub(crate) fn lines(&self) -> Markup {
        let values = self.series.iter().flat_map(|(_, _, values)| values).copied();
        let top = nice(values.filter(|value| value.is_finite()).fold(0.0, f64::max));
        let step = WIDTH / self.labels.len().max(1) as f64;
        self.figure(
            top,
            &html! {
                @for (_, class, values) in &self.series {
                    path class={ "line " (class) } d=(path(values, top, step, HEIGHT)) {}
                }
                @for (at, label) in self.labels.iter().enumerate() {
                    rect.hit x=(num(step * at as f64)) y="0" width=(num(step))
                        height=(num(HEIGHT)) { title { (self.said(at, label)) } }
                }
            },
        )
    }

    fn stack(&self, at: usize, top: f64) -> Vec<(&'static str, f64, f64)> {
        let mut y = HEIGHT;
        let mut bars = Vec::new();
        for (_, class, values) in &self.series {
            let height = values.get(at).copied().unwrap_or(0.0) / top * HEIGHT;
            if height > 0.0 {
                y -= height;
                bars.push((*class, y, height));
            }
        }
        bars
    }

    fn said(&self, at: usize, label: &str) -> String {
        let mut text = label.to_owned();
        for (name, _, values) in &self.series {
            if let Some(value) = values.get(at).filter(|value| value.is_finite()) {
                let _ = write!(text, " · {name} {}", (self.show)(*value));
            }
        }
        text
    }

    fn figure(&self, top: f64, drawn: &Markup) -> Markup {
        let (first, last) = (self.labels.first(), self.labels.last());
        let about = match self.labels.len() {
            0 => "No data.".to_owned(),
            last => self
                .said(last - 1, &format!("The last of {last} values, {}", self.labels[last - 1])),
        };
        html! {
            figure.plot #(self.id) {
                figcaption {
                    span.t { (self.title) }
                    span.legend {
                        @for (name, class, _) in &self.series {
                            span class={ "key " (class) } { (name) }
                        }
                    }
                }
                div.area {
                    span.top aria-hidden="true" { ((self.show)(top)) }
                    svg viewBox={ "0 0 " (WIDTH) " " (HEIGHT) } preserveAspectRatio="none"
                        role="img"
                        aria-labelledby={ (self.id) "-t " (self.id) "-d" } {
                        title #{ (self.id) "-t" } { (self.title) }
                        desc #{ (self.id) "-d" } { (about) }
                        path.grid d={
                            "M0 0.5H" (WIDTH) "M0 " (HEIGHT / 2.0) "H" (WIDTH) "M0 " (HEIGHT - 0.5)
                                "H" (WIDTH)
                        } {}
                        (drawn)
                    }
                }
                @if let (Some(first), Some(last)) = (first, last) {
                    div.ends aria-hidden="true" { span { (first) } span { (last) } }
                }
            }
        }
    }
}

fn path(values: &[f64], top: f64, step: f64, height: f64) -> String {
    let mut text = String::new();
    let mut is_on = false;
    for (at, value) in values.iter().enumerate() {
        if !value.is_finite() {
            is_on = false;
            continue;
        }
        let (x, y) = (step * (at as f64 + 0.5), height - value / top * (height - 2.0) - 1.0);
        let is_alone = !is_on && !values.get(at + 1).is_some_and(|next| next.is_finite());
        // A point alone would not be seen.
        let _ = match is_alone {
            true => write!(text, "M{} {}h{}", num(x - step * 0.3), num(y), num(step * 0.6)),
            false => write!(text, "{}{} {}", if is_on { 'L' } else { 'M' }, num(x), num(y)),
        };
        is_on = true;
    }
    text
}

/// The next round number, so that an axis has one.
fn nice(value: f64) -> f64 {
    if value <= 0.0 || !value.is_finite() {
        return 1.0;
    }
    let unit = 10f64.powf(value.log10().floor());
    let steps = [1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0];
    steps
        .into_iter()
        .map(|step| step * unit)
        .find(|step| *step >= value * 0.999_999)
        .unwrap_or(value)
}

fn num(value: f64) -> String {
    let text = format!("{value:.1}");
    text.strip_suffix(".0").map(str::to_owned).unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_end_at_round_numbers() {
        assert_eq!(
            [0.0, 1.0, 7.0, 12.0, 99.0, 101.0].map(nice),
            [1.0, 1.0, 8.0, 15.0, 100.0, 150.0]
        );
    }

    #[test]
    fn a_gap_is_a_gap() {
        assert_eq!(path(&[1.0, 0.0], 1.0, 10.0, 22.0), "M5 1L15 21");
        assert_eq!(path(&[1.0, f64::NAN, 1.0], 1.0, 10.0, 22.0), "M2 1h6M22 1h6");
    }

    #[test]
    fn bars_say_what_they_are() {
        let labels = ["1 Nov".to_owned()];
        let plot = Chart::new("p", "Volume", &labels, |value| format!("{value}")).series(
            "reads",
            "s1",
            vec![3.0],
        );
        let text = plot.bars().into_string();
        assert!(
            text.contains("1 Nov · reads 3")
                && text.contains("aria-labelledby=\"p-t p-d\"")
                && !text.contains("style=")
        );
    }
}
