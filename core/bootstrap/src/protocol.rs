//! The protocol between a PE and the job's rendezvous.
//!
//! A PE opens with a [`Hello`](hello::Hello) of fixed size. Both sides then prove that they know the job's key (see
//! `handshake`); until then nothing longer than a proof is read from it. From then on both sides
//! exchange frames: a length (u32, little endian, of the body), a kind (u8), the
//! body.

pub(crate) mod frame;
pub(crate) mod hello;
mod packed;
pub(crate) mod parser;
#[cfg(test)]
mod tests;
mod waits;
