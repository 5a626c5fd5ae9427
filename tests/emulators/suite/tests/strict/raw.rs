//! A vendor's runtime by its own C symbols, with nothing between: what a program would call.

use std::ffi::c_void;
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};

use libloading::Library;

/// Whose runtime.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Vendor {
    Cuda,
    Hip,
    Acl,
}

/// Codes that the runtimes answer where a test wants to know.
pub struct Codes {
    pub invalid_value: i32,
    pub no_context: i32,
    pub illegal_address: i32,
    /// Two operations were at the same bytes.
    pub race: i32,
    pub own_handle: i32,
}

/// A runtime, opened; its device is this thread's.
#[derive(Debug)]
pub struct Runtime {
    library: Library,
    pub vendor: Vendor,
}

/// Calls a function of a runtime's: its code.
macro_rules! call {
    ($runtime:expr, $name:expr, $(($value:expr): $type:ty),* $(,)?) => {{
        let name: &str = $name;
        // SAFETY: the function has these parameters, by the runtime's manual; what is wrong about the
        // arguments is what the test is about, and an emulator answers by a code.
        unsafe {
            let function = $runtime
                .library()
                .get::<unsafe extern "C" fn($($type),*) -> i32>(name.as_bytes());
            (function.unwrap_or_else(|error| panic!("{name}: {error}")))($($value),*)
        }
    }};
}
pub(crate) use call;

/// A word of the host's that a stream can wait for.
#[derive(Clone, Copy, Debug)]
pub struct Word {
    host: u64,
    /// For streams.
    at: u64,
}

impl Vendor {
    pub const fn codes(self) -> Codes {
        match self {
            Self::Cuda | Self::Hip => Codes {
                invalid_value: 1,
                no_context: 201,
                illegal_address: 700,
                race: 719,
                own_handle: 201,
            },
            Self::Acl => Codes {
                invalid_value: 107_000,
                no_context: 107_002,
                illegal_address: 507_015,
                race: 507_000,
                own_handle: 507_899,
            },
        }
    }

    /// Of three names, that of this vendor.
    pub const fn name(
        self,
        cuda: &'static str,
        hip: &'static str,
        acl: &'static str,
    ) -> &'static str {
        match self {
            Self::Cuda => cuda,
            Self::Hip => hip,
            Self::Acl => acl,
        }
    }

    /// A box of this vendor's.
    pub const fn machine(self) -> &'static str {
        self.name("h100x8", "mi300x8", "ascend910bx8")
    }

    pub fn of(name: &str) -> Self {
        let all = [Self::Cuda, Self::Hip, Self::Acl];
        let found = all.into_iter().find(|vendor| vendor.machine() == name);
        found.expect("one of the machines")
    }
}

impl Runtime {
    /// Opens and starts it, and makes the first device this thread's.
    pub fn start(vendor: Vendor) -> Self {
        let name = vendor.name("libcuda.so.1", "libamdhip64.so.6", "libascendcl.so");
        // SAFETY: an emulator, which has no constructors.
        let library = unsafe { Library::new(name) }.expect("the runtime");
        let this = Self { library, vendor };
        match vendor {
            Vendor::Cuda => assert_eq!(call!(this, "cuInit", (0): u32), 0),
            Vendor::Hip => {}
            Vendor::Acl => assert_eq!(call!(this, "aclInit", (ptr::null()): *const u8), 0),
        }
        this.enter();
        this
    }

    pub const fn library(&self) -> &Library {
        &self.library
    }

    /// Makes the first device this thread's.
    pub fn enter(&self) {
        let code = match self.vendor {
            Vendor::Cuda => {
                let mut context = 0;
                let retain = "cuDevicePrimaryCtxRetain";
                assert_eq!(
                    call!(self, retain, (&raw mut context): *mut u64, (0): i32),
                    0
                );
                call!(self, "cuCtxPushCurrent_v2", (context): u64)
            }
            Vendor::Hip => call!(self, "hipSetDevice", (0): i32),
            Vendor::Acl => call!(self, "aclrtSetDevice", (0): i32),
        };
        assert_eq!(code, 0);
    }

