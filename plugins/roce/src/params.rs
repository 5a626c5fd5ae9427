//! What the cluster file may set, and its meaning as types.

use std::time::Duration;

use unisono_plugin::{Error, Param, Params, Result};

use crate::nic::{Filter, Wish};

const MICROSECOND: i64 = 1000;
const MILLISECOND: i64 = 1_000_000;
const SECOND: i64 = 1_000_000_000;

/// The plugin's parameters.
pub const PARAMS: &[Param] = &[
    Param::text(
        "library",
        "The verbs library, by name or path.",
        "libibverbs.so.1",
    ),
    Param::text(
        "devices",
        "Devices to use, by name (mlx5_0, mlx5_*) and port (mlx5_0:2), separated by commas, in the \
         order of the rails; ! before one leaves it out; empty means all that are up.",
        "",
    ),
    Param::int(
        "gid_index",
        "Entry of the ports' address table to use; -1 chooses one of RoCE v2 by family and route.",
        "-1",
        -1,
        255,
    ),
    Param::text(
        "address_family",
        "Addresses to use on Ethernet: auto, ipv4 or ipv6.",
        "auto",
    ),
    Param::bytes(
        "mtu",
        "Bytes of a packet at most: 256, 512, 1024, 2048 or 4096; 0 takes what both ports can.",
        "0",
        0,
        4096,
    ),
    Param::int(
        "service_level",
        "InfiniBand's service level; on Ethernet the priority of the VLAN tag.",
        "0",
        0,
        15,
    ),
    Param::int(
        "traffic_class",
        "Traffic class of the packets: the DSCP times four, and the ECN bits.",
        "0",
        0,
        255,
    ),
    Param::int("hop_limit", "Routers that a packet may pass.", "64", 1, 255),
    Param::int(
        "queue_pairs",
        "Queue pairs of a link on each rail; long puts are striped over them.",
        "2",
        1,
        8,
    ),
    Param::duration(
        "ack_timeout",
        "How long a packet waits for its acknowledgement before it is sent again; rounded up to \
         4.096 µs times a power of two.",
        "67ms",
        5 * MICROSECOND,
        8 * SECOND,
    ),
    Param::int(
        "retries",
        "How often a packet is sent again before its path counts as dead; 7 would mean for ever.",
        "6",
        0,
        6,
    ),
    Param::duration(
        "keepalive",
        "A queue pair that was silent for this long is probed; one that does not answer is dead.",
        "1s",
        10 * MILLISECOND,
        3600 * SECOND,
    ),
    Param::duration(
        "recovery",
        "How long a dead path may take to come back, or to move to another rail, before the link \
         fails.",
        "5s",
        0,
        3600 * SECOND,
    ),
    Param::duration(
        "connect_timeout",
        "How long a link may take to connect, and how long a peer may leave a path alone that it must \
         help to mend.",
        "60s",
        10 * MILLISECOND,
        3600 * SECOND,
    ),
    Param::int(
        "credits",
        "Messages on their way at once on one queue pair: a peer that does not poll stops its \
         writers after as many.",
        "32",
        8,
        1024,
    ),
    Param::int(
        "queue_depth",
        "Writes and messages posted at once on one queue pair.",
        "128",
        16,
        4096,
    ),
    Param::bytes(
        "inline",
        "The longest write or message that is handed over inside its request; devices may take \
         less.",
        "220",
        0,
        1024,
    ),
    Param::bytes(
        "copy_limit",
        "Sources outside of windows are copied to registered memory up to this size, and registered \
         for the one put above it.",
        "64KiB",
        0,
        1 << 30,
    ),
    Param::bytes(
        "staging",
        "Registered memory of each queue pair for such copies.",
        "256KiB",
        16 << 10,
        64 << 20,
    ),
    Param::bytes(
        "message",
        "The longest single write.",
        "1MiB",
        4096,
        1 << 30,
    ),
    Param::bytes(
        "stripe",
        "Puts of at least twice this are striped, in stripes of at least this; 0 means 16KiB where a \
         link has several rails, and 128KiB on one.",
        "0",
        0,
        1 << 30,
    ),
    Param::bool(
        "dmabuf",
        "Cards read and write the memory of devices by themselves, where the device exports it as a \
         dma-buf; false stages it in the host's memory.",
        true,
    ),
    Param::bytes(
        "bandwidth",
        "Bytes per second to report for each rail; 0 takes the port's rate.",
        "0",
        0,
        1 << 50,
    ),
    Param::duration(
        "latency",
        "One-way latency to report for links.",
        "3us",
        1,
        SECOND,
    ),
];

