//! Each built-in transport: its devices here, their capabilities and their guarantees.

use std::collections::BTreeMap;
use std::fmt;

use oxshmem_transport::{
    AtomicOp, AtomicTable, Capabilities, Completion, Device, Error, GpuFlush, Guarantees, HostId,
    Job, Limits, MemoryKind, Pe, SignalSupport, Width, WireUp,
};
use serde::{Serialize, Serializer};

use super::known::Known;

#[derive(Serialize)]
pub struct Transport {
    name: &'static str,
    devices: Known<Vec<Offer>>,
}

/// A device of a transport.
#[derive(Serialize)]
struct Offer {
    name: String,
    description: String,
    promises: Known<Promises>,
}

#[derive(Serialize)]
struct Promises {
    capabilities: Table<String>,
    /// A table for each kind of memory that the device reaches.
    guarantees: Table<Table<String>>,
}

/// Names and values in the order in which they are shown. JSON has them as a map.
struct Table<T>(Vec<(String, T)>);

impl<T: Serialize> Serialize for Table<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, value)| (name, value)))
    }
}

pub fn see() -> Vec<Transport> {
    oxshmem::registry::built_in()
        .iter()
        .map(|transport| Transport {
            name: transport.name(),
            devices: transport
                .probe()
                .map_err(|error| match error {
                    // The rest of the error's text is already said.
                    Error::Unavailable { why, .. } => why,
                    other => other.to_string(),
                })
                .map(|devices| {
                    devices
                        .iter()
                        .map(|device| offer(transport.as_ref(), device))
                        .collect()
                })
                .into(),
        })
        .collect()
}

fn offer(transport: &dyn oxshmem_transport::Transport, device: &Device) -> Offer {
    // A domain's capabilities do not depend on the job, so a job of one will do.
    let host = HostId(oxshmem_topo::boot_id().unwrap_or_default());
    let job = Job {
        me: Pe(0),
        size: 1,
        host_rank: 0,
        host,
    };
    let promises = transport.open(device, &job).map(|domain| {
        let of_kind =
            |kind: MemoryKind| Some((kind.to_string(), guarantees(domain.guarantees(kind)?)));
        let promises = Promises {
            capabilities: capabilities(domain.capabilities()),
            guarantees: Table(MemoryKind::ALL.into_iter().filter_map(of_kind).collect()),
        };
        domain.shutdown();
        promises
    });
    Offer {
        name: device.name.clone(),
        description: device.description.clone(),
        promises: promises.into(),
    }
}

/// The levels of atomics of one width, each with its operations.
fn atomic_levels(atomics: &AtomicTable, width: Width) -> (String, String) {
    let mut levels: Vec<(String, Vec<String>)> = Vec::new();
    for op in AtomicOp::ALL {
        let level = format!("{:?}", atomics.level(op, width));
        match levels.iter_mut().find(|(known, _)| *known == level) {
            Some((_, ops)) => ops.push(op.to_string()),
            None => levels.push((level, vec![op.to_string()])),
        }
    }
    let levels: Vec<String> = levels
        .iter()
        .map(|(level, ops)| format!("{level}: {}", ops.join(" ")))
        .collect();
    row(&format!("atomics, {width} bits"), levels.join("; "))
}

fn capabilities(promised: &Capabilities) -> Table<String> {
    // Taken apart without `..`, so that the compiler rejects a new field that is not shown.
    let Capabilities {
        put,
        get,
        put_signal,
        atomics,
        memory,
        depth,
        wire_up,
        passive_target,
        moves_in_calls,
        acknowledges,
        pins,
        batch,
        message,
    } = promised;
    let mut table = vec![
        row("put", limits(put)),
        row("get", limits(get)),
        row(
            "put-with-signal",
            match put_signal {
                SignalSupport::None => "no: put, flush, then the signal".into(),
                SignalSupport::Native(level) => format!("its own operation, signal at {level:?}"),
            },
        ),
    ];
    table.extend(Width::ALL.map(|width| atomic_levels(atomics, width)));
    let kinds: Vec<String> = memory.iter().map(ToString::to_string).collect();
    table.extend([
        row("memory", kinds.join(" ")),
        row(
            "lane holds",
            depth.map_or("any number of operations".into(), |n| {
                format!("{n} operations")
            }),
        ),
        row(
            "lanes connect",
            match wire_up {
                WireUp::None => "by themselves".into(),
                WireUp::PerLane => "with each PE, at first use".into(),
            },
        ),
        row("target need not call", yes(*passive_target)),
        row("waits move data", yes(*moves_in_calls)),
        row("completes by itself", yes(*acknowledges)),
        row(
            "registering",
            if *pins {
                "pins memory: the heap goes piece by piece, as it grows"
            } else {
                "costs nothing: the heap goes whole"
            }
            .into(),
        ),
        row(
            "posted together",
            match batch {
                0 | 1 => "each operation for itself".into(),
                most => format!("up to {most} small operations"),
            },
        ),
        row(
            "messages",
            match message {
                0 => "none".into(),
                most => format!("up to {most} bytes"),
            },
        ),
    ]);
    Table(table)
}

