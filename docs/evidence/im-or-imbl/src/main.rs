//! Times the operations that a language with persistent maps and vectors lives on, in `im` and in `imbl`.
//! `cargo run --release` prints nanoseconds for one operation, the best of seven rounds.

use std::hint::black_box;
use std::time::Instant;

fn best(mut round: impl FnMut() -> u64) -> f64 {
    (0..7)
        .map(|_| {
            let start = Instant::now();
            let count = round();
            start.elapsed().as_nanos() as f64 / count as f64
        })
        .fold(f64::MAX, f64::min)
}

macro_rules! times {
    ($collections:ident, $size:expr) => {{
        let keys: Vec<u64> = (0..$size).map(|i| i * 0x9e37_79b9).collect();
        let map: $collections::HashMap<u64, u64> = keys.iter().map(|key| (*key, *key)).collect();
        let rounds = 2_000_000 / $size;
        let get = best(|| {
            for _ in 0..rounds {
                for key in &keys {
                    black_box(map.get(black_box(key)));
                }
            }
            rounds * $size
        });
        let update = best(|| {
            for _ in 0..rounds {
                for key in &keys {
                    black_box(map.update(*key, 1));
                }
            }
            rounds * $size
        });
        let build = best(|| {
            for _ in 0..rounds {
                let mut map = $collections::HashMap::new();
                for key in &keys {
                    map.insert(*key, *key);
                }
                black_box(&map);
            }
            rounds * $size
        });
        let vector = best(|| {
            for _ in 0..rounds {
                let mut vector = $collections::Vector::new();
                for key in &keys {
                    vector.push_back(*key);
                }
                black_box(&vector);
            }
            rounds * $size
        });
        [get, update, build, vector]
    }};
}

fn main() {
    println!("entries  operation        im ns  imbl ns  ratio");
    for size in [4_u64, 16, 64, 10_000] {
        let (old, new) = (times!(im, size), times!(imbl, size));
        for (name, (old, new)) in ["get", "update (shared)", "build", "push to vector"]
            .iter()
            .zip(old.iter().zip(new))
        {
            println!(
                "{size:7}  {name:15}  {old:5.1}  {new:7.1}  {:5.1}",
                old / new
            );
        }
    }
}
