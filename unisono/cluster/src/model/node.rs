//! Machines and what they hold.

use schemars::JsonSchema;
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use super::{Interfaces, UsedDevice};

/// A machine about which something has to be said.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Node {
    /// Its host name.
    pub name: String,
    /// Its identity, 32 hexadecimal digits; without it, one is made from the machine, boot and
    /// namespaces.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^[0-9a-fA-F]{32}$"), extend("format" = "unisono-id"))]
    pub id: Option<String>,
    /// Devices and network cards of this node at which `links` may begin and end.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub devices: Vec<Device>,
    /// The devices of this node's ranks, instead of the cluster's `ranks`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ranks: Vec<UsedDevice>,
    /// Interfaces that may be used on this node, instead of the cluster's `interfaces`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interfaces: Option<Interfaces>,
}

/// A device or network card of a node: its name alone, or the name and how to find it.
#[derive(Clone, Debug, Default, PartialEq, JsonSchema)]
#[schemars(transform = or_name_alone)]
#[non_exhaustive]
pub struct Device {
    /// What links call it, unique on its node; the interface's name for a network card.
    pub name: String,
    /// Its identity as its plugin gives it, 32 hexadecimal digits: `unisono topo` shows it. Without
    /// it, the device is found by its name.
    #[schemars(regex(pattern = r"^[0-9a-fA-F]{32}$"), extend("format" = "unisono-id"))]
    pub id: Option<String>,
}

fn or_name_alone(schema: &mut schemars::Schema) {
    let mut full = std::mem::take(schema);
    full.insert("additionalProperties".to_owned(), false.into());
    *schema = schemars::json_schema!({
        "description": "a device's or network card's name, or its name and how to find it",
        "anyOf": [{ "type": "string", "minLength": 1 }, full],
    });
}

/// As it is written best: the name alone if there is no more to say.
impl Serialize for Device {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Some(id) = &self.id else {
            return serializer.serialize_str(&self.name);
        };
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("name", &self.name)?;
        map.serialize_entry("id", id)?;
        map.end()
    }
}

impl<'de> Deserialize<'de> for Device {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Device, D::Error> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Full {
            name: String,
            id: Option<String>,
        }

        struct Visitor;
        impl<'de> de::Visitor<'de> for Visitor {
            type Value = Device;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a device's name, or `name` and `id`")
            }

            fn visit_str<E: de::Error>(self, name: &str) -> Result<Device, E> {
                Ok(Device {
                    name: name.to_owned(),
                    ..Device::default()
                })
            }

            fn visit_map<A: de::MapAccess<'de>>(self, map: A) -> Result<Device, A::Error> {
                let Full { name, id } =
                    Full::deserialize(de::value::MapAccessDeserializer::new(map))?;
                Ok(Device { name, id })
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}
