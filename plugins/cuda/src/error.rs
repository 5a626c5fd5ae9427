//! The driver's codes as errors of the contract.
#![allow(unsafe_code, reason = "asks the driver for the text of a code")]

use std::ffi::{CStr, c_char};
use std::ptr;

use cudarc::driver::sys::cudaError_enum as C;
use unisono_plugin::{Error, Result, Status};

use crate::api::{Api, Code};

/// "CUDA_ERROR_INVALID_VALUE (invalid argument)", as far as the driver knows the code.
pub(crate) fn name(api: &Api, code: Code) -> String {
    let text = |ask: unsafe extern "C" fn(Code, *mut *const c_char) -> Code| {
        let mut text = ptr::null();
        // SAFETY: writes a pointer to text that lives as long as the driver, or nothing.
        unsafe {
            let found = ask(code, &raw mut text) == 0 && !text.is_null();
            found.then(|| CStr::from_ptr(text).to_string_lossy().into_owned())
        }
    };
    match (text(api.error_name), text(api.error_string)) {
        (Some(name), Some(words)) => format!("{name} ({words})"),
        (Some(name), None) => name,
        _ => format!("code {code}"),
    }
}

/// The kind of error that a code is.
fn status(code: Code) -> Status {
    let of = |all: &[C]| all.iter().any(|one| *one as u32 == code);
    if of(&[C::CUDA_ERROR_OUT_OF_MEMORY]) {
        Status::OutOfMemory
    } else if of(&[
        C::CUDA_ERROR_INVALID_VALUE,
        C::CUDA_ERROR_INVALID_HANDLE,
        C::CUDA_ERROR_INVALID_CONTEXT,
        C::CUDA_ERROR_INVALID_DEVICE,
    ]) {
        Status::Invalid
    } else if of(&[
        C::CUDA_ERROR_NOT_SUPPORTED,
        C::CUDA_ERROR_PEER_ACCESS_UNSUPPORTED,
        C::CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
    ]) {
        Status::Unsupported
    } else if of(&[C::CUDA_ERROR_NVLINK_UNCORRECTABLE]) {
        Status::Link
    } else {
        Status::Device
    }
}

/// The driver's code as an error that says what was tried.
pub(crate) fn error(api: &Api, call: &str, code: Code) -> Error {
    Error::new(status(code), format!("{call}: {}", name(api, code))).with_vendor_code(code.into())
}

/// Success, or the error.
pub(crate) fn check(api: &Api, call: &str, code: Code) -> Result<()> {
    if code == 0 {
        Ok(())
    } else {
        Err(error(api, call, code))
    }
}
