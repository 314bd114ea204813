//! Losses. The PEs that `VERBS_TESTS_LOST` lists are killed, or cut off from the others, once all have
//! said "ready". Every PE of the others is in a call that depends on them, for ever, until it fails:
//! it must name a PE that was lost. After acknowledging that, they tell each other so, and go on.
//! Where the fault is not such a loss (`broken`), any error but that of a deadline will do.

use std::cell::RefCell;
use std::io::Write;
use std::time::{Duration, Instant};

use oxshmem::{Cmp, Error, Hints, Result, SignalOp, Sym, World};

use crate::outcome::{Outcome, ensure};

/// The ranks that are lost, with commas between.
const LOST: &str = "VERBS_TESTS_LOST";

/// After this long without its failure a call has ignored the loss.
const DEADLINE: Duration = Duration::from_secs(40);

/// Words of the transfers "bigput" and "bigget": 4 MiB, of which a part is under way when a PE is lost.
const BIG: usize = (4 << 20) / 8;
/// Words of "kibput": 1 KiB, more than messages without data have.
const KIB: usize = 128;

pub fn main(call: &str, broken: bool) -> Outcome {
    let listed = std::env::var(LOST).map_err(|error| format!("{LOST}: {error}"))?;
    let lost = listed
        .split(',')
        .map(str::parse)
        .collect::<Result<Vec<usize>, _>>()?;
    let world = World::builder()
        .timeout(DEADLINE)
        .heap_limit(16 << 20)
        .join()?;
    let (me, n) = (world.my_pe(), world.n_pes());
    let x = world.alloc_zeroed::<u64>(3 * n)?;
    let by_nics = world.alloc_with_hints::<u64>(n, Hints::ATOMICS_REMOTE)?;
    let pe = Pe {
        world: &world,
        me,
        big: world.alloc_zeroed::<u64>(BIG)?,
        local: RefCell::new(vec![1; BIG]),
        words: x.range(..n)?,
        signals: x.range(n..2 * n)?,
        by_nics,
    };
    pe.connect(x.range(2 * n..)?)?;
    say(&format!("process {}", std::process::id()));
    say("ready");
    let mine = lost.contains(&me);
    let theirs: Vec<usize> = (0..n).filter(|pe| lost.contains(pe) != mine).collect();
    let ours: Vec<usize> = (0..n).filter(|pe| lost.contains(pe) == mine).collect();
    let begun = Instant::now();
    // One after the other: each may be the first that this PE calls in vain.
    let to = theirs[me % theirs.len()];
    let failed = pe.until_it_fails(call, to)?;
    if broken {
        ensure(!matches!(failed, Error::Timeout { .. }), || {
            failed.to_string()
        })?;
        say(&format!(
            "failed after {:.1} s: {failed}",
            begun.elapsed().as_secs_f64()
        ));
        return Ok(());
    }
    let named = match failed {
        Error::PeerLost { pe: named, .. } => {
            ensure(theirs.contains(&named), || {
                format!("PE {me}: {failed}, which was not lost")
            })?;
            format!("lost {named}")
        }
        // Another PE heard of the loss first, and gave up the call that needs all.
        Error::CollectivesEnded { .. } => "lost somebody".into(),
        _ => return Err(format!("PE {me} in {call} towards PE {to}: {failed}").into()),
    };
    say(&format!(
        "{named} after {:.1} s",
        begun.elapsed().as_secs_f64()
    ));
    for other in &theirs {
        pe.refuses(*other, &theirs)?;
    }
    pe.go_on(&ours, &theirs)?;
    say("went on");
    Ok(())
}

fn say(line: &str) {
    println!("{line}");
    // A line that is not seen is found missing by whoever waits for it.
    let _ = std::io::stdout().flush();
}

struct Pe<'w> {
    world: &'w World,
    me: usize,
    words: Sym<u64>,
    signals: Sym<u64>,
    by_nics: Sym<u64>,
    /// The object of long transfers, and their private side.
    big: Sym<u64>,
    local: RefCell<Vec<u64>>,
}

