//! The text format: refusals with their places and remedies. Any broken text gives an error, never
//! a panic.

use oxshmem_litmus::{Error, MemoryModel, Program, library::library, model};
use proptest::prelude::*;

/// Parses a text after a usual header of 2 lines.
fn parse(rest: &str) -> Result<Program, Error> {
    Program::parse(&format!("name test\nvars x y d[2]\n{rest}"))
}

/// A text, the line and column of the error (lines after the header count from 1), and words of the
/// message.
const REFUSED: &[(&str, usize, usize, &str)] = &[
    ("put x@1 1", 1, 1, "`put` is no header line"),
    ("name again\nPE 0:", 1, 1, "a second name"),
    ("rules M17 M39\nPE 0:", 1, 11, "M1 to M38"),
    ("rules M17 M17", 1, 11, "M17 is named twice"),
    ("rules M017", 1, 7, "no rule"),
    ("models strict", 1, 8, "`ordered` and `relaxed`"),
    ("models ordered\nmodels relaxed", 2, 1, "a second `models`"),
    ("vars z x", 1, 8, "`x` is declared twice"),
    ("vars r1", 1, 6, "not `r0`, a register"),
    ("vars Z", 1, 6, "no name for a variable"),
    ("vars z[9]", 1, 6, "use 1 to 8"),
    ("vars z[0]", 1, 6, "use 1 to 8"),
    ("vars z[two]", 1, 6, "decimal number"),
    ("observe x", 1, 9, "write `x@1`"),
    ("observe x@1 x@1", 1, 13, "x@1 is observed twice"),
    ("observe d@1 d[1]@1", 1, 13, "d[1]@1 is observed twice"),
    ("expect maybe r0=1", 1, 8, "`allowed` or `forbidden`"),
    ("expect allowed", 1, 15, "`deadlock`"),
    ("expect allowed r0", 1, 16, "write `r0=1`"),
    (
        "expect allowed r0=1\nPE 0:\n fence",
        1,
        16,
        "r0 is not part of the outcome",
    ),
    (
        "expect allowed [x@0]=1\nPE 0:\n fence",
        1,
        16,
        "[x@0] is not part of the outcome",
    ),
    ("expect allowed r0=1 r0=2", 1, 21, "r0 is given twice"),
    (
        "models ordered\nexpect relaxed allowed deadlock\nPE 0:\n fence",
        2,
        8,
        "not meant for the relaxed model",
    ),
    ("PE 0", 1, 4, "has no colon"),
    ("PE 8:", 1, 4, "PEs are 0 to 7"),
    ("PE -1:", 1, 4, "without a sign"),
    ("PE 0:\nPE 0:", 2, 4, "under one `PE n:`"),
    ("PE 0: fence", 1, 7, "`fence` is too much"),
    ("PE 0:\n vars z", 2, 2, "before the first `PE n:`"),
    ("PE 0:\n poke x@1 1", 2, 2, "`poke` is no call"),
    ("PE 0:\n fence_nbi", 2, 2, "`fence_nbi` is no call"),
    ("PE 0:\n add_nbi x@1 1", 2, 2, "`add_nbi` is no call"),
    ("PE 0:\n put z@1 1", 2, 6, "declare it first"),
    ("PE 0:\n put x@9 1", 2, 6, "PEs are 0 to 7"),
    ("PE 0:\n put x 1", 2, 6, "`x` names no PE"),
    ("PE 0:\n put d[2]@1 1", 2, 6, "its last word is d[1]"),
    ("PE 0:\n put x@1", 2, 9, "here belongs a value"),
    ("PE 0:\n put d@1 1", 2, 11, "here belongs a value"),
    ("PE 0:\n put x@1 1 2", 2, 12, "end the line before it"),
    ("PE 0:\n put x@1 18446744073709551616", 2, 10, "64 bits"),
    ("PE 0:\n put x@1 +1", 2, 10, "without a sign"),
    ("PE 0:\n get x@1", 2, 2, "write `r0 = get …`"),
    ("PE 0:\n r0 = put x@1 1", 2, 2, "leave out the registers"),
    ("PE 0:\n r0 = get d@1", 2, 2, "one for each word"),
    ("PE 0:\n r0 get x@1", 2, 5, "here belongs `=`"),
    ("PE 0:\n r0 r0 = get d@1", 2, 5, "r0 is written twice"),
    (
        "PE 0:\n r0 = read x\nPE 1:\n r0 = read x",
        4,
        2,
        "use each register once",
    ),
    ("PE 0:\n r64 = read x", 2, 2, "`r64` is no call"),
    ("PE 0:\n write x@0 1", 2, 8, "this PE's own words"),
    ("PE 0:\n r0 = fetch d@1", 2, 13, "name one of them: `d[0]`"),
    (
        "PE 0:\n wait_until x = 1",
        2,
        15,
        "they are ==, !=, >, >=, < and <=",
    ),
    ("PE 0:\n ctx4 fence", 2, 2, "ctx1 to ctx3"),
    ("PE 0:\n ctx1 barrier_all", 2, 7, "has no context"),
    (
        "PE 0:\n put_signal x@1 1 set y 1",
        2,
        19,
        "here belongs `then`",
    ),
    (
        "PE 0:\n put_signal x@1 1 then and y 1",
        2,
        24,
        "`then add y 1`",
    ),
    (
        "PE 0:\n put_signal x@1 1 then set x 1",
        2,
        28,
        "a word of its own",
    ),
    (
        "PE 0:\n put_counted x@1 1 then y",
        2,
        20,
        "here belongs `in`",
    ),
    (
        "PE 0:\n put_counted d@1 1 2 in d[1]",
        2,
        25,
        "a word of its own",
    ),
    ("PE 0:\n set_lock x", 2, 11, "`x` is too much"),
    ("PE 0:\n pe_quiet", 2, 10, "`pe_quiet 1 2`"),
    ("PE 0:\n pe_quiet 1 1", 2, 13, "name each PE once"),
    ("PE 0:\n broadcast x y@0", 2, 14, "here belongs `from`"),
    ("PE 0:\n broadcast x from d@0", 2, 19, "the same length"),
    (
        "PE 0:\n barrier_all\nPE 1:\n sync_all",
        4,
        1,
        "`sync_all`, and that of PE 0 is `barrier_all`",
    ),
    (
        "PE 0:\n barrier_all\n put x@2 1\nPE 1:\n barrier_all",
        2,
        1,
        "collective 1 of PE 2 is none",
    ),
];

