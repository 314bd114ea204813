//! The handshake: each side proves that it knows the job's key, without sending it.
//!
//! A PE's [`Hello`](crate::protocol::hello::Hello) carries a fresh nonce. The rendezvous answers with a nonce
//! of its own and its proof; the PE checks that and sends its own proof. A proof is an HMAC-SHA256
//! under the job's key over the prover's role, the hello and the rendezvous' nonce. The roles differ,
//! so that no proof can be sent back to its prover. The nonces are fresh, so that no recorded proof
//! is of use again.
//!
//! The frames that follow are neither encrypted nor signed.

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use crate::error::{Error, Result};
use crate::job_key::JobKey;
use crate::protocol::hello::{HELLO_BYTES, NONCE_BYTES, Nonce, Proof};

/// Bytes of HMAC-SHA256's block; a shorter key is filled up with zeros.
const BLOCK_BYTES: usize = 64;

/// The side that proves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    Rendezvous,
    Pe,
}

/// A new nonce. Fails if the operating system gives no randomness.
pub(crate) fn nonce() -> Result<Nonce> {
    let mut nonce = [0; NONCE_BYTES];
    getrandom::fill(&mut nonce).map_err(|error| Error::Io {
        action: "taking random bytes for a connection's nonce",
        source: error.into(),
    })?;
    Ok(nonce)
}

/// The proof of `role` on the connection that began with this hello and this nonce of the rendezvous.
pub(crate) fn prove(key: &JobKey, role: Role, hello: &[u8; HELLO_BYTES], nonce: &Nonce) -> Proof {
    mac(key, role, hello, nonce).finalize().into_bytes().into()
}

/// Whether `proof` is [that](prove) of `role`, in a time that does not tell how many of its bytes are right.
pub(crate) fn is_proven(
    key: &JobKey,
    role: Role,
    hello: &[u8; HELLO_BYTES],
    nonce: &Nonce,
    proof: &Proof,
) -> bool {
    mac(key, role, hello, nonce).verify(proof.into()).is_ok()
}

fn mac(key: &JobKey, role: Role, hello: &[u8; HELLO_BYTES], nonce: &Nonce) -> Hmac<Sha256> {
    let mut block = [0; BLOCK_BYTES];
    block[..JobKey::LENGTH].copy_from_slice(key.bytes());
    let mut mac = Hmac::<Sha256>::new(&block.into());
    // Of equal length, so that no byte's meaning depends on the role.
    mac.update(match role {
        Role::Rendezvous => b"oxshmem rendezvous",
        Role::Pe => b"oxshmem pe        ",
    });
    mac.update(hello);
    mac.update(nonce);
    mac
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::hello::Hello;

    fn hello(key: JobKey) -> [u8; HELLO_BYTES] {
        let (rank, size) = (1, 2);
        Hello { rank, size, key }.encode(&nonce().unwrap())
    }

    #[test]
    fn a_proof_holds_for_its_key_role_hello_and_nonce_alone() {
        let (key, other) = (JobKey::random().unwrap(), JobKey::random().unwrap());
        let (hello, nonce) = (hello(key), nonce().unwrap());
        for (role, opposite) in [(Role::Pe, Role::Rendezvous), (Role::Rendezvous, Role::Pe)] {
            let proof = prove(&key, role, &hello, &nonce);
            assert!(is_proven(&key, role, &hello, &nonce, &proof));
            assert!(!is_proven(&other, role, &hello, &nonce, &proof));
            assert!(!is_proven(&key, opposite, &hello, &nonce, &proof));
            for at in 0..HELLO_BYTES {
                let mut changed = hello;
                changed[at] ^= 1;
                assert!(!is_proven(&key, role, &changed, &nonce, &proof));
            }
            for at in 0..NONCE_BYTES {
                let mut changed = nonce;
                changed[at] ^= 1;
                assert!(!is_proven(&key, role, &hello, &changed, &proof));
                let mut changed = proof;
                changed[at] ^= 1;
                assert!(!is_proven(&key, role, &hello, &nonce, &changed));
            }
        }
    }

    #[test]
    fn nonces_differ() {
        assert_ne!(nonce().unwrap(), nonce().unwrap());
    }

    /// As computed by Python's `hmac.new(key, message, "sha256")`.
    #[test]
    fn the_proof_is_hmac_sha256() {
        let key = JobKey::from_hex(&"0b".repeat(32)).unwrap();
        let proof = prove(&key, Role::Pe, &[1; HELLO_BYTES], &[2; NONCE_BYTES]);
        let hex: String = proof.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(
            hex,
            "e48d08e77764260aa46c31665c991147a786ba65f3671ffc9ee6468697401c65"
        );
    }
}
