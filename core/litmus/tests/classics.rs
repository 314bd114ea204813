//! Outcome sets known by hand, for each rule: the model must give exactly these.

use oxshmem_litmus::{Error, MemoryModel, Program, model};

const ORDERED: MemoryModel = MemoryModel::Ordered;
const RELAXED: MemoryModel = MemoryModel::Relaxed;

/// All outcomes, in order, each as its values alone.
fn outcomes(text: &str, model: MemoryModel) -> Result<Vec<String>, Error> {
    let program = Program::parse(&format!("name test\nvars x y d[2]\n{text}"))?;
    let outcomes = model::outcomes(&program, model)?;
    let values = |outcome: String| -> String {
        let words = outcome.split(' ');
        let values = words.map(|word| word.rsplit_once('=').map_or(word, |(_, value)| value));
        values.collect::<Vec<_>>().join(" ")
    };
    Ok(outcomes.iter().map(|o| values(o.to_string())).collect())
}

fn in_both(text: &str, expected: &[&str]) -> Result<(), Error> {
    for model in MemoryModel::ALL {
        assert_eq!(outcomes(text, model)?, expected, "{model}: {text}");
    }
    Ok(())
}

type Test = Result<(), Error>;

#[test]
fn message_passing() -> Test {
    let with = |between: &str| {
        format!(
            "PE 0:\n put x@1 1\n {between}\n put y@1 1\nPE 1:\n wait_until y == 1\n r0 = read x"
        )
    };
    in_both(&with(""), &["0", "1"])?;
    in_both(&with("fence"), &["1"])?;
    in_both(&with("quiet"), &["1"])?;
    in_both(&with("pe_quiet 1"), &["1"])?;
    in_both(&with("pe_quiet 0"), &["0", "1"])?;
    in_both(&with("ctx1 fence"), &["0", "1"])?;
    in_both(&with("ctx1 quiet"), &["0", "1"])
}

#[test]
fn m15_store_buffering() -> Test {
    let with = |between: &str| {
        format!(
            "PE 0:\n put x@1 1\n {between}\n r0 = read y
             PE 1:\n put y@0 1\n {between}\n r1 = read x"
        )
    };
    in_both(&with(""), &["0 0", "0 1", "1 0", "1 1"])?;
    in_both(&with("fence"), &["0 0", "0 1", "1 0", "1 1"])?;
    in_both(&with("quiet"), &["0 1", "1 0", "1 1"])
}

#[test]
fn m16_load_buffering() -> Test {
    in_both(
        "PE 0:\n r0 = read x\n put y@1 1\nPE 1:\n r1 = read y\n put x@0 1",
        &["0 0", "0 1", "1 0"],
    )?;
    in_both(
        "PE 0:\n r0 = get_nbi x@0\n put y@1 1\nPE 1:\n r1 = read y\n put x@0 1",
        &["0 0", "0 1", "1 0", "1 1"],
    )
}

#[test]
fn m16_a_pe_sees_its_own_put_before_others_do() -> Test {
    in_both(
        "PE 0:\n put x@1 1\n r0 = get x@1\n r1 = read y
         PE 1:\n put y@0 1\n r2 = get y@0\n r3 = read x",
        &["1 0 1 0", "1 0 1 1", "1 1 1 0", "1 1 1 1"],
    )?;
    in_both(
        "PE 0:\n put x@1 1\n quiet\n r0 = get x@1\n r1 = read y
         PE 1:\n put y@0 1\n quiet\n r2 = get y@0\n r3 = read x",
        &["1 0 1 1", "1 1 1 0", "1 1 1 1"],
    )
}

#[test]
fn m17_a_fence_orders_towards_one_pe() -> Test {
    in_both(
        "PE 0:\n put x@1 1\n fence\n put y@2 1\nPE 2:\n wait_until y == 1\n r0 = get x@1",
        &["0", "1"],
    )
}

