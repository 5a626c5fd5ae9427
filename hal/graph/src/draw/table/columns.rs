//! Columns that line up.

/// The width that tables are meant for.
pub(super) const WIDTH: usize = 100;
/// The widest that one cell gets; longer texts are cut.
const CELL: usize = 48;

/// How a column lines up.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Align {
    Left,
    Right,
}

/// Rows under headings. A column in which every cell is empty is not shown.
pub(super) struct Columns<const N: usize> {
    heads: [(&'static str, Align); N],
    rows: Vec<[String; N]>,
}

impl<const N: usize> Columns<N> {
    pub(super) fn new(heads: &[(&'static str, Align); N]) -> Self {
        Self {
            heads: *heads,
            rows: Vec::new(),
        }
    }

    pub(super) fn row(&mut self, cells: [String; N]) {
        self.rows.push(cells);
    }

    /// Appends the rows, indented by two, if there are any.
    pub(super) fn write(&self, out: &mut String) {
        if self.rows.is_empty() {
            return;
        }
        let shown: Vec<usize> = (0..N)
            .filter(|column| self.rows.iter().any(|row| !row[*column].is_empty()))
            .collect();
        let width = |column: usize| {
            let cells = self
                .rows
                .iter()
                .map(|row| row[column].chars().count().min(CELL));
            cells.chain([self.heads[column].0.len()]).max().unwrap_or(0)
        };
        let widths: Vec<usize> = shown.iter().map(|column| width(*column)).collect();
        let mut line = |cells: &[String]| {
            let mut text = String::from(" ");
            for (&column, &width) in shown.iter().zip(&widths) {
                text.push(' ');
                text.push_str(&fit(&cells[column], width, self.heads[column].1));
                text.push(' ');
            }
            out.push_str(text.trim_end());
            out.push('\n');
        };
        line(&self.heads.map(|(head, _)| head.to_owned()));
        self.rows.iter().for_each(|row| line(row));
    }
}

/// A text in exactly this many columns, cut with an ellipsis if it is longer.
pub(super) fn fit(text: &str, width: usize, align: Align) -> String {
    let len = text.chars().count();
    if len > width {
        let kept: String = text.chars().take(width.saturating_sub(1)).collect();
        return kept + "…";
    }
    let space = " ".repeat(width - len);
    if align == Align::Left {
        text.to_owned() + &space
    } else {
        space + text
    }
}
