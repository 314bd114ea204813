//! Calls with one argument that makes no sense, for the test of the library's messages.

use std::collections::BTreeSet;
use std::fmt::Write;

use crate::function::{Function, Param};
use crate::table::functions;

/// The header with them: `WRONG(X)` is `X(number, call, tells, statement)` for each, where `tells` is in the message;
/// `NULLS(X)` is the same of memory of the program's own that is null, which is told where checks are on; and `ANY(X)` is
/// `X(number, call, statement)` for a call of each kind that makes sense. Without `cuda`, functions for GPUs are
/// left out: the library refuses each call of them then.
#[must_use]
pub fn wrong_calls(cuda: bool) -> String {
    let (mut wrong, mut nulls, mut any) = (String::new(), String::new(), String::new());
    let (mut wrongs, mut nullses, mut anys) = (0, 0, 0);
    let mut examples = examples();
    examples.retain(|function| cuda || !function.name.starts_with("shmemx_cuda_"));
    for function in examples {
        let _ = writeln!(
            any,
            "    X({anys}, {}, {}) \\",
            function.name,
            statement(&function, None)
        );
        anys += 1;
        for (at, param) in function.params.iter().enumerate() {
            for (argument, tells) in mistakes(&function, param) {
                let statement = statement(&function, Some((at, argument)));
                let _ = writeln!(
                    wrong,
                    "    X({wrongs}, {}, \"{tells}\", {statement}) \\",
                    function.name
                );
                wrongs += 1;
            }
            if is_own(&function, param) {
                let (name, statement) = (&param.name, statement(&function, Some((at, "NULL"))));
                let _ = writeln!(
                    nulls,
                    "    X({nullses}, {}, \"argument {name}: this is null\", {statement}) \\",
                    function.name
                );
                nullses += 1;
            }
        }
    }
    format!(
        "#define ANY(X) \\\n{any}\n#define WRONG(X) \\\n{wrong}\n#define NULLS(X) \\\n{nulls}\n"
    )
}

/// Whether a parameter is memory of the program's own, which may not be null.
fn is_own(function: &Function, param: &Param) -> bool {
    let name = function.name.as_str();
    let has = |other: &str| function.params.iter().any(|param| param.name == other);
    let copies = !function.ctx && !has("team") && !has("PE_start");
    match param.name.as_str() {
        "fetch" | "indices" | "cmp_values" => copies,
        "source" => copies && name.contains("put"),
        "dest" => copies && name.contains("get"),
        _ => false,
    }
}

/// A function of each family, of one type, without a context and with one.
fn examples() -> Vec<Function> {
    let mut seen = BTreeSet::new();
    let mut all = functions();
    // Functions of longs, or of the types most like them, come first.
    let of = |function: &Function| function.of.map_or("", |of| of.name);
    let like = ["long", "ulong", "64", "mem", "short"];
    all.sort_by_key(|function| {
        like.iter()
            .position(|name| *name == of(function))
            .unwrap_or(9)
    });
    all.retain(|function| seen.insert((function.row.name, function.row.types as u8, function.ctx)));
    // Calls that end the process, and calls that initialize the library.
    const APART: &[&str] = &[
        "shmem_global_exit",
        "shmem_init",
        "shmem_init_thread",
        "start_pes",
    ];
    all.retain(|function| !APART.contains(&function.name.as_str()));
    all
}

