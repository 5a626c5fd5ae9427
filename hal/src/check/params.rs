//! Reads the table of parameters.

use unisono_abi as abi;

use super::TEXT_MAX;
use super::reader::Reader;
use super::refusal::Refusal;
use crate::params::{ParamKind, ParamSpec};

/// The most parameters that are believed.
const PARAMS_MAX: u32 = 256;

pub(super) fn read(reader: &mut Reader, record: &abi::Plugin) -> Result<Vec<ParamSpec>, Refusal> {
    let count = record.param_count;
    if count > PARAMS_MAX {
        return Err(Refusal::Count {
            what: "param_count".into(),
            found: count.into(),
            most: PARAMS_MAX.into(),
        });
    }
    let mut specs: Vec<ParamSpec> = Vec::new();
    for i in 0..u64::from(count) {
        let at = (record.params as u64).wrapping_add(i * size_of::<abi::Param>() as u64);
        let spec = one(reader, at, i)?;
        if specs.iter().any(|other| other.name == spec.name) {
            return Err(wrong(spec.name, "there are two of that name"));
        }
        specs.push(spec);
    }
    Ok(specs)
}

fn one(reader: &mut Reader, at: u64, index: u64) -> Result<ParamSpec, Refusal> {
    let mut raw = abi::Param::zeroed();
    let what = format!("parameter {index}");
    reader.part(at, usize::MAX, &mut raw, &what)?;
    let name = reader.text(raw.name, &what, TEXT_MAX)?;
    let ok = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_';
    if !name.starts_with(|c: char| c.is_ascii_lowercase()) || !name.bytes().all(ok) {
        return Err(wrong(format!("{name:?}"), "names are lower_snake_case"));
    }
    let Some(kind) = ParamKind::from_raw(raw.value_type) else {
        let what = format!("{} is no type", raw.value_type);
        return Err(wrong(name, what));
    };
    let spec = ParamSpec {
        help: reader.text(raw.help, &format!("the help of {name}"), TEXT_MAX)?,
        default: reader.text(
            raw.default_text,
            &format!("the default of {name}"),
            TEXT_MAX,
        )?,
        name,
        kind,
        min: raw.min,
        max: raw.max,
    };
    if let Err(what) = spec.parse(&spec.default) {
        return Err(wrong(
            spec.name,
            format!("its default is not valid: {what}"),
        ));
    }
    Ok(spec)
}

fn wrong(name: impl Into<String>, what: impl Into<String>) -> Refusal {
    Refusal::Param {
        name: name.into(),
        what: what.into(),
    }
}