impl Pe<'_> {
    /// Connects this PE with all, and waits until all have signalled. Collective.
    fn connect(&self, data: Sym<u64>) -> Result<()> {
        let (world, me, n) = (self.world, self.me, self.world.n_pes());
        let values = vec![7; n];
        for to in 0..n {
            let signals = self.signals.at(me)?;
            world.put_signal(data, &values, signals, 1, SignalOp::Set, to)?;
            world.fetch_inc(self.words.at(me)?, to)?;
        }
        for from in 0..n {
            world.wait_until(self.signals.at(from)?, Cmp::Eq, 1)?;
        }
        world.barrier_all()
    }

    /// Acknowledges the loss of `lost`, and exchanges signals and atomics with the PEs that are left.
    fn go_on(&self, left: &[usize], lost: &[usize]) -> Outcome {
        let (world, me) = (self.world, self.me);
        let acknowledged = world.acknowledge_lost();
        ensure(lost.iter().all(|pe| acknowledged.contains(pe)), || {
            format!("PE {me} acknowledged {acknowledged:?}, and lost {lost:?}")
        })?;
        let signal_all = |step: u64| -> Result<()> {
            for to in left {
                let (nothing, signals) = (self.words.range(..0)?, self.signals.at(me)?);
                world.put_signal(nothing, &[], signals, step, SignalOp::Set, *to)?;
            }
            Ok(())
        };
        signal_all(2)?;
        for from in left {
            world.wait_until(self.signals.at(*from)?, Cmp::Ge, 2)?;
            world.fetch_inc(self.words.at(me)?, *from)?;
        }
        world.quiet()?;
        signal_all(3)?;
        for from in left {
            world.wait_until(self.signals.at(*from)?, Cmp::Ge, 3)?;
        }
        Ok(())
    }

    /// The error of the first call that fails.
    fn until_it_fails(&self, call: &str, to: usize) -> Outcome<Error> {
        let begun = Instant::now();
        loop {
            match self.once(call, to) {
                Ok(Some(Err(error))) => return Ok(error),
                Ok(Some(Ok(()))) => {}
                Ok(None) => return Err(format!("there is no call {call}").into()),
                Err(error) => return Err(error.into()),
            }
            let took = begun.elapsed();
            ensure(took < DEADLINE, || {
                format!(
                    "PE {}: {call} towards PE {to} goes on for {took:?}",
                    self.me
                )
            })?;
            std::thread::yield_now();
        }
    }

    /// The result of the call; none if there is no such call.
    fn once(&self, call: &str, to: usize) -> Result<Option<Result<()>>> {
        let (world, x) = (self.world, self.words);
        let word = x.at(self.me)?;
        Ok(Some(match call {
            "put" => world.p(word, 1, to).and_then(|()| world.quiet()),
            "get" => world.g(word, to).map(drop),
            "kibput" => world
                .put(self.big, &self.local.borrow()[..KIB], to)
                .and_then(|()| world.quiet()),
            "bigput" => world
                .put(self.big, &self.local.borrow(), to)
                .and_then(|()| world.quiet()),
            "bigget" => world.get(&mut self.local.borrow_mut(), self.big, to),
            "nbi" => world.scope(|s| s.put_nbi(word, &[1], to)),
            "put-signal" => world
                .put_signal(word, &[1], self.signals.at(self.me)?, 1, SignalOp::Set, to)
                .and_then(|()| world.quiet()),
            "fetch" => world.fetch_add(word, 1, to).map(drop),
            "fetch-nic" => world.fetch_add(self.by_nics.at(self.me)?, 1, to).map(drop),
            "barrier" => world.barrier_all(),
            "sum" => world.sum_reduce(x, x),
            "alloc" => world.alloc::<u8>(1000).and_then(|block| world.free(block)),
            "wait" => world.wait_until(self.signals.at(to)?, Cmp::Eq, 99),
            _ => return Ok(None),
        }))
    }

    /// Nothing towards a lost PE succeeds any more. Where several are lost, any may be named.
    fn refuses(&self, to: usize, lost: &[usize]) -> Outcome {
        for call in ["put", "get", "nbi", "put-signal", "fetch", "fetch-nic"] {
            let failed = self.until_it_fails(call, to)?;
            ensure(
                matches!(failed, Error::PeerLost { pe, .. } if lost.contains(&pe)),
                || format!("PE {}: after PE {to} was lost: {failed}", self.me),
            )?;
        }
        Ok(())
    }
}
