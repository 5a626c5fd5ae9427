//! A vendor's runtime, as a program uses it that has streams of its own.
#![allow(unsafe_code, reason = "calls the runtime")]

use std::ffi::c_void;
use std::ptr;

use libloading::Library;

/// A runtime. A call that fails ends the test.
#[derive(Debug)]
pub struct Driver {
    library: Library,
    vendor: Vendor,
}

#[derive(Clone, Copy, Debug)]
enum Vendor {
    Cuda,
    Hip,
    Acl,
}

macro_rules! call {
    ($driver:expr, $name:expr, ($($type:ty),*), $($argument:expr),*) => {{
        let name: &str = $name;
        // SAFETY: the function has these parameters, by the runtime's manual; the arguments are good.
        let code = unsafe {
            let function = $driver
                .library
                .get::<unsafe extern "C" fn($($type),*) -> u32>(name.as_bytes());
            (function.unwrap_or_else(|error| panic!("{name}: {error}")))($($argument),*)
        };
        assert_eq!(code, 0, "{name}");
    }};
}

/// A handle of the runtime's.
pub type Handle = *mut c_void;

/// `hipMemcpyDefault`.
const ANY_DIRECTION: u32 = 4;
/// `ACL_MEMCPY_HOST_TO_DEVICE`.
const HOST_TO_DEVICE: i32 = 1;
/// `ACL_MEMCPY_DEVICE_TO_HOST`.
const DEVICE_TO_HOST: i32 = 2;

impl Driver {
    /// The CUDA driver, which the plugin uses.
    ///
    /// # Panics
    /// If there is none.
    #[must_use]
    pub fn open() -> Self {
        Self::of("cuda")
    }

    /// The runtime that a plugin uses.
    ///
    /// # Panics
    /// If there is none.
    #[must_use]
    pub fn of(plugin: &str) -> Self {
        let (name, vendor) = match plugin {
            "rocm" => ("libamdhip64.so.6", Vendor::Hip),
            "ascend" => ("libascendcl.so", Vendor::Acl),
            _ => ("libcuda.so.1", Vendor::Cuda),
        };
        // SAFETY: the plugin has opened it already.
        let library = unsafe { Library::new(name) }.expect("the runtime");
        Self { library, vendor }
    }

    /// Of two names, that of this vendor. The third's recordings are not used here.
    fn name<'a>(&self, cuda: &'a str, hip: &'a str) -> &'a str {
        match self.vendor {
            Vendor::Cuda => cuda,
            Vendor::Hip => hip,
            Vendor::Acl => panic!("no name for {cuda}"),
        }
    }