#[test]
fn each_mistake_is_named_with_its_place_and_remedy() {
    for &(text, line, column, words) in REFUSED {
        match parse(text) {
            Err(Error::Syntax {
                line: l, column: c, ..
            }) if (l, c) == (line + 2, column) => {
                let message = parse(text).map(|_| ()).unwrap_err().to_string();
                assert!(message.contains(words), "{text:?}: {message}");
            }
            other => panic!("{text:?} gave {other:?}, not an error at {line}:{column}"),
        }
    }
}

#[test]
fn m36_pes_that_call_different_collectives_are_refused() {
    let text = "PE 0:\n broadcast x from y@0\nPE 1:\n broadcast x from y@1";
    assert!(parse(text).is_err());
    assert!(parse(&text.replace("y@1", "y@0")).is_ok());
}

#[test]
fn a_program_needs_a_name_and_a_pe() {
    for (text, words) in [
        ("", "no name"),
        ("PE 0:\n fence", "no name"),
        ("name x", "no PE"),
        ("name a/b", "no name for a program"),
    ] {
        let message = Program::parse(text).map(|_| ()).unwrap_err().to_string();
        assert!(message.contains(words), "{text:?}: {message}");
    }
}

#[test]
fn programs_have_bounds() {
    let many = |line: &str, times: usize| format!("PE 0:\n{}", line.repeat(times));
    assert!(parse(&many("fence\n", 64)).is_ok());
    assert!(parse(&many("fence\n", 65)).is_err());
    let wide = |times| format!("vars w[8]\n{}", many("put w@1 1 2 3 4 5 6 7 8\n", times));
    assert!(parse(&wide(16)).is_ok());
    assert!(parse(&wide(17)).is_err());
    assert!(parse(&format!("{}PE 0:", "about a\n".repeat(33))).is_err());
    assert!(parse(&format!("about {}\nPE 0:", "a".repeat(101))).is_err());
    let variables: String = (0..14).map(|i| format!(" v{i}")).collect();
    assert!(parse(&format!("vars{variables}\nPE 0:")).is_err());
    assert!(Program::parse(&" ".repeat(64 * 1024 + 1)).is_err());
}

#[test]
fn a_message_shows_little_of_a_long_and_strange_word() {
    let word = "\u{1b}[2J".repeat(1000);
    let message = parse(&word).map(|_| ()).unwrap_err().to_string();
    assert!(
        message.len() < 500 && !message.contains('\u{1b}'),
        "{message}"
    );
}