    /// Memory of the device's, or why not.
    pub fn try_alloc(&self, bytes: usize) -> Result<u64, i32> {
        let mut at = 0;
        let to = &raw mut at;
        let code = match self.vendor {
            Vendor::Cuda => call!(self, "cuMemAlloc_v2", (to): *mut u64, (bytes): usize),
            Vendor::Hip => call!(self, "hipMalloc", (to): *mut u64, (bytes): usize),
            Vendor::Acl => {
                call!(self, "aclrtMalloc", (to): *mut u64, (bytes): usize, (0): i32)
            }
        };
        if code == 0 { Ok(at) } else { Err(code) }
    }

    pub fn alloc(&self, bytes: usize) -> u64 {
        self.try_alloc(bytes).expect("memory")
    }

    pub fn free(&self, at: u64) -> i32 {
        let name = self.vendor.name("cuMemFree_v2", "hipFree", "aclrtFree");
        call!(self, name, (at): u64)
    }

    pub fn stream(&self) -> u64 {
        self.try_stream().expect("a stream")
    }

    /// A stream that waits for no other, or why not.
    pub fn try_stream(&self) -> Result<u64, i32> {
        let mut stream = 0;
        let to = &raw mut stream;
        let code = match self.vendor {
            Vendor::Cuda => call!(self, "cuStreamCreate", (to): *mut u64, (1): u32),
            Vendor::Hip => call!(self, "hipStreamCreateWithFlags", (to): *mut u64, (1): u32),
            Vendor::Acl => call!(self, "aclrtCreateStream", (to): *mut u64),
        };
        if code == 0 { Ok(stream) } else { Err(code) }
    }

    /// Waits for a stream.
    pub fn synchronise(&self, stream: u64) -> i32 {
        let name = self.vendor.name(
            "cuStreamSynchronize",
            "hipStreamSynchronize",
            "aclrtSynchronizeStream",
        );
        call!(self, name, (stream): u64)
    }

    /// Whether a stream has nothing left to do.
    pub fn is_done(&self, stream: u64) -> bool {
        match self.vendor {
            Vendor::Acl => {
                let mut status = 0;
                let to = &raw mut status;
                assert_eq!(
                    call!(self, "aclrtStreamQuery", (stream): u64, (to): *mut i32),
                    0
                );
                status == 0
            }
            Vendor::Cuda => call!(self, "cuStreamQuery", (stream): u64) == 0,
            Vendor::Hip => call!(self, "hipStreamQuery", (stream): u64) == 0,
        }
    }

    /// Puts a copy between memory of the device's on a stream.
    pub fn copy(&self, stream: u64, dst: u64, src: u64, bytes: usize) -> i32 {
        match self.vendor {
            Vendor::Cuda => {
                let name = "cuMemcpyDtoDAsync_v2";
                call!(self, name, (dst): u64, (src): u64, (bytes): usize, (stream): u64)
            }
            Vendor::Hip => {
                let name = "hipMemcpyAsync";
                call!(self, name, (dst): u64, (src): u64, (bytes): usize, (4): u32, (stream): u64)
            }
            Vendor::Acl => self.copy_as(stream, dst, src, bytes, 3),
        }
    }

    /// As AscendCL has it, which wants to be told the direction.
    pub fn copy_as(&self, stream: u64, dst: u64, src: u64, bytes: usize, kind: i32) -> i32 {
        let name = "aclrtMemcpyAsync";
        call!(
            self, name, (dst): u64, (bytes): usize, (src): u64, (bytes): usize, (kind): i32,
            (stream): u64,
        )
    }

