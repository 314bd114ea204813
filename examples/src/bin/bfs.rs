//! Breadth-first search from several roots, by Graph500's rules, of a graph file or a Kronecker graph.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Context, anyhow, ensure};
use clap::Parser;
use oxshmem::World;
use oxshmem_examples::bfs::Search;
use oxshmem_examples::kronecker::Kronecker;
use oxshmem_examples::{output, read, splitmix, tree};
use oxshmem_figures::{Words, bars};

/// Searches a graph breadth-first from several roots, and checks each search by Graph500's five rules.
///
/// Edges count in both directions. Run it under a launcher (`oxshmem run -n 4 bfs`), or let it launch
/// itself (`bfs --pes 4`). Every PE reads the file.
#[derive(Parser)]
#[command(version)]
struct Args {
    /// An edge list or a Matrix Market coordinate file, plain or gzipped. Default: the dependency
    /// graph of Debian's packages, which comes with the example.
    #[arg(default_value = concat!(env!("CARGO_MANIFEST_DIR"), "/data/debian-bookworm.edges.gz"),
          hide_default_value = true)]
    file: PathBuf,
    /// Launch this many PEs on this host (unless already one of a job).
    #[arg(long, value_name = "N")]
    pes: Option<usize>,
    /// Search a Kronecker graph of 2 to the power of this vertices and 16 times as many edges.
    #[arg(long, value_name = "EXPONENT", conflicts_with = "file",
          value_parser = clap::value_parser!(u32).range(1..=27))]
    scale: Option<u32>,
    /// The seed of the Kronecker graph, and of the roots.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// How many roots to search from, each with an edge to another vertex (fewer, if there are fewer).
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=64))]
    roots: u32,
    /// Search from this vertex of the file only.
    #[arg(long, value_name = "NAME", conflicts_with_all = ["scale", "roots"])]
    root: Option<String>,
    /// Draw how many vertices are how far from the first root, as SVG.
    #[arg(long, value_name = "FILE")]
    picture: Option<PathBuf>,
}

fn main() -> ExitCode {
    match run(&Args::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bfs: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// The graph to search.
struct Input {
    name: String,
    vertices: u32,
    /// This PE's share of the edges; on PE 0 all of them.
    edges: Vec<[u32; 2]>,
    /// The root that the user named.
    root: Option<u32>,
}

fn run(args: &Args) -> anyhow::Result<()> {
    if let Some(pes) = args.pes {
        oxshmem::launch::self_with(pes)?;
    }
    let world = World::init()?;
    output::check(&world, args.picture.as_deref())?;
    let input = read_or_make(args, &world)?;
    let share = input.edges.iter().copied();
    // PE 0 has all edges, for the check; its share begins with the first of them.
    let step = if world.my_pe() == 0 { world.n_pes() } else { 1 };
    let mut search = Search::new(&world, input.vertices, share.step_by(step))?;
    let roots = match input.root {
        Some(root) => vec![root],
        None => choose_roots(&search, &input, args)?,
    };

    let mut rates = Vec::new();
    for root in roots {
        world.barrier_all()?;
        let start = Instant::now();
        search.run(root)?;
        let seconds = start.elapsed().as_secs_f64();
        if let Some(parents) = search.gather()? {
            let tree = tree::check(root, &parents, &input.edges)
                .map_err(|what| anyhow!("wrong: search from {root}: {what}"))?;
            if let Some(path) = args.picture.as_ref().filter(|_| rates.is_empty()) {
                draw(path, &input, &tree.levels, args)?;
            }
            rates.push(tree.edges as f64 / seconds / 1e6);
        }
    }
    if world.my_pe() == 0 {
        let harmonic = rates.len() as f64 / rates.iter().map(|rate| 1.0 / rate).sum::<f64>();
        let least = rates.iter().copied().fold(f64::INFINITY, f64::min);
        let most = rates.iter().copied().fold(0.0, f64::max);
        println!(
            "bfs: {}, {} vertices, {} edges; {} PEs, {} roots: harmonic mean {harmonic:.1} million TEPS ({least:.1} to {most:.1}); checked by Graph500's rules",
            input.name,
            input.vertices,
            input.edges.len(),
            world.n_pes(),
            rates.len(),
        );
    }
    search.free()?;
    world.finalize()?;
    Ok(())
}

fn read_or_make(args: &Args, world: &World) -> anyhow::Result<Input> {
    let (me, pes) = (world.my_pe(), world.n_pes());
    // PE 0 has all edges.
    let (first, step) = if me == 0 { (0, 1) } else { (me, pes) };
    if let Some(scale) = args.scale {
        let graph = Kronecker {
            scale,
            seed: args.seed,
        };
        let edges = (first as u64..graph.edges()).step_by(step);
        return Ok(Input {
            name: format!("Kronecker graph of scale {scale}"),
            vertices: graph.vertices() as u32,
            edges: edges.map(|edge| graph.edge(edge)).collect(),
            root: None,
        });
    }
    let graph = read::graph(&args.file)?;
    let targets = (0..).zip(graph.whole().sources());
    let edges = targets.flat_map(|(to, sources)| sources.iter().map(move |from| [*from, to]));
    let edges = edges.skip(first).step_by(step).collect();
    let root = match &args.root {
        None => None,
        Some(name) => {
            let mut names = (0..).zip(graph.names());
            let found = names.find(|(_, other)| ***other == **name);
            let file = args.file.display();
            Some(
                found
                    .with_context(|| format!("{file} has no vertex {name}"))?
                    .0,
            )
        }
    };
    Ok(Input {
        name: args.file.display().to_string(),
        vertices: u32::try_from(graph.vertices())?,
        edges,
        root,
    })
}

/// Different random vertices, each with an edge to another vertex.
fn choose_roots(search: &Search<'_>, input: &Input, args: &Args) -> anyhow::Result<Vec<u32>> {
    let mut roots = Vec::new();
    // Enough attempts to find nearly every vertex.
    for place in 0..16 * u64::from(input.vertices) {
        let number = splitmix::at(args.seed.wrapping_add(1), place);
        let vertex = ((u128::from(number) * u128::from(input.vertices)) >> u64::BITS) as u32;
        if !roots.contains(&vertex) && search.degree(vertex)? > 0 {
            roots.push(vertex);
        }
        if roots.len() == args.roots as usize {
            return Ok(roots);
        }
    }
    ensure!(
        !roots.is_empty(),
        "{} has no edge between two vertices",
        input.name
    );
    Ok(roots)
}

fn draw(path: &Path, input: &Input, levels: &[u64], args: &Args) -> anyhow::Result<()> {
    let labels: Vec<String> = (0..levels.len()).map(|level| level.to_string()).collect();
    let title = match (&args.root, args.scale) {
        (Some(root), None) => {
            let file = args.file.file_name().unwrap_or(args.file.as_os_str());
            let file = file.to_string_lossy();
            format!("Vertices of {file} by their distance from {root}")
        }
        _ => format!("{}, from one vertex", input.name),
    };
    let words = Words {
        title: &title,
        across: "edges away",
        up: "vertices",
    };
    let heights = levels.iter().map(|count| *count as f64).collect();
    let picture = bars(words, &labels, &[("vertices", heights)])?;
    Ok(oxshmem_figures::write(path, &picture)?)
}
