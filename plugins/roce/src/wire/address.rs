//! What peers learn of an instance when the job comes together: little, as all else goes over the
//! control channel when a link comes up.

use super::{Fields, WireError};
use crate::nic::LinkLayer;

const MAGIC: [u8; 6] = *b"UNIRDM";
const VERSION: u16 = 1;

/// An instance, to its peers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Address {
    /// Fresh for each instance.
    pub(crate) instance: [u8; 16],
    /// Of each rail.
    pub(crate) layers: Vec<LinkLayer>,
}

impl Address {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = MAGIC.to_vec();
        out.extend(VERSION.to_le_bytes());
        out.extend(self.instance);
        out.push(self.layers.len() as u8); // at most RAILS_MAX
        out.extend(self.layers.iter().map(|layer| layer_code(*layer)));
        out
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, WireError> {
        let mut fields = Fields(bytes);
        if fields.take("magic")? != MAGIC {
            return Err(WireError::Magic);
        }
        match fields.u16("version")? {
            VERSION => {}
            other => return Err(WireError::Version(other)),
        }
        let instance = fields.take("instance")?;
        let count = usize::from(fields.u8("rails")?);
        if count == 0 || count > super::RAILS_MAX {
            return Err(WireError::Field("rails"));
        }
        let layers = fields
            .bytes(count, "rails")?
            .iter()
            .map(|code| layer(*code))
            .collect::<Result<_, _>>()?;
        fields.end()?;
        Ok(Self { instance, layers })
    }
}

pub(super) const fn layer_code(layer: LinkLayer) -> u8 {
    match layer {
        LinkLayer::InfiniBand => 1,
        LinkLayer::Ethernet => 2,
    }
}

pub(super) const fn layer(code: u8) -> Result<LinkLayer, WireError> {
    match code {
        1 => Ok(LinkLayer::InfiniBand),
        2 => Ok(LinkLayer::Ethernet),
        _ => Err(WireError::Field("link layer")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn addresses_round_trip_and_fit() {
        let address = Address {
            instance: [7; 16],
            layers: vec![LinkLayer::Ethernet; super::super::RAILS_MAX],
        };
        let bytes = address.encode();
        assert!(bytes.len() <= 256);
        assert_eq!(Address::decode(&bytes), Ok(address));
        for cut in 0..bytes.len() {
            assert!(Address::decode(&bytes[..cut]).is_err());
        }
    }

    proptest! {
        #[test]
        fn no_bytes_break_it(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            if let Ok(address) = Address::decode(&bytes) {
                prop_assert_eq!(address.encode(), bytes);
            }
        }
    }
}
