//! Puts the pages of the guide and of the reference into the program, for `:docs/find` and `:docs/show`.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

fn main() -> io::Result<()> {
    let docs = Path::new(&env::var("CARGO_MANIFEST_DIR").expect("cargo says where the crate is"))
        .join("../../docs");
    let mut text =
        String::from("/// The pages, by name.\npub(super) const PAGES: &[(&str, &str)] = &[\n");
    for folder in ["errors", "guide", "guide/how-to", "reference"] {
        let folder_path = docs.join(folder);
        println!("cargo::rerun-if-changed={}", folder_path.display());
        let mut pages: Vec<PathBuf> = fs::read_dir(&folder_path)?
            .map(|entry| Ok(entry?.path()))
            .collect::<io::Result<_>>()?;
        pages.sort();
        // What is tested is of no use to who asks how something works.
        let is_page = |path: &&PathBuf| {
            path.extension().is_some_and(|it| it == "md") && !path.ends_with("coverage.md")
        };
        for page in pages.iter().filter(is_page) {
            let stem = page.file_stem().unwrap_or_default().to_string_lossy();
            let path = page.canonicalize()?;
            writeln!(
                text,
                "    ({:?}, include_str!({:?})),",
                format!("{folder}/{stem}"),
                path
            )
            .expect("a string takes all");
        }
    }
    text.push_str("];\n");
    let out = PathBuf::from(env::var("OUT_DIR").expect("cargo says where to"));
    fs::write(out.join("pages.rs"), text)
}
