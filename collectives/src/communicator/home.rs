//! This rank's arenas: where its half of its channels lies.
//!
//! A peer that maps the device's memory writes an arena there, and so do links that reach it by
//! themselves. A peer that does not, but is on the node, writes an arena in host memory that both devices
//! reach; and other links write and read one that the CPU sees. Where the device is the CPU, all three are
//! one. Only what some peer needs is made.

use unisono_abi::stream_can;
use unisono_hal::{ExportKind, LinkedMemory, Memory, MemoryKind, MemoryRequest};

use super::linked::{self, Ends, LinkEnd, Linked, Told};
use crate::arena::Arena;
use crate::error::{Error, Result};
use crate::execute::Near;
use crate::ground::Ground;
use crate::world::World;

/// How a peer is reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Own,
    /// Its device's memory is mapped.
    Direct,
    /// Through the host's memory, which both devices reach.
    Staged,
    /// By a plugin's link.
    Posted(String),
}

/// One arena.
pub(super) struct Home {
    pub near: Near,
    pub signal: Memory,
    pub slots: Memory,
    /// What gave the memory that the two above are registrations of.
    under: Vec<Memory>,
}

/// The arenas that this rank has.
#[derive(Default)]
pub(super) struct Homes {
    direct: Option<Home>,
    staged: Option<Home>,
    posted: Option<Home>,
    /// What links know of the first.
    linked: Linked,
    plain: bool,
}

impl Homes {
    pub(super) fn new(world: &World, arena: Arena, kinds: &[Kind]) -> Result<Self> {
        let plain = world.device.info().reaches(unisono_abi::reach::HOST);
        let mut homes = Self {
            plain,
            ..Self::default()
        };
        if !plain {
            homes.link(world, arena, kinds);
        }
        for kind in kinds {
            match kind {
                Kind::Own => {}
                _ if plain => make(&mut homes.direct, || Home::direct(world, arena))?,
                Kind::Direct => make(&mut homes.direct, || Home::direct(world, arena))?,
                Kind::Staged => make(&mut homes.staged, || Home::staged(world, arena))?,
                Kind::Posted(plugin) if homes.ends(plugin).are(LinkEnd::Device) => {}
                Kind::Posted(_) => make(&mut homes.posted, || Home::posted(world, arena))?,
            }
        }
        Ok(homes)
    }

    /// Lets links reach the device's memory by themselves, where it and they can. What cannot is staged.
    fn link(&mut self, world: &World, arena: Arena, kinds: &[Kind]) {
        let plugins: Vec<&str> = posted(kinds).collect();
        let offered = linked::offered(world, &plugins);
        if offered.is_empty() {
            return;
        }
        match Home::direct(world, arena) {
            Ok(home) => {
                self.linked = Linked::new(world, offered, &home.slots);
                if !self.linked.is_empty() {
                    self.direct = Some(home);
                }
            }
            Err(error) => log::warn!(
                "rank {}: device memory is staged in the host's for links: {error}",
                world.rank
            ),
        }
    }

    /// Where links of a plugin find this rank's bytes.
    fn ends(&self, plugin: &str) -> Ends {
        match self.plain {
            true => Ends::HOST,
            false => self.linked.ends(plugin),
        }
    }

    /// What the others are told of that.
    pub(super) fn told(&self, kinds: &[Kind]) -> Told {
        Told::new(posted(kinds).map(|plugin| (plugin.to_owned(), self.ends(plugin))))
    }

    /// The arena that a peer of this kind writes.
    pub(super) fn of(&self, kind: &Kind) -> Option<&Home> {
        let own = match kind {
            Kind::Own => return None,
            Kind::Direct => &self.direct,
            Kind::Staged => &self.staged,
            Kind::Posted(plugin) if self.ends(plugin).receives == LinkEnd::Device => &self.direct,
            Kind::Posted(_) => &self.posted,
        };
        own.as_ref().or(self.direct.as_ref())
    }

    /// The same as addresses, and where puts to such a peer are sent from.
    pub(super) fn near(&self, kind: &Kind) -> Near {
        let near = self.of(kind).map_or_else(Near::default, |home| home.near);
        match (kind, &self.direct) {
            // What it shows.
            (Kind::Own, Some(direct)) => direct.near,
            (Kind::Posted(plugin), Some(direct)) if self.ends(plugin).sends == LinkEnd::Device => {
                let Near {
                    sends, sends_link, ..
                } = direct.near;
                Near {
                    sends,
                    sends_link,
                    ..near
                }
            }
            _ => near,
        }
    }

    /// Bytes of all.
    pub(super) fn bytes(&self) -> u64 {
        let all = [&self.direct, &self.staged, &self.posted];
        let homes = all.into_iter().flatten();
        homes.map(|home| home.signal.len() + home.slots.len()).sum()
    }

    /// What links know, then the memory in the order in which it is to be freed.
    pub(super) fn into_memories(self) -> (Vec<LinkedMemory>, Vec<Memory>) {
        let homes = [self.direct, self.staged, self.posted];
        let memories = homes
            .into_iter()
            .flatten()
            .flat_map(|home| [home.signal, home.slots].into_iter().chain(home.under));
        (self.linked.into_memories().collect(), memories.collect())
    }
}