    /// Makes a device this thread's.
    pub fn enter(&self, device: i32) {
        match self.vendor {
            Vendor::Cuda => {
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
            Vendor::Hip => call!(self, "hipSetDevice", (i32), device),
            Vendor::Acl => call!(self, "aclrtSetDevice", (i32), device),
        }
    }

    /// A stream of this thread's device, which waits for no other.
    #[must_use]
    pub fn stream(&self) -> Handle {
        let mut stream: Handle = ptr::null_mut();
        if let Vendor::Acl = self.vendor {
            call!(self, "aclrtCreateStream", (*mut Handle), &raw mut stream);
            return stream;
        }
        let name = self.name("cuStreamCreate", "hipStreamCreateWithFlags");
        call!(self, name, (*mut Handle, u32), &raw mut stream, 1);
        stream
    }

    /// Begins to record what is put on a stream. What may wait for streams is forbidden to all threads
    /// meanwhile.
    pub fn begin(&self, stream: Handle) {
        self.begin_in_mode(stream, 0);
    }

    /// As [`begin`](Self::begin), but other threads may do what they like.
    pub fn begin_beside_others(&self, stream: Handle) {
        self.begin_in_mode(stream, 1);
    }

    fn begin_in_mode(&self, stream: Handle, mode: u32) {
        let name = self.name("cuStreamBeginCapture_v2", "hipStreamBeginCapture");
        call!(self, name, (Handle, u32), stream, mode);
    }

    /// Ends it; what was recorded, ready to run.
    #[must_use]
    pub fn end(&self, stream: Handle) -> Handle {
        let (mut graph, mut runnable): (Handle, Handle) = (ptr::null_mut(), ptr::null_mut());
        let name = self.name("cuStreamEndCapture", "hipStreamEndCapture");
        call!(self, name, (Handle, *mut Handle), stream, &raw mut graph);
        match self.vendor {
            Vendor::Cuda => call!(
                self,
                "cuGraphInstantiateWithFlags",
                (*mut Handle, Handle, u64),
                &raw mut runnable,
                graph,
                0
            ),
            Vendor::Hip => call!(
                self,
                "hipGraphInstantiate",
                (*mut Handle, Handle, *mut Handle, *mut u8, usize),
                &raw mut runnable,
                graph,
                ptr::null_mut(),
                ptr::null_mut(),
                0
            ),
            Vendor::Acl => panic!("its recordings are not used here"),
        }
        let name = self.name("cuGraphDestroy", "hipGraphDestroy");
        call!(self, name, (Handle), graph);
        runnable
    }

    /// Lets a stream go on only when all that another has now is done; in a recording, too.
    pub fn order(&self, first: Handle, second: Handle) {
        let mut event: Handle = ptr::null_mut();
        let name = self.name("cuEventCreate", "hipEventCreateWithFlags");
        call!(self, name, (*mut Handle, u32), &raw mut event, 2);
        let name = self.name("cuEventRecord", "hipEventRecord");
        call!(self, name, (Handle, Handle), event, first);
        let name = self.name("cuStreamWaitEvent", "hipStreamWaitEvent");
        call!(self, name, (Handle, Handle, u32), second, event, 0);
        let name = self.name("cuEventDestroy_v2", "hipEventDestroy");
        call!(self, name, (Handle), event);
    }

    /// Runs what was recorded.
    pub fn launch(&self, runnable: Handle, stream: Handle) {
        let name = self.name("cuGraphLaunch", "hipGraphLaunch");
        call!(self, name, (Handle, Handle), runnable, stream);
    }

    /// Waits for all that is on a stream.
    pub fn synchronise(&self, stream: Handle) {
        let name = match self.vendor {
            Vendor::Acl => "aclrtSynchronizeStream",
            _ => self.name("cuStreamSynchronize", "hipStreamSynchronize"),
        };
        call!(self, name, (Handle), stream);
    }

    /// Puts a copy from the host's memory to the device's on a stream.
    ///
    /// # Safety
    /// Both stay until the stream has done it.
    pub unsafe fn copy_in(&self, stream: Handle, to: u64, from: *const u8, bytes: usize) {
        match self.vendor {
            Vendor::Cuda => call!(
                self,
                "cuMemcpyHtoDAsync_v2",
                (u64, *const u8, usize, Handle),
                to,
                from,
                bytes,
                stream
            ),
            Vendor::Hip => self.copy(stream, to, from as u64, bytes),
            Vendor::Acl => self.copy_towards(stream, to, from as u64, bytes, HOST_TO_DEVICE),
        }
    }

    /// Puts a copy from the device's memory to the host's on a stream.
    ///
    /// # Safety
    /// Both stay until the stream has done it.
    pub unsafe fn copy_out(&self, stream: Handle, to: *mut u8, from: u64, bytes: usize) {
        match self.vendor {
            Vendor::Cuda => call!(
                self,
                "cuMemcpyDtoHAsync_v2",
                (*mut u8, u64, usize, Handle),
                to,
                from,
                bytes,
                stream
            ),
            Vendor::Hip => self.copy(stream, to as u64, from, bytes),
            Vendor::Acl => self.copy_towards(stream, to as u64, from, bytes, DEVICE_TO_HOST),
        }
    }

    /// Puts a copy within the device's memory on a stream.
    ///
    /// # Safety
    /// Both stay until the stream, and each graph that it is recorded into, has done it.
    pub unsafe fn copy_within(&self, stream: Handle, to: u64, from: u64, bytes: usize) {
        match self.vendor {
            Vendor::Cuda => call!(
                self,
                "cuMemcpyDtoDAsync_v2",
                (u64, u64, usize, Handle),
                to,
                from,
                bytes,
                stream
            ),
            Vendor::Hip => self.copy(stream, to, from, bytes),
            Vendor::Acl => panic!("not used here"),
        }
    }

    /// AscendCL wants to be told the direction.
    fn copy_towards(&self, stream: Handle, to: u64, from: u64, bytes: usize, kind: i32) {
        call!(
            self,
            "aclrtMemcpyAsync",
            (u64, usize, u64, usize, i32, Handle),
            to,
            bytes,
            from,
            bytes,
            kind,
            stream
        );
    }

    fn copy(&self, stream: Handle, to: u64, from: u64, bytes: usize) {
        call!(
            self,
            "hipMemcpyAsync",
            (u64, u64, usize, u32, Handle),
            to,
            from,
            bytes,
            ANY_DIRECTION,
            stream
        );
    }
}
