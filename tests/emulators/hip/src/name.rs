//! The names of codes.

use std::ffi::{CStr, c_char};

const NAMES: [(u32, &CStr, &CStr); 30] = [
    (0, c"hipSuccess", c"no error"),
    (1, c"hipErrorInvalidValue", c"invalid argument"),
    (2, c"hipErrorOutOfMemory", c"out of memory"),
    (3, c"hipErrorNotInitialized", c"initialization error"),
    (
        21,
        c"hipErrorInvalidMemcpyDirection",
        c"invalid copy direction for memcpy",
    ),
    (
        100,
        c"hipErrorNoDevice",
        c"no ROCm-capable device is detected",
    ),
    (101, c"hipErrorInvalidDevice", c"invalid device ordinal"),
    (
        200,
        c"hipErrorInvalidImage",
        c"device kernel image is invalid",
    ),
    (201, c"hipErrorInvalidContext", c"invalid device context"),
    (
        209,
        c"hipErrorNoBinaryForGpu",
        c"no kernel image is available for execution on the device",
    ),
    (
        217,
        c"hipErrorPeerAccessUnsupported",
        c"peer access is not supported between these two devices",
    ),
    (400, c"hipErrorInvalidHandle", c"invalid resource handle"),
    (
        401,
        c"hipErrorIllegalState",
        c"the operation cannot be performed in the present state",
    ),
    (500, c"hipErrorNotFound", c"named symbol not found"),
    (600, c"hipErrorNotReady", c"device not ready"),
    (
        700,
        c"hipErrorIllegalAddress",
        c"an illegal memory access was encountered",
    ),
    (
        702,
        c"hipErrorLaunchTimeOut",
        c"the launch timed out and was terminated",
    ),
    (
        704,
        c"hipErrorPeerAccessAlreadyEnabled",
        c"peer access is already enabled",
    ),
    (
        712,
        c"hipErrorHostMemoryAlreadyRegistered",
        c"part or all of the requested memory range is already mapped",
    ),
    (
        713,
        c"hipErrorHostMemoryNotRegistered",
        c"pointer does not correspond to a registered memory region",
    ),
    (719, c"hipErrorLaunchFailure", c"unspecified launch failure"),
    (801, c"hipErrorNotSupported", c"operation not supported"),
    (
        900,
        c"hipErrorStreamCaptureUnsupported",
        c"operation not permitted when stream is capturing",
    ),
    (
        901,
        c"hipErrorStreamCaptureInvalidated",
        c"operation failed due to a previous error during capture",
    ),
    (
        902,
        c"hipErrorStreamCaptureMerge",
        c"operation would result in a merge of separate capture sequences",
    ),
    (
        903,
        c"hipErrorStreamCaptureUnmatched",
        c"capture was not ended in the same stream as it began",
    ),
    (
        904,
        c"hipErrorStreamCaptureUnjoined",
        c"capturing stream has unjoined work",
    ),
    (
        905,
        c"hipErrorStreamCaptureIsolation",
        c"dependency created on uncaptured work in another stream",
    ),
    (
        906,
        c"hipErrorStreamCaptureImplicit",
        c"operation would make the legacy stream depend on a capturing blocking stream",
    ),
    (
        907,
        c"hipErrorCapturedEvent",
        c"operation not permitted on an event last recorded in a capturing stream",
    ),
];

fn find(code: u32) -> (&'static CStr, &'static CStr) {
    let found = NAMES.iter().find(|(known, ..)| *known == code);
    found.map_or((c"hipErrorUnknown", c"unknown error"), |(_, name, text)| {
        (name, text)
    })
}

/// As HIP's manual says; so for all functions here.
#[unsafe(no_mangle)]
pub extern "C" fn hipGetErrorName(code: u32) -> *const c_char {
    find(code).0.as_ptr()
}

#[unsafe(no_mangle)]
#[allow(missing_docs, reason = "HIP's manual")]
pub extern "C" fn hipGetErrorString(code: u32) -> *const c_char {
    find(code).1.as_ptr()
}
