//! Commands as they cross the contract's door.
#![allow(unsafe_code, reason = "a batch is bytes in the layout of the contract")]

use unisono_abi::{
    CMD_WORDS, Command as Head, CommandCopy, CommandPut, CommandRead, CommandReduce, CommandSignal,
    CommandWait, command_kind as kind,
};

/// A command of a stream or link, with the addresses that it was given.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Command {
    Copy(CommandCopy),
    Reduce(CommandReduce),
    Signal(CommandSignal),
    Wait(CommandWait),
    Put(CommandPut),
    Read(CommandRead),
    /// A copy of two addresses into a flag's line: a rank tells where its buffers are.
    Tell {
        line: u64,
        ends: [u64; 2],
    },
    /// A copy of them out of the line.
    Keep(CommandCopy),
    /// Of another kind, which the replay refuses.
    Other(u16),
    /// Not a command: the call with this number has returned to its caller.
    End(u32),
}

/// The first `count` commands of a batch that a plugin has accepted.
///
/// # Safety
/// The plugin has accepted them, so they are as the contract says: each 8-byte aligned and as long
/// as its kind at least. What they read is there.
pub(crate) unsafe fn decode(
    batch: *const u8,
    count: u32,
    is_told: impl Fn(u64) -> bool,
) -> Vec<Command> {
    let mut at = batch;
    let mut commands = Vec::with_capacity(count as usize);
    for _ in 0..count {
        // SAFETY: the caller says that there is one more command, and each begins so.
        let head = unsafe { at.cast::<Head>().read() };
        macro_rules! read {
            ($variant:ident, $command:ty) => {
                // SAFETY: a command of this kind is at least so long.
                Command::$variant(unsafe { at.cast::<$command>().read() })
            };
        }
        commands.push(match head.kind {
            kind::COPY => match read!(Copy, CommandCopy) {
                Command::Copy(copy) if is_told(copy.dst) => Command::Tell {
                    line: copy.dst,
                    // SAFETY: the caller says that it is there; two addresses are all that is written to a line.
                    ends: unsafe { (copy.src as usize as *const [u64; 2]).read() },
                },
                Command::Copy(copy) if is_told(copy.src) => Command::Keep(copy),
                copy => copy,
            },
            kind::READ => read!(Read, CommandRead),
            kind::REDUCE => read!(Reduce, CommandReduce),
            kind::SIGNAL => read!(Signal, CommandSignal),
            kind::WAIT => read!(Wait, CommandWait),
            kind::PUT => read!(Put, CommandPut),
            other => Command::Other(other),
        });
        // SAFETY: a command is `size` bytes long, and the next one, or the batch's end, follows.
        at = unsafe { at.add(usize::from(head.size)) };
    }
    commands
}

/// Words that travel with a flag, if the command's head says that there are any.
pub(crate) fn words(head: &Head, words: [u64; 3]) -> Option<[u64; 3]> {
    (head.flags & CMD_WORDS != 0).then_some(words)
}
