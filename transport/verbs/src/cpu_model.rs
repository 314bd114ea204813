//! The models of CPUs to whose memory a NIC writes faster if its writes may pass each other on the PCIe bus: the
//! choice of `OXSHMEM_VERBS_RELAXED_ORDERING=auto`, which is that of UCX.

use std::fmt;

use crate::settings::Choice;

/// A CPU's maker and model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CpuModel {
    Amd {
        family: u32,
    },
    Intel {
        family: u32,
        model: u32,
    },
    #[cfg_attr(
        all(target_arch = "x86_64", not(test)),
        expect(dead_code, reason = "ARM's")
    )]
    FujitsuArm,
    Other,
}

/// The kinds of memory that are registered a second time, with relaxed ordering.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Relaxed {
    pub(crate) host: bool,
    pub(crate) gpu: bool,
}

/// Families of AMD's Zen, from the first to the fifth.
const ZEN: [u32; 3] = [0x17, 0x19, 0x1a];
/// Family and model of Intel's Emerald Rapids.
const EMERALD_RAPIDS: (u32, u32) = (6, 0xcf);

impl Relaxed {
    /// The decision. A software device stores in order itself.
    pub(crate) fn decide(wanted: Choice, software: bool, cpu: CpuModel) -> Relaxed {
        let both = |relaxed| Relaxed {
            host: relaxed,
            gpu: relaxed,
        };
        match (wanted, cpu) {
            (Choice::On, _) => both(true),
            (Choice::Off, _) => both(false),
            (Choice::Auto, _) if software => both(false),
            (Choice::Auto, CpuModel::Amd { family }) => both(ZEN.contains(&family)),
            (Choice::Auto, CpuModel::FujitsuArm) => both(true),
            (Choice::Auto, CpuModel::Intel { family, model }) => Relaxed {
                host: false,
                gpu: (family, model) == EMERALD_RAPIDS,
            },
            (Choice::Auto, CpuModel::Other) => both(false),
        }
    }

    /// The decision in words, with its reason.
    pub(crate) fn explain(self, wanted: Choice, software: bool, cpu: CpuModel) -> String {
        let state = match (self.host, self.gpu) {
            (true, true) => "on",
            (false, true) => "on for GPU memory alone",
            (true, false) => "on for host memory alone",
            (false, false) => "off",
        };
        let reason = match wanted {
            Choice::On => "OXSHMEM_VERBS_RELAXED_ORDERING=on".to_owned(),
            Choice::Off => "OXSHMEM_VERBS_RELAXED_ORDERING=off".to_owned(),
            Choice::Auto if software => "the device is made of software".to_owned(),
            Choice::Auto => format!("so for {cpu}"),
        };
        format!("relaxed ordering of writes to this PE's memory is {state} ({reason})")
    }
}

impl fmt::Display for CpuModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CpuModel::Amd { family } => write!(f, "AMD's CPUs of family {family:#x}"),
            CpuModel::Intel { family, model } => {
                write!(f, "Intel's CPUs of family {family:#x}, model {model:#x}")
            }
            CpuModel::FujitsuArm => write!(f, "Fujitsu's CPUs"),
            CpuModel::Other => write!(f, "CPUs of this model"),
        }
    }
}

