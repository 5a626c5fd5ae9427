//! A plugin that does what the test tells it, to drive the tables with.
#![allow(dead_code, reason = "each test uses its part")]
#![allow(unsafe_code, reason = "the tests stand where a host stands")]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use unisono_plugin::{
    Batch, Command, Context, Device, DeviceId, DeviceInfo, DeviceKind, Error, Event, EventSides,
    Host, Instance, Level, LinkInfo, LinkType, Memory, MemoryRequest, MemoryView, NoLink, Param,
    Place, Plugin, QueueControl, QueuePhase, QueueState, Recording, Result, Scope, Side, Sleep,
    SleepWays, Status, Stream, SupportQuery, Waker, abi,
};

pub struct Fake {
    pub host: Host,
}

impl Plugin for Fake {
    type Instance = Self;
    const NAME: &'static str = "fake";
    const VERSION: &'static str = "1.2.3";
    const VENDOR: &'static str = "tests";
    const PARAMS: &'static [Param] = &[
        Param::bool("panic_in_create", "Panic.", false),
        Param::int("rings", "How many.", "2", 1, 8),
        Param::bytes("slot", "How large.", "4KiB", 1, 1 << 20),
        Param::duration("wait", "How long.", "1s", 0, i64::MAX),
        Param::text("interface", "Which.", "lo"),
    ];

    fn create(context: Context<'_>) -> Result<Self> {
        let params = context.params;
        assert!(!params.bool("panic_in_create")?, "told to");
        unisono_plugin::log!(
            context.host,
            Level::Info,
            "rings {} slot {} wait {:?} on {}",
            params.int("rings")?,
            params.bytes("slot")?,
            params.duration("wait")?,
            params.text("interface")?
        );
        Ok(Self { host: context.host })
    }
}

impl Instance for Fake {
    type Device = Dev;
    type Link = NoLink;

    fn devices(&self) -> Result<Vec<DeviceInfo>> {
        Ok((0..3).map(info).collect())
    }

    fn open(&self, index: u32) -> Result<Dev> {
        match index {
            0..3 => Ok(Dev),
            7 => panic!("no device {index}"),
            _ => Err(Error::invalid("no such device").with_vendor_code(42)),
        }
    }

    fn links(&self) -> Result<Vec<LinkInfo>> {
        Ok(vec![LinkInfo {
            link_type: LinkType::Mapped,
            scope: Scope::Node,
            shared: 1,
            from: DeviceId::default(),
            to: DeviceId::default(),
            kind: "a-kind-that-is-too-long".into(),
            bytes_per_second: 10,
            read_bytes_per_second: 0,
            latency_ns: 20,
            rail: 30,
        }])
    }
}

pub fn info(index: u8) -> DeviceInfo {
    DeviceInfo {
        kind: DeviceKind::Cpu,
        id: DeviceId([index; 16]),
        name: "é".repeat(40),
        pci: String::new(),
        numa: None,
        queues: 4,
        memory_bytes: 1 << 30,
        reach: abi::reach::HOST,
        streams: abi::stream_can::POLLED,
        reduce_bytes_per_second: 1,
        events: EventSides {
            host_signal: Side::Native,
            ..EventSides::default()
        },
        event_reach: 1,
    }
}

pub struct Dev;

impl Device for Dev {
    type Memory = Mem;
    type Stream = Queue;
    type Event = Flag;

    fn supports(&self, query: &SupportQuery) -> bool {
        query.command == abi::command_kind::COPY && query.source == Some(Place::Host)
    }

    fn alloc(&self, request: &MemoryRequest) -> Result<Mem> {
        if request.bytes > 1 << 40 {
            return Err(Error::new(Status::OutOfMemory, "x".repeat(500)));
        }
        Ok(Mem(*request))
    }

    fn create_stream(&self, priority: i64) -> Result<Queue> {
        let shared = Arc::new(Shared {
            done: AtomicU64::new(0),
            aborted: AtomicBool::new(false),
        });
        Ok(Queue {
            shared,
            priority,
            events: Vec::new(),
            waker: None,
        })
    }

    fn create_event(&self) -> Result<Flag> {
        Ok(Flag::default())
    }
}

pub struct Mem(MemoryRequest);

impl Memory for Mem {
    fn view(&self) -> MemoryView {
        MemoryView {
            place: Place::Host,
            base: 0x1000,
            host: 0x1000,
            bytes: self.0.bytes,
            generation: self.0.align,
            device: DeviceId([1; 16]),
        }
    }
}

#[derive(Clone, Default)]
pub struct Flag(Arc<AtomicBool>);

impl Event for Flag {
    fn host_signal(&self) -> Result<()> {
        self.0.store(true, Ordering::Release);
        Ok(())
    }

    fn host_query(&self) -> Result<bool> {
        Ok(self.0.load(Ordering::Acquire))
    }
}

pub struct Shared {
    done: AtomicU64,
    aborted: AtomicBool,
}

impl QueueControl for Shared {
    fn query(&self) -> QueueState {
        let done = self.done.load(Ordering::Relaxed);
        let failed = self.aborted.load(Ordering::Relaxed);
        let phase = if failed {
            QueuePhase::Failed
        } else {
            QueuePhase::Idle
        };
        QueueState {
            phase,
            accepted: done,
            completed: done,
            moved: false,
        }
    }

    fn abort(&self) {
        self.aborted.store(true, Ordering::Relaxed);
    }
}

/// A stream whose priority says how it behaves.
pub struct Queue {
    shared: Arc<Shared>,
    priority: i64,
    events: Vec<Flag>,
    waker: Option<Waker>,
}

impl Queue {
    pub const PANICS: i64 = -1;
    pub const FAILS: i64 = -2;
    pub const SLEEPS_WRONGLY: i64 = -3;
    /// Records into the graph of this number.
    pub const RECORDS: i64 = 7;
}

impl Stream for Queue {
    type Event = Flag;
    type Control = Arc<Shared>;

    fn control(&self) -> Arc<Shared> {
        self.shared.clone()
    }

    fn submit(&mut self, batch: &Batch<'_, Flag>) -> Result<u32> {
        for command in batch {
            if let Command::Record(event) = command {
                self.events.push(event.clone());
            }
        }
        self.shared
            .done
            .fetch_add(batch.len().into(), Ordering::Relaxed);
        Ok(batch.len())
    }

    fn poll(&mut self, _: u64) -> Result<QueueState> {
        match self.priority {
            Self::PANICS => panic!("{}", "told to"),
            Self::FAILS => return Err(Error::mismatch([1, 2, 3])),
            _ => {}
        }
        for event in self.events.drain(..) {
            event.host_signal()?;
        }
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
        Ok(self.shared.query())
    }

    fn capturing(&self) -> Option<Recording> {
        (self.priority == Self::RECORDS).then(|| Recording::of(Self::RECORDS as u64))
    }

    fn arm(&mut self, allowed: SleepWays, waker: Option<Waker>) -> Result<Sleep> {
        if self.priority == Self::SLEEPS_WRONGLY {
            return Ok(Sleep::Fd { fd: 0, events: 1 });
        }
        self.waker = waker;
        Ok(if allowed.waker() {
            Sleep::Waker
        } else {
            Sleep::Ready
        })
    }

    fn disarm(&mut self) {
        self.waker = None;
    }
}
