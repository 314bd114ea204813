//! Writes sources that make every call, for compilers.

use std::path::PathBuf;

fn main() -> std::io::Result<()> {
    let mut args = std::env::args().skip(1);
    let (Some(folder), Some(parts)) = (args.next().map(PathBuf::from), args.next()) else {
        return Err(std::io::Error::other("uses FOLDER PARTS"));
    };
    let parts = parts.parse().map_err(std::io::Error::other)?;
    std::fs::create_dir_all(&folder)?;
    std::fs::write(folder.join("host.c"), oxshmem_nvshmem_table::uses_on_host())?;
    for part in 0..parts {
        let text = oxshmem_nvshmem_table::uses_in_kernels(part, parts);
        std::fs::write(folder.join(format!("kernels_{part}.cu")), text)?;
    }
    Ok(())
}