/// The plugins of posted links, each as often as it is used.
fn posted(kinds: &[Kind]) -> impl Iterator<Item = &str> {
    kinds.iter().filter_map(|kind| match kind {
        Kind::Posted(plugin) => Some(plugin.as_str()),
        _ => None,
    })
}

fn make(home: &mut Option<Home>, make: impl FnOnce() -> Result<Home>) -> Result<()> {
    if home.is_none() {
        *home = Some(make()?);
    }
    Ok(())
}

fn request(kind: MemoryKind, bytes: u64) -> MemoryRequest {
    MemoryRequest::new(kind, bytes).lazy().align(4096)
}

impl Home {
    fn new(arena: Arena, signal: Memory, slots: Memory, under: Vec<Memory>) -> Result<Self> {
        let host = |memory: &Memory| memory.host_ptr().map_or(0, |at| at as u64);
        if host(&signal) == 0 {
            return Err(Error::Unsupported {
                call: "init",
                why: "the device's signal memory cannot be seen by the CPU, so an abort could not \
                      release its waits"
                    .to_owned(),
            });
        }
        Ok(Self {
            near: Near {
                signal: signal.base(),
                slots: slots.base(),
                signal_host: host(&signal),
                sends: slots.base() + arena.sends(),
                // Memory that the CPU does not see, links know by the device's address, if at all.
                sends_link: slots.host_ptr().map_or(slots.base(), |at| at as u64) + arena.sends(),
                plain: slots.device().info().reaches(unisono_abi::reach::HOST),
            },
            signal,
            slots,
            under,
        })
    }

    /// Of the device's memory.
    fn direct(world: &World, arena: Arena) -> Result<Self> {
        let alloc = |kind, bytes| world.device.alloc(&world.shared(request(kind, bytes)));
        let records = world.device.info().streams_can(stream_can::CAPTURE);
        let signal_bytes = match records {
            true => arena.signal_bytes_recorded(),
            false => arena.signal_bytes(),
        };
        let signal = alloc(MemoryKind::Signal, signal_bytes)?;
        let slots = alloc(MemoryKind::Data, arena.slots_bytes())?;
        Self::new(arena, signal, slots, Vec::new())
    }

    /// Of host memory that every process of the node can map, registered with the device.
    fn staged(world: &World, arena: Arena) -> Result<Self> {
        let ground = ground(world)?;
        let alloc = |kind, bytes| ground.device.alloc(&request(kind, bytes).exportable());
        let under = vec![
            alloc(MemoryKind::Signal, arena.signal_bytes())?,
            alloc(MemoryKind::Data, arena.slots_bytes())?,
        ];
        let [signal, slots] = [&under[0], &under[1]].map(|memory| register(world, memory));
        Self::new(arena, signal?, slots?, under)
    }

    /// Of memory that the device reaches and links do too.
    fn posted(world: &World, arena: Arena) -> Result<Self> {
        let alloc = |kind, bytes| world.device.alloc(&request(kind, bytes));
        let signal = alloc(MemoryKind::Signal, arena.signal_bytes())?;
        let slots = alloc(MemoryKind::Staging, arena.slots_bytes())?;
        if slots.host_ptr().is_none() {
            return Err(Error::Unsupported {
                call: "init",
                why: format!(
                    "the CPU, and so a link, does not see the staging memory of device `{}`",
                    world.device.info().name
                ),
            });
        }
        Self::new(arena, signal, slots, Vec::new())
    }

    /// What a peer of this kind imports: the signal part and the slots. Nothing where memory cannot
    /// leave: it is then reached by links alone.
    pub(super) fn exports(&self) -> [Vec<u8>; 2] {
        let of = match self.under.as_slice() {
            [signal, slots] => [signal, slots],
            _ => [&self.signal, &self.slots],
        };
        of.map(|memory| memory.export(ExportKind::Process).unwrap_or_default())
    }
}

fn ground(world: &World) -> Result<&Ground> {
    world.ground.as_ref().ok_or_else(|| {
        Error::Graph(
            "a staged link needs a plugin whose device is the CPU, and none is in use".to_owned(),
        )
    })
}

/// Maps a peer's arena in host memory; the second, if any, is what lies under the first.
pub(super) fn import_staged(world: &World, description: &[u8]) -> Result<(Memory, Option<Memory>)> {
    let ground = ground(world)?;
    let imported = ground.device.import(description)?;
    if ground.own {
        return Ok((imported, None));
    }
    let registered = register(world, &imported)?;
    Ok((registered, Some(imported)))
}

/// Makes host memory reachable for this rank's device.
#[allow(unsafe_code, reason = "registers memory by address")]
fn register(world: &World, memory: &Memory) -> Result<Memory> {
    let at = memory.host_ptr().ok_or_else(|| {
        Error::Graph("the CPU does not see memory of a device that is the CPU".to_owned())
    })?;
    // SAFETY: the registration is dropped before the memory is: see `Homes::into_memories`, and the
    // order in which imports are kept.
    Ok(unsafe { world.device.register_host(at.cast(), memory.len()) }?)
}
