//! SCALE, for every type that `supports` claims.

use unisono_abi::{command_kind, dtype, reduction};
use unisono_hal::{Place, Queue, Scale, Status, SupportQuery};

use super::Fixture;
use super::reference::{self, is_right, size};
use crate::case::Case;
use crate::outcome::{Checked, Stop, ensure, refused};
use crate::queue;

/// Every type.
const TYPES: std::ops::RangeInclusive<u16> = dtype::I8..=dtype::F8E5M2;

pub(super) fn scale(case: &Case) -> Checked {
    let device = case.streams(command_kind::COPY)?;
    let mut claimed = 0;
    for dtype in TYPES {
        let mut fixture = Fixture::new(&device, dtype)?;
        let offset = size(dtype) as u64;
        // A number with a fraction where there are fractions, and what an integer wraps with.
        let factor = fixture.pairs[fixture.pairs.len() / 3].0;
        let command = Scale {
            dst: fixture.dst.at() + offset,
            src: fixture.a.at() + offset,
            elements: fixture.pairs.len() as u64,
            factor: factor.to_le_bytes(),
            dtype,
        };
        let mut batch = queue::batch();
        batch.scale(&command);
        let claims = device.supports(&SupportQuery {
            command: command_kind::SCALE,
            dtype,
            reduction: 0,
            source: Place::Device,
            destination: Place::Device,
        });
        if !claims {
            let what = format!("a scaling of type {dtype}, to which `supports` says no,");
            let answer = fixture.stream.submit(&mut batch);
            refused(&what, answer, &[Status::Unsupported])?;
            continue;
        }
        claimed += 1;
        queue::run(&mut fixture.stream, &mut batch)?;
        compare(&fixture, &fixture.dst, factor)?;
        // Over its own operand.
        batch.clear();
        batch.scale(&Scale {
            dst: command.src,
            ..command
        });
        queue::run(&mut fixture.stream, &mut batch)?;
        compare(&fixture, &fixture.a, factor)?;
    }
    if claimed == 0 {
        return Err(Stop::unsupported("`supports` says no to SCALE of any type"));
    }
    Ok(())
}

fn compare(fixture: &Fixture, store: &crate::store::Store, factor: u64) -> Checked {
    let (dtype, size) = (fixture.dtype, size(fixture.dtype));
    let bytes = store.read(size as u64, (fixture.pairs.len() * size) as u64)?;
    for (found, (a, _)) in bytes.chunks_exact(size).zip(&fixture.pairs) {
        let mut word = [0; 8];
        word[..size].copy_from_slice(found);
        let found = u64::from_le_bytes(word);
        let wanted = reference::reduce(dtype, reduction::PROD, *a, factor, 0);
        ensure!(
            is_right(dtype, wanted, found),
            "{a:#x} of type {dtype}, scaled by {factor:#x}, gives {found:#x}, not {wanted:x?}"
        );
    }
    Ok(())
}
