//! Compiles `inflate.c`: ISA-L's state is a struct of which only C knows the size.

use std::env;
use std::process::Command;

fn main() {
    println!("cargo:rerun-if-changed=src/inflate.c");
    let out = env::var("OUT_DIR").expect("cargo sets it");
    run("gcc", &["-O3", "-c", "src/inflate.c", "-o", &format!("{out}/inflate.o")]);
    run("ar", &["rcs", &format!("{out}/libinflate.a"), &format!("{out}/inflate.o")]);
    println!("cargo:rustc-link-search=native={out}");
    println!("cargo:rustc-link-lib=static=inflate");
    println!("cargo:rustc-link-lib=isal");
}

fn run(program: &str, words: &[&str]) {
    let status = Command::new(program).args(words).status().expect("a C compiler");
    assert!(status.success(), "{program} ended with {status}");
}
