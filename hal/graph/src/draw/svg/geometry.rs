//! Points, boxes and curves.

/// A point, or a vector.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Point {
    pub(super) x: f64,
    pub(super) y: f64,
}

pub(super) fn point(x: f64, y: f64) -> Point {
    Point { x, y }
}

impl Point {
    pub(super) fn plus(self, other: Self) -> Self {
        point(self.x + other.x, self.y + other.y)
    }

    pub(super) fn minus(self, other: Self) -> Self {
        point(self.x - other.x, self.y - other.y)
    }

    pub(super) fn times(self, factor: f64) -> Self {
        point(self.x * factor, self.y * factor)
    }

    pub(super) fn toward(self, other: Self, share: f64) -> Self {
        self.plus(other.minus(self).times(share))
    }

    pub(super) fn length(self) -> f64 {
        self.x.hypot(self.y)
    }

    /// At a right angle to it, of length 1; of length 0 if it is.
    pub(super) fn normal(self) -> Self {
        let length = self.length();
        if length == 0.0 {
            self
        } else {
            point(-self.y / length, self.x / length)
        }
    }
}

/// A box, by its middle.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Area {
    pub(super) middle: Point,
    pub(super) width: f64,
    pub(super) height: f64,
}

impl Area {
    pub(super) fn from_corner(x: f64, y: f64, width: f64, height: f64) -> Self {
        Self {
            middle: point(x + width / 2.0, y + height / 2.0),
            width,
            height,
        }
    }

    pub(super) fn left(&self) -> f64 {
        self.middle.x - self.width / 2.0
    }

    pub(super) fn right(&self) -> f64 {
        self.middle.x + self.width / 2.0
    }

    pub(super) fn top(&self) -> f64 {
        self.middle.y - self.height / 2.0
    }

    pub(super) fn bottom(&self) -> f64 {
        self.middle.y + self.height / 2.0
    }

    pub(super) fn moved(&self, by: Point) -> Self {
        Self {
            middle: self.middle.plus(by),
            ..*self
        }
    }

    /// Whether two boxes come closer than this.
    pub(super) fn touches(&self, other: &Self, gap: f64) -> bool {
        let apart = self.middle.minus(other.middle);
        apart.x.abs() < (self.width + other.width) / 2.0 + gap
            && apart.y.abs() < (self.height + other.height) / 2.0 + gap
    }

    pub(super) fn within(&self, outer: &Self) -> bool {
        self.left() >= outer.left()
            && self.right() <= outer.right()
            && self.top() >= outer.top()
            && self.bottom() <= outer.bottom()
    }

    /// Where a line to `target` begins: a little inside the box, which is painted over it, so that
    /// wide lines have no loose ends.
    pub(super) fn edge_toward(&self, target: Point) -> Point {
        let ray = target.minus(self.middle);
        let share = |half: f64, along: f64| {
            if along == 0.0 {
                f64::INFINITY
            } else {
                half / along.abs()
            }
        };
        let factor = share(self.width / 2.0, ray.x).min(share(self.height / 2.0, ray.y));
        let inside = 9.0 / ray.length().max(1.0);
        if factor.is_finite() {
            self.middle.plus(ray.times((factor - inside).max(0.0)))
        } else {
            self.middle
        }
    }
}

/// A cubic Bézier curve.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Curve(pub(super) [Point; 4]);

impl Curve {
    pub(super) fn at(&self, t: f64) -> Point {
        let [a, b, c, d] = self.0;
        let (ab, bc, cd) = (a.toward(b, t), b.toward(c, t), c.toward(d, t));
        ab.toward(bc, t).toward(bc.toward(cd, t), t)
    }

    /// The direction in which it runs.
    pub(super) fn direction(&self, t: f64) -> Point {
        let (before, after) = ((t - 0.01).max(0.0), (t + 0.01).min(1.0));
        self.at(after).minus(self.at(before))
    }

    /// Beside it, at this distance: good enough for a few pixels of a gentle curve.
    pub(super) fn beside(&self, distance: f64) -> Self {
        let [a, b, c, d] = self.0;
        let side = |along: Point| along.normal().times(distance);
        let (start, middle, end) = (side(b.minus(a)), side(d.minus(a)), side(d.minus(c)));
        let near = |p: Point, q: Point| p.plus(q).times(0.5);
        Self([
            a.plus(start),
            b.plus(near(start, middle)),
            c.plus(near(end, middle)),
            d.plus(end),
        ])
    }
}
