//! The route table: the transport that reaches each PE, and the reasons, as initialization selected them. Kept small,
//! and put into words on demand.
//!
//! Per peer there are its [`PeerPaths`] and four numbers of reasons; the reasons themselves are shared,
//! because most peers have the same.

use crate::route::path::{Path, PeerPaths};
use crate::route::reasons::{Reasons, RouteCandidate};

/// The route of one kind of operation to one kind of memory of one PE.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route {
    /// The transport, or another means: `self` for a PE's own host memory, `staged` for GPU memory that no
    /// transport carries. None if nothing reaches the PE's memory.
    pub transport: Option<&'static str>,
    /// The device on which this PE opened it, such as `mlx5_0:1`.
    pub device: Option<String>,
    /// The reason for that device, where there were several.
    pub device_choice: Option<String>,
    /// Whether the PE's memory is loaded and stored directly.
    pub mapped: bool,
    /// Whether it takes active messages, which the PE's CPU serves: atomics only.
    pub messages: bool,
    /// Whether it is GPU memory that no transport carries between the two: data go through host memory at
    /// the PE, whose process copies them, and atomics are done by that process on its GPU.
    pub staged: bool,
    /// The answers of all transports that were considered, best first, the chosen one's last.
    pub considered: Vec<RouteCandidate>,
}

/// The routes to one PE, by kind of operation and memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RouteExplanation {
    /// The PE.
    pub pe: usize,
    /// Puts and gets of host memory.
    pub host: Route,
    /// Atomics on host memory. Without a transport they cannot be done by one at the CPU's level
    /// (M29).
    pub host_atomics: Route,
    /// Puts and gets of GPU memory; none where the job has no symmetric GPU memory.
    pub gpu: Option<Route>,
    /// Atomics on GPU memory.
    pub gpu_atomics: Option<Route>,
}

/// The answers of all transports about a route, for an error.
#[must_use]
pub fn refusals(route: &Route) -> String {
    if route.considered.is_empty() {
        return "no transport is enabled; see OXSHMEM_TRANSPORT".into();
    }
    route
        .considered
        .iter()
        .map(|c| format!("{}: {}", c.transport, c.answer))
        .collect::<Vec<_>>()
        .join("; ")
}

/// One opened transport, as explanations name it.
#[derive(Debug)]
pub struct CandidateReasons {
    /// The transport's name.
    pub name: &'static str,
    /// The device.
    pub device: Box<str>,
    /// The reason for this device, where there were several.
    pub choice: Option<Box<str>>,
}

/// The numbers of the reasons for four of the [`PeerPaths`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReasonTable {
    /// Copies from and to host memory.
    pub host: u32,
    /// Atomics on host memory.
    pub host_atomics: u32,
    /// Copies from and to GPU memory.
    pub gpu: u32,
    /// Atomics on GPU memory.
    pub gpu_atomics: u32,
}

/// The routes of one PE to all.
#[derive(Debug)]
pub struct Routes {
    /// By PE.
    pub paths: Box<[PeerPaths]>,
    whys: Box<[ReasonTable]>,
    reasons: Reasons,
    /// By the index of the opened transport.
    pub opened: Box<[CandidateReasons]>,
    /// Whether there is symmetric GPU memory.
    gpu: bool,
}

impl Routes {
    /// The routes to the PEs, with the reasons for each; `gpu` says whether there are GPU heaps.
    pub fn new(
        peers: Vec<(PeerPaths, ReasonTable)>,
        reasons: Reasons,
        opened: Box<[CandidateReasons]>,
        gpu: bool,
    ) -> Self {
        let (paths, whys): (Vec<_>, Vec<_>) = peers.into_iter().unzip();
        Routes {
            paths: paths.into(),
            whys: whys.into(),
            reasons,
            opened,
            gpu,
        }
    }

    /// The paths to a PE; none to one that does not exist.
    #[inline]
    pub fn paths_to(&self, pe: usize) -> &PeerPaths {
        self.paths.get(pe).unwrap_or(&PeerPaths::NONE)
    }

    fn route(&self, path: Path, why: u32) -> Route {
        let named = path.transport().and_then(|index| self.opened.get(index));
        Route {
            transport: match path {
                Path::Mapped(Path::OWN) => Some("self"),
                Path::Staged => Some("staged"),
                _ => named.map(|n| n.name),
            },
            device: named.map(|n| n.device.to_string()),
            device_choice: named.and_then(|n| Some(n.choice.as_ref()?.to_string())),
            mapped: path.is_mapped(),
            messages: matches!(path, Path::Message(_)),
            staged: path == Path::Staged,
            considered: self.reasons.list(why),
        }
    }

    /// The route of puts and gets to the host memory of `pe`.
    pub fn get(&self, pe: usize) -> Option<Route> {
        Some(self.route(self.paths.get(pe)?.host, self.whys.get(pe)?.host))
    }

    /// The routes to a PE with their reasons, if there is such a PE.
    pub fn explain(&self, pe: usize) -> Option<RouteExplanation> {
        let (paths, whys) = (self.paths.get(pe)?, self.whys.get(pe)?);
        let gpu = |path, why| self.gpu.then(|| self.route(path, why));
        Some(RouteExplanation {
            pe,
            host: self.route(paths.host, whys.host),
            host_atomics: self.route(paths.host_atomics, whys.host_atomics),
            gpu: gpu(paths.gpu, whys.gpu),
            gpu_atomics: gpu(paths.gpu_atomics, whys.gpu_atomics),
        })
    }

    /// Whether every PE's memory, of each kind there is, is mapped here.
    pub fn all_mapped(&self) -> bool {
        let mapped =
            |paths: &PeerPaths| paths.host.is_mapped() && (!self.gpu || paths.gpu.is_mapped());
        self.paths.iter().all(mapped)
    }

    /// The first PE whose host memory nothing reaches, and the reason.
    pub fn first_unreachable(&self) -> Option<(usize, String)> {
        let pe = self
            .paths
            .iter()
            .position(|paths| paths.host == Path::None)?;
        Some((pe, refusals(&self.get(pe)?)))
    }
}
