//! Reductions: those with a number of their own, and those that the program makes.

#![allow(unsafe_code, reason = "exported functions that take pointers")]

use std::collections::HashMap;
use std::ffi::c_void;
use std::sync::{Mutex, MutexGuard, PoisonError};

use unisono_collectives::{DataType, Order, ReduceOp, Reduction, UserReduction};

use super::call::datatype;
use super::comm::{Comm, answer, borrow, wanted};
use super::result::{Outcome, guard, invalid};

/// The function of a user's reduction, as `unisono_reduce_function`.
type Function = unsafe extern "C" fn(*mut c_void, *mut c_void, *const c_void, *const c_void, u64);

/// The first number of a reduction that a program made: those of the header are below.
const FIRST: i32 = 256;

/// The reductions that a program made for one communicator.
#[derive(Default)]
pub(super) struct Reductions(Mutex<Made>);

#[derive(Default)]
struct Made {
    all: HashMap<i32, Reduction>,
    /// How many there ever were: a number is not used twice.
    count: i32,
}

impl Reductions {
    /// The reduction of this number.
    pub(super) fn find(&self, call: &str, number: i32) -> Outcome<Reduction> {
        let named = ReduceOp::ALL.into_iter().find(|op| *op as i32 == number);
        if let Some(op) = named {
            return Ok(op.into());
        }
        let made = self.lock().all.get(&number).cloned();
        made.ok_or_else(|| {
            invalid(format!(
                "{call}: {number} is no reduction, and none that was made for this communicator"
            ))
        })
    }

    fn add(&self, reduction: Reduction) -> Outcome<i32> {
        let mut made = self.lock();
        let number = FIRST.checked_add(made.count);
        let number =
            number.ok_or_else(|| invalid("too many reductions were made for one communicator"))?;
        made.count += 1;
        made.all.insert(number, reduction);
        Ok(number)
    }

    fn remove(&self, number: i32) -> Outcome {
        match self.lock().all.remove(&number) {
            Some(_) => Ok(()),
            None => Err(invalid(format!(
                "{number} is no reduction that was made for this communicator"
            ))),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Made> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn unisono_reduction_create_pre_mul_sum(
    op: *mut i32,
    factor: *const c_void,
    of: i32,
    comm: *const Comm,
) -> i32 {
    guard(|| {
        wanted("op", op)?;
        wanted("factor", factor.cast_mut())?;
        // SAFETY: the caller gives a live handle.
        let comm = unsafe { borrow(comm) }?;
        let dtype: DataType = datatype("reduction_create_pre_mul_sum", of)?;
        let mut bytes = [0; 8];
        // SAFETY: the caller gives one element of that type, which is at most 8 bytes.
        unsafe {
            let factor = factor.cast::<u8>();
            factor.copy_to_nonoverlapping(bytes.as_mut_ptr(), dtype.size().min(8));
        }
        let made = comm
            .reductions
            .add(Reduction::scaled_sum_of(dtype, bytes))?;
        // SAFETY: the caller gives a place for the answer.
        unsafe { answer("op", op, made) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn unisono_reduction_create_user(
    op: *mut i32,
    function: Option<Function>,
    context: *mut c_void,
    of: i32,
    order: i32,
    comm: *const Comm,
) -> i32 {
    guard(|| {
        wanted("op", op)?;
        // SAFETY: the caller gives a live handle.
        let comm = unsafe { borrow(comm) }?;
        let function = function.ok_or_else(|| invalid("function is NULL"))?;
        let dtype: DataType = datatype("reduction_create_user", of)?;
        let order = match order {
            0 => Order::Any,
            1 => Order::Ranks,
            other => {
                return Err(invalid(format!(
                    "order is {other}; give UNISONO_ORDER_ANY or UNISONO_ORDER_RANKS"
                )));
            }
        };
        // SAFETY: the caller promises what `unisono.h` asks of the function and its context.
        let made = unsafe { UserReduction::from_raw(dtype, order, function, context) };
        let made = comm.reductions.add(made.into())?;
        // SAFETY: the caller gives a place for the answer.
        unsafe { answer("op", op, made) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn unisono_reduction_destroy(op: i32, comm: *const Comm) -> i32 {
    // SAFETY: the caller gives a live handle.
    guard(|| unsafe { borrow(comm) }?.reductions.remove(op))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_not_used_twice() {
        let made = Reductions::default();
        let add = || made.add(Reduction::scaled_sum(2.0_f32)).ok();
        assert_eq!(add(), Some(FIRST));
        assert!(made.find("reduce", FIRST).is_ok());
        assert!(made.remove(FIRST).is_ok());
        assert!(made.remove(FIRST).is_err() && made.find("reduce", FIRST).is_err());
        assert_eq!(add(), Some(FIRST + 1));
        assert!(made.find("reduce", ReduceOp::Sum as i32).is_ok());
        assert!(made.find("reduce", 0).is_err());
    }
}
