//! Where in a JSON text a value stands.
//!
//! Values lose their places when they are parsed. Only an error needs one, and it can afford to
//! walk the text again; the text is known to be good JSON by then.

/// One step from a value to a value in it.
#[derive(Clone, Copy, Debug)]
pub(super) enum Step<'a> {
    /// A field of an object.
    Key(&'a str),
    /// An item of a list.
    Index(usize),
}

/// A path as people write it: `links[3].kind`.
pub(super) fn field(path: &[Step<'_>]) -> String {
    let mut text = String::new();
    for step in path {
        match step {
            Step::Key(key) if text.is_empty() => text.push_str(key),
            Step::Key(key) => text.extend([".", key]),
            Step::Index(index) => text.push_str(&format!("[{index}]")),
        }
    }
    text
}

/// Line and column, from 1, of the value that a path leads to; of the last one on the way that is
/// there, if it leads nowhere.
pub(super) fn find(text: &str, path: &[Step<'_>]) -> (usize, usize) {
    let mut cursor = Cursor {
        bytes: text.as_bytes(),
        at: 0,
    };
    cursor.space();
    for step in path {
        let here = cursor.at;
        if cursor.enter(step).is_none() {
            cursor.at = here;
            break;
        }
    }
    let before = &text.as_bytes()[..cursor.at.min(text.len())];
    let line = 1 + before.iter().filter(|byte| **byte == b'\n').count();
    let column = 1 + before
        .iter()
        .rev()
        .take_while(|byte| **byte != b'\n')
        .count();
    (line, column)
}

struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Cursor<'_> {
    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\r' | b'\n')) {
            self.at += 1;
        }
    }

    /// From the beginning of an object or list to a value in it. None if it is not there.
    fn enter(&mut self, step: &Step<'_>) -> Option<()> {
        let close = match (step, self.peek()?) {
            (Step::Key(_), b'{') => b'}',
            (Step::Index(_), b'[') => b']',
            _ => return None,
        };
        self.at += 1;
        for count in 0.. {
            self.space();
            if self.peek()? == close {
                return None;
            }
            let found = match step {
                Step::Index(index) => *index == count,
                Step::Key(key) => {
                    let start = self.at;
                    self.skip()?;
                    let name: Option<String> =
                        serde_json::from_slice(&self.bytes[start..self.at]).ok();
                    self.space();
                    self.at += 1; // the colon
                    self.space();
                    name.as_deref() == Some(*key)
                }
            };
            if found {
                return Some(());
            }
            self.skip()?;
            self.space();
            if self.peek()? == b',' {
                self.at += 1;
            }
        }
        None
    }

    /// Over one value.
    fn skip(&mut self) -> Option<()> {
        let mut depth = 0usize;
        loop {
            match self.peek()? {
                b'"' => {
                    self.at += 1;
                    while self.peek()? != b'"' {
                        self.at += if self.peek()? == b'\\' { 2 } else { 1 };
                    }
                    self.at += 1;
                }
                b'{' | b'[' => {
                    depth += 1;
                    self.at += 1;
                }
                b'}' | b']' => {
                    depth = depth.checked_sub(1)?;
                    self.at += 1;
                }
                b',' | b':' | b' ' | b'\t' | b'\r' | b'\n' => self.at += 1,
                _ => {
                    while let Some(byte) = self.peek()
                        && !matches!(
                            byte,
                            b',' | b':' | b'}' | b']' | b' ' | b'\t' | b'\r' | b'\n'
                        )
                    {
                        self.at += 1;
                    }
                }
            }
            if depth == 0 {
                return Some(());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_found_and_missing_ones_lead_to_their_parent() {
        let text = "{\n  \"a\\\"]\": [1, {\"b\": \"x]}\"}],\n  \"c\": [ ]\n}";
        let at = |path: &[Step<'_>]| find(text, path);
        assert_eq!(at(&[]), (1, 1));
        assert_eq!(at(&[Step::Key("a\"]")]), (2, 11));
        assert_eq!(
            at(&[Step::Key("a\"]"), Step::Index(1), Step::Key("b")]),
            (2, 21)
        );
        assert_eq!(at(&[Step::Key("c"), Step::Index(0)]), (3, 8));
        assert_eq!(at(&[Step::Key("d")]), (1, 1));
        assert_eq!(
            field(&[Step::Key("a"), Step::Index(1), Step::Key("b")]),
            "a[1].b"
        );
    }

    #[test]
    fn text_that_ends_early_does_no_harm() {
        let text = "{\"a\": [1, \"\\";
        for end in 0..text.len() {
            find(&text[..end], &[Step::Key("a"), Step::Index(1)]);
        }
    }
}
