//! Text in SVG: escaped, and cut to the room that it has.

/// A text as XML content or attribute value. Characters that XML cannot hold become `?`.
pub(super) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\n' => out.push('\n'),
            '\u{fffe}' | '\u{ffff}' => out.push('?'),
            control if control.is_control() => out.push('?'),
            other => out.push(other),
        }
    }
    out
}

/// About how wide a text is, rather too wide than too narrow: fonts differ.
pub(super) fn width(text: &str, size: f64) -> f64 {
    let em = |character: char| match character {
        'i' | 'j' | 'l' | 't' | 'f' | 'I' | '.' | ',' | ':' | ';' | '\'' | '|' | ' ' | '('
        | ')' | '·' => 0.36,
        'm' | 'w' | 'M' | 'W' | '@' | '%' => 0.95,
        'A'..='Z' => 0.72,
        character if character.is_ascii() => 0.6,
        'µ' | '×' | '→' | '↔' | '…' => 0.8,
        _ => 1.05,
    };
    text.chars().map(em).sum::<f64>() * size
}

/// As many parts of a text as there is room for, and at least the first.
pub(super) fn fit_parts(parts: &[String], size: f64, room: f64) -> String {
    for count in (1..=parts.len()).rev() {
        let text = parts[..count].join(" · ");
        if width(&text, size) <= room {
            return text;
        }
    }
    parts
        .first()
        .map(|first| fit(first, size, room))
        .unwrap_or_default()
}

/// A text that is no wider than this, cut with an ellipsis if it must be.
pub(super) fn fit(text: &str, size: f64, room: f64) -> String {
    if width(text, size) <= room {
        return text.to_owned();
    }
    let mut kept = String::new();
    for character in text.chars() {
        kept.push(character);
        if width(&kept, size) + 0.8 * size > room {
            kept.pop();
            break;
        }
    }
    format!("{}…", kept.trim_end())
}
