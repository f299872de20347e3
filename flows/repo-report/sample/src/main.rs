fn main() {
    // FIXME: read the name
    println!("Hello");
}