#[test]
fn every_statement_prints_back() {
    let text = "name all
about Two lines
about of text.
rules M8b M36
models relaxed
vars x y d[2] z[8]
observe x@1 d[0]@1 d[1]@1
expect relaxed allowed r0=1 [x@1]=2
expect forbidden [d[0]@1]=18446744073709551615
expect forbidden deadlock
PE 0:
  put d@1 1 2
  put d[1]@1 3
  put_nbi x@1 1
  r0 r1 = get d@1
  r2 = ctx1 get_nbi x@1
  ctx2 set x@1 1
  add x@1 1
  and x@1 1
  or x@1 1
  xor x@1 1
  r3 = fetch x@1
  r4 = ctx3 swap x@1 1
  r5 = compare_swap_nbi x@1 0 1
  r6 = fetch_add x@1 1
  r7 = fetch_and x@1 1
  r8 = fetch_or x@1 1
  r9 = fetch_xor_nbi x@1 1
  ctx1 put_signal d@1 1 2 then set y 1
  put_signal_nbi x@1 1 then add y 1
  ctx1 put_counted d@1 1 2 in y
  set_lock
  clear_lock
  team_sync
  reduce
  fcollect
  alltoall
  collect
  alltoalls
  reduce_scatter
  inscan
  exscan
  broadcast x from d[1]@1
PE 1:
  write d 1 2
  r10 r11 = read d
  wait_until x == 1
  signal_wait_until y != 1
  r12 = signal_wait_until y > 1
  r13 = test d[0] >= 1
  r14 = signal_fetch y
  fence
  ctx1 quiet
  ctx2 pe_quiet 0 1
  wait_counted y 1
  team_sync
  reduce
  fcollect
  alltoall
  collect
  alltoalls
  reduce_scatter
  inscan
  exscan
  broadcast x from d[1]@1
";
    let program = Program::parse(text).unwrap();
    assert_eq!(program.to_string(), text);
}

#[test]
fn read_runs_end_at_every_other_statement() {
    let program = parse(
        "PE 0:\n r0 = read x\n r1 = get x@1\n fence\n r2 = fetch x@1\n put x@1 1\n r3 = read x
         r4 = swap x@1 1\n r5 r6 = read d\n r7 = get_nbi x@1\n r8 = read x\n r9 = test x == 1",
    );
    assert_eq!(program.unwrap().read_runs(0), [0..2, 5..8]);
}

/// A change of a text: a line or word, and an edit of it.
type Change = (usize, usize, u8);

fn changes() -> impl Strategy<Value = Vec<Change>> {
    proptest::collection::vec((any::<usize>(), any::<usize>(), any::<u8>()), 1..6)
}

/// Texts like those of the library, with errors here and there.
fn changed(text: &str, changes: &[Change]) -> String {
    let mut lines: Vec<Vec<String>> = text
        .lines()
        .map(|line| line.split(' ').map(str::to_string).collect())
        .collect();
    for &(a, b, what) in changes {
        let (i, j) = (a % lines.len(), b % lines.len());
        let (m, n) = (a % lines[i].len(), b % lines[j].len());
        match what % 7 {
            0 => lines.swap(i, j),
            1 => lines[i] = lines[j].clone(),
            2 => lines[i][m] = lines[j][n].clone(),
            3 => lines[i].truncate(m + 1),
            4 => lines[i][m].push(char::from(what / 2)),
            5 => lines[i][m] = b.to_string(),
            _ => drop(lines[i][m].pop()),
        }
    }
    let lines: Vec<_> = lines.iter().map(|words| words.join(" ")).collect();
    lines.join("\n")
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..Default::default() })]

    #[test]
    fn any_text_gives_a_program_or_an_error(text in "(?s).{0,200}") {
        let _ = Program::parse(&text);
    }

    #[test]
    fn lines_of_known_words_give_a_program_or_an_error(
        words in proptest::collection::vec(
            proptest::sample::select(&[
                "\n", "\n", "\n", "PE", "0:", "1:", "put", "get", "x@1", "d", "d[1]", "d@0", "=", "==",
                "r0", "r1", "1", "2", "then", "set", "y", "fence", "ctx1", "expect", "allowed",
                "wait_until", "broadcast", "from", "quiet", "pe_quiet", "@", "[", "]", "#", "put_signal",
                "put_counted", "in", "wait_counted", "reduce", "set_lock",
            ][..]),
            0..40,
        )
    ) {
        if let Ok(program) = parse(&words.join(" ")) {
            prop_assert_eq!(Program::parse(&program.to_string()), Ok(program));
        }
    }

    #[test]
    fn changed_programs_are_refused_or_print_back_and_run(
        which in 0..library().len(),
        changes in changes(),
    ) {
        let text = changed(library()[which].1, &changes);
        if let Ok(program) = Program::parse(&text) {
            prop_assert_eq!(&Program::parse(&program.to_string()), &Ok(program.clone()));
            for memory_model in MemoryModel::ALL {
                if let Ok(outcomes) = model::outcomes_within(&program, memory_model, 2000) {
                    prop_assert!(!outcomes.is_empty());
                }
            }
        }
    }
}
