//! The runtime's codes as errors of the contract.

use unisono_plugin::{Error, Result, Status};

use crate::api::{Code, code, last_error};

/// What a code is called, as far as it is looked for.
pub(crate) fn name(code: Code) -> String {
    let known = match code {
        code::NOT_SUPPORTED => "not supported",
        code::OUT_OF_MEMORY => "out of memory",
        code::NO_EVENT => "no events left",
        code::NO_STREAM => "no streams left",
        code::NO_NOTIFY => "no notifies left",
        code::LINK => "a link failed",
        code::REMOTE_LINK => "a link of the other device failed",
        _ => return format!("code {code}"),
    };
    format!("code {code} ({known})")
}

/// The kind of error that a code is: the hundred thousands say who erred.
fn status(code: Code) -> Status {
    match code {
        code::OUT_OF_MEMORY | code::NO_EVENT | code::NO_STREAM | code::NO_NOTIFY => {
            Status::OutOfMemory
        }
        code::NOT_SUPPORTED => Status::Unsupported,
        code::LINK | code::REMOTE_LINK => Status::Link,
        100_000..200_000 => Status::Invalid,
        _ => Status::Device,
    }
}

/// The runtime's code as an error that says what was tried.
pub(crate) fn error(call: &str, code: Code) -> Error {
    let mut what = format!("{call}: {}", name(code));
    if let Some(more) = last_error() {
        what = format!("{what}: {more}");
    }
    Error::new(status(code), what).with_vendor_code(code.into())
}

/// Success, or the error.
pub(crate) fn check(call: &str, code: Code) -> Result<()> {
    if code == 0 {
        Ok(())
    } else {
        Err(error(call, code))
    }
}
