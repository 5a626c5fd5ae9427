//! Modules and launches: the image must be PTX that names the kernel; what runs is the same source,
//! compiled for the host.

use std::collections::HashMap;
use std::ffi::{CStr, c_char, c_void};
use std::sync::Arc;

use unisono_emulator::{Kernel, Launch, Op};

use crate::answer::{driver, give};
use crate::code;
use crate::context::{machine, synchronise};
use crate::handle::Table;
use crate::stream;

/// What a module holds: kernels by name, with the bytes of their parameter.
pub struct Module(HashMap<String, usize>);

pub struct Function {
    kernel: Kernel,
    parameter: usize,
}

static MODULES: Table<Module> = Table::new();
static FUNCTIONS: Table<Function> = Table::new();

/// The entries of a PTX text, each at the start of a line, as compilers write them. The text is long, and each process loads it
/// anew: lines are found faster than words.
fn entries(text: &str) -> HashMap<String, usize> {
    let mut found = HashMap::new();
    let mut end = 0;
    for line in text.split_inclusive('\n') {
        end += line.len();
        let entry = line.strip_prefix(".visible ").unwrap_or(line);
        let Some((name, parameters)) = entry
            .strip_prefix(".entry ")
            .and_then(|entry| entry.split_once('('))
        else {
            continue;
        };
        // One parameter, a struct, on this line or the next: `.param .align 8 .b8 name_param_0[72]`.
        let from = end - parameters.len();
        let bytes = (text[from..].split_once(')'))
            .and_then(|(inside, _)| inside.split_once('['))
            .and_then(|(_, rest)| rest.split_once(']'))
            .and_then(|(bytes, _)| bytes.parse().ok());
        found.insert(name.trim().to_owned(), bytes.unwrap_or(0));
    }
    found
}

driver! {
    fn cuModuleLoadData(handle: *mut u64, image: *const c_void) {
        synchronise("cuModuleLoadData")?;
        if image.is_null() {
            return Err(code::INVALID_VALUE);
        }
        // SAFETY: the caller passes PTX, which is NUL-terminated.
        let text = unsafe { CStr::from_ptr(image.cast()) };
        let text = text.to_str().map_err(|_| code::INVALID_IMAGE)?;
        let target = text.lines().find_map(|line| line.trim().strip_prefix(".target sm_"));
        let target: u32 = target.and_then(|t| t.trim().parse().ok()).ok_or(code::INVALID_IMAGE)?;
        let [major, minor] = machine()?.facts.generation;
        if target > major * 10 + minor {
            return Err(code::INVALID_IMAGE);
        }
        let made = MODULES.add(Arc::new(Module(entries(text))))?;
        // SAFETY: the caller's.
        unsafe { give(handle, made) }
    }

    fn cuModuleUnload(handle: u64) {
        synchronise("cuModuleUnload")?;
        MODULES.remove(handle).map(|_| ())
    }

    fn cuModuleGetFunction(handle: *mut u64, module: u64, name: *const c_char) {
        let module = MODULES.get(module)?;
        // SAFETY: the caller's.
        let name = unsafe { CStr::from_ptr(name) }.to_string_lossy();
        let parameter = *module.0.get(&*name).ok_or(code::NOT_FOUND)?;
        let kernel = machine()?.kernel(&name).ok_or(code::NOT_FOUND)?;
        let made = FUNCTIONS.add(Arc::new(Function { kernel, parameter }))?;
        // SAFETY: the caller's.
        unsafe { give(handle, made) }
    }

    fn cuLaunchKernel(
        function: u64,
        grid_x: u32, grid_y: u32, grid_z: u32,
        block_x: u32, block_y: u32, block_z: u32,
        _shared: u32,
        handle: u64,
        parameters: *const *const c_void,
        extra: *const *const c_void,
    ) {
        let (stream, function) = (stream::of(handle)?, FUNCTIONS.get(function)?);
        let grid = [grid_x, grid_y, grid_z];
        let block = [block_x, block_y, block_z];
        let threads = u64::from(block_x) * u64::from(block_y) * u64::from(block_z);
        let fits = grid.iter().chain(&block).all(|n| *n > 0) && threads <= 1024 && grid_y <= 65535;
        if !fits || parameters.is_null() || !extra.is_null() {
            return Err(code::INVALID_VALUE);
        }
        let mut arguments = vec![0_u64; function.parameter.div_ceil(8)];
        // SAFETY: the caller passes a pointer to each parameter; there is one, of this size.
        unsafe {
            let from = (*parameters).cast::<u8>();
            let to = arguments.as_mut_ptr().cast();
            std::ptr::copy_nonoverlapping(from, to, function.parameter);
        }
        let kernel = function.kernel;
        stream::submit(&stream, Op::Launch(Launch { kernel, arguments, grid, block }))
    }
}
