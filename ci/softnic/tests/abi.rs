//! The library against the installed libibverbs: its calls and their versions, and the layouts of its types. Debian's packages are
//! libibverbs1, libibverbs-dev, binutils and gcc. Where one of them is missing its test is not run, which is said; with
//! `OXSHMEM_TEST_LIBIBVERBS=1` that is a failure.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "tests"
)]

mod nic;

use std::collections::{BTreeMap, BTreeSet};
use std::mem::offset_of;
use std::path::{Path, PathBuf};
use std::process::Command;

use nic::*;

/// Says that something is missing, and that a test is not run for it.
fn missing(what: &str) {
    let must = std::env::var("OXSHMEM_TEST_LIBIBVERBS").is_ok_and(|value| value == "1");
    assert!(!must, "there is no {what}");
    println!("not run: there is no {what}");
}

fn libibverbs() -> Option<PathBuf> {
    let folders = [
        "/usr/lib/x86_64-linux-gnu",
        "/usr/lib/aarch64-linux-gnu",
        "/usr/lib64",
    ];
    let paths = folders.map(|folder| Path::new(folder).join("libibverbs.so.1"));
    paths.into_iter().find(|path| path.exists())
}

/// The calls that a library defines, each with its default version, which is empty where it has none.
fn calls(library: &Path) -> Option<BTreeMap<String, String>> {
    let mut readelf = Command::new("readelf");
    let table = readelf
        .args(["-W", "--dyn-syms"])
        .arg(library)
        .output()
        .ok()?;
    let table = String::from_utf8(table.stdout).unwrap();
    let defined = table.lines().filter_map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [_, _, _, "FUNC", "GLOBAL", _, section, name, ..] = words[..] else {
            return None;
        };
        if section == "UND" || !name.starts_with("ibv_") {
            return None;
        }
        // An older version has one @: programs are linked with the default.
        match name.split_once('@') {
            None => Some((name.to_owned(), String::new())),
            Some((name, version)) => Some((name.to_owned(), version.strip_prefix('@')?.to_owned())),
        }
    });
    Some(defined.collect())
}

/// Calls of `IBVERBS_1.14` and before that the library does not have. Programs that need one do not start on it.
const ABSENT: [&str; 14] = [
    "ibv_copy_ah_attr_from_kern",
    "ibv_copy_path_rec_from_kern",
    "ibv_copy_path_rec_to_kern",
    "ibv_copy_qp_attr_from_kern",
    "ibv_dofork_range",
    "ibv_dontfork_range",
    "ibv_import_device",
    "ibv_import_dm",
    "ibv_import_mr",
    "ibv_import_pd",
    "ibv_resolve_eth_l2_from_gid",
    "ibv_unimport_dm",
    "ibv_unimport_mr",
    "ibv_unimport_pd",
];
/// A call for providers and librdmacm, in a version of theirs.
const PRIVATE: &str = "ibv_query_gid_type";

/// The minor number of `IBVERBS_1.…`.
fn minor(version: &str) -> Option<u32> {
    version.strip_prefix("IBVERBS_1.")?.parse().ok()
}

#[test]
fn its_calls_are_those_of_libibverbs() {
    let Some(installed) = libibverbs() else {
        return missing("libibverbs.so.1");
    };
    let (Some(ours), Some(theirs)) = (calls(&library()), calls(&installed)) else {
        return missing("readelf");
    };
    for (call, version) in &ours {
        assert_eq!(
            version, "",
            "{call}: README.md says that there are no versions"
        );
        let default = theirs
            .get(call)
            .unwrap_or_else(|| panic!("libibverbs has no {call}"));
        assert!(
            minor(default).is_some() || call == PRIVATE,
            "{call} is of {default}"
        );
    }
    let public = theirs
        .iter()
        .filter(|(_, version)| minor(version).is_some_and(|of| of <= 14));
    let lacking = public.filter(|(call, _)| !ours.contains_key(*call));
    let lacking: BTreeSet<&str> = lacking.map(|(call, _)| call.as_str()).collect();
    let known = BTreeSet::from(ABSENT);
    let unknown: Vec<_> = lacking.difference(&known).collect();
    assert!(
        unknown.is_empty(),
        "calls that the library lacks: {unknown:?}"
    );
}

/// Sizes of types and places of fields: a C program that prints them, and those of Rust.
#[derive(Default)]
struct Layouts {
    program: String,
    ours: Vec<(String, usize)>,
}

impl Layouts {
    fn add(&mut self, expression: String, ours: usize) {
        self.program += &format!("printf(\"%zu\\n\", (size_t)({expression}));\n");
        self.ours.push((expression, ours));
    }
}

macro_rules! layouts {
    ($all:ident; $($name:ident { $($field:ident),* })*) => {$(
        $all.add(format!("sizeof(struct {})", stringify!($name)), size_of::<$name>());
        $($all.add(
            format!("offsetof(struct {}, {})", stringify!($name), stringify!($field)),
            offset_of!($name, $field),
        );)*
    )*};
}

