//! The document in the making.
//!
//! Colours and type are those of the drawing of a graph, so that both can stand on one page.

use std::fmt::Write as _;

/// Colours of up to eight ranks, (on light, on dark), told apart by most colour-blind people.
const FEW: [(&str, &str); 8] = [
    ("#0b6bcb", "#5aa9f5"),
    ("#d1560a", "#f59254"),
    ("#0a8a63", "#3fc79a"),
    ("#a8388c", "#e58ac9"),
    ("#a07800", "#e2b93b"),
    ("#6250c4", "#a99bf2"),
    ("#0d8796", "#4ec6d4"),
    ("#6b7280", "#9aa3b2"),
];
/// Colours at most, where there are more ranks: around the colour wheel, then again.
const MANY: u32 = 16;

/// What a class of elements looks like: selector, then declarations on light and on dark.
const RULES: [(&str, &str, &str); 11] = [
    (".page", "fill:#fbfcfd", "fill:#11151b"),
    (
        ".title",
        "fill:#16202e;font-weight:700;font-size:22px",
        "fill:#eef3fa",
    ),
    (
        ".strong",
        "fill:#16202e;font-weight:600;font-size:14.5px",
        "fill:#e6ecf5",
    ),
    (".text", "fill:#35425a;font-size:13px", "fill:#c3cddb"),
    (".label", "fill:#35425a;font-size:11px", "fill:#c3cddb"),
    (".muted", "fill:#5a6780;font-size:13.5px", "fill:#93a0b3"),
    (".small", "fill:#667389;font-size:11.5px", "fill:#93a0b3"),
    (".mark", "fill:#8490a3;font-size:10.5px", "fill:#7d8a9c"),
    (".rail", "stroke:#d5dae1", "stroke:#333d4a"),
    (".grid", "stroke:#e6e9ee", "stroke:#222a35"),
    (".ground", "fill:#edf0f4", "fill:#202834"),
];
const USE: (&str, &str) = ("fill:#2f7fd0", "fill:#5aa9f5");

/// A message from a place and time to another.
pub(super) struct Curve {
    pub(super) from: (f64, f64),
    pub(super) to: (f64, f64),
    pub(super) colour: u32,
    pub(super) width: f64,
    /// Whether there are many, so that each should be faint.
    pub(super) crowded: bool,
}

/// Elements, one after the other.
pub(super) struct Paint {
    elements: String,
    ranks: u32,
}

impl Paint {
    pub(super) fn new(ranks: u32) -> Self {
        Self {
            elements: String::new(),
            ranks,
        }
    }

    pub(super) fn text(&mut self, x: f64, y: f64, class: &str, text: &str) {
        let text = escape(text);
        self.element(format_args!(
            "<text x=\"{x:.1}\" y=\"{y:.1}\" class=\"{class}\">{text}</text>"
        ));
    }

    pub(super) fn text_middle(&mut self, x: f64, y: f64, class: &str, text: &str) {
        let text = escape(text);
        self.element(format_args!(
            "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"middle\" class=\"{class}\">{text}</text>"
        ));
    }

    pub(super) fn line(&mut self, from: (f64, f64), to: (f64, f64), class: &str) {
        self.element(format_args!(
            "<path d=\"M{:.1} {:.1}L{:.1} {:.1}\" class=\"{class}\"/>",
            from.0, from.1, to.0, to.1
        ));
    }

    pub(super) fn area(&mut self, at: (f64, f64), size: (f64, f64), class: &str) {
        self.element(format_args!(
            "<rect x=\"{:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{:.1}\" rx=\"2\" class=\"{class}\"/>",
            at.0, at.1, size.0, size.1
        ));
    }

    /// A dot in a rank's colour.
    pub(super) fn dot(&mut self, at: (f64, f64), radius: f64, rank: u32) {
        let colour = self.colour(rank);
        self.element(format_args!(
            "<circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"{radius:.1}\" class=\"f{colour}\"/>",
            at.0, at.1
        ));
    }

