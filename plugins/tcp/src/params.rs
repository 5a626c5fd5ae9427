//! What the cluster file may set, and its meaning as types.

use std::time::Duration;

use unisono_plugin::{Error, Param, Params, Result};

use crate::net::{Congestion, Filter, Options};
use crate::setup::Recovery;

const SECOND: i64 = 1_000_000_000;

/// The plugin's parameters.
pub const PARAMS: &[Param] = &[
    Param::text(
        "interfaces",
        "Interfaces to use, by name (eth0, ib*) or network (10.0.0.0/8), separated by commas; ! \
         before one leaves it out; empty means all. Nothing listens at the others. Unless it is \
         set, the host fills it in: the cluster's `interfaces`, or `lo*` for a job of one machine.",
        "",
    ),
    Param::int(
        "port",
        "First port to listen at; 0 lets the system choose.",
        "0",
        0,
        65_535,
    ),
    Param::int(
        "ports",
        "How many ports from `port` on to try: one for each process of a machine.",
        "64",
        1,
        65_535,
    ),
    Param::int(
        "connections",
        "Connections of one link; puts of 128 KiB and more are striped over them. There is at least \
         one for each network that both ends share.",
        "2",
        1,
        16,
    ),
    Param::bytes(
        "send_buffer",
        "Send buffer of a connection; 0 leaves its size to the system.",
        "0",
        0,
        1 << 30,
    ),
    Param::bytes(
        "receive_buffer",
        "Receive buffer of a connection; 0 leaves its size to the system, or takes 208 KiB where the path \
         is too short to have as much under way.",
        "0",
        0,
        1 << 30,
    ),
    Param::text(
        "congestion",
        "Congestion control: a name as in tcp_available_congestion_control, `system` for the \
         system's own, or `auto` for the system's own unless that is bbr, then cubic or reno.",
        "auto",
    ),
    Param::duration(
        "keepalive",
        "A path whose other end answers no probe for this long, while nothing is sent, is lost. Probes \
         are a second apart at least, and three must go unanswered.",
        "6s",
        SECOND,
        3600 * SECOND,
    ),
    Param::duration(
        "stall_timeout",
        "A connection whose peer takes nothing for this long, while bytes for it wait, is lost; a \
         process that lives but does not poll takes nothing either.",
        "120s",
        SECOND,
        86_400 * SECOND,
    ),
    Param::duration(
        "connect_timeout",
        "How long a link may take to connect, and how long a peer may leave one of several lost \
         connections alone.",
        "60s",
        SECOND,
        3600 * SECOND,
    ),
    Param::duration(
        "rail_timeout",
        "A path that brings nothing back for this long, while bytes are under way, is lost: its \
         connections are made anew by another, or by the same when it is back.",
        "2s",
        SECOND / 10,
        3600 * SECOND,
    ),
    Param::duration(
        "recovery",
        "A link fails when one of its connections is lost and could not be made anew for this long. Keep \
         it and `rail_timeout` together below the 15s after which a silent rank is given up: else that error \
         comes first, and names no path.",
        "10s",
        SECOND / 10,
        3600 * SECOND,
    ),
    Param::bool(
        "recover_local",
        "Makes a lost connection anew also where both ends have one address. Such a connection is taken to end with \
         its processes alone, and needs no copies and no word of what has come; set it where a tunnel leads from \
         there to another machine. One end that sets it is enough.",
        false,
    ),
    Param::bool(
        "encrypt",
        "Encrypts all links (TLS 1.3 between the two ranks, proved by the job's secret). Either all \
         ranks set it or none.",
        false,
    ),
    Param::bytes(
        "bandwidth",
        "Bytes per second to report for links; 0 takes the fastest network card's speed, or \
         1.25 GB/s where that is unknown.",
        "0",
        0,
        1 << 50,
    ),
    Param::duration(
        "latency",
        "One-way latency to report for links.",
        "25us",
        1,
        SECOND,
    ),
];

/// The parameters of one instance.
#[derive(Debug)]
pub(crate) struct Config {
    pub(crate) interfaces: Filter,
    pub(crate) port: u16,
    pub(crate) ports: u16,
    pub(crate) connections: u16,
    pub(crate) options: Options,
    pub(crate) connect_timeout: Duration,
    pub(crate) encrypt: bool,
    pub(crate) recover_local: bool,
    pub(crate) recovery: Recovery,
    pub(crate) bandwidth: Option<u64>,
    pub(crate) latency: Duration,
}

impl Config {
    /// Takes the host's values.
    ///
    /// # Errors
    /// A value that the host's check of type and bounds can't know to be wrong.
    pub(crate) fn parse(params: Params<'_>) -> Result<Self> {
        let interfaces = params
            .text("interfaces")?
            .parse()
            .map_err(|error| Error::invalid(format!("tcp: interfaces: {error}")))?;
        Ok(Self {
            interfaces,
            port: small(params, "port", 0)?,
            ports: small(params, "ports", 1)?,
            connections: small(params, "connections", 1)?.min(16),
            options: Options {
                send_buffer: size(params, "send_buffer")?,
                receive_buffer: size(params, "receive_buffer")?,
                congestion: congestion(params.text("congestion")?)?,
                keepalive: params.duration("keepalive")?,
                stall: params.duration("stall_timeout")?,
            },
            connect_timeout: params.duration("connect_timeout")?,
            encrypt: params.bool("encrypt")?,
            recover_local: params.bool("recover_local")?,
            recovery: Recovery {
                rail_timeout: params.duration("rail_timeout")?,
                limit: params.duration("recovery")?,
                patience: params.duration("connect_timeout")?,
            },
            bandwidth: Some(params.bytes("bandwidth")?).filter(|rate| *rate > 0),
            latency: params.duration("latency")?,
        })
    }
}

fn small(params: Params<'_>, name: &str, least: u16) -> Result<u16> {
    let value = params.int(name)?;
    u16::try_from(value)
        .ok()
        .filter(|value| *value >= least)
        .ok_or_else(|| Error::invalid(format!("tcp: {name}: {value} is out of bounds")))
}

fn size(params: Params<'_>, name: &str) -> Result<usize> {
    let value = params.bytes(name)?;
    usize::try_from(value)
        .map_err(|_| Error::invalid(format!("tcp: {name}: {value} is out of bounds")))
}

fn congestion(text: &str) -> Result<Congestion> {
    match text {
        "auto" | "" => Ok(Congestion::Auto),
        "system" => Ok(Congestion::System),
        // TCP_CA_NAME_MAX is 16 with the terminator.
        name if name.len() < 16 && name.bytes().all(|b| b.is_ascii_graphic()) => {
            Ok(Congestion::Named(name.to_owned()))
        }
        other => Err(Error::invalid(format!(
            "tcp: congestion: `{other}` is no name of a congestion control"
        ))),
    }
}
