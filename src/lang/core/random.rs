//! Random choices. The bits come from the host, which journals them in a flow.

use crate::value::Result;
use crate::vm::Vm;

/// Returns a double from 0 up to 1.
pub(crate) fn unit(vm: &mut Vm) -> Result<f64> {
    const BITS: u32 = 53;
    let bits = vm.host().random()? >> (64 - BITS);
    Ok(bits as f64 / (1_u64 << BITS) as f64)
}

/// Returns an integer from 0 up to `end`, which is not 0.
pub(crate) fn below(vm: &mut Vm, end: usize) -> Result<usize> {
    let wide = u128::from(vm.host().random()?) * end as u128;
    Ok((wide >> 64) as usize)
}
