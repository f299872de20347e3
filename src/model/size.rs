//! Sizes in the form that people write.

/// Reads a size such as `500MB` or `2 GiB`; a bare number is bytes.
pub fn parse_size(text: &str) -> Option<u64> {
    let text = text.trim();
    let end = text
        .find(|char: char| !char.is_ascii_digit() && char != '.')
        .unwrap_or(text.len());
    let number: f64 = text[..end].parse().ok()?;
    let unit: u64 = match text[end..].trim().to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "k" | "kb" => 1_000,
        "kib" => 1 << 10,
        "m" | "mb" => 1_000_000,
        "mib" => 1 << 20,
        "g" | "gb" => 1_000_000_000,
        "gib" => 1 << 30,
        _ => return None,
    };
    let bytes = number * unit as f64;
    (0.0..9e15).contains(&bytes).then_some(bytes as u64)
}
