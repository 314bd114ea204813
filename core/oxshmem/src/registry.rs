//! Registry of the built-in transports, best first: the one file that names them.
//!
//! Transports that need a library or hardware are behind features; loopback needs neither.

pub(crate) mod spec;

use std::sync::Arc;

use oxshmem_transport::{Transport, Variable};

use crate::error::{Error, Result};
use crate::registry::spec::Spec;

/// Every transport that this build has.
#[must_use]
pub fn built_in() -> Vec<Arc<dyn Transport>> {
    vec![
        Arc::new(oxshmem_loopback::Loopback::new()),
        #[cfg(feature = "verbs")]
        Arc::new(oxshmem_verbs::Verbs::new()),
        #[cfg(feature = "ofi")]
        Arc::new(oxshmem_ofi::Ofi::new()),
    ]
}

/// The transport between GPUs, on the GPU whose memory is the PE's GPU heap.
#[cfg(feature = "cuda")]
pub(crate) fn between_gpus(gpu: &crate::gpu::cuda::device::Gpu) -> Arc<dyn Transport> {
    let nvlink = oxshmem_nvlink::Nvlink::on(gpu.context.clone());
    Arc::new(nvlink.with_kernels(&gpu.kernels))
}

/// Lets the built-in transports of NICs reach a GPU's memory, too, if they can.
#[cfg(all(feature = "cuda", any(feature = "ofi", feature = "verbs")))]
pub(crate) fn give_to_nics(context: &oxshmem_cuda::Context, all: &mut [Arc<dyn Transport>]) {
    for transport in all {
        match transport.name() {
            #[cfg(feature = "verbs")]
            "verbs" => {
                *transport = Arc::new(oxshmem_verbs::Verbs::new().with_gpu(context.clone()));
            }
            #[cfg(feature = "ofi")]
            "ofi" => *transport = Arc::new(oxshmem_ofi::Ofi::new().with_gpu(context.clone())),
            _ => {}
        }
    }
}

/// The environment variables that transports of this build read themselves.
pub(crate) fn variables() -> impl Iterator<Item = Variable> {
    let tables: &[&[Variable]] = &[
        #[cfg(feature = "verbs")]
        oxshmem_verbs::VARIABLES,
        #[cfg(feature = "ofi")]
        oxshmem_ofi::VARIABLES,
    ];
    tables.concat().into_iter()
}

/// A transport that wraps another, by name. It is used only where it is asked for.
type Wrapper = (
    &'static str,
    fn(Arc<dyn Transport>, seed: u64) -> Arc<dyn Transport>,
);

const WRAPPERS: &[Wrapper] = &[("weak", |inner, seed| {
    let settings = oxshmem_weak::Settings::worst(seed);
    Arc::new(oxshmem_weak::Weak::over(inner, settings))
})];

/// The transports of `all` that `wanted` names, in its order.
pub(crate) fn select(
    all: Vec<Arc<dyn Transport>>,
    wanted: Option<&[Spec]>,
    seed: u64,
) -> Result<Vec<Arc<dyn Transport>>> {
    let Some(wanted) = wanted else { return Ok(all) };
    wanted
        .iter()
        .map(|spec| make(spec, &all, WRAPPERS, seed))
        .collect::<Result<_, String>>()
        .map_err(|why| Error::Config {
            name: "OXSHMEM_TRANSPORT".into(),
            value: Spec::list(wanted),
            why,
        })
}

