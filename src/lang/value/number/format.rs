//! Numbers as text, digit for digit as Java writes them.

use super::{BigDecimal, BigInt, BigRational, big};

/// Writes a double as Clojure prints it: `1.0`, `1.0E10`, `##Inf`.
pub fn format_float(float: f64) -> String {
    let mut out = String::new();
    write_float(&mut out, float);
    out
}

/// Returns a double as `str` writes it: like [`format_float`], but `Infinity` and `NaN`.
pub fn java_float(float: f64) -> String {
    match special(float) {
        Some(name) => name.trim_start_matches('#').replace("Inf", "Infinity"),
        None => format_float(float),
    }
}

fn special(float: f64) -> Option<&'static str> {
    if float.is_nan() {
        Some("##NaN")
    } else if float.is_infinite() {
        Some(if float > 0.0 { "##Inf" } else { "##-Inf" })
    } else {
        None
    }
}

/// Appends a double to `out`. See [`format_float`].
pub fn write_float(out: &mut String, float: f64) {
    if let Some(name) = special(float) {
        out.push_str(name);
        return;
    }
    if float == 0.0 {
        out.push_str(if float.is_sign_negative() {
            "-0.0"
        } else {
            "0.0"
        });
        return;
    }
    if float < 0.0 {
        out.push('-');
    }
    let mut buffer = ryu::Buffer::new();
    let (digits, point) = digits(buffer.format_finite(float.abs()));
    if digits.len() == 1 && float.abs() < 1e-300 {
        // Java writes at least two digits, and for such small numbers 4.9E-324 is nearer than 5.0E-324.
        let text = format!("{:.1e}", float.abs());
        if let Some((mantissa, exponent)) = text.split_once('e') {
            out.push_str(mantissa);
            out.push('E');
            out.push_str(exponent);
        }
        return;
    }
    let magnitude = float.abs();
    if !(1e-3..1e7).contains(&magnitude) {
        out.push_str(&digits[..1]);
        out.push('.');
        out.push_str(if digits.len() > 1 { &digits[1..] } else { "0" });
        out.push('E');
        push_int(out, i64::from(point) - 1);
        return;
    }
    if point <= 0 {
        out.push_str("0.");
        zeros(out, i64::from(-point));
        out.push_str(&digits);
        return;
    }
    let whole = point as usize;
    if digits.len() <= whole {
        out.push_str(&digits);
        zeros(out, (whole - digits.len()) as i64);
        out.push_str(".0");
    } else {
        out.push_str(&digits[..whole]);
        out.push('.');
        out.push_str(&digits[whole..]);
    }
}

/// Returns the significant digits of `ryu`'s output, and the position of the decimal point.
fn digits(text: &str) -> (String, i32) {
    let (mantissa, exponent) = text.split_once('e').unwrap_or((text, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let mut all = String::with_capacity(20);
    all.push_str(whole);
    all.push_str(fraction);
    let leading = all.len() - all.trim_start_matches('0').len();
    let point = whole.len() as i32 + exponent - leading as i32;
    (all.trim_matches('0').to_owned(), point)
}

fn zeros(out: &mut String, count: i64) {
    for _ in 0..count {
        out.push('0');
    }
}

/// Appends a long to `out`.
pub(crate) fn push_int(out: &mut String, int: i64) {
    let mut buffer = [0u8; 20];
    let mut at = buffer.len();
    let mut rest = int.unsigned_abs();
    loop {
        at -= 1;
        buffer[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    if int < 0 {
        out.push('-');
    }
    out.extend(buffer[at..].iter().map(|digit| char::from(*digit)));
}

/// Writes the digits of an integer. If a limit is reached, only a part is written, and the printer reports the stop.
pub fn write_big(out: &mut String, int: &BigInt) {
    let _ = big::write(out, int);
}

/// Writes a ratio. Limits: as for [`write_big`].
pub fn write_ratio(out: &mut String, ratio: &BigRational) {
    write_big(out, ratio.numer());
    out.push('/');
    write_big(out, ratio.denom());
}

/// Writes a decimal as Java's `BigDecimal.toString`, without the `M`.
pub fn write_decimal(out: &mut String, decimal: &BigDecimal) {
    let (unscaled, scale) = decimal.as_bigint_and_exponent();
    let mut text = String::new();
    // If a limit is reached, the printer reports the stop.
    let _ = big::write(&mut text, &unscaled);
    if text.is_empty() {
        return;
    }
    let digits = text.strip_prefix('-').unwrap_or(&text);
    if digits.len() < text.len() {
        out.push('-');
    }
    if scale == 0 {
        out.push_str(digits);
        return;
    }
    let exponent = digits.len() as i64 - 1 - scale;
    if scale > 0 && exponent >= -6 {
        let point = digits.len() as i64 - scale;
        if point > 0 {
            out.push_str(&digits[..point as usize]);
            out.push('.');
            out.push_str(&digits[point as usize..]);
        } else {
            out.push_str("0.");
            zeros(out, -point);
            out.push_str(digits);
        }
        return;
    }
    out.push_str(&digits[..1]);
    if digits.len() > 1 {
        out.push('.');
        out.push_str(&digits[1..]);
    }
    if exponent != 0 {
        out.push('E');
        if exponent > 0 {
            out.push('+');
        }
        push_int(out, exponent);
    }
}
