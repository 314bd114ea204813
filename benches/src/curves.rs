//! Pictures of the results: times and bandwidths over sizes, each side's curve beside the limits.

use oxshmem_figures::units::{Bytes, PerSecond, Time};
use oxshmem_figures::{Curve, Error, Panel, Values, Words, panels};

use crate::samples::{Samples, Side};
use crate::sizes::{BLOCKS, COLLECTIVE_BLOCKS, COLLECTIVE_PES, Collective};

/// The row of a size; `None` if that size has none.
type RowOf<'a> = &'a dyn Fn(usize) -> Option<String>;

/// The name and the SVG of every picture with results; the names have a common prefix.
pub fn pictures(
    begin: &str,
    title: &str,
    samples: &Samples,
) -> Result<Vec<(String, String)>, Error> {
    let drawn = [
        ("latency", latency(samples)),
        ("bandwidth", bandwidth(samples)),
        ("collectives", collectives(samples)),
    ];
    let drawn = drawn.into_iter().filter_map(|(name, mut drawn)| {
        drawn.retain(|panel| panel.curves.iter().any(|curve| !curve.limit));
        (!drawn.is_empty()).then(|| Ok((format!("{begin}-{name}"), panels(title, &drawn)?)))
    });
    drawn.collect()
}

fn latency(samples: &Samples) -> Vec<Panel<'static>> {
    let put = |size| match size {
        8 => Some("ping_pong".into()),
        size => Some(format!("put_latency_{size}")),
    };
    let get = |size| match size {
        8 => Some("get8".into()),
        size => Some(format!("get_{size}")),
    };
    let bare = |size| (size == 8).then(|| "bare_ping_pong".into());
    vec![
        times(
            "a put with a flag, half of a round trip",
            "bytes",
            curves(
                samples,
                &put,
                &[("memcpy", &memcpy_put), ("bare ping-pong", &bare)],
                |_, ns| ns,
            ),
        ),
        times(
            "a get",
            "bytes",
            curves(samples, &get, &[("memcpy", &memcpy_get)], |_, ns| ns),
        ),
    ]
}

fn bandwidth(samples: &Samples) -> Vec<Panel<'static>> {
    let way = |way: &'static str, memcpy: RowOf<'_>| {
        let row = move |size| match size {
            8 => Some(format!("{way}8")),
            size => Some(format!("{way}_{size}")),
        };
        curves(samples, &row, &[("memcpy", memcpy)], |size, ns| {
            size / ns * 1e9
        })
    };
    let panel = |title, curves| {
        panel(title, "bytes", curves, |rate| {
            PerSecond(rate, "B/s").to_string()
        })
    };
    vec![
        panel("a stream of puts", way("put", &memcpy_put)),
        panel("a stream of gets", way("get", &memcpy_get)),
    ]
}

fn collectives(samples: &Samples) -> Vec<Panel<'static>> {
    let panel = |call: Collective| {
        let mut all = Vec::new();
        for side in [Side::Oxshmem, Side::Oshmem] {
            for pes in COLLECTIVE_PES {
                let row = |size| {
                    COLLECTIVE_BLOCKS
                        .contains(&size)
                        .then(|| call.row(size, pes))
                };
                all.extend(curve(
                    samples,
                    format!("{}, {pes} PEs", side.name()),
                    side,
                    &row,
                    |_, ns| ns,
                ));
            }
        }
        for (at, curve) in all.iter_mut().enumerate() {
            curve.at = at;
        }
        times(call.name(), "bytes of a block", all)
    };
    Collective::ALL.map(panel).into()
}

fn memcpy_put(size: usize) -> Option<String> {
    Some(format!("memcpy_put_{size}"))
}

fn memcpy_get(size: usize) -> Option<String> {
    Some(format!("memcpy_get_{size}"))
}

fn times(title: &'static str, across: &'static str, curves: Vec<Curve>) -> Panel<'static> {
    panel(title, across, curves, |ns| Time(ns).to_string())
}

fn panel(
    title: &'static str,
    across: &'static str,
    curves: Vec<Curve>,
    value: fn(f64) -> String,
) -> Panel<'static> {
    Panel {
        words: Words {
            title,
            across,
            up: "",
        },
        size: |size| Bytes(size.round() as usize).to_string(),
        value,
        values: Values::Logarithmic,
        curves,
    }
}

/// The curves of the sides and of the limits. `value` takes a size and its median nanoseconds.
fn curves(
    samples: &Samples,
    row: RowOf<'_>,
    limits: &[(&str, RowOf<'_>)],
    value: impl Fn(f64, f64) -> f64 + Copy,
) -> Vec<Curve> {
    let mut all = Vec::new();
    for (at, side) in [Side::Oxshmem, Side::Oshmem, Side::Ucx]
        .into_iter()
        .enumerate()
    {
        let found = curve(samples, side.name().into(), side, row, value);
        all.extend(found.map(|curve| Curve { at, ..curve }));
    }
    for (name, row) in limits {
        let found = curve(samples, (*name).into(), Side::Oxshmem, row, value);
        all.extend(found.map(|curve| Curve {
            limit: true,
            ..curve
        }));
    }
    all
}

fn curve(
    samples: &Samples,
    name: String,
    side: Side,
    row: RowOf<'_>,
    value: impl Fn(f64, f64) -> f64,
) -> Option<Curve> {
    let sizes = [8].into_iter().chain(BLOCKS);
    let point = |size: usize| {
        let median = samples.summary(side, &row(size)?)?.median;
        Some((size as f64, value(size as f64, median)))
    };
    let points: Vec<_> = sizes.filter_map(point).collect();
    (!points.is_empty()).then_some(Curve {
        name,
        at: 0,
        points,
        limit: false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_a_picture_of_what_was_measured_and_of_nothing_else() {
        let mut samples = Samples::default();
        assert_eq!(pictures("", "", &samples).unwrap(), []);
        samples.add(Side::Oxshmem, "memcpy_put_1024", 0, 10.0);
        assert_eq!(pictures("", "", &samples).unwrap(), [], "a limit alone");
        for pes in COLLECTIVE_PES {
            for size in COLLECTIVE_BLOCKS {
                let row = Collective::Fcollect.row(size, pes);
                samples.add(Side::Oxshmem, &row, 0, size as f64);
                samples.add(Side::Oshmem, &row, 0, 2.0 * size as f64);
            }
        }
        let found = pictures("peers", "a title", &samples).unwrap();
        let names: Vec<_> = found.iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["peers-collectives"]);
        let svg = &found[0].1;
        for word in ["a title", "fcollect", "oxshmem, 2 PEs", "OSHMEM, 8 PEs"] {
            assert!(svg.contains(word), "{word}: {svg}");
        }
        assert!(!svg.contains("alltoall"), "{svg}");
    }
}
