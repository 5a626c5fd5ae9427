//! Modules and launches: the image must have a code object for the device that has the kernel; what runs
//! is the same source, compiled for the host.

use std::ffi::{CStr, c_char, c_void};
use std::sync::Arc;

use unisono_emulator::{Kernel, Launch, Op};
use unisono_emulator_cuda::answer::{Answer, give};
use unisono_emulator_cuda::code;
use unisono_emulator_cuda::context::synchronise;
use unisono_emulator_cuda::handle::Table;
use unisono_emulator_cuda::stream;

use crate::answer::hip;
use crate::device::machine;
use crate::module::{Kernels, kernels};

/// What a launch's `extra` names.
const BUFFER: usize = 1;
const BUFFER_SIZE: usize = 2;
const END: usize = 3;

struct Function {
    kernel: Kernel,
    /// Bytes of its arguments, with those that the runtime adds.
    arguments: usize,
}

static MODULES: Table<Kernels> = Table::new();
static FUNCTIONS: Table<Function> = Table::new();

/// The arguments in a launch's `extra`: where they lie, and how many bytes.
unsafe fn buffer(extra: *const *const c_void) -> Answer<(*const u8, usize)> {
    let (mut at, mut size) = (std::ptr::null::<u8>(), 0);
    for index in 0..4 {
        // SAFETY: the caller ends the list by `END`.
        unsafe {
            let value = *extra.add(index * 2);
            match value as usize {
                END => break,
                BUFFER => at = (*extra.add(index * 2 + 1)).cast(),
                BUFFER_SIZE => size = *(*extra.add(index * 2 + 1)).cast::<usize>(),
                _ => return Err(code::INVALID_VALUE),
            }
        }
    }
    if at.is_null() || size == 0 {
        return Err(code::INVALID_VALUE);
    }
    Ok((at, size))
}

hip! {
    current fn hipModuleLoadData(handle: *mut u64, image: *const c_void) {
        synchronise("hipModuleLoadData")?;
        let architecture = machine()?.facts.architecture.as_deref().unwrap_or_default();
        // SAFETY: the caller passes an image.
        let found = unsafe { kernels(image, architecture) }?;
        // SAFETY: the caller's.
        unsafe { give(handle, MODULES.add(Arc::new(found))?) }
    }

    current fn hipModuleUnload(handle: u64) {
        synchronise("hipModuleUnload")?;
        MODULES.remove(handle).map(|_| ())
    }

    current fn hipModuleGetFunction(handle: *mut u64, module: u64, name: *const c_char) {
        let module = MODULES.get(module)?;
        // SAFETY: the caller's.
        let name = unsafe { CStr::from_ptr(name) }.to_string_lossy();
        let arguments = *module.get(&*name).ok_or(code::NOT_FOUND)?;
        let kernel = machine()?.kernel(&name).ok_or(code::NOT_FOUND)?;
        let made = FUNCTIONS.add(Arc::new(Function { kernel, arguments }))?;
        // SAFETY: the caller's.
        unsafe { give(handle, made) }
    }

    /// Arguments come in one buffer; by pointers to each nobody here passes them.
    current fn hipModuleLaunchKernel(
        function: u64,
        grid_x: u32, grid_y: u32, grid_z: u32,
        block_x: u32, block_y: u32, block_z: u32,
        _shared: u32,
        handle: u64,
        parameters: *const *const c_void,
        extra: *const *const c_void,
    ) {
        let (stream, function) = (stream::of(handle)?, FUNCTIONS.get(function)?);
        let (grid, block) = ([grid_x, grid_y, grid_z], [block_x, block_y, block_z]);
        let threads = u64::from(block_x) * u64::from(block_y) * u64::from(block_z);
        let fits = grid.iter().chain(&block).all(|n| *n > 0) && threads <= 1024 && grid_y <= 65535;
        if !fits || !parameters.is_null() || extra.is_null() {
            return Err(code::INVALID_VALUE);
        }
        // SAFETY: the caller's.
        let (from, size) = unsafe { buffer(extra) }?;
        if size > function.arguments {
            return Err(code::INVALID_VALUE);
        }
        let mut arguments = vec![0_u64; size.div_ceil(8)];
        // SAFETY: the caller passes so many bytes.
        unsafe { std::ptr::copy_nonoverlapping(from, arguments.as_mut_ptr().cast(), size) };
        let kernel = function.kernel;
        stream::submit(&stream, Op::Launch(Launch { kernel, arguments, grid, block }))
    }
}