#[test]
fn m17_a_fence_orders_own_stores_towards_all_pes() -> Test {
    let with = |between: &str| {
        format!(
            "PE 0:\n write x 1\n {between}\n put y@1 1\nPE 1:\n wait_until y == 1\n r0 = get x@0"
        )
    };
    in_both(&with(""), &["0", "1"])?;
    in_both(&with("fence"), &["1"])?;
    in_both(&with("quiet"), &["1"])?;
    // A context's fence orders later operations of that context, and of no other.
    in_both(&with("ctx1 fence"), &["0", "1"])?;
    // Stores belong to no context, so any quiet waits for them.
    in_both(&with("ctx1 quiet"), &["1"])
}

#[test]
fn m17_a_fence_does_not_order_a_put_before_an_own_store() -> Test {
    let reader = "PE 1:\n r0 = get y@0\n fence\n r1 = read x";
    let all = ["0 0", "0 1", "1 0", "1 1"];
    in_both(
        &format!("PE 0:\n put x@1 1\n fence\n write y 1\n{reader}"),
        &all,
    )?;
    in_both(
        &format!("PE 0:\n put x@1 1\n quiet\n write y 1\n{reader}"),
        &["0 0", "0 1", "1 1"],
    )
}

#[test]
fn m17_m18_what_a_fence_orders() -> Test {
    let last = |text: &str| format!("observe x@1\nPE 0:\n {text}");
    in_both(&last("put x@1 1\n put x@1 2"), &["1", "2"])?;
    for ordered in ["put x@1 2", "set x@1 2", "put_signal y@1 1 then set x 2"] {
        in_both(&last(&format!("put x@1 1\n fence\n {ordered}")), &["2"])?;
        in_both(&last(&format!("{ordered}\n fence\n set x@1 1")), &["1"])?;
    }
    for nbi in [
        "put_nbi x@1 2",
        "put_signal_nbi y@1 1 then set x 2",
        "r0 = swap_nbi x@1 2",
    ] {
        let text = last(&format!("{nbi}\n fence\n set x@1 1"));
        let value = |all: Vec<String>| -> Vec<String> {
            let last = all.iter().filter_map(|o| o.rsplit(' ').next());
            let mut values: Vec<_> = last.map(str::to_string).collect();
            values.sort();
            values
        };
        assert_eq!(value(outcomes(&text, ORDERED)?), ["1"], "{text}");
        assert_eq!(value(outcomes(&text, RELAXED)?), ["1", "2"], "{text}");
    }
    Ok(())
}

#[test]
fn m19_quiet_completes_its_contexts_operations() -> Test {
    let text = "put_nbi x@1 1\n ctx1 put_nbi y@1 1";
    let reader = "PE 1:\n wait_until d[0] == 1\n r0 = read x\n fence\n r1 = read y";
    let with = |quiet: &str| format!("PE 0:\n {text}\n {quiet}\n put d[0]@1 1\n{reader}");
    in_both(&with(""), &["0 0", "0 1", "1 0", "1 1"])?;
    in_both(&with("quiet"), &["1 0", "1 1"])?;
    in_both(&with("ctx1 quiet"), &["0 1", "1 1"])?;
    in_both(&with("quiet\n ctx1 quiet"), &["1 1"])
}

#[test]
fn m20_m21_reads_of_one_word_and_of_two() -> Test {
    let corr = "PE 0:\n put x@1 1\nPE 1:\n r0 = read x\n r1 = read x";
    assert_eq!(outcomes(corr, ORDERED)?, ["0 0", "0 1", "1 1"]);
    assert_eq!(outcomes(corr, RELAXED)?, ["0 0", "0 1", "1 0", "1 1"]);
    let sets = "PE 0:\n set x@1 1\n quiet\n set y@1 1\nPE 2:\n r0 = fetch y@1\n r1 = fetch x@1";
    assert_eq!(outcomes(sets, ORDERED)?, ["0 0", "0 1", "1 1"]);
    assert_eq!(outcomes(sets, RELAXED)?, ["0 0", "0 1", "1 0", "1 1"]);
    in_both(
        &sets.replace("r1 =", "fence\n r1 ="),
        &["0 0", "0 1", "1 1"],
    )?;
    let adds = "PE 0:\n r0 = fetch_add x@1 1\n r1 = fetch_add x@1 1";
    assert_eq!(outcomes(adds, ORDERED)?, ["0 1"]);
    assert_eq!(outcomes(adds, RELAXED)?, ["0 1", "1 0"]);
    in_both(&adds.replace("r1 =", "fence\n r1 ="), &["0 1"])
}

