//! Colours and fonts, for light and for dark screens.
//!
//! Plain rules only, no custom properties: not every SVG viewer knows those.

use std::fmt::Write as _;

/// Colours of kinds of links, (on light, on dark), told apart by most colour-blind people. The last
/// serves all further kinds.
const KINDS: [(&str, &str); 8] = [
    ("#0b6bcb", "#5aa9f5"),
    ("#d1560a", "#f59254"),
    ("#0a8a63", "#3fc79a"),
    ("#a8388c", "#e58ac9"),
    ("#a07800", "#e2b93b"),
    ("#6250c4", "#a99bf2"),
    ("#0d8796", "#4ec6d4"),
    ("#6b7280", "#9aa3b2"),
];

/// What a class of elements looks like: selector, then declarations on light and on dark.
const RULES: [(&str, &str, &str); 17] = [
    (".page", "fill:#f6f7f9", "fill:#11151b"),
    (
        ".panel",
        "fill:#ffffff;stroke:#d5dae1;stroke-width:1.2",
        "fill:#1a2029;stroke:#333d4a",
    ),
    (
        ".region",
        "fill:#f3f6fa;stroke:#d3dbe6;stroke-width:1;stroke-dasharray:5 4",
        "fill:#202834;stroke:#3b4757",
    ),
    (
        ".card",
        "fill:#ffffff;stroke:#bcc5d1;stroke-width:1.2",
        "fill:#28313d;stroke:#4b5868",
    ),
    (
        ".hub",
        "fill:#eef2f7;stroke:#98a5b5;stroke-width:1.2",
        "fill:#303b49;stroke:#66758a",
    ),
    (".badge", "fill:#24344d", "fill:#cfdcf0"),
    (
        ".badge-text",
        "fill:#ffffff;font-weight:700",
        "fill:#16202e",
    ),
    (".spare", "fill:#e3e8ef", "fill:#3a4553"),
    (
        ".chip",
        "fill:#f6f8fb;stroke:#ccd4de;stroke-width:1",
        "fill:#232c37;stroke:#414d5c",
    ),
    (".virtual", "stroke-dasharray:3 2", "stroke-dasharray:3 2"),
    (
        ".label",
        "fill:#ffffff;fill-opacity:.93;stroke:#d5dae1;stroke-width:.8",
        "fill:#1a2029;stroke:#3b4757",
    ),
    (".title", "fill:#16202e;font-weight:700", "fill:#eef3fa"),
    (".strong", "fill:#16202e;font-weight:600", "fill:#e6ecf5"),
    (".text", "fill:#35425a", "fill:#c3cddb"),
    (".muted", "fill:#667389", "fill:#93a0b3"),
    (".port", "stroke:#ffffff;stroke-width:1.5", "stroke:#1a2029"),
    (".scale", "fill:none;stroke:#667389", "stroke:#93a0b3"),
];

/// The style element's content.
pub(super) fn css() -> String {
    let mut light = String::from(
        "text{font-family:system-ui,-apple-system,'Segoe UI',Roboto,'DejaVu Sans',sans-serif}\n\
         .line{fill:none}\n.posted{stroke-dasharray:7 5}\n.middle{text-anchor:middle}\n\
         .end{text-anchor:end}\n",
    );
    let mut dark = String::new();
    for (selector, on_light, on_dark) in RULES {
        let _ = writeln!(light, "{selector}{{{on_light}}}");
        let _ = writeln!(dark, "{selector}{{{on_dark}}}");
    }
    for (place, (on_light, on_dark)) in KINDS.iter().enumerate() {
        for (css, colour) in [(&mut light, on_light), (&mut dark, on_dark)] {
            let _ = writeln!(
                css,
                ".k{place}{{stroke:{colour}}}\n.f{place}{{fill:{colour}}}"
            );
        }
    }
    format!("{light}@media (prefers-color-scheme:dark){{\n{dark}}}\n")
}

/// The number of a kind's colour.
pub(super) fn colour(kind: usize) -> usize {
    kind.min(KINDS.len() - 1)
}
