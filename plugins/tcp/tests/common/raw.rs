//! A peer made by hand: the protocol as bytes, right or wrong.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use super::checksum;

/// The port and the instance's name in an address.
pub fn parts(address: &[u8]) -> (u16, [u8; 16]) {
    let port = u16::from_le_bytes([address[2], address[3]]);
    (port, address[20..36].try_into().unwrap())
}

/// Connects over loopback.
pub fn connect(port: u16) -> TcpStream {
    let to = SocketAddr::from(([127, 0, 0, 1], port));
    let stream = TcpStream::connect(to).unwrap();
    stream.set_nodelay(true).unwrap();
    stream
        .set_read_timeout(Some(Duration::from_secs(10)))
        .unwrap();
    stream
}

/// The hello of rank 0 to rank 1 on channel 99, for the only connection of a link.
pub fn hello(instance: [u8; 16]) -> Vec<u8> {
    later_hello(instance, 0)
}

/// The same of a connection that follows others in their place.
pub fn later_hello(instance: [u8; 16], generation: u16) -> Vec<u8> {
    hello_of(instance, [0, 1, generation << 2])
}

/// The same of one of several connections that last as long as both processes.
pub fn lasting_hello(instance: [u8; 16], index: u16, count: u16) -> Vec<u8> {
    hello_of(instance, [index, count, 1 << 2 | 2])
}

fn hello_of(instance: [u8; 16], connection: [u16; 3]) -> Vec<u8> {
    let mut out = b"UNISOTCP".to_vec();
    out.extend(3u16.to_le_bytes());
    for half in connection {
        out.extend(half.to_le_bytes()); // index, count, generation and flags
    }
    out.extend(99u64.to_le_bytes());
    out.extend(0u32.to_le_bytes());
    out.extend(1u32.to_le_bytes());
    out.extend(instance);
    out.extend([9; 32]);
    out
}

/// Rank 0's end of the handshake, up to its own proof; the transcript's rest is returned.
pub fn greet(stream: &mut TcpStream, instance: [u8; 16], secret: u64) -> std::io::Result<Vec<u8>> {
    greet_again(stream, hello(instance), secret)
}

/// The same with this hello.
pub fn greet_again(
    stream: &mut TcpStream,
    hello: Vec<u8>,
    secret: u64,
) -> std::io::Result<Vec<u8>> {
    stream.write_all(&hello)?;
    let mut challenge = [0; 42];
    stream.read_exact(&mut challenge)?;
    let said = [hello.as_slice(), &challenge].concat();
    let transcript = [b"unisono tcp 1 dialer\0".as_slice(), &said].concat();
    stream.write_all(&checksum(secret, 0, &transcript))?;
    Ok(said)
}

/// The acceptor's proof; then each end says that the connection is the first in its place.
pub fn welcome(stream: &mut TcpStream, said: &[u8], secret: u64) {
    let mut proof = [0; 64];
    stream.read_exact(&mut proof).unwrap();
    let transcript = [b"unisono tcp 1 acceptor\0".as_slice(), said].concat();
    assert_eq!(proof, checksum(secret, 1, &transcript));
    stream.write_all(&resume()).unwrap();
}

/// The first frame of a connection, by an end that has nothing yet.
pub fn resume() -> Vec<u8> {
    let mut first = vec![0x46, 0x55, 4];
    first.resize(72, 0);
    first
}

/// What rank 1 asks of a dialer.
pub fn challenge() -> Vec<u8> {
    let mut out = b"UNISOTCP".to_vec();
    out.extend([0; 2]);
    out.extend([8; 32]);
    out
}

/// Rank 1's proof, where hello and challenge were said.
pub fn accepts(said: &[u8], secret: u64) -> [u8; 64] {
    let transcript = [b"unisono tcp 1 acceptor\0".as_slice(), said].concat();
    checksum(secret, 1, &transcript)
}

/// A put frame's header, without a signal.
pub fn frame(window: u32, sequence: u64, offset: u64, total: u64, length: u32) -> Vec<u8> {
    let mut out = 0x5546u16.to_le_bytes().to_vec();
    out.extend([1, 0]);
    out.extend(window.to_le_bytes());
    out.extend(sequence.to_le_bytes());
    out.extend(offset.to_le_bytes());
    out.extend(total.to_le_bytes());
    out.extend(length.to_le_bytes());
    out.resize(72, 0);
    out
}

/// The same with a signal.
pub fn signalled(mut frame: Vec<u8>, window: u32, offset: u64) -> Vec<u8> {
    frame[3] = 1;
    frame[36..40].copy_from_slice(&window.to_le_bytes());
    frame[40..48].copy_from_slice(&offset.to_le_bytes());
    frame
}