fn all_layouts() -> Layouts {
    let mut all = Layouts::default();
    layouts! { all;
        ibv_sge { addr, length, lkey }
        ibv_send_wr { wr_id, next, sg_list, num_sge, opcode, send_flags, wr }
        ibv_recv_wr { wr_id, next, sg_list, num_sge }
        ibv_wc { wr_id, status, opcode, vendor_err, byte_len, qp_num, src_qp, wc_flags, pkey_index, slid, sl }
        ibv_qp_cap { max_send_wr, max_recv_wr, max_send_sge, max_recv_sge, max_inline_data }
        ibv_qp_init_attr { qp_context, send_cq, recv_cq, srq, cap, qp_type, sq_sig_all }
        ibv_global_route { dgid, flow_label, sgid_index, hop_limit, traffic_class }
        ibv_ah_attr { grh, dlid, sl, src_path_bits, static_rate, is_global, port_num }
        ibv_qp_attr {
            qp_state, path_mtu, qkey, rq_psn, sq_psn, dest_qp_num, qp_access_flags, cap, ah_attr, pkey_index,
            max_rd_atomic, max_dest_rd_atomic, min_rnr_timer, port_num, timeout, retry_cnt, rnr_retry
        }
        ibv_device_attr { fw_ver, vendor_id, max_qp, max_qp_wr, max_cqe, atomic_cap, max_srq, phys_port_cnt }
        ibv_pci_atomic_caps { fetch_add, swap, compare_swap }
        ibv_pd { context, handle }
        ibv_mr { context, pd, addr, length, handle, lkey, rkey }
        ibv_comp_channel { context, fd, refcnt }
        ibv_cq { context, channel, cq_context, handle, cqe, mutex, cond }
        ibv_srq { context, srq_context, pd, handle, mutex, cond }
        ibv_qp { context, qp_context, pd, send_cq, recv_cq, srq, handle, qp_num, state, qp_type, mutex, cond }
        ibv_srq_init_attr { srq_context, attr }
        ibv_async_event { element, event_type }
        ibv_context_ops { poll_cq, req_notify_cq, post_srq_recv, post_send, post_recv }
        ibv_context { device, ops, cmd_fd, async_fd, num_comp_vectors, mutex, abi_compat }
        ibv_gid_entry { gid, gid_index, port_num, gid_type, ndev_ifindex }
    }
    // Later versions add fields at an end: behind these, or before those.
    macro_rules! places {
        ($($name:ident { $($field:ident),* })*) => {$($(all.add(
            format!("offsetof(struct {}, {})", stringify!($name), stringify!($field)),
            offset_of!($name, $field),
        );)*)*};
    }
    places! {
        ibv_port_attr { state, max_mtu, active_mtu, gid_tbl_len, lid, sm_lid, link_layer, flags, port_cap_flags2 }
        ibv_device_attr_ex { orig_attr, comp_mask, odp_caps, pci_atomic_caps, phys_port_cnt_ex }
        ibv_qp_init_attr_ex { cap, qp_type, comp_mask, pd, create_flags, send_ops_flags }
    }
    macro_rules! before_the_end {
        ($($field:ident),*) => {$(all.add(
            format!("sizeof(struct verbs_context) - offsetof(struct verbs_context, {})", stringify!($field)),
            size_of::<verbs_context>() - offset_of!(verbs_context, $field),
        );)*};
    }
    before_the_end!(query_port, query_device_ex, create_qp_ex, sz, context);
    // The options of a connection, which the bindings' headers lack: src/abi.rs asserts these.
    all.add("sizeof(struct ibv_ece)".into(), 12);
    all.add("offsetof(struct ibv_ece, vendor_id)".into(), 0);
    all.add("offsetof(struct ibv_ece, options)".into(), 4);
    all.add("offsetof(struct ibv_ece, comp_mask)".into(), 8);
    all
}

#[test]
fn its_types_are_laid_out_as_in_the_header() {
    if !Path::new("/usr/include/infiniband/verbs.h").exists() {
        return missing("infiniband/verbs.h");
    }
    let all = all_layouts();
    let folder = std::env::temp_dir().join(format!("oxshmem-softnic-abi-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let (source, program) = (folder.join("layouts.c"), folder.join("layouts"));
    let text = format!(
        "#include <infiniband/verbs.h>\n#include <stddef.h>\n#include <stdio.h>\nint main(void) {{\n{}}}\n",
        all.program
    );
    std::fs::write(&source, text).unwrap();
    let compiled = Command::new("cc")
        .arg(&source)
        .arg("-o")
        .arg(&program)
        .output();
    let Ok(compiled) = compiled else {
        std::fs::remove_dir_all(&folder).unwrap();
        return missing("C compiler");
    };
    assert!(
        compiled.status.success(),
        "{}",
        String::from_utf8_lossy(&compiled.stderr)
    );
    let printed = Command::new(&program).output().unwrap().stdout;
    std::fs::remove_dir_all(&folder).unwrap();
    let printed = String::from_utf8(printed).unwrap();
    let theirs: Vec<usize> = printed.lines().map(|line| line.parse().unwrap()).collect();
    assert_eq!(theirs.len(), all.ours.len());
    let different = all.ours.iter().zip(theirs);
    let different: Vec<_> = different
        .filter(|((_, ours), theirs)| ours != theirs)
        .collect();
    assert!(different.is_empty(), "{different:#?}");
}