    /// A curve in a rank's colour that leaves and arrives along the axis of time, with a dot where it
    /// arrives, and a title that viewers show when pointed at.
    pub(super) fn curve(&mut self, curve: &Curve, title: &str) {
        let ((x, y), (to_x, to_y)) = (curve.from, curve.to);
        let (colour, title) = (self.colour(curve.colour), escape(title));
        let bend = (to_x - x) * 0.45;
        let faint = if curve.crowded { " faint" } else { "" };
        self.element(format_args!(
            "<g class=\"message\"><title>{title}</title>\
             <path d=\"M{x:.1} {y:.1}C{:.1} {y:.1} {:.1} {to_y:.1} {to_x:.1} {to_y:.1}\" \
             stroke-width=\"{:.1}\" class=\"k{colour}{faint}\"/>\
             <circle cx=\"{to_x:.1}\" cy=\"{to_y:.1}\" r=\"{:.1}\" class=\"f{colour}\"/></g>",
            x + bend,
            to_x - bend,
            curve.width,
            1.0 + curve.width
        ));
    }

    /// Steps on a base as one shape: from each place on so high. Nothing if all are flat.
    pub(super) fn profile(&mut self, base: f64, steps: impl Iterator<Item = (f64, f64)>) {
        let mut path = String::new();
        let mut last = 0.0;
        for (x, height) in steps {
            let height = (height * 10.0).round() / 10.0;
            if height == last {
                continue;
            }
            // Writing to a string does not fail.
            let _ = match path.is_empty() {
                true => write!(path, "M{x:.1} {base:.1}V{:.1}", base - height),
                false => write!(path, "H{x:.1}V{:.1}", base - height),
            };
            last = height;
        }
        if !path.is_empty() {
            self.element(format_args!("<path d=\"{path}Z\" class=\"use\"/>"));
        }
    }

    /// The whole document.
    pub(super) fn document(self, width: f64, height: f64, title: &str, note: &str) -> String {
        let (title, note) = (escape(title), escape(note));
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" \
             width=\"{width:.0}\" height=\"{height:.0}\" role=\"img\" \
             aria-labelledby=\"title description\">\n<title id=\"title\">{title}</title>\n\
             <desc id=\"description\">{note}</desc>\n<style>\n{}</style>\n\
             <rect width=\"100%\" height=\"100%\" class=\"page\"/>\n{}</svg>\n",
            self.css(),
            self.elements
        )
    }

    /// The number of a rank's colour.
    fn colour(&self, rank: u32) -> u32 {
        rank % self.colours()
    }

    fn colours(&self) -> u32 {
        match self.ranks {
            ..=8 => 8,
            ranks => ranks.min(MANY),
        }
    }

    fn css(&self) -> String {
        let mut light = String::from(
            "text{font-family:system-ui,-apple-system,'Segoe UI',Roboto,'DejaVu Sans',sans-serif}\n\
             path{fill:none;stroke-linecap:round}\n.faint{stroke-opacity:.55}\n",
        );
        let mut dark = String::new();
        for (selector, on_light, on_dark) in RULES.into_iter().chain([("path.use", USE.0, USE.1)]) {
            let _ = writeln!(light, "{selector}{{{on_light}}}");
            let _ = writeln!(dark, "{selector}{{{on_dark}}}");
        }
        for number in 0..self.colours() {
            let (on_light, on_dark) = self.shades(number);
            for (css, colour) in [(&mut light, on_light), (&mut dark, on_dark)] {
                let _ = writeln!(
                    css,
                    ".k{number}{{stroke:{colour}}}.f{number}{{fill:{colour}}}"
                );
            }
        }
        format!("{light}@media (prefers-color-scheme:dark){{\n{dark}}}\n")
    }

    /// A colour on light and on dark.
    fn shades(&self, number: u32) -> (String, String) {
        match self.ranks {
            ..=8 => {
                let (light, dark) = FEW[number as usize % FEW.len()];
                (light.into(), dark.into())
            }
            _ => {
                let hue = (210 + number * 360 / self.colours()) % 360;
                (format!("hsl({hue},62%,42%)"), format!("hsl({hue},70%,66%)"))
            }
        }
    }

    fn element(&mut self, arguments: std::fmt::Arguments<'_>) {
        // Writing to a string does not fail.
        let _ = self.elements.write_fmt(arguments);
        self.elements.push('\n');
    }
}

/// Text for between tags and in attributes.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            letter if letter.is_control() => escaped.push(' '),
            letter => escaped.push(letter),
        }
    }
    escaped
}
