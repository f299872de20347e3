//! Numbers: longs with checked overflow, big integers, ratios, decimals and doubles.

/// A borrowed view of any number.
#[derive(Debug, Clone, Copy)]
pub enum Number<'a> {
    Int(i64),
    BigInt(&'a super::BigInt),
    Ratio(&'a super::BigRational),
    Decimal(&'a super::BigDecimal),
    Float(f64),
}

/// Writes a double as Java does: `1.0`, `1.0E10`, `##Inf`.
pub fn format_float(float: f64) -> String {
    ryu::Buffer::new().format(float).to_owned()
}
