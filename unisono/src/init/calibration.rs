//! Where the calibration of a cluster lies.

use std::path::PathBuf;

use unisono_cluster::Effective;
use unisono_collectives::Calibration;

use super::{Init, InitError};

/// The file below a folder of settings.
const FILE: &str = "unisono/calibration.json";

impl Init {
    /// The file that holds, or would hold, what `unisono tune` measured on this cluster: as the key
    /// `calibration` says, else among the user's settings. `None` if calibration is switched off or
    /// the user has no such folder.
    ///
    /// # Errors
    /// As [`Init::cluster`].
    pub fn calibration_file(&self) -> Result<Option<PathBuf>, InitError> {
        Ok(file(self, &self.cluster()?))
    }
}

fn file(init: &Init, effective: &Effective) -> Option<PathBuf> {
    match &effective.cluster.calibration {
        Some(path) if path.as_os_str() == "none" => None,
        Some(path) => Some(path.clone()),
        None => {
            let folder = match init.variable("XDG_CONFIG_HOME") {
                Some(folder) => PathBuf::from(folder),
                None => PathBuf::from(init.variable("HOME")?).join(".config"),
            };
            folder.is_absolute().then(|| folder.join(FILE))
        }
    }
}

/// The calibration in effect. A file that is not there yet is none; one that cannot be used is an
/// error.
pub(super) fn read(init: &Init, effective: &Effective) -> Result<Option<Calibration>, InitError> {
    let Some(path) = file(init, effective) else {
        return Ok(None);
    };
    let refused = |why: String| InitError::setting(format!("calibration {}", path.display()), why);
    match std::fs::read_to_string(&path) {
        Ok(text) => Calibration::from_json(&text)
            .map(Some)
            .map_err(|e| refused(e.to_string())),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            if effective.cluster.calibration.is_some() {
                let path = path.display();
                log::info!("no calibration at {path} yet; `unisono tune` makes it");
            }
            Ok(None)
        }
        Err(error) => Err(refused(error.to_string())),
    }
}
