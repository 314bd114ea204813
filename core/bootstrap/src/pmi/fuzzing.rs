//! Entry points for `ci/fuzz`.

use super::fields::{Fields, length};
use super::mapping::is_one_host;

/// A line of PMI-1, and a map from processes to hosts.
pub fn pmi_1(bytes: &[u8]) {
    is_one_host(&String::from_utf8_lossy(bytes));
    let fields = Fields::of_line(bytes);
    let _ = fields.expect("PMI-1", "fuzzing", "response_to_init");
}

/// A message of PMI-2 with its length before it.
pub fn pmi_2(bytes: &[u8]) {
    let Some((header, message)) = bytes.split_first_chunk::<6>() else {
        return;
    };
    length(header);
    let fields = Fields::of_message(message);
    let _ = fields.expect("PMI-2", "fuzzing", "fullinit-response");
}
