//! The driver's error codes, and what breaks a device in them.

use unisono_emulator::{Broken, Refused};

macro_rules! codes {
    ($($name:ident = $code:literal, $symbol:literal, $text:literal;)+) => {
        $(pub const $name: u32 = $code;)+

        /// The symbol and the sentence of a code, NUL-terminated.
        pub fn text(code: u32) -> Option<(&'static str, &'static str)> {
            Some(match code {
                $($code => (concat!($symbol, "\0"), concat!($text, "\0")),)+
                _ => return None,
            })
        }
    };
}

codes! {
    SUCCESS = 0, "CUDA_SUCCESS", "no error";
    INVALID_VALUE = 1, "CUDA_ERROR_INVALID_VALUE", "invalid argument";
    OUT_OF_MEMORY = 2, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory";
    NOT_INITIALIZED = 3, "CUDA_ERROR_NOT_INITIALIZED", "initialization error";
    DEVICE_UNAVAILABLE = 46, "CUDA_ERROR_DEVICE_UNAVAILABLE", "device is unavailable";
    NO_DEVICE = 100, "CUDA_ERROR_NO_DEVICE", "no device is detected";
    INVALID_DEVICE = 101, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal";
    INVALID_IMAGE = 200, "CUDA_ERROR_INVALID_IMAGE", "device kernel image is invalid";
    INVALID_CONTEXT = 201, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context";
    PEER_ACCESS_UNSUPPORTED = 217, "CUDA_ERROR_PEER_ACCESS_UNSUPPORTED", "peer access is not supported";
    NVLINK_UNCORRECTABLE = 220, "CUDA_ERROR_NVLINK_UNCORRECTABLE", "uncorrectable NVLink error";
    INVALID_HANDLE = 400, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle";
    NOT_FOUND = 500, "CUDA_ERROR_NOT_FOUND", "named symbol not found";
    NOT_READY = 600, "CUDA_ERROR_NOT_READY", "device not ready";
    ILLEGAL_ADDRESS = 700, "CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered";
    LAUNCH_TIMEOUT = 702, "CUDA_ERROR_LAUNCH_TIMEOUT", "the launch timed out and was terminated";
    PEER_ACCESS_ALREADY_ENABLED = 704, "CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED", "peer access is already enabled";
    HOST_MEMORY_ALREADY_REGISTERED = 712, "CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED", "memory is already registered";
    HOST_MEMORY_NOT_REGISTERED = 713, "CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED", "memory has not been registered";
    LAUNCH_FAILED = 719, "CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure";
    NOT_SUPPORTED = 801, "CUDA_ERROR_NOT_SUPPORTED", "operation not supported";
    STREAM_CAPTURE_UNSUPPORTED = 900, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED", "operation not permitted when stream is capturing";
    STREAM_CAPTURE_INVALIDATED = 901, "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED", "operation failed due to a previous error during capture";
    STREAM_CAPTURE_MERGE = 902, "CUDA_ERROR_STREAM_CAPTURE_MERGE", "operation would result in a merge of separate capture sequences";
    STREAM_CAPTURE_UNMATCHED = 903, "CUDA_ERROR_STREAM_CAPTURE_UNMATCHED", "capture was not ended in the same stream as it began";
    STREAM_CAPTURE_UNJOINED = 904, "CUDA_ERROR_STREAM_CAPTURE_UNJOINED", "capturing stream has unjoined work";
    STREAM_CAPTURE_ISOLATION = 905, "CUDA_ERROR_STREAM_CAPTURE_ISOLATION", "dependency created on uncaptured work in another stream";
    STREAM_CAPTURE_IMPLICIT = 906, "CUDA_ERROR_STREAM_CAPTURE_IMPLICIT", "operation would make the legacy stream depend on a capturing blocking stream";
    CAPTURED_EVENT = 907, "CUDA_ERROR_CAPTURED_EVENT", "operation not permitted on an event last recorded in a capturing stream";
    ILLEGAL_STATE = 401, "CUDA_ERROR_ILLEGAL_STATE", "the operation cannot be performed in the present state";
    UNKNOWN = 999, "CUDA_ERROR_UNKNOWN", "unknown error";
}

/// What the driver answers for a broken device.
pub const fn of(broken: Broken) -> u32 {
    match broken {
        Broken::IllegalAddress => ILLEGAL_ADDRESS,
        Broken::Launch => LAUNCH_FAILED,
        Broken::Link => NVLINK_UNCORRECTABLE,
        Broken::Lost => DEVICE_UNAVAILABLE,
    }
}

/// What the driver answers where recording forbids it.
pub const fn of_refused(refused: Refused) -> u32 {
    match refused {
        Refused::Broken(broken) => of(broken),
        Refused::State => ILLEGAL_STATE,
        Refused::Unsupported => STREAM_CAPTURE_UNSUPPORTED,
        Refused::Invalidated => STREAM_CAPTURE_INVALIDATED,
        Refused::Merge => STREAM_CAPTURE_MERGE,
        Refused::Unmatched => STREAM_CAPTURE_UNMATCHED,
        Refused::Unjoined => STREAM_CAPTURE_UNJOINED,
        Refused::Isolation => STREAM_CAPTURE_ISOLATION,
        Refused::CapturedEvent => CAPTURED_EVENT,
    }
}
