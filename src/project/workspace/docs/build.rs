//! Puts the pages of the guide and of the reference into the program, for `:docs/find` and `:docs/show`.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

use flate2::Compression;
use flate2::write::DeflateEncoder;

fn main() -> io::Result<()> {
    let docs = Path::new(&env::var("CARGO_MANIFEST_DIR").expect("cargo says where the crate is"))
        .join("../../docs");
    let mut index = String::from(
        "/// The names of the pages, and how many bytes each has.\nconst INDEX: &[(&str, usize)] = &[\n",
    );
    let mut texts = DeflateEncoder::new(Vec::new(), Compression::best());
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
            let text = fs::read_to_string(page)?;
            texts.write_all(text.as_bytes())?;
            let name = format!("{folder}/{stem}");
            writeln!(index, "    ({name:?}, {}),", text.len()).expect("a string takes all");
        }
    }
    index.push_str("];\n");
    let out = PathBuf::from(env::var("OUT_DIR").expect("cargo says where to"));
    fs::write(out.join("pages.deflate"), texts.finish()?)?;
    fs::write(out.join("pages.rs"), index)
}
