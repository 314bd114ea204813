//! Writes the generated headers of `core/nvshmem/include/` and the page of names anew from the table.

use std::path::Path;

fn main() -> std::io::Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
    for (name, text) in oxshmem_nvshmem_table::files() {
        std::fs::write(root.join(name), text)?;
    }
    Ok(())
}
