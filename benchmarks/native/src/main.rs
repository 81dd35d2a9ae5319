//! The native limit: unpack the members of a zip file and look for keys in them, with the blocks that the scan uses and
//! no Python around them.
//!
//! usage: native-limit ZIP THREADS < PLAN
//!
//! PLAN has one line per key, `key HEX`, and one per member, `member BEGIN END`: where its packed bytes lie. Prints one
//! line of JSON: the times begin when the keys are compiled, as those of `scan_logs.py` do.

use std::fs::File;
use std::io::{self, BufRead};
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Instant;

use aho_corasick::{AhoCorasick, MatchKind};

/// As `bot.archives.budget.PIECE`.
const PIECE: usize = 256 * 1024;

#[repr(C)]
struct InflateState {
    _private: [u8; 0],
}

extern "C" {
    fn inflate_begin() -> *mut InflateState;
    fn inflate_give(state: *mut InflateState, packed: *const u8, size: u32);
    fn inflate_take(state: *mut InflateState, piece: *mut u8, size: u32) -> i64;
    fn inflate_is_dry(state: *const InflateState, taken: u32, size: u32) -> i32;
    fn inflate_end(state: *mut InflateState);
    fn processor_seconds() -> f64;
}

struct Plan {
    keys: Vec<Vec<u8>>,
    members: Vec<(u64, u64)>,
}

fn read_plan() -> Plan {
    let mut plan = Plan { keys: vec![], members: vec![] };
    for line in io::stdin().lock().lines().map(|line| line.expect("a line")) {
        match line.split(' ').collect::<Vec<_>>()[..] {
            ["key", hex] => plan.keys.push(bytes_of(hex)),
            ["member", begin, end] => plan.members.push((number(begin), number(end))),
            _ => panic!("neither a key nor a member: {line}"),
        }
    }
    plan
}

fn bytes_of(hex: &str) -> Vec<u8> {
    (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).expect("hex")).collect()
}

fn number(text: &str) -> u64 {
    text.parse().expect("a number")
}

/// Returns how many bytes came out of one member, and how many keys were found in them.
fn read_member(file: &File, (begin, end): (u64, u64), keys: &AhoCorasick) -> (u64, u64) {
    let (mut packed, mut piece) = (vec![0u8; PIECE], vec![0u8; PIECE]);
    let (mut size, mut found) = (0, 0);
    let mut at = begin;
    // Safe as far as this goes: the state is freed once, and both buffers outlive each call that is given them.
    let state = unsafe { inflate_begin() };
    assert!(!state.is_null(), "no memory");
    while at < end {
        let given = file.read_at(&mut packed[..PIECE.min((end - at) as usize)], at).expect("the file");
        assert!(given > 0, "the file is cut short");
        at += given as u64;
        unsafe { inflate_give(state, packed.as_ptr(), given as u32) };
        loop {
            let taken = unsafe { inflate_take(state, piece.as_mut_ptr(), PIECE as u32) };
            assert!(taken >= 0, "a member is damaged");
            size += taken as u64;
            found += keys.find_iter(&piece[..taken as usize]).count() as u64;
            if unsafe { inflate_is_dry(state, taken as u32, PIECE as u32) } != 0 {
                break;
            }
        }
    }
    unsafe { inflate_end(state) };
    (size, found)
}

fn main() {
    let words: Vec<String> = std::env::args().collect();
    let (path, threads) = (&words[1], number(&words[2]));
    let plan = read_plan();
    let keys = AhoCorasick::builder().match_kind(MatchKind::LeftmostFirst).build(&plan.keys).expect("the keys");
    let (next, size, found) = (AtomicUsize::new(0), AtomicU64::new(0), AtomicU64::new(0));
    let started = Instant::now();
    let cpu_s = unsafe { processor_seconds() };
    let file = File::open(path).expect("the file");
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some(&member) = plan.members.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let (bytes, matches) = read_member(&file, member, &keys);
                    size.fetch_add(bytes, Ordering::Relaxed);
                    found.fetch_add(matches, Ordering::Relaxed);
                }
            });
        }
    });
    println!(
        "{{\"wall_s\": {}, \"cpu_s\": {}, \"bytes\": {}, \"matches\": {}}}",
        started.elapsed().as_secs_f64(),
        unsafe { processor_seconds() } - cpu_s,
        size.into_inner(),
        found.into_inner()
    );
}
