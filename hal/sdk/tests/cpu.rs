//! The optional table `unisono.cpu` as a host sees it: what it gives out to combine.
#![allow(unsafe_code, reason = "the tests stand where a host stands")]

mod made;

use std::ffi::c_void;
use std::ptr::null_mut;

use made::Made;
use unisono_plugin::abi::{CPU_INTERFACE, CommandReduce, CpuTable, dtype, reduction, status};
use unisono_plugin::{
    Combiner, Context, CpuInstance, Instance, NoDevice, NoLink, Plugin, Result, cpu_interface,
};

/// What it adds to each sum, so that the function is seen to have its context.
static MORE: i64 = 5;

/// Adds numbers of 64 bits; another sum panics.
struct Adds;

impl Plugin for Adds {
    type Instance = Self;
    const NAME: &'static str = "adds";
    const VERSION: &'static str = "0.1.0";
    const VENDOR: &'static str = "tests";

    fn create(_: Context<'_>) -> Result<Self> {
        Ok(Self)
    }
}

impl Instance for Adds {
    type Device = NoDevice;
    type Link = NoLink;

    fn interface(&self, id: &str) -> *const c_void {
        cpu_interface::<Self>(id)
    }
}

impl CpuInstance for Adds {
    unsafe fn ring(&self, _: &[u64]) {}

    unsafe fn reduce(&self, _: &CommandReduce) -> bool {
        false
    }

    fn combiner(&self, dtype: u16, reduction: u16) -> Option<Combiner> {
        assert!(dtype != dtype::F64, "a bug");
        let adds = (dtype, reduction) == (dtype::I64, reduction::SUM);
        // SAFETY: the function reads a number that is static.
        adds.then(|| unsafe { Combiner::new(add, (&raw const MORE).cast_mut().cast()) })
    }
}

unsafe extern "C" fn add(
    context: *mut c_void,
    dst: *mut c_void,
    a: *const c_void,
    b: *const c_void,
    elements: u64,
) {
    // SAFETY: the caller's places hold as many, and the context is a number.
    let number = |place: *const c_void, at| unsafe { *place.cast::<i64>().add(at) };
    for at in 0..elements as usize {
        let sum = number(a, at) + number(b, at) + number(context, 0);
        // SAFETY: as above.
        unsafe { dst.cast::<i64>().add(at).write(sum) };
    }
}

#[test]
fn a_function_is_given_out_for_what_there_is() {
    // SAFETY: static tables, and pointers that are good for each call.
    unsafe {
        let made = Made::of::<Adds>();
        let instance = made.instance;
        let table = &*made.interface(CPU_INTERFACE).cast::<CpuTable>();
        assert_eq!(table.struct_size as usize, size_of::<CpuTable>());
        let ask = |dtype, function, context| {
            table.combiner.unwrap()(instance, dtype, reduction::SUM, function, context)
        };
        let (mut function, mut context) = (None, null_mut());
        assert_eq!(
            ask(dtype::I64, null_mut(), &raw mut context),
            status::INVALID
        );
        assert_eq!(
            ask(dtype::I64, &raw mut function, null_mut()),
            status::INVALID
        );
        let other = ask(dtype::I32, &raw mut function, &raw mut context);
        assert_eq!((other, context), (status::UNSUPPORTED, null_mut()));
        assert!(function.is_none(), "nothing was written");
        assert_eq!(
            ask(dtype::I64, &raw mut function, &raw mut context),
            status::OK
        );
        let (mut sums, ones) = ([1_i64, 2, 3], [10_i64, 20, 30]);
        let place = sums.as_mut_ptr().cast();
        let add = function.unwrap();
        add(context, place, place.cast_const(), ones.as_ptr().cast(), 3);
        assert_eq!(sums, [16, 27, 38]);

        let (mut none, mut nothing) = (None, null_mut());
        let mut again = |dtype| ask(dtype, &raw mut none, &raw mut nothing);
        assert_eq!(again(dtype::F64), status::POISONED, "it panicked");
        assert_eq!(again(dtype::I64), status::POISONED);
        // What was given out goes on.
        add(context, place, place.cast_const(), ones.as_ptr().cast(), 3);
        assert_eq!(sums, [31, 52, 73]);
        made.table.destroy.unwrap()(instance);
    }
}
