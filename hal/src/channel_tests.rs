//! The C side of a channel: every function, and what must not cross it.

use super::*;

struct Fake;

impl Channel for Fake {
    fn rank(&self) -> u32 {
        3
    }
    fn size(&self) -> u32 {
        8
    }
    fn id(&self) -> u64 {
        77
    }
    fn prove(&self, transcript: &[u8]) -> Result<[u8; 64], Status> {
        Ok([transcript.len() as u8; 64])
    }
    fn verify(&self, rank: u32, _: &[u8], signature: &[u8; 64]) -> Result<(), Status> {
        if rank == 1 && signature[0] == 4 {
            return Ok(());
        }
        Err(Status::Auth)
    }
    fn send(&self, rank: u32, _: u64, data: &[u8]) -> Result<(), Status> {
        assert_ne!(rank, 9, "a panic in the host");
        if data.len() > 4 {
            return Err(Status::Invalid);
        }
        Ok(())
    }
    fn recv(&self, _: u32, tag: u64, buffer: &mut [u8]) -> Result<Received, Status> {
        if tag == 0 {
            return Ok(Received::Nothing);
        }
        if buffer.len() < 3 {
            return Ok(Received::TooLong(3));
        }
        buffer[..3].copy_from_slice(b"abc");
        Ok(Received::Message(3))
    }
}

#[test]
fn trampolines() {
    let raw = RawChannel::new(Arc::new(Fake));
    // SAFETY: `raw` lives, and every pointer below has the room that it says.
    unsafe {
        let c = &*raw.raw();
        assert_eq!((c.rank, c.size, c.id), (3, 8, 77));
        let mut signature = [0u8; 64];
        let text = b"text".as_ptr().cast();
        let status = c.prove.unwrap()(c.context, text, 4, signature.as_mut_ptr());
        assert_eq!((status, signature), (abi::status::OK, [4; 64]));
        let verify = c.verify.unwrap();
        let by = |rank| verify(c.context, rank, text, 4, signature.as_ptr());
        assert_eq!((by(1), by(2)), (abi::status::OK, abi::status::AUTH));
        let send = c.send.unwrap();
        assert_eq!(send(c.context, 1, 5, std::ptr::null(), 0), abi::status::OK);
        assert_eq!(
            send(c.context, 1, 5, b"fives".as_ptr().cast(), 5),
            abi::status::INVALID
        );
        assert_eq!(
            send(c.context, 9, 5, text, 4),
            abi::status::INTERNAL,
            "a panic does not cross"
        );
        let recv = c.recv.unwrap();
        let (mut data, mut len) = ([7u8; 8], 0u64);
        let at = data.as_mut_ptr().cast();
        assert_eq!(
            recv(c.context, 1, 0, at, 8, &raw mut len),
            abi::status::AGAIN
        );
        assert_eq!(
            recv(c.context, 1, 1, at, 2, &raw mut len),
            abi::status::INVALID
        );
        assert_eq!(len, 3);
        assert_eq!(data, [7; 8], "what asks in vain costs nothing");
        assert_eq!(recv(c.context, 1, 1, at, 8, &raw mut len), abi::status::OK);
        assert_eq!((&data, len), (b"abc\x07\x07\x07\x07\x07", 3));
    }
}