impl CpuModel {
    /// The model of this machine's CPUs.
    #[cfg(target_arch = "x86_64")]
    pub(crate) fn here() -> CpuModel {
        use std::arch::x86_64::__cpuid;
        #[allow(
            unused_unsafe,
            reason = "newer versions of Rust have it as a safe function"
        )]
        // SAFETY: every CPU of x86-64 has the instruction and its leaves 0 and 1.
        let (maker, model) = unsafe { (__cpuid(0), __cpuid(1)) };
        let maker = [maker.ebx, maker.edx, maker.ecx].map(u32::to_le_bytes);
        CpuModel::of_cpuid(&maker.concat(), model.eax)
    }

    /// The model of this machine's CPUs, by the register that Linux shows as a file.
    #[cfg(not(target_arch = "x86_64"))]
    pub(crate) fn here() -> CpuModel {
        let file = "/sys/devices/system/cpu/cpu0/regs/identification/midr_el1";
        let text = std::fs::read_to_string(file).unwrap_or_default();
        CpuModel::of_midr(&text)
    }

    /// By the maker's name and the signature of the instruction `cpuid`.
    #[cfg(any(target_arch = "x86_64", test))]
    fn of_cpuid(maker: &[u8], signature: u32) -> CpuModel {
        let base = signature >> 8 & 0xf;
        let family = match base {
            0xf => base + (signature >> 20 & 0xff),
            _ => base,
        };
        let model = signature >> 4 & 0xf | signature >> 12 & 0xf0;
        match maker {
            b"AuthenticAMD" => CpuModel::Amd { family },
            b"GenuineIntel" => CpuModel::Intel { family, model },
            _ => CpuModel::Other,
        }
    }

    /// By ARM's main identification register, in hexadecimal digits.
    #[cfg(any(not(target_arch = "x86_64"), test))]
    fn of_midr(text: &str) -> CpuModel {
        const FUJITSU: u64 = 0x46;
        let text = text.trim();
        let digits = text.strip_prefix("0x").unwrap_or(text);
        match u64::from_str_radix(digits, 16) {
            Ok(register) if register >> 24 & 0xff == FUJITSU => CpuModel::FujitsuArm,
            _ => CpuModel::Other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn auto(cpu: CpuModel) -> (bool, bool) {
        let relaxed = Relaxed::decide(Choice::Auto, false, cpu);
        (relaxed.host, relaxed.gpu)
    }

    #[test]
    fn writes_are_relaxed_where_that_is_faster() {
        let amd = |signature| auto(CpuModel::of_cpuid(b"AuthenticAMD", signature));
        // Naples, Rome, Milan, Genoa, Turin.
        for zen in [
            0x0080_0f12,
            0x0083_0f10,
            0x00a0_0f11,
            0x00a1_0f11,
            0x00b0_0f21,
        ] {
            assert_eq!(amd(zen), (true, true), "{zen:#x}");
        }
        // An Opteron.
        assert_eq!(amd(0x0060_0f12), (false, false));
        let intel = |signature| auto(CpuModel::of_cpuid(b"GenuineIntel", signature));
        // Skylake, Ice Lake, Sapphire Rapids; Emerald Rapids.
        for other in [0x0005_0654, 0x0006_06a6, 0x0008_06f8] {
            assert_eq!(intel(other), (false, false), "{other:#x}");
        }
        assert_eq!(intel(0x000c_06f2), (false, true));
        assert_eq!(
            auto(CpuModel::of_midr("0x00000000460f0010\n")),
            (true, true)
        );
        assert_eq!(
            auto(CpuModel::of_midr("0x00000000413fd0c1")),
            (false, false)
        );
        assert_eq!(auto(CpuModel::of_midr("")), (false, false));
    }

    #[test]
    fn the_users_choice_comes_first_and_software_keeps_order() {
        let zen = CpuModel::Amd { family: 0x19 };
        for software in [false, true] {
            let decide = |wanted, cpu| Relaxed::decide(wanted, software, cpu).host;
            assert!(decide(Choice::On, CpuModel::Other));
            assert!(!decide(Choice::Off, zen));
            assert_eq!(decide(Choice::Auto, zen), !software);
        }
    }

    #[test]
    fn the_decision_is_told_with_the_cpu_or_the_setting_that_made_it() {
        let told = |wanted, software, cpu| {
            Relaxed::decide(wanted, software, cpu).explain(wanted, software, cpu)
        };
        let zen = CpuModel::Amd { family: 0x19 };
        let (family, model) = EMERALD_RAPIDS;
        let emerald = CpuModel::Intel { family, model };
        for (wanted, software, cpu, words) in [
            (
                Choice::Auto,
                false,
                zen,
                ["is on (", "AMD's CPUs of family 0x19"],
            ),
            (
                Choice::Auto,
                false,
                emerald,
                ["on for GPU memory alone", "model 0xcf"],
            ),
            (
                Choice::Auto,
                false,
                CpuModel::Other,
                ["is off", "of this model"],
            ),
            (Choice::Auto, true, zen, ["is off", "made of software"]),
            (Choice::Off, false, zen, ["is off", "ORDERING=off"]),
            (
                Choice::On,
                true,
                CpuModel::Other,
                ["is on (", "ORDERING=on"],
            ),
        ] {
            let told = told(wanted, software, cpu);
            assert!(words.iter().all(|word| told.contains(word)), "{told}");
        }
    }
}
