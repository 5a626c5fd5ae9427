//! The layout table: every field of every struct, as this compiler lays it out.

use crate::LayoutEntry;

/// One field of one struct: what both sides compare at load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    /// The C name of the struct.
    pub struct_name: &'static str,
    /// The name of the field.
    pub field: &'static str,
    /// Offset in bytes.
    pub offset: u32,
    /// Size in bytes.
    pub size: u32,
}

/// A struct that crosses the boundary.
pub trait Layout {
    /// Its name in the header.
    const NAME: &'static str;
    /// Its fields in order.
    const FIELDS: &'static [Field];
    /// The same fields as a plugin's layout table holds them.
    const ENTRIES: &'static [LayoutEntry];
}

/// Entries in [`ENTRIES`].
pub const COUNT: usize = {
    let mut count = 0;
    let mut i = 0;
    while i < ALL_ENTRIES.len() {
        count += ALL_ENTRIES[i].len();
        i += 1;
    }
    count
};

/// [`ALL`] in one run, as a plugin's record points to it.
pub const ENTRIES: [LayoutEntry; COUNT] = {
    let mut entries = [LayoutEntry::zeroed(); COUNT];
    let (mut i, mut at) = (0, 0);
    while i < ALL_ENTRIES.len() {
        let mut j = 0;
        while j < ALL_ENTRIES[i].len() {
            entries[at] = ALL_ENTRIES[i][j];
            at += 1;
            j += 1;
        }
        i += 1;
    }
    entries
};

/// Bytes of one field, without a value of it.
#[doc(hidden)]
pub const fn field_size<S, F>(_: fn(&S) -> &F) -> u32 {
    size_of::<F>() as u32
}

/// Declares a `repr(C)` struct with its C name and its layout table.
macro_rules! abi_struct {
    ($(#[$meta:meta])* pub struct $name:ident = $c:literal {
        $($(#[$fmeta:meta])* pub $field:ident: $ty:ty,)+
    }) => {
        $(#[$meta])*
        #[repr(C)]
        #[derive(Clone, Copy, Debug)]
        pub struct $name { $($(#[$fmeta])* pub $field: $ty,)+ }

        impl $name {
            /// All bytes zero: no handles, no functions, lengths of 0.
            #[must_use]
            #[allow(unsafe_code, reason = "the one way to zero a plain C struct of any shape")]
            pub const fn zeroed() -> Self {
                // SAFETY: every field is an integer, a raw pointer, an optional function pointer,
                // or an array or struct of these; all of them are valid when zero.
                unsafe { core::mem::zeroed() }
            }
        }

        impl crate::layout::Layout for $name {
            const NAME: &'static str = $c;
            const FIELDS: &'static [crate::layout::Field] = &[$(crate::layout::Field {
                struct_name: $c,
                field: stringify!($field),
                offset: core::mem::offset_of!($name, $field) as u32,
                size: crate::layout::field_size::<$name, $ty>(|s| &s.$field),
            },)+];
            const ENTRIES: &'static [crate::LayoutEntry] = &[$(crate::LayoutEntry {
                struct_name: concat!($c, "\0").as_ptr().cast(),
                field: concat!(stringify!($field), "\0").as_ptr().cast(),
                offset: core::mem::offset_of!($name, $field) as u32,
                size: crate::layout::field_size::<$name, $ty>(|s| &s.$field),
            },)+];
        }
    };
}
pub(crate) use abi_struct;

macro_rules! all {
    ($($name:ident),+ $(,)?) => {
        /// Every struct's fields, struct by struct in the order of the header.
        pub const ALL: &[&[Field]] = &[$(<crate::$name as Layout>::FIELDS),+];

        const ALL_ENTRIES: &[&[LayoutEntry]] = &[$(<crate::$name as Layout>::ENTRIES),+];

        /// Every struct's name and size in bytes, in the same order.
        pub const SIZES: &[(&str, usize)] =
            &[$((<crate::$name as Layout>::NAME, size_of::<crate::$name>())),+];
    };
}
all!(
    Error,
    Str,
    LogRecord,
    Host,
    Waker,
    Channel,
    Param,
    ParamValue,
    InstanceInfo,
    DeviceInfo,
    SupportQuery,
    InstanceTable,
    DeviceTable,
    MemoryRequest,
    MemoryView,
    MemoryTable,
    FlagLine,
    Counter,
    Command,
    CommandCopy,
    CommandReduce,
    CommandSignal,
    CommandWait,
    CommandPut,
    CommandEvent,
    CommandScale,
    CommandCall,
    CommandRead,
    QueueState,
    Sleep,
    StreamRequest,
    StreamTable,
    EventTable,
    LinkInfo,
    LinkRequest,
    LinkStatistics,
    LinkTable,
    CpuTable,
    Dmabuf,
    DmabufTable,
    LayoutEntry,
    Plugin,
);
