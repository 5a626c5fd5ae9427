//! A plan as a drawing: who sends what to whom, step by step, and when each link is busy.
//!
//! Time goes to the right, the same in both parts. Above, a line for each rank, and a curve for each
//! message from when it is sent to when it has arrived. Below, a row for each link, filled as far as
//! the link is used. Made for 2 to 16 ranks; of more, a part is drawn and the rest is counted, so that a
//! drawing of a thousand ranks is no larger than a page can bear.

mod axis;
mod links;
mod messages;
mod paint;

use unisono_graph::units;
use unisono_network::Network;

use crate::Plan;
use crate::names::Names;
use axis::Axis;
use paint::Paint;

/// Width of the part that shows time.
const WIDTH: f64 = 920.0;
/// Room for names on the left, and for figures on the right.
const LEFT: f64 = 168.0;
const RIGHT: f64 = 64.0;
const MARGIN: f64 = 32.0;
/// Where the first part begins, below the title.
const HEAD: f64 = 104.0;
/// From the end of a part to the heading of the next.
const GAP: f64 = 64.0;

/// The plan as an SVG document, for light and dark screens.
#[must_use]
pub fn svg(plan: &Plan, network: &Network, names: &Names) -> String {
    let mut paint = Paint::new(plan.schedule.ranks);
    let axis = Axis::new(MARGIN + LEFT, WIDTH, plan.timeline.end_ps);
    let title = format!(
        "{} of {} over {} ranks",
        plan.schedule.op,
        units::size(plan.schedule.message.bytes),
        plan.schedule.ranks
    );
    let summary = summary(plan);
    paint.text(MARGIN, 44.0, "title", &title);
    paint.text(MARGIN, 68.0, "muted", &summary);

    let messages = messages::Messages::new(plan);
    let links = links::Links::new(plan, network);
    paint.text(MARGIN, HEAD, "strong", "Who sends to whom");
    let top = HEAD + 16.0;
    axis.grid(&mut paint, top, messages.height());
    messages.draw(&mut paint, &axis, top);
    let top = top + messages.height() + GAP;
    paint.text(MARGIN, top, "strong", "When links are used");
    let top = top + 16.0;
    axis.grid(&mut paint, top, links.height());
    links.draw(&mut paint, &axis, names, top);

    let mut y = top + links.height() + 44.0;
    let mut notes = vec![
        "A curve is a message, from when it is sent to when it has arrived; the thicker, the more bytes. \
         A bar is as high as the part of the link that is in use."
            .to_owned(),
    ];
    if plan.schedule.steps.is_empty() && links.any() {
        notes.push(
            "Messages are not drawn: there are so many that they were counted. Links show their mean use."
                .to_owned(),
        );
    }
    notes.extend(left_out(&messages, &links));
    for note in &notes {
        paint.text(MARGIN, y, "small", note);
        y += 17.0;
    }
    let width = 2.0 * MARGIN + LEFT + WIDTH + RIGHT;
    paint.document(
        width,
        y + 12.0,
        &title,
        &format!("{summary}. {}", notes.join(" ")),
    )
}

/// The figures of the plan in a sentence.
fn summary(plan: &Plan) -> String {
    let steps = &plan.schedule.steps;
    let mut text = plan.algorithm.clone();
    if !steps.is_empty() {
        let messages = steps.iter().filter(|step| messages::is_message(step));
        text += &format!(" in {} messages", messages.count());
    }
    text += &format!(
        ": {}, {:.2} GB/s",
        axis::time(plan.timeline.end_ps),
        plan.algbw_gigabytes()
    );
    if plan.bound.is_some() {
        text += &format!(", {:.1} % of the bound", 100.0 * plan.share_of_bound());
    }
    text
}

/// What is not drawn, in words; nothing if all is.
fn left_out(messages: &messages::Messages<'_>, links: &links::Links<'_>) -> Option<String> {
    let parts = [
        (messages.ranks_left_out(), "ranks"),
        (messages.left_out(), "messages"),
        (links.left_out(), "links, which are used less"),
    ];
    let parts: Vec<String> = (parts.iter())
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!("{count} {what}"))
        .collect();
    (!parts.is_empty()).then(|| format!("Not drawn: {}.", parts.join("; ")))
}
