//! Packing a batch: for a plugin's own tests, and for plugins that drive another's queues.
#![allow(unsafe_code, reason = "plain C structs as words")]

use unisono_abi::{
    Command, CommandCall, CommandCopy, CommandEvent, CommandPut, CommandRead, CommandReduce,
    CommandScale, CommandSignal, CommandWait, command_kind as kind,
};

/// A packed batch in the making.
#[derive(Clone, Debug, Default)]
pub struct Pack {
    words: Vec<u64>,
    count: u32,
}

macro_rules! commands {
    ($($(#[$doc:meta])* $name:ident($ty:ty, $kind:expr),)+) => {$(
        $(#[$doc])*
        pub fn $name(&mut self, flags: u32, mut command: $ty) -> &mut Self {
            command.head = Command { kind: $kind, size: size_of::<$ty>() as u16, flags };
            let words = (&raw const command).cast::<u64>();
            // SAFETY: the struct is a whole number of u64 without padding, by the contract.
            self.words.extend_from_slice(unsafe {
                std::slice::from_raw_parts(words, size_of::<$ty>() / 8)
            });
            self.count += 1;
            self
        }
    )+};
}

impl Pack {
    /// An empty batch.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    commands! {
        /// Adds a COPY; as in all of these, the head is filled in.
        copy(CommandCopy, kind::COPY),
        /// Adds a REDUCE.
        reduce(CommandReduce, kind::REDUCE),
        /// Adds a SIGNAL.
        signal(CommandSignal, kind::SIGNAL),
        /// Adds a WAIT.
        wait(CommandWait, kind::WAIT),
        /// Adds a PUT.
        put(CommandPut, kind::PUT),
        /// Adds a RECORD.
        record(CommandEvent, kind::RECORD),
        /// Adds a WAIT_EVENT.
        wait_event(CommandEvent, kind::WAIT_EVENT),
        /// Adds a SCALE.
        scale(CommandScale, kind::SCALE),
        /// Adds a CALL.
        call(CommandCall, kind::CALL),
        /// Adds a READ.
        read(CommandRead, kind::READ),
    }

    /// The packed words.
    #[must_use]
    pub fn words(&self) -> &[u64] {
        &self.words
    }

    /// Commands in it.
    #[must_use]
    pub fn count(&self) -> u32 {
        self.count
    }

    /// Forgets all commands and keeps the room.
    pub fn clear(&mut self) {
        self.words.clear();
        self.count = 0;
    }
}
