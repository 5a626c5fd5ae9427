//! The runtime's codes as errors of the contract.
#![allow(unsafe_code, reason = "asks the runtime for the text of a code")]

use std::ffi::CStr;

use unisono_plugin::{Error, Result, Status};

use crate::api::{Api, Code, SUCCESS};

/// "hipErrorInvalidValue (invalid argument)", as far as the runtime knows the code.
pub(crate) fn name(api: &Api, code: Code) -> String {
    let text = |ask: Option<unsafe extern "C" fn(Code) -> *const std::ffi::c_char>| {
        // SAFETY: gives text that lives as long as the runtime, or nothing.
        unsafe {
            let text = ask?(code);
            (!text.is_null()).then(|| CStr::from_ptr(text).to_string_lossy().into_owned())
        }
    };
    match (text(api.error_name), text(api.error_string)) {
        (Some(name), Some(words)) if words != name => format!("{name} ({words})"),
        (Some(name), _) => name,
        _ => format!("code {code}"),
    }
}

/// The kind of error that a code is.
const fn status(code: Code) -> Status {
    match code {
        // hipErrorOutOfMemory
        2 => Status::OutOfMemory,
        // hipErrorInvalidValue, InvalidDevicePointer, InvalidMemcpyDirection, InvalidDevice,
        // InvalidContext, InvalidHandle, ContextIsDestroyed (a stream that is none)
        1 | 17 | 21 | 101 | 201 | 400 | 709 => Status::Invalid,
        // hipErrorNoBinaryForGpu, PeerAccessUnsupported, NotSupported, StreamCaptureUnsupported
        209 | 217 | 801 | 900 => Status::Unsupported,
        _ => Status::Device,
    }
}

/// The runtime's code as an error that says what was tried.
pub(crate) fn error(api: &Api, call: &str, code: Code) -> Error {
    Error::new(status(code), format!("{call}: {}", name(api, code))).with_vendor_code(code.into())
}

/// Success, or the error.
pub(crate) fn check(api: &Api, call: &str, code: Code) -> Result<()> {
    if code == SUCCESS {
        Ok(())
    } else {
        Err(error(api, call, code))
    }
}
