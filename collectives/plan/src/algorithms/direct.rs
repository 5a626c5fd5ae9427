//! send and recv: one put, acknowledged.
//!
//! The acknowledgement tells the sender which call its peer made. It is waited for one piece
//! later, so that it costs a large message nothing. A group that exchanges messages between two
//! ranks can run the rounds of its programs side by side, sends before receives.
//!
//! Over windows the receiver copies the message from where it lies, and acknowledges that it has: one pass over the data,
//! `2 a + S b`.

use crate::builder::{Builder, input, out, peer};
use crate::ir::{Buffer, Op, Value};

pub(super) fn build(b: &mut Builder) {
    let all = b.all();
    match b.op() {
        Op::Send { to } => {
            b.put(to, Value::Copy(input(all)));
            b.skew(1).hear(to);
        }
        Op::Recv { from } => {
            b.receive(from, all);
            b.signal(from);
        }
        _ => {}
    }
}

pub(super) fn build_windowed(b: &mut Builder) {
    let all = b.all();
    match b.op() {
        Op::Send { to } => {
            b.signal(to);
            b.skew(1).hear(to);
        }
        Op::Recv { from } => {
            b.hear(from);
            b.copy(out(all), peer(from, Buffer::In, all));
            b.signal(from);
        }
        _ => {}
    }
}
