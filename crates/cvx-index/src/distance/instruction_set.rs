//! Which instruction set the kernels use: the best there is, or the one that `CVX_CPU` names.

use std::sync::OnceLock;

use crate::error::{Error, Result};

/// An instruction set that this machine has: made by [`Isa::chosen`] and [`Isa::available`] alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Isa(pub(super) Path);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Path {
    Scalar,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    #[cfg(target_arch = "x86_64")]
    Avx512,
}

impl Isa {
    /// What this machine can run, the plainest first.
    pub(crate) fn available() -> Vec<(&'static str, Isa)> {
        let mut paths = vec![("scalar", Isa(Path::Scalar))];
        #[cfg(target_arch = "x86_64")]
        {
            // All processors with AVX2 have these too; virtual ones may hide them.
            let bits = is_x86_feature_detected!("bmi1")
                && is_x86_feature_detected!("bmi2")
                && is_x86_feature_detected!("popcnt")
                && is_x86_feature_detected!("lzcnt");
            if bits && is_x86_feature_detected!("avx2") {
                paths.push(("avx2", Isa(Path::Avx2)));
            }
            if bits
                && is_x86_feature_detected!("avx2")
                && is_x86_feature_detected!("avx512f")
                && is_x86_feature_detected!("avx512bw")
                && is_x86_feature_detected!("avx512vnni")
            {
                paths.push(("avx512", Isa(Path::Avx512)));
            }
        }
        paths
    }

    /// The best of them, or the one that the environment variable `CVX_CPU` names; chosen once.
    ///
    /// # Errors
    /// [`Error::Parameter`] where `CVX_CPU` names none of them.
    pub(crate) fn chosen() -> Result<Isa> {
        static CHOSEN: OnceLock<std::result::Result<Isa, String>> = OnceLock::new();
        let chosen = CHOSEN.get_or_init(|| {
            let wanted =
                std::env::var_os("CVX_CPU").map(|name| name.to_string_lossy().into_owned());
            Isa::named(wanted.as_deref())
        });
        chosen.clone().map_err(|value| Error::Parameter {
            name: "CVX_CPU",
            value,
            bound: "scalar, avx2 or avx512, and one that this processor has",
        })
    }

    /// What `CVX_CPU` calls it.
    pub(crate) fn name(self) -> &'static str {
        Isa::available()
            .into_iter()
            .find(|(_, isa)| *isa == self)
            .map_or("", |(name, _)| name)
    }

    fn named(wanted: Option<&str>) -> std::result::Result<Isa, String> {
        let mut available = Isa::available().into_iter().rev();
        match wanted {
            None | Some("") => available.next(),
            Some(wanted) => available.find(|(name, _)| *name == wanted),
        }
        .map(|(_, isa)| isa)
        .ok_or_else(|| wanted.unwrap_or_default().to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_environment_can_ask_for_a_path_and_is_refused_an_unknown_one() {
        assert_eq!(Isa::named(Some("scalar")), Ok(Isa(Path::Scalar)));
        assert_eq!(
            Isa::named(None).ok(),
            Isa::available().last().map(|(_, isa)| *isa)
        );
        assert_eq!(Isa::named(Some("neon")), Err("neon".to_owned()));
    }

    /// Read off the sources: no machine at hand has one feature of a set and lacks another.
    #[test]
    fn detection_asks_for_every_feature_that_a_kernel_enables() {
        fn features<'a>(source: &'a str, before: &str) -> Vec<&'a str> {
            let quoted = |rest: &'a str| rest.split('"').next();
            let lists = source.split(before).skip(1).filter_map(quoted);
            lists.flat_map(|list| list.split(',')).collect()
        }
        let detected = features(
            include_str!("instruction_set.rs"),
            "is_x86_feature_detected!(\"",
        );
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src/distance");
        let mut enabled = 0;
        for file in std::fs::read_dir(folder).unwrap() {
            let path = file.unwrap().path();
            let source = std::fs::read_to_string(&path).unwrap();
            for feature in features(&source, "#[target_feature(enable = \"") {
                enabled += 1;
                assert!(
                    detected.contains(&feature),
                    "{feature} in {}",
                    path.display()
                );
            }
        }
        assert!(enabled > 20, "the sources are where they are looked for");
    }
}