#[test]
fn m20_m21_independent_reads_of_independent_writes() -> Test {
    let iriw = "PE 0:\n put x@2 1\nPE 1:\n put y@3 1
                PE 2:\n r0 = get x@2\n r1 = get y@3\nPE 3:\n r2 = get y@3\n r3 = get x@2";
    let all: Vec<_> = (0..16)
        .map(|n| {
            [n >> 3 & 1, n >> 2 & 1, n >> 1 & 1, n & 1]
                .map(|b| b.to_string())
                .join(" ")
        })
        .collect();
    assert_eq!(outcomes(iriw, RELAXED)?, all);
    let agreed: Vec<_> = all.into_iter().filter(|o| o != "1 0 1 0").collect();
    assert_eq!(outcomes(iriw, ORDERED)?, agreed);
    let fenced = iriw
        .replace("r1 =", "fence\n r1 =")
        .replace("r3 =", "fence\n r3 =");
    assert_eq!(outcomes(&fenced, RELAXED)?, agreed);
    Ok(())
}

#[test]
fn m22_a_signal_comes_after_its_own_data_alone() -> Test {
    let reader = "PE 1:\n signal_wait_until y == 1\n r0 = read x\n fence\n r1 r2 = read d";
    in_both(
        &format!("PE 0:\n put x@1 1\n put_signal d@1 1 2 then set y 1\n{reader}"),
        &["0 1 2", "1 1 2"],
    )?;
    in_both(
        &format!("PE 0:\n put x@1 1\n fence\n put_signal d@1 1 2 then add y 1\n{reader}"),
        &["1 1 2"],
    )
}

#[test]
fn m23_waits_and_tests_acquire() -> Test {
    let with =
        |look: &str| format!("PE 0:\n put x@1 1\n fence\n put y@1 1\nPE 1:\n {look}\n r1 = read x");
    in_both(&with("wait_until y > 0"), &["1"])?;
    in_both(&with("r0 = signal_wait_until y != 0"), &["1 1"])?;
    in_both(&with("r0 = test y >= 1"), &["0 0", "0 1", "1 1"])?;
    in_both(&with("r0 = signal_fetch y"), &["0 0", "0 1", "1 1"])
}

#[test]
fn m24_words_arrive_one_by_one_and_are_seen_by_all() -> Test {
    in_both(
        "PE 0:\n put d@1 1 2\nPE 1:\n r0 r1 = read d",
        &["0 0", "0 2", "1 0", "1 2"],
    )?;
    in_both(
        "PE 0:\n put x@1 1\nPE 1:\n wait_until x == 1\n put y@2 1
         PE 2:\n wait_until y == 1\n r0 = get x@1",
        &["1"],
    )
}

#[test]
fn m28_atomics_are_exclusive() -> Test {
    in_both("observe x@2\nPE 0:\n add x@2 1\nPE 1:\n add x@2 2", &["3"])?;
    in_both(
        "PE 0:\n r0 = compare_swap x@0 0 1\nPE 1:\n r1 = compare_swap x@0 0 2",
        &["0 1", "2 0"],
    )
}

#[test]
fn an_unfinished_set_may_be_missed_by_its_own_pe() -> Test {
    in_both("PE 0:\n set x@1 1\n r0 = fetch x@1", &["0", "1"])?;
    in_both("PE 0:\n put x@1 1\n r0 = get x@1", &["1"])?;
    in_both("PE 0:\n ctx1 put x@1 1\n r0 = get x@1", &["0", "1"])
}

