//! An emulated machine for the processes of one test.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use tempfile::TempDir;
use unisono_emulator::{BOX, BoxFile, KERNELS, SEED, TRAFFIC, Traffic};
use unisono_tests::Job;

/// A machine: its box, its libraries, its counts of bytes.
#[derive(Debug)]
pub struct Emulated {
    folder: Folder,
    /// Emulators that have a box of their own.
    others: Vec<&'static str>,
    facts: BoxFile,
    seed: Option<u64>,
}

/// Where the machine's files lie.
#[derive(Debug)]
enum Folder {
    /// This process made them, and they go with it.
    Own(TempDir),
    /// A rank's process uses those of the test that started it.
    Given(PathBuf),
}

impl Folder {
    fn path(&self) -> &Path {
        match self {
            Self::Own(folder) => folder.path(),
            Self::Given(path) => path,
        }
    }
}

/// The emulators' libraries, by the names that they stand in for.
const LIBRARIES: [(&str, &str); 8] = [
    ("libascendcl.so", "acl"),
    ("libcuda.so.1", "cuda"),
    ("libcuda.so", "cuda"),
    ("libnvidia-ml.so.1", "nvml"),
    ("libnvidia-ml.so", "nvml"),
    ("libamdhip64.so.6", "hip"),
    ("librocm_smi64.so.7", "rsmi"),
    ("libamd_smi.so.26", "amdsmi"),
];

/// Emulators that can have a box of their own: the variables that name it and its kernels.
const OWN_BOXES: [(&str, &str, &str); 4] = [
    (
        "amdsmi",
        "UNISONO_EMULATOR_BOX_AMDSMI",
        "UNISONO_EMULATOR_KERNELS_AMDSMI",
    ),
    (
        "acl",
        "UNISONO_EMULATOR_BOX_ACL",
        "UNISONO_EMULATOR_KERNELS_ACL",
    ),
    (
        "hip",
        "UNISONO_EMULATOR_BOX_HIP",
        "UNISONO_EMULATOR_KERNELS_HIP",
    ),
    (
        "rsmi",
        "UNISONO_EMULATOR_BOX_RSMI",
        "UNISONO_EMULATOR_KERNELS_RSMI",
    ),
];

/// The folder of this workspace's programs and libraries.
#[must_use]
pub fn built() -> PathBuf {
    let test = std::env::current_exe().unwrap_or_default();
    let mut folders = test.ancestors().skip(1);
    let found = folders.find(|folder| !folder.ends_with("deps"));
    found.map_or_else(PathBuf::new, Path::to_owned)
}

/// The compiler of kernels: that of `build.sh`.
fn compiler() -> String {
    std::env::var("CLANG").unwrap_or_else(|_| "clang-19".to_owned())
}

/// The kernels, compiled for the host by the compiler that compiles them for devices; none where there
/// is no such compiler. Tests in processes of their own share what is compiled.
fn kernels() -> Option<&'static Path> {
    static KERNELS: OnceLock<Option<PathBuf>> = OnceLock::new();
    let found = KERNELS.get_or_init(|| {
        let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../plugins/kernels");
        let library = built().join("emulated-kernels").join("libkernels.so");
        if is_newer(&library, &sources) {
            return Some(library);
        }
        Command::new(compiler()).arg("--version").output().ok()?;
        let compiled = compile(&sources, &library);
        compiled.unwrap_or_else(|why| panic!("the kernels do not compile for the host: {why}"));
        Some(library)
    });
    found.as_deref()
}

fn compile(sources: &Path, library: &Path) -> Result<(), String> {
    let of = |error: std::io::Error| error.to_string();
    let folder = tempfile::tempdir_in(built()).map_err(of)?;
    let mut build = Command::new(sources.join("build.sh"));
    let done = build.arg(folder.path()).arg("host").output().map_err(of)?;
    if !done.status.success() {
        let said = String::from_utf8_lossy(&done.stderr);
        return Err(format!("build.sh: {}\n{said}", done.status));
    }
    if let Some(parent) = library.parent() {
        std::fs::create_dir_all(parent).map_err(of)?;
    }
    std::fs::rename(folder.path().join("libkernels.so"), library).map_err(of)
}

/// Whether a library is newer than the sources and the script that it is made from.
fn is_newer(library: &Path, sources: &Path) -> bool {
    let changed = |path: &Path| path.metadata().and_then(|data| data.modified()).ok();
    let files = std::fs::read_dir(sources.join("sources")).ok();
    let files = files
        .into_iter()
        .flatten()
        .flatten()
        .map(|file| file.path());
    let newest = files.chain([sources.join("build.sh")]);
    let newest = newest.filter_map(|path| changed(&path)).max();
    changed(library).is_some_and(|made| newest.is_some_and(|newest| made > newest))
}

impl Emulated {
    /// A machine of this box file of `machine/boxes`; `adjust` may change its text. None where the
    /// kernels cannot be compiled: the test is then skipped, and has said so.
    ///
    /// # Panics
    /// If the emulators are not built, or the box is none.
    #[must_use]
    pub fn new(test: &str, name: &str, adjust: impl FnOnce(String) -> String) -> Option<Self> {
        let mut adjust = Some(adjust);
        let once = |text| {
            adjust
                .take()
                .map_or_else(String::new, |adjust| adjust(text))
        };
        Self::of_several(test, name, &[], once)
    }

