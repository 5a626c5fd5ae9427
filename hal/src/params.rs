//! A plugin's typed parameters: its table, and the texts that are given for them.

mod units;

use unisono_abi as abi;

use crate::suggest::closest;

/// One parameter that a plugin takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParamSpec {
    /// Its name, in lower snake case.
    pub name: String,
    /// What it does, in one sentence.
    pub help: String,
    /// Its default, as it would stand in the cluster file.
    pub default: String,
    /// Its type.
    pub kind: ParamKind,
    /// The least number, for kinds that are numbers.
    pub min: i64,
    /// The greatest number, for kinds that are numbers.
    pub max: i64,
}

/// Types of parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ParamKind {
    /// `true` or `false`.
    Bool,
    /// A whole number.
    Int,
    /// A size: `4096`, `128 KiB`, `1.5 GB`.
    Bytes,
    /// A duration: `20 us`, `1.5 s`. Nanoseconds as a number.
    Duration,
    /// A text.
    String,
}

/// A value for every parameter of one plugin, checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParamValues(Vec<ParamValue>);

/// The value of one parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParamValue {
    /// The text that it was given as, or the default.
    pub text: String,
    /// The number that it means: 0 or 1, a count, bytes, nanoseconds; 0 for texts.
    pub number: i64,
    /// Whether it is the default.
    pub is_default: bool,
}

impl ParamKind {
    pub(crate) const fn from_raw(kind: u32) -> Option<Self> {
        Some(match kind {
            abi::param_type::BOOL => Self::Bool,
            abi::param_type::INT => Self::Int,
            abi::param_type::BYTES => Self::Bytes,
            abi::param_type::DURATION_NS => Self::Duration,
            abi::param_type::STRING => Self::String,
            _ => return None,
        })
    }

    const fn raw(self) -> u32 {
        match self {
            Self::Bool => abi::param_type::BOOL,
            Self::Int => abi::param_type::INT,
            Self::Bytes => abi::param_type::BYTES,
            Self::Duration => abi::param_type::DURATION_NS,
            Self::String => abi::param_type::STRING,
        }
    }

    /// The name of the type.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Bool => "bool",
            Self::Int => "int",
            Self::Bytes => "bytes",
            Self::Duration => "duration",
            Self::String => "string",
        }
    }
}

impl ParamSpec {
    /// The number that a text means for this parameter.
    ///
    /// # Errors
    /// What is wrong with the text and what would be right.
    pub fn parse(&self, text: &str) -> Result<i64, String> {
        let number = match self.kind {
            ParamKind::Bool => units::boolean(text),
            ParamKind::Int => units::integer(text),
            ParamKind::Bytes => units::bytes(text),
            ParamKind::Duration => units::duration(text),
            ParamKind::String => Ok(0),
        };
        let number = number.map_err(|what| format!("{}: `{text}` {what}", self.name))?;
        let bounded = matches!(
            self.kind,
            ParamKind::Int | ParamKind::Bytes | ParamKind::Duration
        );
        if bounded && !(self.min..=self.max).contains(&number) {
            return Err(format!(
                "{}: `{text}` is out of bounds, it must be between {} and {}",
                self.name,
                self.show(self.min),
                self.show(self.max)
            ));
        }
        Ok(number)
    }

    /// A number as it would stand in the cluster file.
    #[must_use]
    pub fn show(&self, number: i64) -> String {
        match self.kind {
            ParamKind::Bool => (number != 0).to_string(),
            ParamKind::Int | ParamKind::String => number.to_string(),
            ParamKind::Bytes => units::show_bytes(number),
            ParamKind::Duration => units::show_duration(number),
        }
    }
}

impl ParamValues {
    pub(crate) fn parse(specs: &[ParamSpec], given: &[(String, String)]) -> Result<Self, String> {
        let mut texts: Vec<Option<&str>> = vec![None; specs.len()];
        for (name, text) in given {
            let Some(index) = specs.iter().position(|spec| spec.name == *name) else {
                return Err(unknown(specs, name));
            };
            if texts[index].replace(text).is_some() {
                return Err(format!("the parameter `{name}` is given twice"));
            }
        }
        let values = specs.iter().zip(texts).map(|(spec, text)| {
            let is_default = text.is_none();
            let text = text.unwrap_or(&spec.default).trim().to_owned();
            Ok(ParamValue {
                number: spec.parse(&text)?,
                text,
                is_default,
            })
        });
        values.collect::<Result<_, _>>().map(Self)
    }

    /// The values, in the order of the plugin's table.
    #[must_use]
    pub fn values(&self) -> &[ParamValue] {
        &self.0
    }

    /// As the plugin takes them. They borrow from `self` and the table.
    pub(crate) fn raw(&self, specs: &[ParamSpec]) -> Vec<abi::ParamValue> {
        let str_of = |text: &str| abi::Str {
            ptr: text.as_ptr().cast(),
            len: text.len() as u64,
        };
        let rows = specs.iter().zip(&self.0).map(|(spec, value)| {
            let is_text = spec.kind == ParamKind::String;
            abi::ParamValue {
                name: str_of(&spec.name),
                text: str_of(if is_text { &value.text } else { "" }),
                number: value.number,
                value_type: spec.kind.raw(),
                reserved: 0,
            }
        });
        rows.collect()
    }
}

fn unknown(specs: &[ParamSpec], name: &str) -> String {
    if specs.is_empty() {
        return format!("there is no parameter `{name}`: the plugin takes none");
    }
    let names: Vec<&str> = specs.iter().map(|spec| spec.name.as_str()).collect();
    let hint =
        closest(name, &names).map_or(String::new(), |near| format!(" did you mean `{near}`?"));
    format!(
        "there is no parameter `{name}`;{hint} the plugin takes: {}",
        names.join(", ")
    )
}

#[cfg(test)]
#[path = "params/tests.rs"]
mod tests;
