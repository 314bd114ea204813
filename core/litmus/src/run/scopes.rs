//! Scopes of nonblocking operations, one for each context of a program.

use oxshmem::{Context, Error, Result, Scope, Sym};

use crate::program::{Fetching, Update};

/// The nonblocking operations on one context, within a scope.
pub(super) trait NonblockingOps<'e> {
    fn put_nbi(&self, to: Sym<u64>, values: &'e [u64], pe: usize) -> Result<()>;
    fn get_nbi(&self, into: &'e mut [u64], from: Sym<u64>, pe: usize) -> Result<()>;
    fn put_signal_nbi(
        &self,
        to: Sym<u64>,
        values: &'e [u64],
        signal: Sym<u64>,
        update: (u64, oxshmem::SignalOp),
        pe: usize,
    ) -> Result<()>;
    fn fetch_nbi(
        &self,
        fetching: Fetching,
        into: &'e mut u64,
        at: Sym<u64>,
        pe: usize,
    ) -> Result<()>;
}

impl<'s, 'e> NonblockingOps<'e> for &'s Scope<'s, 'e> {
    fn put_nbi(&self, to: Sym<u64>, values: &'e [u64], pe: usize) -> Result<()> {
        (*self).put_nbi(to, values, pe)
    }

    fn get_nbi(&self, into: &'e mut [u64], from: Sym<u64>, pe: usize) -> Result<()> {
        (*self).get_nbi(into, from, pe)
    }

    fn put_signal_nbi(
        &self,
        to: Sym<u64>,
        values: &'e [u64],
        signal: Sym<u64>,
        (value, op): (u64, oxshmem::SignalOp),
        pe: usize,
    ) -> Result<()> {
        (*self).put_signal_nbi(to, values, signal, value, op, pe)
    }

    fn fetch_nbi(
        &self,
        fetching: Fetching,
        into: &'e mut u64,
        at: Sym<u64>,
        pe: usize,
    ) -> Result<()> {
        let scope: &'s Scope<'s, 'e> = self;
        match fetching {
            Fetching::Fetch => scope.fetch_nbi(into, at, pe),
            Fetching::Update(Update::Set, value) => scope.swap_nbi(into, at, value, pe),
            Fetching::Update(Update::Add, value) => scope.fetch_add_nbi(into, at, value, pe),
            Fetching::Update(Update::And, value) => scope.fetch_and_nbi(into, at, value, pe),
            Fetching::Update(Update::Or, value) => scope.fetch_or_nbi(into, at, value, pe),
            Fetching::Update(Update::Xor, value) => scope.fetch_xor_nbi(into, at, value, pe),
            Fetching::CompareSwap { expected, value } => {
                scope.compare_swap_nbi(into, at, expected, value, pe)
            }
        }
    }
}

/// Runs `f` with a scope of each context, in their order, after those already open.
pub(super) fn in_scopes<'e>(
    contexts: &[&Context<'_>],
    open: &[&dyn NonblockingOps<'e>],
    f: &mut dyn FnMut(&[&dyn NonblockingOps<'e>]) -> Result<()>,
) -> Result<()> {
    let Some((first, rest)) = contexts.split_first() else {
        return f(open);
    };
    first.scope(|scope| {
        let mut all = open.to_vec();
        all.push(&scope);
        in_scopes(rest, &all, f)
    })
}

/// The scope of a context.
pub(super) fn scope_of<'a, 'e>(
    scopes: &[&'a dyn NonblockingOps<'e>],
    context: crate::program::Context,
) -> Result<&'a dyn NonblockingOps<'e>> {
    scopes
        .get(context.0)
        .copied()
        .ok_or_else(|| Error::Argument {
            call: "litmus",
            what: "a context that the program does not declare".into(),
        })
}