    /// Lets a stream go on only when all that another has now is done.
    pub fn order(&self, first: u64, second: u64) {
        let mut event = 0_u64;
        let to = &raw mut event;
        let codes = match self.vendor {
            Vendor::Cuda => [
                call!(self, "cuEventCreate", (to): *mut u64, (2): u32),
                call!(self, "cuEventRecord", (event): u64, (first): u64),
                call!(self, "cuStreamWaitEvent", (second): u64, (event): u64, (0): u32),
            ],
            Vendor::Hip => [
                call!(self, "hipEventCreateWithFlags", (to): *mut u64, (2): u32),
                call!(self, "hipEventRecord", (event): u64, (first): u64),
                call!(self, "hipStreamWaitEvent", (second): u64, (event): u64, (0): u32),
            ],
            Vendor::Acl => [
                call!(self, "aclrtCreateEventExWithFlag", (to): *mut u64, (1): u32),
                call!(self, "aclrtRecordEvent", (event): u64, (first): u64),
                call!(self, "aclrtStreamWaitEvent", (second): u64, (event): u64),
            ],
        };
        assert_eq!(codes, [0; 3], "{:?}", self.vendor);
    }

    /// A word that is 0.
    pub fn word(&self) -> Word {
        let mut host: *mut c_void = ptr::null_mut();
        let mut at = 0;
        let code = match self.vendor {
            Vendor::Cuda => {
                let to = &raw mut host;
                call!(self, "cuMemHostAlloc", (to): *mut *mut c_void, (8): usize, (3): u32)
            }
            Vendor::Hip => {
                let to = &raw mut host;
                let name = "hipExtMallocWithFlags";
                call!(self, name, (to): *mut *mut c_void, (8): usize, (2): u32)
            }
            Vendor::Acl => {
                host = page();
                let (name, to) = ("aclrtHostRegister", &raw mut at);
                let host = host as u64;
                call!(self, name, (host): u64, (4096): u64, (0): i32, (to): *mut u64)
            }
        };
        assert_eq!(code, 0, "{:?}", self.vendor);
        match self.vendor {
            Vendor::Cuda => {
                let (name, to) = ("cuMemHostGetDevicePointer_v2", &raw mut at);
                assert_eq!(
                    call!(self, name, (to): *mut u64, (host): *mut c_void, (0): u32),
                    0
                );
            }
            Vendor::Hip => at = host as u64,
            Vendor::Acl => {}
        }
        let word = Word {
            host: host as u64,
            at,
        };
        word.set(0);
        word
    }

    /// Lets a stream wait until a word is 1.
    pub fn hold(&self, stream: u64, word: Word) {
        let at = word.at;
        let code = match self.vendor {
            Vendor::Cuda => {
                let name = "cuStreamWaitValue64_v2";
                call!(self, name, (stream): u64, (at): u64, (1): u64, (0): u32)
            }
            Vendor::Hip => {
                let name = "hipStreamWaitValue64";
                call!(self, name, (stream): u64, (at): u64, (1): u64, (0): u32, (u64::MAX): u64)
            }
            Vendor::Acl => {
                call!(self, "aclrtValueWait", (at): u64, (1): u64, (0): u32, (stream): u64)
            }
        };
        assert_eq!(code, 0, "{:?}", self.vendor);
    }
}

impl Word {
    /// What streams that wait for it look at.
    pub fn set(self, value: u64) {
        // SAFETY: a word of the host's, aligned, which is never freed.
        unsafe { AtomicU64::from_ptr(self.host as *mut u64) }.store(value, Ordering::Release);
    }
}

/// A page of the program's own.
pub fn page() -> *mut c_void {
    // SAFETY: a new mapping where the kernel finds room, which stays.
    let at = unsafe {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        libc::mmap(ptr::null_mut(), 4096, protection, flags, -1, 0)
    };
    assert_ne!(at, libc::MAP_FAILED);
    // Pages that nobody has touched are not there to be pinned.
    // SAFETY: the page just mapped.
    unsafe { at.cast::<u8>().write_bytes(0, 4096) };
    at
}
