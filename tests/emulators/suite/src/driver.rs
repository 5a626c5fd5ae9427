//! The driver, as a program uses it that has streams of its own.
#![allow(unsafe_code, reason = "calls the driver")]

use std::ffi::c_void;
use std::ptr;

use libloading::Library;

/// The driver. A call that fails ends the test.
#[derive(Debug)]
pub struct Driver(Library);

macro_rules! call {
    ($driver:expr, $name:literal, ($($type:ty),*), $($argument:expr),*) => {{
        // SAFETY: the function has these parameters, by the driver API's manual; the arguments are good.
        let code = unsafe {
            let function = $driver
                .0
                .get::<unsafe extern "C" fn($($type),*) -> u32>(concat!($name, "\0").as_bytes());
            (function.expect($name))($($argument),*)
        };
        assert_eq!(code, 0, $name);
    }};
}

/// A handle of the driver's.
pub type Handle = *mut c_void;

impl Driver {
    /// The driver that the plugin uses.
    ///
    /// # Panics
    /// If there is none.
    #[must_use]
    pub fn open() -> Self {
        // SAFETY: the plugin has opened it already.
        Self(unsafe { Library::new("libcuda.so.1") }.expect("the driver"))
    }

    /// Makes the context of a device this thread's.
    pub fn enter(&self, device: i32) {
        let mut context: Handle = ptr::null_mut();
        call!(
            self,
            "cuDevicePrimaryCtxRetain",
            (*mut Handle, i32),
            &raw mut context,
            device
        );
        call!(self, "cuCtxPushCurrent_v2", (Handle), context);
    }

    /// A stream of this thread's context.
    #[must_use]
    pub fn stream(&self) -> Handle {
        let mut stream: Handle = ptr::null_mut();
        call!(
            self,
            "cuStreamCreate",
            (*mut Handle, u32),
            &raw mut stream,
            1
        );
        stream
    }

    /// Begins to record what is put on a stream.
    pub fn begin(&self, stream: Handle) {
        call!(self, "cuStreamBeginCapture_v2", (Handle, u32), stream, 0);
    }

    /// Ends it; what was recorded, ready to run.
    #[must_use]
    pub fn end(&self, stream: Handle) -> Handle {
        let (mut graph, mut runnable): (Handle, Handle) = (ptr::null_mut(), ptr::null_mut());
        call!(
            self,
            "cuStreamEndCapture",
            (Handle, *mut Handle),
            stream,
            &raw mut graph
        );
        call!(
            self,
            "cuGraphInstantiateWithFlags",
            (*mut Handle, Handle, u64),
            &raw mut runnable,
            graph,
            0
        );
        call!(self, "cuGraphDestroy", (Handle), graph);
        runnable
    }

    /// Runs what was recorded.
    pub fn launch(&self, runnable: Handle, stream: Handle) {
        call!(self, "cuGraphLaunch", (Handle, Handle), runnable, stream);
    }

    /// Waits for all that is on a stream.
    pub fn synchronise(&self, stream: Handle) {
        call!(self, "cuStreamSynchronize", (Handle), stream);
    }

    /// Puts a copy from the host's memory to the device's on a stream.
    ///
    /// # Safety
    /// Both stay until the stream has done it.
    pub unsafe fn copy_in(&self, stream: Handle, to: u64, from: *const u8, bytes: usize) {
        call!(
            self,
            "cuMemcpyHtoDAsync_v2",
            (u64, *const u8, usize, Handle),
            to,
            from,
            bytes,
            stream
        );
    }

    /// Puts a copy from the device's memory to the host's on a stream.
    ///
    /// # Safety
    /// Both stay until the stream has done it.
    pub unsafe fn copy_out(&self, stream: Handle, to: *mut u8, from: u64, bytes: usize) {
        call!(
            self,
            "cuMemcpyDtoHAsync_v2",
            (*mut u8, u64, usize, Handle),
            to,
            from,
            bytes,
            stream
        );
    }
}
