//! Results, and the last failure of each thread.

#![allow(unsafe_code, reason = "exported functions")]

use std::any::Any;
use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char};
use std::panic::{AssertUnwindSafe, catch_unwind};

use unisono_collectives::Error;

use crate::InitError;

/// Why a function of the C API failed.
pub(super) struct Failure {
    pub code: i32,
    pub story: String,
}

pub(super) type Outcome<T = ()> = Result<T, Failure>;

/// The results of `unisono.h`, with a few words each.
const RESULTS: [(i32, &CStr); 15] = [
    (0, c"success"),
    (INVALID_ARGUMENT, c"an argument is wrong"),
    (2, c"not supported by these devices, links or plans"),
    (3, c"ranks made calls that do not match"),
    (4, c"a rank died"),
    (5, c"a deadline passed"),
    (6, c"aborted"),
    (7, c"a plugin failed"),
    (8, c"a plugin could not be found or loaded"),
    (9, c"the ranks could not meet"),
    (10, c"the links do not join all ranks"),
    (11, c"the cluster file or a variable is wrong"),
    (12, c"called in a forked process"),
    (13, c"the communicator was finalized"),
    (INTERNAL_ERROR, c"a bug in unisono"),
];

const INVALID_ARGUMENT: i32 = 1;
const INTERNAL_ERROR: i32 = 14;

thread_local! {
    static LAST: RefCell<CString> = RefCell::new(CString::default());
}

/// Runs the body of an exported function.
pub(super) fn guard(body: impl FnOnce() -> Outcome) -> i32 {
    // What a panic leaves half done is the communicator's, which guards its own state.
    let failure = match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(())) => return 0,
        Ok(Err(failure)) => failure,
        Err(panic) => Failure {
            code: INTERNAL_ERROR,
            story: format!("a bug in unisono: {}", message(&*panic)),
        },
    };
    let story = failure.story.replace('\0', " ");
    LAST.with(|last| *last.borrow_mut() = CString::new(story).unwrap_or_default());
    failure.code
}

fn message(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("a panic")
}

/// An argument that cannot be taken.
pub(super) fn invalid(story: impl Into<String>) -> Failure {
    Failure {
        code: INVALID_ARGUMENT,
        story: story.into(),
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self {
            code: code(&error),
            story: error.to_string(),
        }
    }
}

impl From<InitError> for Failure {
    fn from(error: InitError) -> Self {
        let code = match &error {
            InitError::Join(error) => code(error),
            InitError::Bootstrap(_) => 9,
            InitError::Cluster(_) | InitError::Setting { .. } => 11,
        };
        Self {
            code,
            story: error.to_string(),
        }
    }
}

/// The result that an error is told as.
pub(super) fn code(error: &Error) -> i32 {
    match error {
        Error::Invalid { .. } => INVALID_ARGUMENT,
        Error::Unsupported { .. } => 2,
        Error::Mismatch(_) => 3,
        Error::RankDied { .. } => 4,
        Error::Timeout(_) => 5,
        Error::Aborted { .. } => 6,
        Error::Plugin { .. } => 7,
        Error::Load(_) => 8,
        Error::Bootstrap(_) => 9,
        Error::Graph(_) => 10,
        Error::ForkedProcess => 12,
        Error::Finalized => 13,
    }
}

#[unsafe(no_mangle)]
extern "C" fn unisono_result_string(result: i32) -> *const c_char {
    let known = RESULTS.iter().find(|(code, _)| *code == result);
    known
        .map_or(c"no result of unisono", |(_, text)| text)
        .as_ptr()
}

#[unsafe(no_mangle)]
extern "C" fn unisono_last_error() -> *const c_char {
    // A thread that is ending has no story any more.
    LAST.try_with(|last| last.borrow().as_ptr())
        .unwrap_or(c"".as_ptr())
}

#[unsafe(no_mangle)]
extern "C" fn unisono_version() -> *const c_char {
    const VERSION: &CStr =
        match CStr::from_bytes_with_nul(concat!(env!("CARGO_PKG_VERSION"), "\0").as_bytes()) {
            Ok(version) => version,
            Err(_) => panic!("the version has no NUL inside"),
        };
    VERSION.as_ptr()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn last() -> String {
        // SAFETY: the text is this thread's and ends in NUL.
        unsafe { CStr::from_ptr(unisono_last_error()) }
            .to_string_lossy()
            .into_owned()
    }

    #[test]
    fn failures_and_panics_leave_their_story_with_the_thread() {
        assert_eq!(guard(|| Ok(())), 0);
        assert_eq!(last(), "");
        assert_eq!(guard(|| Err(invalid("count\0 is wrong"))), INVALID_ARGUMENT);
        assert_eq!(last(), "count  is wrong");
        assert_eq!(guard(|| panic!("number {}", 7)), INTERNAL_ERROR);
        assert_eq!(last(), "a bug in unisono: number 7");
        std::thread::spawn(|| assert_eq!(last(), ""))
            .join()
            .unwrap();
        assert_eq!(guard(|| Ok(())), 0);
        assert!(last().contains("number 7"), "a success tells nothing");
    }

    #[test]
    fn the_codes_are_those_of_the_header() {
        let header = include_str!("../../../include/unisono.h");
        for (index, (code, text)) in RESULTS.iter().enumerate() {
            assert_eq!(*code, index as i32);
            assert!(!text.is_empty());
        }
        let values = header
            .split("UNISONO_SUCCESS = ")
            .nth(1)
            .and_then(|rest| rest.split("};").next())
            .unwrap();
        assert_eq!(values.matches("UNISONO_").count() + 1, RESULTS.len());
        for (name, code) in [
            ("UNISONO_RANK_DIED", 4),
            ("UNISONO_BAD_SETTING", 11),
            ("UNISONO_WAS_FINALIZED", 13),
            ("UNISONO_INTERNAL_ERROR", INTERNAL_ERROR),
        ] {
            assert!(header.contains(&format!("{name} = {code}")), "{name}");
        }
    }
}
