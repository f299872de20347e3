//! Means with their intervals.

/// A mean with the interval in which it lies with a confidence of 95 %.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    pub mean: f64,
    pub low: f64,
    pub high: f64,
    /// The number of values.
    pub count: usize,
}

/// The quantile of the normal distribution for 95 %.
const Z: f64 = 1.959_964;
/// The quantiles of Student's distribution for 95 %, for 1 to 30 degrees of freedom.
const T: &[f64] = &[
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160,
    2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056,
    2.052, 2.048, 2.045, 2.042,
];

/// Estimates the mean of scores from 0 to 1. For scores that are all 0 or 1, the interval is Wilson's, which is right for few values
/// too; for others it is Student's.
pub fn scores(values: &[f64]) -> Estimate {
    let is_binary = values.iter().all(|value| *value == 0.0 || *value == 1.0);
    let estimate = match is_binary {
        true => wilson(values),
        false => student(values),
    };
    Estimate {
        low: estimate.low.max(0.0),
        high: estimate.high.min(1.0),
        ..estimate
    }
}

/// Estimates the mean of differences of pairs, from -1 to 1.
pub fn differences(values: &[f64]) -> Estimate {
    let estimate = student(values);
    Estimate {
        low: estimate.low.max(-1.0),
        high: estimate.high.min(1.0),
        ..estimate
    }
}

fn float(count: usize) -> f64 {
    f64::from(u32::try_from(count).unwrap_or(u32::MAX))
}

fn wilson(values: &[f64]) -> Estimate {
    let (count, n) = (values.len(), float(values.len()));
    if count == 0 {
        return unknown(0);
    }
    let mean = values.iter().sum::<f64>() / n;
    let squared = Z * Z;
    let center = (mean + squared / (2.0 * n)) / (1.0 + squared / n);
    let half = Z / (1.0 + squared / n) * (mean * (1.0 - mean) / n + squared / (4.0 * n * n)).sqrt();
    Estimate {
        mean,
        low: center - half,
        high: center + half,
        count,
    }
}

fn student(values: &[f64]) -> Estimate {
    let (count, n) = (values.len(), float(values.len()));
    if count == 0 {
        return unknown(0);
    }
    let mean = values.iter().sum::<f64>() / n;
    if count == 1 {
        return Estimate { mean, ..unknown(1) };
    }
    let squares = values.iter().map(|value| (value - mean).powi(2));
    let deviation = (squares.sum::<f64>() / (n - 1.0)).sqrt();
    let half = T.get(count - 2).copied().unwrap_or(Z) * deviation / n.sqrt();
    Estimate {
        mean,
        low: mean - half,
        high: mean + half,
        count,
    }
}

/// Nothing is known without values, and no interval from one value.
fn unknown(count: usize) -> Estimate {
    Estimate {
        mean: 0.0,
        low: -1.0,
        high: 1.0,
        count,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(found: Estimate, expected: (f64, f64, f64)) {
        let differs = |a: f64, b: f64| (a - b).abs() > 0.001;
        let (mean, low, high) = expected;
        assert!(
            !differs(found.mean, mean) && !differs(found.low, low) && !differs(found.high, high),
            "{found:?}"
        );
    }

    /// Figures from published tables of Wilson's interval and of Student's.
    #[test]
    fn intervals_are_those_of_the_tables() {
        let passed = |passed: usize, count: usize| {
            let values: Vec<f64> = (0..count).map(|idx| f64::from(idx < passed)).collect();
            scores(&values)
        };
        close(passed(10, 10), (1.0, 0.722, 1.0));
        close(passed(0, 10), (0.0, 0.0, 0.278));
        close(passed(8, 10), (0.8, 0.490, 0.943));
        close(passed(50, 100), (0.5, 0.404, 0.596));
        close(scores(&[0.5, 0.7, 0.6]), (0.6, 0.352, 0.848));
        close(scores(&[0.5]), (0.5, 0.0, 1.0));
        close(differences(&[0.1, 0.1, 0.1]), (0.1, 0.1, 0.1));
    }
}