/// The parameters of one instance.
#[derive(Clone, Debug)]
pub(crate) struct Config {
    pub(crate) library: String,
    pub(crate) devices: Filter,
    pub(crate) wish: Wish,
    /// As an `ibv_mtu`; 0 for the ports' own.
    pub(crate) mtu: u8,
    pub(crate) service_level: u8,
    pub(crate) traffic_class: u8,
    pub(crate) hop_limit: u8,
    pub(crate) queue_pairs: u8,
    /// 4.096 µs times two to this.
    pub(crate) ack_timeout: u8,
    pub(crate) retries: u8,
    pub(crate) keepalive: Duration,
    pub(crate) recovery: Duration,
    pub(crate) connect_timeout: Duration,
    pub(crate) credits: u32,
    pub(crate) queue_depth: u32,
    pub(crate) inline: u32,
    pub(crate) copy_limit: u64,
    pub(crate) staging: u64,
    pub(crate) message: u64,
    /// `None` goes by the number of rails.
    pub(crate) stripe: Option<u64>,
    pub(crate) dmabuf: bool,
    pub(crate) bandwidth: Option<u64>,
    pub(crate) latency: Duration,
}

impl Config {
    /// Takes the host's values.
    ///
    /// # Errors
    /// A value that the host's check of type and bounds can't know to be wrong.
    pub(crate) fn parse(params: Params<'_>) -> Result<Self> {
        let invalid = |name: &str, why: String| Error::invalid(format!("roce: {name}: {why}"));
        Ok(Self {
            library: params.text("library")?.to_owned(),
            devices: params
                .text("devices")?
                .parse()
                .map_err(|e| invalid("devices", format!("{e}")))?,
            wish: Wish {
                family: params
                    .text("address_family")?
                    .parse()
                    .map_err(|e| invalid("address_family", format!("{e}")))?,
                index: u8::try_from(params.int("gid_index")?).ok(),
            },
            mtu: mtu(params.bytes("mtu")?)
                .ok_or_else(|| invalid("mtu", "not 256, 512, 1024, 2048, 4096 or 0".to_owned()))?,
            service_level: small(params, "service_level")?,
            traffic_class: small(params, "traffic_class")?,
            hop_limit: small(params, "hop_limit")?,
            queue_pairs: small(params, "queue_pairs")?,
            ack_timeout: ack_timeout(params.duration("ack_timeout")?),
            retries: small(params, "retries")?,
            keepalive: params.duration("keepalive")?,
            recovery: params.duration("recovery")?,
            connect_timeout: params.duration("connect_timeout")?,
            credits: small(params, "credits")?,
            queue_depth: small(params, "queue_depth")?,
            inline: u32::try_from(params.bytes("inline")?).unwrap_or(0),
            copy_limit: params.bytes("copy_limit")?,
            staging: params.bytes("staging")?,
            message: params.bytes("message")?,
            stripe: Some(params.bytes("stripe")?).filter(|stripe| *stripe > 0),
            dmabuf: params.bool("dmabuf")?,
            bandwidth: Some(params.bytes("bandwidth")?).filter(|rate| *rate > 0),
            latency: params.duration("latency")?,
        })
    }
}

fn small<T: TryFrom<i64>>(params: Params<'_>, name: &str) -> Result<T> {
    let value = params.int(name)?;
    T::try_from(value)
        .map_err(|_| Error::invalid(format!("roce: {name}: {value} is out of bounds")))
}

/// The number that verbs have for a packet size; 0 for 0.
fn mtu(bytes: u64) -> Option<u8> {
    Some(match bytes {
        0 => 0,
        256 => 1,
        512 => 2,
        1024 => 3,
        2048 => 4,
        4096 => 5,
        _ => return None,
    })
}

/// The least exponent whose timeout is at least this long: 1 to 21. (0 would be "never".)
fn ack_timeout(wanted: Duration) -> u8 {
    let units = wanted.as_nanos().div_ceil(4096).max(2);
    let exponent = units.next_power_of_two().trailing_zeros();
    u8::try_from(exponent.clamp(1, 21)).unwrap_or(21)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timeouts_are_rounded_up_and_never_endless() {
        assert_eq!(ack_timeout(Duration::from_nanos(1)), 1);
        assert_eq!(ack_timeout(Duration::from_nanos(4096 * 2)), 1);
        assert_eq!(ack_timeout(Duration::from_nanos(4096 * 2 + 1)), 2);
        // 2^14 × 4.096 µs = 67.1 ms
        assert_eq!(ack_timeout(Duration::from_millis(67)), 14);
        assert_eq!(ack_timeout(Duration::from_secs(8)), 21);
        assert_eq!(ack_timeout(Duration::from_secs(80)), 21);
    }

    #[test]
    fn packet_sizes_are_those_that_verbs_know() {
        assert_eq!(mtu(0), Some(0));
        assert_eq!(mtu(256), Some(1));
        assert_eq!(mtu(4096), Some(5));
        assert_eq!(mtu(1500), None);
    }
}