#[test]
fn two_plus_two_writes() -> Test {
    let with = |between: &str| {
        format!(
            "observe x@2 y@2
             PE 0:\n put x@2 1\n {between}\n put y@2 2
             PE 1:\n put y@2 1\n {between}\n put x@2 2"
        )
    };
    in_both(&with(""), &["1 1", "1 2", "2 1", "2 2"])?;
    in_both(&with("fence"), &["1 2", "2 1", "2 2"])
}

#[test]
fn collectives() -> Test {
    let with = |meeting: &str| {
        format!(
            "PE 0:\n put x@1 1\n ctx1 put y@1 1\n write d[0] 1\n {meeting}
             PE 1:\n {meeting}\n r0 = read x\n fence\n r1 = read y\n fence\n r2 = get d[0]@0"
        )
    };
    in_both(&with("barrier_all"), &["1 0 1", "1 1 1"])?;
    in_both(&with("sync_all"), &["0 0 1", "0 1 1", "1 0 1", "1 1 1"])?;
    in_both(
        "PE 0:\n write x 7\n broadcast y from x@0\n write x 8
         PE 1:\n broadcast y from x@0\n r0 = read y",
        &["7"],
    )?;
    in_both(
        "PE 0:\n write x 7\n broadcast y from x@0
         PE 1:\n write y 5\n broadcast y from x@0\n r0 = read y",
        &["7"],
    )
}

/// PE 1 of three sees the store of PE 0, and may or may not see that of PE 2.
#[test]
fn m24_in_a_scan_a_pe_meets_those_before_it_alone() -> Test {
    for call in ["inscan", "exscan"] {
        let text = format!(
            "PE 0:\n write x 1\n {call}\nPE 2:\n write y 1\n {call}
             PE 1:\n {call}\n r0 = get x@0\n r1 = get y@2"
        );
        in_both(&text, &["1 0", "1 1"])?;
    }
    Ok(())
}

#[test]
fn a_wait_for_what_never_comes_is_a_deadlock() -> Test {
    in_both(
        "PE 0:\n put x@1 1\n put x@1 2\nPE 1:\n wait_until x == 1\n r0 = read x",
        &["1", "2", "deadlock"],
    )?;
    in_both(
        "PE 0:\n wait_until x == 1\nPE 1:\n wait_until x == 0",
        &["deadlock"],
    )
}

#[test]
fn a_witness_tells_every_step() -> Test {
    let text = "name mp\nvars x y
                PE 0:\n put x@1 1\n put y@1 1\nPE 1:\n wait_until y == 1\n r0 = read x";
    let program = Program::parse(text)?;
    let outcomes = model::outcomes(&program, ORDERED)?;
    let steps = outcomes
        .witness(&program.outcome(&[0], &[]))
        .unwrap_or_default();
    let steps: Vec<_> = steps.iter().map(ToString::to_string).collect();
    let expected = [
        "PE 0: put y@1 1: y@1 becomes 1",
        "PE 1: wait_until y == 1: goes on, sees 1 in y@1",
        "PE 1: r0 = read x: r0 = 0 of x@1",
        "PE 0: put x@1 1: x@1 becomes 1",
    ];
    assert_eq!(steps, expected);
    assert!(outcomes.witness(&program.outcome(&[2], &[])).is_none());
    Ok(())
}

#[test]
fn too_many_states_are_an_error() -> Test {
    let text = "name big\nvars x\nPE 0:\nr0 = fetch_add x@0 1\nPE 1:\nr1 = fetch_add x@0 1";
    let program = Program::parse(text)?;
    let states = model::outcomes(&program, ORDERED)?.states();
    assert!(model::outcomes_within(&program, ORDERED, states).is_ok());
    let error = model::outcomes_within(&program, ORDERED, states - 1).map(|o| o.len());
    assert_eq!(
        error,
        Err(Error::TooManyStates {
            name: "big".into(),
            states: states - 1
        })
    );
    Ok(())
}