/// The transport that `spec` names, wrapped as it says. The error says why there is none.
fn make(
    spec: &Spec,
    all: &[Arc<dyn Transport>],
    wrappers: &[Wrapper],
    seed: u64,
) -> Result<Arc<dyn Transport>, String> {
    // A program may give one that is wrapped already.
    let whole = spec.to_string();
    if let Some(given) = all.iter().find(|t| t.name() == whole) {
        return Ok(Arc::clone(given));
    }
    let wrapper = wrappers.iter().find(|(name, _)| *name == spec.name);
    match (&spec.inner, wrapper) {
        (Some(inner), Some((_, wrap))) => Ok(wrap(make(inner, all, wrappers, seed)?, seed)),
        (None, Some((name, _))) => {
            let inner = all.first().map_or("loopback", |t| t.name());
            Err(format!(
                "{name} goes around another transport: write {name}({inner})"
            ))
        }
        (inner, None) => {
            let known: Vec<&str> = all.iter().map(|t| t.name()).collect();
            let around: Vec<&str> = wrappers.iter().map(|(name, _)| *name).collect();
            let name = &spec.name;
            Err(match inner {
                Some(_) if known.contains(&name.as_str()) => {
                    format!("{name} goes around no other transport; {around:?} do")
                }
                Some(_) => {
                    format!("nothing called {name:?} goes around a transport; {around:?} do")
                }
                None => format!("there is no transport {name:?}; this build has {known:?}"),
            })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use oxshmem_transport::{Device, Domain, Job};

    #[derive(Debug)]
    struct Stub(&'static str);

    // SAFETY: it gives no object at all.
    unsafe impl Transport for Stub {
        fn name(&self) -> &'static str {
            self.0
        }

        fn probe(&self) -> oxshmem_transport::Result<Vec<Device>> {
            Ok(Vec::new())
        }

        fn open(&self, _: &Device, _: &Job) -> oxshmem_transport::Result<Arc<dyn Domain>> {
            Err(oxshmem_transport::Error::Closed { transport: self.0 })
        }
    }

    const SLOW: Wrapper = ("slow", |inner, seed| {
        assert_eq!((inner.name(), seed), ("near", 7));
        Arc::new(Stub("slow(near)"))
    });

    fn named(text: &str) -> Result<String, String> {
        let all: [Arc<dyn Transport>; 2] = [Arc::new(Stub("near")), Arc::new(Stub("far"))];
        let specs = Spec::parse_list(text)?;
        let made = specs.iter().map(|spec| make(spec, &all, &[SLOW], 7));
        let names = made.map(|made| Ok(made?.name()));
        Ok(names.collect::<Result<Vec<_>, String>>()?.join(" "))
    }

    #[test]
    fn transports_are_taken_in_the_order_named_and_wrapped_where_asked() {
        assert_eq!(named("far,near").as_deref(), Ok("far near"));
        assert_eq!(
            named(" slow( near ) , far").as_deref(),
            Ok("slow(near) far")
        );
    }

    #[test]
    fn what_cannot_be_made_says_why_and_what_there_is() {
        for (text, words) in [
            (
                "middle",
                "there is no transport \"middle\"; this build has [\"near\", \"far\"]",
            ),
            (
                "slow",
                "slow goes around another transport: write slow(near)",
            ),
            ("slow(slow)", "slow goes around another"),
            ("slow(middle)", "there is no transport \"middle\""),
            (
                "near(far)",
                "near goes around no other transport; [\"slow\"] do",
            ),
            (
                "odd(far)",
                "nothing called \"odd\" goes around a transport; [\"slow\"] do",
            ),
        ] {
            let why = named(text).unwrap_err();
            assert!(why.contains(words), "{text}: {why}");
        }
    }

    #[test]
    fn weak_is_there_for_who_asks_and_for_nobody_else() {
        let names = |wanted: Option<&str>| -> Vec<&str> {
            let wanted = wanted.map(|text| Spec::parse_list(text).unwrap());
            let made = select(built_in(), wanted.as_deref(), 7).unwrap();
            made.iter().map(|transport| transport.name()).collect()
        };
        let all = names(None);
        assert_eq!(all.first(), Some(&"loopback"));
        assert!(!all.iter().any(|name| name.starts_with("weak")), "{all:?}");
        assert_eq!(
            names(Some("weak(loopback), loopback")),
            ["weak(loopback)", "loopback"]
        );
    }

    #[test]
    fn a_transport_that_a_program_wrapped_itself_is_found_by_its_whole_name() {
        let all: [Arc<dyn Transport>; 1] = [Arc::new(Stub("weak(near)"))];
        let spec = Spec::parse_list("weak(near)").unwrap();
        assert_eq!(make(&spec[0], &all, &[], 0).unwrap().name(), "weak(near)");
    }
}
