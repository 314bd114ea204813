//! How a run's decisions are made.

/// How the decisions of a run are made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Plan {
    /// By chance, from a seed. The seed also picks a style: things move by themselves as soon as they
    /// can, or only when nobody can go on, or PEs have ranks that change now and then, and so on, so
    /// that few seeds show what is far apart.
    Random(u64),
    /// As given; 0, the tame one, after the last.
    Replay(Vec<u32>),
}

/// One thing that can happen next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// This PE goes on.
    Pe(usize),
    /// This step is taken.
    Step(usize),
}

#[derive(Debug)]
pub(super) enum Planner {
    Random { random: Random, style: Style },
    Replay { decisions: Vec<u32>, done: usize },
}

/// The tendency of a random run.
#[derive(Debug)]
pub(super) enum Style {
    /// Whatever is possible, all alike.
    Uniform,
    /// In so many of 100 decisions that allow it, something moves by itself.
    Steps(u32),
    /// Everybody has a rank; the highest that can goes on. In one of so many decisions two change
    /// places. The last rank is that of what moves by itself.
    Ranks { ranks: Vec<u32>, change: u64 },
}

impl Planner {
    pub(super) fn new(plan: Plan, pes: usize) -> Self {
        match plan {
            Plan::Replay(decisions) => Planner::Replay { decisions, done: 0 },
            Plan::Random(seed) => {
                let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
                let style = match random.below(6) {
                    0 => Style::Uniform,
                    1 => Style::Steps(0),
                    2 => Style::Steps(100),
                    3 => Style::Steps(random.below(100) as u32),
                    _ => {
                        let mut ranks: Vec<u32> = (0..=pes as u32).collect();
                        for i in 0..ranks.len() {
                            let with = i + random.below((ranks.len() - i) as u64) as usize;
                            ranks.swap(i, with);
                        }
                        let change = 3 + random.below(30);
                        Style::Ranks { ranks, change }
                    }
                };
                Planner::Random { random, style }
            }
        }
    }

    /// Chooses one of the options.
    pub(super) fn next(&mut self, options: &[Next]) -> usize {
        if options.len() < 2 {
            return 0;
        }
        match self {
            Planner::Replay { .. } => self.choose(options.len()),
            Planner::Random { random, style } => style.pick(random, options),
        }
    }

    /// One of `n`, at least 2.
    pub(super) fn choose(&mut self, n: usize) -> usize {
        match self {
            Planner::Replay { decisions, done } => {
                let decision = decisions.get(*done).copied().unwrap_or(0) as usize;
                *done += 1;
                // One that another program's run had more choices for.
                decision.min(n - 1)
            }
            Planner::Random { random, .. } => random.below(n as u64) as usize,
        }
    }

    /// Chooses the PE that runs first.
    pub(super) fn first(&mut self, pes: usize) -> usize {
        if pes < 2 { 0 } else { self.choose(pes) }
    }
}

impl Style {
    fn pick(&mut self, random: &mut Random, options: &[Next]) -> usize {
        let steps = options
            .iter()
            .filter(|o| matches!(o, Next::Step(_)))
            .count();
        let some = |random: &mut Random, steps_wanted: bool| {
            let wanted = |option: &Next| matches!(option, Next::Step(_)) == steps_wanted;
            let count = options.iter().filter(|o| wanted(o)).count();
            let skip = random.below(count as u64) as usize;
            let mut places = (0..options.len()).filter(|&i| options.get(i).is_some_and(wanted));
            places.nth(skip).unwrap_or(0)
        };
        match self {
            _ if steps == options.len() => random.below(options.len() as u64) as usize,
            Style::Uniform => random.below(options.len() as u64) as usize,
            Style::Steps(percent) => {
                let step = steps > 0 && random.below(100) < u64::from(*percent);
                some(random, step)
            }
            Style::Ranks { ranks, change } => {
                if random.below(*change) == 0 {
                    let (a, b) = (
                        random.below(ranks.len() as u64),
                        random.below(ranks.len() as u64),
                    );
                    ranks.swap(a as usize, b as usize);
                }
                let rank = |option: &Next| {
                    let place = match option {
                        Next::Pe(pe) => *pe,
                        Next::Step(_) => ranks.len() - 1,
                    };
                    ranks.get(place).copied()
                };
                let best = options.iter().map(rank).max().flatten();
                match options.iter().position(|o| rank(o) == best) {
                    Some(place) if matches!(options.get(place), Some(Next::Step(_))) => {
                        some(random, true)
                    }
                    Some(place) => place,
                    None => 0,
                }
            }
        }
    }
}

/// xorshift64*.
#[derive(Debug)]
pub(super) struct Random(u64);

impl Random {
    /// Less than `n`; 0 for 0.
    fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) % n.max(1)
    }
}
