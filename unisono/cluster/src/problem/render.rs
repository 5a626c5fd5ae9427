//! Problems as people read them: the line of the file with the place marked, and no secret.

use std::fmt;

use super::Source;

/// Longer lines are cut to this many characters around the place.
const MAX_SHOWN: usize = 160;
const HIDDEN: &str = "<redacted>";

/// A line of the file and the part of it that is meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Snippet {
    line: String,
    /// Characters before the mark.
    before: usize,
    length: usize,
}

/// The text of the file, with secrets blanked out.
#[derive(Debug, Default)]
pub(crate) struct SourceText {
    lines: Vec<String>,
}

impl SourceText {
    pub fn new(text: &str) -> SourceText {
        let mut lines = Vec::new();
        // The indentation of the key whose secret value may go on in the lines that follow.
        let mut inside = None;
        for line in text.lines() {
            let indent = line.chars().take_while(|c| *c == ' ').count();
            let blank = line.trim().is_empty();
            if inside.is_some_and(|outer| blank || indent > outer) {
                lines.push(HIDDEN.to_owned());
                continue;
            }
            let value = secret_value(line);
            inside = value.map(|_| indent);
            lines.push(match value {
                Some(start) => format!("{} {HIDDEN}", &line[..start]),
                None => line.to_owned(),
            });
        }
        SourceText { lines }
    }

    /// Whether a part of this line, from 1, is blanked out.
    pub fn is_hidden(&self, line: u32) -> bool {
        self.line(line).is_some_and(|text| text.ends_with(HIDDEN))
    }

    fn line(&self, number: u32) -> Option<&str> {
        let index = usize::try_from(number).ok()?.checked_sub(1)?;
        self.lines.get(index).map(String::as_str)
    }

    /// The line that `source` names. With `key_only`, what follows the key is left out: it may be a
    /// secret under a key that was mistyped.
    pub fn snippet(
        &self,
        source: &Source,
        path: &str,
        length: u32,
        key_only: bool,
    ) -> Option<Snippet> {
        let Source::File { line, column, .. } = source else {
            return None;
        };
        let text: Vec<char> = self.line(*line)?.chars().collect();
        let start = (*column as usize).saturating_sub(1).min(text.len());
        let mut end = text.len();
        if key_only || path.starts_with("security.") {
            let colon = text[start..].iter().position(|c| *c == ':');
            end = colon.map_or(end, |colon| start + colon + 1);
        }
        let first = (start + 20).saturating_sub(MAX_SHOWN);
        let last = end.min(first + MAX_SHOWN);
        let mut shown: String = text[first..last.max(first)]
            .iter()
            .map(|c| if c.is_control() { ' ' } else { *c })
            .collect();
        if last < text.len() {
            shown.push_str(" ...");
        }
        let room = shown.chars().count().saturating_sub(start - first);
        Some(Snippet {
            line: shown,
            before: start - first,
            length: (length as usize).clamp(1, room.max(1)),
        })
    }
}

/// Where the value begins, in bytes, if this line gives a secret: after the colon of a key that has
/// `secret` in it, other than `secret_file`.
fn secret_value(line: &str) -> Option<usize> {
    let lower = line.to_ascii_lowercase();
    lower.match_indices("secret").find_map(|(at, word)| {
        let rest = &lower[at + word.len()..];
        let tail = rest
            .find(|c: char| !c.is_ascii_alphanumeric() && c != '_' && c != '-')
            .unwrap_or(rest.len());
        let after = rest[tail..].trim_start_matches(['"', '\'', ' ']);
        let is_key = after.starts_with(':') && &rest[..tail] != "_file";
        is_key.then(|| line.len() - after.len() + 1)
    })
}

pub(super) fn write(
    f: &mut fmt::Formatter<'_>,
    severity: &str,
    source: &Source,
    message: &str,
    help: &str,
    snippet: Option<&Snippet>,
) -> fmt::Result {
    write!(f, "{severity}: {message}")?;
    let number = match source {
        Source::File { line, .. } => line.to_string(),
        _ => " ".to_owned(),
    };
    let gutter = " ".repeat(number.len());
    write!(f, "\n{gutter}--> {source}")?;
    if let Some(Snippet {
        line,
        before,
        length,
    }) = snippet
    {
        let (pad, mark) = (" ".repeat(*before), "^".repeat(*length));
        write!(f, "\n{gutter} |\n{number} | {line}\n{gutter} | {pad}{mark}")?;
    }
    if !help.is_empty() {
        write!(f, "\n{gutter} = help: {help}")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_blanked_out_however_they_are_written() {
        for text in [
            "secret: hunter2",
            "  \"secret\" : hunter2",
            "security: { mode: secret, secret: hunter2 }",
            "Secrets: hunter2",
            "secret: |\n  hunter2",
            "secret:\n\n   hunter2",
        ] {
            let shown = format!("{:?}", SourceText::new(text));
            assert!(!shown.contains("hunter2"), "{shown}");
            assert!(shown.contains(HIDDEN), "{shown}");
        }
    }

    #[test]
    fn other_lines_stay() {
        for text in [
            "secret_file: /etc/secret",
            "mode: secret",
            "# the secret\nname: x",
        ] {
            let kept = SourceText::new(text);
            assert_eq!(kept.lines, text.lines().collect::<Vec<_>>());
        }
    }
}
