//! Elements that measured calls read and write: their results don't matter, where they lie does.

use crate::communicator::{Buffer, Place, Window};
use crate::error::Result;
use crate::{Communicator, DataType};

/// The type of all measurements: its size is the most common one.
pub(super) const DTYPE: DataType = DataType::F32;

/// Elements of that type.
pub(super) enum Elements {
    /// Ordinary memory, which the device reaches.
    Slice(Vec<f32>),
    /// Memory of the device: what programs on such devices hand over. Slices would be copied there and
    /// back, which is no matter of the plan's.
    Buffer(Buffer<f32>),
    Window(Window<f32>),
}

impl Elements {
    pub(super) fn new(on: &Communicator, elements: usize, windowed: bool) -> Result<Self> {
        Ok(if windowed {
            Self::Window(on.alloc(elements)?)
        } else if on.device().info().reaches(unisono_abi::reach::HOST) {
            Self::Slice(vec![1.0; elements])
        } else {
            Self::Buffer(on.buffer(elements)?)
        })
    }

    /// Where they lie. They are not moved while this lives.
    pub(super) fn place(&mut self) -> Place {
        match self {
            Self::Slice(elements) => Place::Slice(elements.as_mut_ptr() as u64),
            Self::Buffer(buffer) => Place::Device(buffer.address()),
            Self::Window(window) => Place::Device(window.address()),
        }
    }

    /// Writes the first so many anew. Memory that only a device reaches is left as it is: no cache of a processor
    /// holds it.
    pub(super) fn rewrite(&mut self, elements: usize) {
        let all = match self {
            Self::Slice(all) => Some(all.as_mut_slice()),
            Self::Buffer(buffer) => buffer.as_mut_slice(),
            Self::Window(window) => window.as_mut_slice(),
        };
        if let Some(all) = all.and_then(|all| all.get_mut(..elements)) {
            all.fill(std::hint::black_box(1.0));
        }
    }
}
