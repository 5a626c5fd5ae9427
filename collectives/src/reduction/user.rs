//! A reduction of the user's own: a function that is called where the plan reduces.
#![allow(
    unsafe_code,
    reason = "a function that is called with addresses, through the plugin contract"
)]

use std::ffi::c_void;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use unisono_abi::Combine;

use crate::{DataType, Element};

/// In which order a reduction may combine the ranks' contributions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Order {
    /// In any: the function commutes.
    Any,
    /// As ranks are numbered: `((0 op 1) op 2) op …`. Fewer algorithms can do that.
    Ranks,
}

/// A function that combines two elements, on host memory.
///
/// It must be associative, or the result depends on the algorithm. It is called from whatever
/// thread makes progress, so it must not block and must not call collectives.
#[derive(Clone)]
pub struct UserReduction {
    dtype: DataType,
    order: Order,
    function: Combine,
    context: *mut c_void,
    /// What `context` points to, where the library owns it.
    owner: Option<Arc<dyn Owner>>,
}

/// A closure, and whether it has panicked.
struct Closure<F> {
    function: F,
    panicked: AtomicBool,
}

/// What a reduction keeps alive.
trait Owner: Send + Sync {
    fn panicked(&self) -> bool;
}

impl<F: Send + Sync> Owner for Closure<F> {
    fn panicked(&self) -> bool {
        self.panicked.load(Ordering::Relaxed)
    }
}

// SAFETY: the function and its context may be used from any thread: `new` asks for `Send + Sync`,
// `from_raw` for the caller's promise.
unsafe impl Send for UserReduction {}
// SAFETY: as above.
unsafe impl Sync for UserReduction {}

impl UserReduction {
    /// A function of two elements: the contribution of the lower ranks, then that of the higher.
    ///
    /// If it panics, the call fails and the communicator is broken, on every rank.
    ///
    /// ```
    /// use unisono_collectives::{Order, UserReduction};
    /// // The number with the larger magnitude.
    /// let op = UserReduction::new(Order::Any, |a: f32, b: f32| if a.abs() < b.abs() { b } else { a });
    /// ```
    pub fn new<T: Element, F>(order: Order, function: F) -> Self
    where
        F: Fn(T, T) -> T + Send + Sync + 'static,
    {
        let owner = Arc::new(Closure {
            function,
            panicked: AtomicBool::new(false),
        });
        Self {
            dtype: T::TYPE,
            order,
            function: each::<T, F>,
            context: Arc::as_ptr(&owner).cast_mut().cast(),
            owner: Some(owner),
        }
    }

    /// A function in the form of the plugin contract: `dst[i] = a[i] op b[i]`, where `dst` may be
    /// `a` or `b`.
    ///
    /// # Safety
    /// Until every call with this reduction is complete, `function` may be called with `context`
    /// from any thread, and reads and writes nothing but the elements of `dtype` that it is given
    /// and what `context` leads to. It does not unwind.
    #[must_use]
    pub unsafe fn from_raw(
        dtype: DataType,
        order: Order,
        function: Combine,
        context: *mut c_void,
    ) -> Self {
        Self {
            dtype,
            order,
            function,
            context,
            owner: None,
        }
    }

    /// The type of the elements.
    #[must_use]
    pub const fn dtype(&self) -> DataType {
        self.dtype
    }

    /// In which order contributions are combined.
    #[must_use]
    pub const fn order(&self) -> Order {
        self.order
    }

    /// Whether the closure has ever panicked.
    pub(crate) fn panicked(&self) -> bool {
        self.owner.as_ref().is_some_and(|owner| owner.panicked())
    }

    /// The function and its context.
    pub(crate) fn raw(&self) -> (Combine, u64) {
        (self.function, self.context as usize as u64)
    }
}

impl fmt::Debug for UserReduction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UserReduction")
            .field("dtype", &self.dtype)
            .field("order", &self.order)
            .finish_non_exhaustive()
    }
}

/// Calls `F` for each element.
///
/// # Safety
/// As [`Combine`]; `context` is a `Closure<F>`.
unsafe extern "C" fn each<T: Element, F: Fn(T, T) -> T>(
    context: *mut c_void,
    dst: *mut c_void,
    a: *const c_void,
    b: *const c_void,
    elements: u64,
) {
    // SAFETY: `new` made it so, and the op that is being run keeps it alive.
    let closure = unsafe { &*context.cast::<Closure<F>>() };
    let (dst, a, b) = (dst.cast::<T>(), a.cast::<T>(), b.cast::<T>());
    let all = || {
        for i in 0..elements as usize {
            // SAFETY: the caller gives as many elements; they need not be aligned. Each is read
            // before it is written, so `dst` may be an operand.
            unsafe {
                let (a, b) = (a.add(i).read_unaligned(), b.add(i).read_unaligned());
                dst.add(i).write_unaligned((closure.function)(a, b));
            }
        }
    };
    // What a panic leaves half done is the output, which is then undefined.
    if catch_unwind(AssertUnwindSafe(all)).is_err() {
        closure.panicked.store(true, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_closure_is_called_for_each_element_in_place_too() {
        let shift = 3;
        let op = UserReduction::new(Order::Ranks, move |a: u32, b: u32| (a << shift) ^ b);
        assert_eq!((op.dtype(), op.order()), (DataType::U32, Order::Ranks));
        let (function, context) = op.clone().raw();
        drop(op.clone());
        let mut a = [1_u32, 2, 3];
        let b = [5_u32, 6, 7];
        let at = a.as_mut_ptr().cast::<c_void>();
        // SAFETY: three elements each; `op` keeps the closure alive.
        unsafe { function(context as usize as *mut _, at, at, b.as_ptr().cast(), 3) };
        assert_eq!(a, [8 ^ 5, 16 ^ 6, 24 ^ 7]);
        assert!(!op.panicked());
    }

    #[test]
    fn a_panic_stays_inside_and_is_remembered() {
        let op = UserReduction::new(Order::Any, |_: u8, _: u8| -> u8 { panic!("no such sum") });
        let (function, context) = op.raw();
        let mut a = [0_u8];
        let at = a.as_mut_ptr().cast::<c_void>();
        // SAFETY: one element; `op` keeps the closure alive.
        unsafe { function(context as usize as *mut _, at, at, at, 1) };
        assert!(op.panicked());
    }
}
