//! Programs that end without having finalized: said by name, by that PE and to the others.

use oxshmem::{Result, World};

use crate::job::{Job, say, stay};

/// PE 1 leaves in the way that is named; the others say what their next call gives.
pub fn leave(way: &str) -> Result<()> {
    let world = World::init()?;
    world.barrier_all()?;
    if world.my_pe() == 1 {
        match way {
            "exits" => {
                std::mem::forget(world);
                std::process::exit(0);
            }
            "drops" => {
                drop(world);
                stay();
            }
            _ => std::process::exit(3),
        }
        return Ok(());
    }
    let lost = world.barrier_all().expect_err("PE 1 does not come");
    say(lost);
    let lost = world.alloc::<u8>(1).expect_err("PE 1 does not come");
    say(lost);
    // A PE that is slower must find PE 1 lost, and no other.
    stay();
    // This one does not forget it.
    world.finalize().expect_err("PE 1 does not come");
    Ok(())
}

/// The lines that the other PEs of a job print about PE 1, and its own errors.
fn leaving(program: &'static str) -> (Vec<String>, String) {
    let mut processes = Job::new(3, program).start();
    let forgetful = processes.remove(1);
    // The host of the rendezvous ends last.
    let others: Vec<_> = processes.into_iter().rev().map(|pe| pe.end()).collect();
    let (_, _, errors) = forgetful.end();
    let mut said = Vec::new();
    for (status, words, errors) in others {
        assert!(status.success(), "{status}: {errors}");
        assert!(!errors.contains("without finalize"), "{errors}");
        assert_eq!(words.len(), 2, "{words:?}");
        said.extend(words);
    }
    (said, errors)
}

#[test]
fn who_ends_well_without_finalize_is_named_there_and_to_the_others() {
    for program in ["leave exits", "leave drops"] {
        let (said, errors) = leaving(program);
        let told = "PE 1 left without finalize: call World::finalize, in C shmem_finalize";
        assert_eq!(errors.matches(told).count(), 1, "{program}: {errors}");
        for line in said {
            let told = "PE 1 left without finalize; have its program call World::finalize";
            assert!(line.contains(told), "{program}: {line}");
        }
    }
}

#[test]
fn who_ends_by_an_error_has_another_reason() {
    let (said, errors) = leaving("leave fails");
    assert!(!errors.contains("finalize"), "{errors}");
    for line in said {
        assert!(!line.contains("finalize"), "{line}");
    }
}