fn limits(limits: &Limits) -> String {
    let Limits {
        max,
        align,
        unregistered,
        inline,
        ordered,
    } = *limits;
    let mut told = format!(
        "{}, alignment {align}; from unregistered memory: {}; reusable at once: {}",
        size(max),
        size(unregistered),
        size(inline)
    );
    if ordered < max {
        told.push_str(&format!(
            "; beyond {ordered} bytes none of the orders below"
        ));
    }
    told
}

fn size(bytes: u64) -> String {
    // A limit larger than any memory is no limit.
    if bytes >= 1 << 62 {
        "any size".into()
    } else {
        format!("{bytes} bytes")
    }
}

fn guarantees(promised: Guarantees) -> Table<String> {
    let Guarantees {
        put_put,
        put_fence_put,
        put_atomic,
        atomic_put,
        atomic_atomic,
        put_message,
        put_get,
        get_get,
        across_lanes,
        completion,
        gpu_flush,
    } = promised;
    Table(vec![
        row("put, put in order", yes(put_put)),
        row("put, fence, put in order", yes(put_fence_put)),
        row("put, atomic in order", yes(put_atomic)),
        row("atomic, put in order", yes(atomic_put)),
        row("atomics in order", yes(atomic_atomic)),
        row("put, message in order", yes(put_message)),
        row("get sees earlier put", yes(put_get)),
        row("gets in order", yes(get_get)),
        row("across lanes too", yes(across_lanes)),
        row(
            "completion means",
            match completion {
                Completion::SourceReusable => "the source may be reused",
                Completion::Accepted => "the far NIC has the data",
                Completion::Placed => "the data is in the target's memory",
            }
            .into(),
        ),
        row(
            "GPU memory needs",
            match gpu_flush {
                GpuFlush::None => "nothing more",
                GpuFlush::Target => "a flush by the target",
            }
            .into(),
        ),
    ])
}

fn row(name: &str, value: String) -> (String, String) {
    (name.to_owned(), value)
}

fn yes(it_is: bool) -> String {
    if it_is { "yes" } else { "no" }.to_owned()
}

/// The width of a transport's name in a list.
const NAME: usize = 10;

impl Transport {
    /// Writes a line for each device, without its guarantees.
    pub fn list(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.name;
        let devices = match &self.devices {
            Known::Yes(devices) => devices,
            Known::No { error } => return writeln!(f, "{name:<NAME$}not available: {error}"),
        };
        for (at, device) in devices.iter().enumerate() {
            let name = if at == 0 { name } else { "" };
            write!(f, "{name:<NAME$}{}: {}", device.name, device.description)?;
            match &device.promises {
                Known::Yes(_) => writeln!(f)?,
                Known::No { error } => writeln!(f, "; cannot be opened: {error}")?,
            }
        }
        Ok(())
    }
}

/// Each device's description, by the device's name.
pub fn descriptions() -> BTreeMap<String, String> {
    let transports = oxshmem::registry::built_in();
    let devices = transports.iter().filter_map(|t| t.probe().ok()).flatten();
    devices
        .map(|device| (device.name, device.description))
        .collect()
}

impl fmt::Display for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let devices = match &self.devices {
            Known::Yes(devices) => devices,
            Known::No { error } => return writeln!(f, "{}: not available: {error}", self.name),
        };
        writeln!(f, "{}: available", self.name)?;
        for device in devices {
            writeln!(f, "  device {}: {}", device.name, device.description)?;
            match &device.promises {
                Known::Yes(promises) => write!(f, "{promises}")?,
                Known::No { error } => writeln!(f, "    cannot be opened: {error}")?,
            }
        }
        Ok(())
    }
}

impl fmt::Display for Promises {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "    can do")?;
        show(f, &self.capabilities)?;
        for (kind, table) in &self.guarantees.0 {
            writeln!(f, "    guarantees, {kind} memory")?;
            show(f, table)?;
        }
        Ok(())
    }
}

fn show(f: &mut fmt::Formatter<'_>, table: &Table<String>) -> fmt::Result {
    table
        .0
        .iter()
        .try_for_each(|(name, value)| writeln!(f, "      {name:<22}{value}"))
}
