//! The optional table `unisono.dmabuf` as a host sees it.
#![allow(unsafe_code, reason = "the tests stand where a host stands")]

mod made;

use std::ffi::c_void;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::ptr::{null, null_mut};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

use made::Made;
use unisono_plugin::abi::{self, DMABUF_INTERFACE, DmabufTable, Status, status};
use unisono_plugin::{
    Context, Dmabuf, DmabufInstance, Error, Flush, Instance, NoDevice, NoLink, Plugin, Result,
    dmabuf_interface,
};

/// Links that note what they are given.
struct Links {
    /// By address.
    known: Mutex<Vec<(u64, Option<Flush>)>>,
}

impl Plugin for Links {
    type Instance = Self;
    const NAME: &'static str = "links";
    const VERSION: &'static str = "0.1.0";
    const VENDOR: &'static str = "tests";

    fn create(_: Context<'_>) -> Result<Self> {
        Ok(Self {
            known: Mutex::default(),
        })
    }
}

impl Instance for Links {
    type Device = NoDevice;
    type Link = NoLink;

    fn interface(&self, id: &str) -> *const c_void {
        dmabuf_interface::<Self>(id)
    }
}

impl DmabufInstance for Links {
    fn add_dmabuf(&self, memory: Dmabuf<'_>) -> Result<()> {
        assert!(memory.fd.as_raw_fd() >= 0);
        assert!(memory.range.bytes != 13, "a bug");
        assert_eq!((memory.offset, memory.range.bytes), (4096, 8192));
        let mut known = self.known.lock().unwrap();
        known.push((memory.range.address, memory.flush));
        Ok(())
    }

    fn remove_dmabuf(&self, address: u64) -> Result<()> {
        let mut known = self.known.lock().unwrap();
        let place = known.iter().position(|known| known.0 == address);
        let place = place.ok_or_else(|| Error::invalid("nothing is known there"))?;
        let (_, flush) = known.remove(place);
        flush.map_or(Ok(()), |flush| flush.call())
    }
}

static FLUSHED: AtomicU32 = AtomicU32::new(0);

unsafe extern "C" fn flush(context: *mut c_void) -> Status {
    FLUSHED.fetch_add(1, Ordering::Relaxed);
    match context.is_null() {
        true => status::OK,
        false => status::DEVICE,
    }
}

fn file() -> OwnedFd {
    let file = std::fs::File::open("/dev/null").unwrap();
    file.into()
}

#[test]
fn what_makes_no_sense_does_not_come_through() {
    // SAFETY: static tables, and pointers that are good for each call.
    unsafe {
        let made = Made::of::<Links>();
        let instance = made.instance;
        assert!(made.interface("unisono.cpu").is_null());
        let table = &*made.interface(DMABUF_INTERFACE).cast::<DmabufTable>();
        assert_eq!(table.struct_size as usize, size_of::<DmabufTable>());
        let (add, remove) = (table.add.unwrap(), table.remove.unwrap());
        let own = file();
        let good = abi::Dmabuf {
            struct_size: size_of::<abi::Dmabuf>() as u32,
            fd: own.as_raw_fd(),
            offset: 4096,
            bytes: 8192,
            address: 1 << 40,
            flush: None,
            context: null_mut(),
        };
        let added = |memory: &abi::Dmabuf| add(instance, memory, null_mut());
        let nonsense = [
            abi::Dmabuf { fd: -1, ..good },
            abi::Dmabuf { bytes: 0, ..good },
            abi::Dmabuf { address: 0, ..good },
            abi::Dmabuf {
                offset: u64::MAX,
                ..good
            },
            abi::Dmabuf {
                address: u64::MAX,
                ..good
            },
            abi::Dmabuf {
                struct_size: 4,
                ..good
            },
        ];
        for memory in &nonsense {
            assert_eq!(added(memory), status::INVALID, "{memory:?}");
        }
        assert_eq!(add(instance, null(), null_mut()), status::INVALID);
        let nobody = abi::Instance::NULL;
        assert_eq!(add(nobody, &raw const good, null_mut()), status::INVALID);
        assert_eq!(remove(nobody, good.address, null_mut()), status::INVALID);
        assert_eq!(remove(instance, good.address, null_mut()), status::INVALID);

        assert_eq!(added(&good), status::OK);
        assert_eq!(remove(instance, good.address, null_mut()), status::OK);
        assert_eq!(FLUSHED.load(Ordering::Relaxed), 0);
        let mut flushed = abi::Dmabuf {
            flush: Some(flush),
            ..good
        };
        assert_eq!(added(&flushed), status::OK);
        assert_eq!(remove(instance, good.address, null_mut()), status::OK);
        flushed.context = (&raw mut flushed).cast();
        assert_eq!(added(&flushed), status::OK);
        // What the device says is the error of who asked for the flush.
        let failed = remove(instance, good.address, null_mut());
        assert_eq!(
            (failed, FLUSHED.load(Ordering::Relaxed)),
            (status::DEVICE, 2)
        );

        // A panic does not leave the plugin.
        let bug = abi::Dmabuf { bytes: 13, ..good };
        assert_eq!(added(&bug), status::INTERNAL);
        assert_eq!(added(&good), status::POISONED);
        made.table.destroy.unwrap()(instance);
        // The host's descriptor is the host's still.
        assert!(OwnedFd::from_raw_fd(own.as_raw_fd()).try_clone().is_ok());
        std::mem::forget(own);
    }
}