    /// A machine with devices of several vendors: a box for all emulators but `others`, which have
    /// their own; `adjust` may change the text of each.
    ///
    /// # Panics
    /// As [`Emulated::new`].
    #[must_use]
    pub fn of_several(
        test: &str,
        name: &str,
        others: &[(&'static str, &str)],
        mut adjust: impl FnMut(String) -> String,
    ) -> Option<Self> {
        if let Some(given) = std::env::var_os(BOX).map(PathBuf::from) {
            let facts = BoxFile::read(&given).expect("the box of the test");
            let folder = Folder::Given(given.parent().map_or_else(PathBuf::new, Path::to_owned));
            let seed = None;
            return Some(Self {
                folder,
                others: Vec::new(),
                facts,
                seed,
            });
        }
        let folder = tempfile::tempdir().expect("a folder");
        for (link, emulator) in LIBRARIES {
            let library = built().join(format!("libunisono_emulator_{emulator}.so"));
            assert!(
                library.exists(),
                "{} is not there: build the workspace first",
                library.display()
            );
            symlink(library, folder.path().join(link)).expect("a link");
        }
        let boxes = Path::new(env!("CARGO_MANIFEST_DIR")).join("../machine/boxes");
        let mut write = |name: &str, file: &str| {
            let path = boxes.join(name).with_extension("yaml");
            let text = std::fs::read_to_string(path).expect("a box file");
            let text = adjust(text);
            let facts = BoxFile::parse(&text).expect("a box");
            std::fs::write(folder.path().join(file), text).expect("a file");
            facts
        };
        let facts = write(name, "box.yaml");
        for (emulator, name) in others {
            write(name, &format!("box_{emulator}.yaml"));
        }
        let Some(kernels) = kernels() else {
            let why = format!(
                "{} is not there to compile the kernels for the host",
                compiler()
            );
            unisono_tests::skip(test, &why);
            return None;
        };
        symlink(kernels, folder.path().join("libkernels.so")).expect("a link");
        for (emulator, _) in others {
            // A copy: a library that is opened twice by one process is one, and kernels call the
            // machine that they were bound to.
            let copy = format!("libkernels_{emulator}.so");
            std::fs::copy(kernels, folder.path().join(copy)).expect("a copy");
        }
        Some(Self {
            folder: Folder::Own(folder),
            others: others.iter().map(|(emulator, _)| *emulator).collect(),
            facts,
            seed: None,
        })
    }

    /// Schedules by this seed.
    #[must_use]
    pub fn seeded(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }

    /// Without the drivers of others than these emulators.
    ///
    /// # Panics
    /// If the machine's files cannot be changed.
    #[must_use]
    pub fn only(self, emulators: &[&str]) -> Self {
        let own = matches!(self.folder, Folder::Own(_));
        for (link, emulator) in LIBRARIES {
            if own && !emulators.contains(&emulator) {
                std::fs::remove_file(self.folder.path().join(link)).expect("a link");
            }
        }
        self
    }

    /// What the machine is.
    #[must_use]
    pub fn facts(&self) -> &BoxFile {
        &self.facts
    }

    /// The environment of its processes.
    #[must_use]
    pub fn environment(&self) -> Vec<(&'static str, String)> {
        let path = |name: &str| self.folder.path().join(name).display().to_string();
        let mut out = vec![
            ("LD_LIBRARY_PATH", self.folder.path().display().to_string()),
            ("UNISONO_PLUGIN_PATH", built().display().to_string()),
            (BOX, path("box.yaml")),
            (TRAFFIC, path("traffic")),
            (KERNELS, path("libkernels.so")),
        ];
        for (emulator, of_box, of_kernels) in OWN_BOXES {
            if self.others.contains(&emulator) {
                out.push((of_box, path(&format!("box_{emulator}.yaml"))));
                out.push((of_kernels, path(&format!("libkernels_{emulator}.so"))));
            }
        }
        if let Some(seed) = self.seed {
            out.push((SEED, seed.to_string()));
        }
        out
    }

    /// A job on it.
    #[must_use]
    pub fn job(&self, test: &str, ranks: u32) -> Job {
        let environment = self.environment();
        let mut job = Job::new(test, ranks);
        for (name, value) in environment {
            job = job.env(name, value);
        }
        job
    }

    /// The `unisono` command, run on it; what it prints. `unisono` among its arguments is that command.
    ///
    /// # Panics
    /// If it is not built, or fails.
    #[must_use]
    pub fn command(&self, arguments: &[&str]) -> String {
        let program = built().join("unisono");
        assert!(program.exists(), "the command: build the workspace first");
        let arguments = arguments.iter().map(|argument| match *argument {
            "unisono" => program.display().to_string(),
            argument => argument.to_owned(),
        });
        let mut command = Command::new(&program);
        command.args(arguments).envs(self.environment());
        let output = command.output().expect("it starts");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{command:?}: {text}\n{errors}");
        text
    }

    /// The bytes that its processes moved so far.
    ///
    /// # Panics
    /// If the counts cannot be read.
    #[must_use]
    pub fn traffic(&self) -> Traffic {
        Traffic::open(Some(&self.folder.path().join("traffic"))).expect("counts")
    }
}
