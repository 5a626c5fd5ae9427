//! The document in the making: a few shapes, with every text escaped.

use std::fmt::Write as _;

use super::geometry::{Area, Curve, Point};
use super::text::escape;

/// Elements, one after the other.
pub(super) struct Paint(String);

impl Paint {
    pub(super) fn new() -> Self {
        Self(String::new())
    }

    fn line(&mut self, arguments: std::fmt::Arguments<'_>) {
        // Writing to a string does not fail.
        let _ = self.0.write_fmt(arguments);
        self.0.push('\n');
    }

    pub(super) fn text(&mut self, x: f64, y: f64, size: f64, class: &str, text: &str) {
        let text = escape(text);
        self.line(format_args!(
            "<text x=\"{x:.1}\" y=\"{y:.1}\" font-size=\"{size}\" class=\"{class}\">{text}</text>"
        ));
    }

    pub(super) fn area(&mut self, area: &Area, radius: f64, class: &str) {
        let (x, y, width, height) = (area.left(), area.top(), area.width, area.height);
        self.line(format_args!(
            "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" rx=\"{radius}\" class=\"{class}\"/>"
        ));
    }

    pub(super) fn dot(&mut self, at: Point, radius: f64, class: &str) {
        self.line(format_args!(
            "<circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"{radius}\" class=\"{class}\"/>",
            at.x, at.y
        ));
    }

    pub(super) fn curve(&mut self, curve: &Curve, width: f64, class: &str) {
        let [a, b, c, d] = curve.0;
        self.line(format_args!(
            "<path d=\"M{:.1} {:.1}C{:.1} {:.1} {:.1} {:.1} {:.1} {:.1}\" stroke-width=\"{width:.1}\" class=\"line {class}\"/>",
            a.x, a.y, b.x, b.y, c.x, c.y, d.x, d.y
        ));
    }

    pub(super) fn triangle(&mut self, points: [Point; 3], class: &str) {
        let [a, b, c] = points;
        self.line(format_args!(
            "<path d=\"M{:.1} {:.1}L{:.1} {:.1}L{:.1} {:.1}Z\" class=\"{class}\"/>",
            a.x, a.y, b.x, b.y, c.x, c.y
        ));
    }

    /// What is painted inside bears a title, which viewers show when pointed at.
    pub(super) fn titled(&mut self, title: &str, inside: impl FnOnce(&mut Self)) {
        let title = escape(title);
        self.line(format_args!("<g><title>{title}</title>"));
        inside(self);
        self.line(format_args!("</g>"));
    }

    /// The whole document.
    pub(super) fn document(
        self,
        width: f64,
        height: f64,
        title: &str,
        description: &str,
        css: &str,
    ) -> String {
        let (title, description) = (escape(title), escape(description));
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" width=\"{width:.0}\" \
             height=\"{height:.0}\" role=\"img\" aria-labelledby=\"title description\">\n\
             <title id=\"title\">{title}</title>\n<desc id=\"description\">{description}</desc>\n\
             <style>\n{css}</style>\n\
             <rect width=\"100%\" height=\"100%\" class=\"page\"/>\n{}</svg>\n",
            self.0
        )
    }
}