/// Arguments that make no sense for a parameter, each with a part of its message.
fn mistakes(function: &Function, param: &Param) -> Vec<(&'static str, String)> {
    let name = function.name.as_str();
    let has = |other: &str| function.params.iter().any(|param| param.name == other);
    // The form with a context runs the same code: only its context and PE are tried.
    if function.ctx && !["ctx", "pe"].contains(&param.name.as_str()) {
        return Vec::new();
    }
    let told = |arguments: &[&'static str], name: &str| {
        let each = arguments
            .iter()
            .map(|given| (*given, format!("argument {name}: ")));
        each.collect::<Vec<_>>()
    };
    // Arguments that must be symmetric memory.
    let symmetric = |arguments: &[&'static str], name: &str| {
        let null = ("NULL", format!("argument {name}: this is null"));
        let others = told(arguments, name).into_iter();
        others.chain([null]).collect::<Vec<_>>()
    };
    // Queries answer whatever they are asked.
    let asks = [
        "accessible",
        "_ptr",
        "translate_pe",
        "get_config",
        "get_team",
        "create_ctx",
        "split",
    ];
    if asks.iter().any(|part| name.contains(part)) {
        return Vec::new();
    }
    // Handles that are not valid, and handles that the call does not take.
    let handle = |others: [&'static str; 2], none: &'static str, always: &'static str| {
        let more = match () {
            () if name.ends_with("_destroy") => Some(always),
            // These calls do nothing for an invalid handle.
            () if ["fence", "quiet", "session"]
                .iter()
                .any(|part| name.contains(part)) =>
            {
                None
            }
            () => Some(none),
        };
        let given: Vec<_> = others.into_iter().chain(more).collect();
        told(&given, &param.name)
    };
    let collective = has("team") || has("PE_start");
    let gets = !collective && (name.contains("get") || name.ends_with("_g"));
    match param.name.as_str() {
        "pe" => told(&["77", "-1"], "pe"),
        "ctx" if !param.c.ends_with('*') => handle(
            ["(shmem_ctx_t)mine", "ended_ctx"],
            "SHMEM_CTX_INVALID",
            "SHMEM_CTX_DEFAULT",
        ),
        "team" if collective && !name.ends_with("my_pe") && !name.ends_with("n_pes") => handle(
            ["(shmem_team_t)mine", "ended_team"],
            "SHMEM_TEAM_INVALID",
            "SHMEM_TEAM_WORLD",
        ),
        "dest" if !gets => symmetric(&["mine"], "dest"),
        // The source of a put is the program's own memory.
        "source" if gets || collective || name.contains("fetch") => symmetric(&["mine"], "source"),
        "sig_addr" | "ivar" | "ivars" | "lock" => symmetric(&["mine", "(void *)1"], &param.name),
        "cmp" => told(&["17", "-1"], "cmp"),
        "sig_op" => told(&["9"], "sig_op"),
        "dst" | "sst" => told(&["0", "-1"], &param.name),
        "nelems" if !name.contains("collect") || name.contains("fcollect") => {
            let of = match () {
                () if gets => "source",
                () if has("ivars") => "ivars",
                () => "dest",
            };
            told(&["(size_t)1 << 40"], of)
        }
        "nreduce" if has("PE_start") => told(&["-1"], "nreduce"),
        "PE_root" => vec![("99", String::new()), ("-1", String::new())],
        "PE_start" | "PE_size" => vec![("77", "argument PE_start, logPE_stride, PE_size: ".into())],
        "logPE_stride" => told(&["-1"], "logPE_stride"),
        "ptr" => vec![("mine", String::new()), ("(char *)room + 8", String::new())],
        _ => Vec::new(),
    }
}

/// The call, with one argument as given; the others make sense.
fn statement(function: &Function, given: Option<(usize, &str)>) -> String {
    let arguments = function
        .params
        .iter()
        .enumerate()
        .map(|(at, param)| match given {
            Some((place, argument)) if place == at => argument.to_owned(),
            _ => usual(function, param).to_owned(),
        });
    let call = format!(
        "{}({})",
        function.name,
        arguments.collect::<Vec<_>>().join(", ")
    );
    let first = function.params.first();
    let of_team = first.is_some_and(|param| param.c == "shmem_team_t");
    if of_team && function.returns == "int" {
        // A team's call that returns reports the mistake by its status, too.
        format!("_exit({call} != 0)")
    } else {
        format!("(void){call}")
    }
}

fn usual(function: &Function, param: &Param) -> &'static str {
    match param.name.as_str() {
        "ctx" if !param.c.ends_with('*') => "SHMEM_CTX_DEFAULT",
        "team" | "parent_team" | "src_team" | "dest_team" if !param.c.ends_with('*') => {
            "SHMEM_TEAM_WORLD"
        }
        "dest" | "ptr" | "ivar" | "ivars" | "lock" => "room",
        "source" => "other",
        "sig_addr" => "word",
        "pSync" | "pWrk" => "work",
        "sig_op" => "SHMEM_SIGNAL_SET",
        "cmp" => "SHMEM_CMP_EQ",
        "size" if function.row.name.contains("split") => "1",
        "size" | "alignment" => "64",
        "nelems" | "nreduce" | "npes" | "dst" | "sst" | "bsize" | "nblocks" | "PE_size"
        | "count" | "xrange" | "stride" => "1",
        "" | "..." => "NULL",
        "status" | "config" | "xaxis_config" | "yaxis_config" => "NULL",
        _ if param.c.is_empty() => "0",
        _ if param.c.ends_with('*') => "mine",
        _ => "0",
    }
}
