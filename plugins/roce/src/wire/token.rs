//! A window, to the peer: where it lies and the keys to it, one for each rail of its owner's.

use super::{Fields, WireError};

const MAGIC: u32 = 0x4d44_5257;
/// Rails of an instance, at most: a token holds a key for each.
pub(crate) const RAILS_MAX: usize = 16;

/// The way to a window.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Token {
    /// Its number at its owner's.
    pub(crate) id: u32,
    pub(crate) address: u64,
    pub(crate) bytes: u64,
    /// Whether its owner's CPU can write it: small puts may then come by message.
    pub(crate) host: bool,
    /// By rail.
    pub(crate) keys: Vec<u32>,
}

impl Token {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = MAGIC.to_le_bytes().to_vec();
        out.extend(self.id.to_le_bytes());
        out.extend(self.address.to_le_bytes());
        out.extend(self.bytes.to_le_bytes());
        out.push(u8::from(self.host));
        out.push(self.keys.len() as u8); // at most RAILS_MAX
        out.extend(self.keys.iter().flat_map(|key| key.to_le_bytes()));
        out
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, WireError> {
        let mut fields = Fields(bytes);
        if fields.u32("magic")? != MAGIC {
            return Err(WireError::Magic);
        }
        let (id, address, bytes) = (
            fields.u32("id")?,
            fields.u64("address")?,
            fields.u64("bytes")?,
        );
        if bytes == 0 || address.checked_add(bytes).is_none() {
            return Err(WireError::Field("bytes"));
        }
        let host = match fields.u8("host")? {
            0 => false,
            1 => true,
            _ => return Err(WireError::Field("host")),
        };
        let count = usize::from(fields.u8("keys")?);
        if count == 0 || count > RAILS_MAX {
            return Err(WireError::Field("keys"));
        }
        let keys = (0..count)
            .map(|_| fields.u32("keys"))
            .collect::<Result<_, _>>()?;
        fields.end()?;
        Ok(Self {
            id,
            address,
            bytes,
            host,
            keys,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn tokens_round_trip_and_fit() {
        let token = Token {
            id: 3,
            address: 1 << 47,
            bytes: 1 << 40,
            host: true,
            keys: (0..RAILS_MAX as u32).collect(),
        };
        let bytes = token.encode();
        assert!(bytes.len() <= 256);
        assert_eq!(Token::decode(&bytes), Ok(token));
        for cut in 0..bytes.len() {
            assert!(Token::decode(&bytes[..cut]).is_err());
        }
    }

    proptest! {
        #[test]
        fn no_bytes_break_it(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            if let Ok(token) = Token::decode(&bytes) {
                prop_assert_eq!(token.encode(), bytes);
            }
        }
    }
}
