//! Messages that can't be cut.

/// A message that can't be cut as asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GeometryError {
    /// There must be a block and a piece.
    #[error(
        "a message needs at least one block and one piece, got {blocks} blocks and {pieces} pieces"
    )]
    Nothing {
        /// Blocks asked for.
        blocks: u32,
        /// Pieces asked for.
        pieces: u64,
    },
    /// The shares don't describe the blocks.
    #[error(
        "shares of {got} blocks for a message of {blocks} blocks, or shares that decrease or add up to nothing"
    )]
    Shares {
        /// Blocks of the message.
        blocks: u32,
        /// Entries of the shares.
        got: usize,
    },
    /// Sizes for more or fewer parts than there are, or for parts that can't be told apart.
    #[error("the message has {parts} parts, sizes are given for {got}")]
    Parts {
        /// Parts of the message.
        parts: u32,
        /// Sizes given.
        got: usize,
    },
    /// More elements than can be counted.
    #[error("the sizes of the parts add up to more than 2^64 elements")]
    TooLong,
    /// Not even one element of each block fits into a slot.
    #[error(
        "a slot of {slot_bytes} bytes can't hold one element of {element_bytes} bytes of each of {blocks} blocks; use larger slots or another algorithm"
    )]
    SlotTooSmall {
        /// Bytes of one slot.
        slot_bytes: u64,
        /// Bytes of one element.
        element_bytes: u32,
        /// Blocks in the widest put.
        blocks: u32,
    },
}
