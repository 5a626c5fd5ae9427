//! The libraries: which are installed, how their benchmark is built and how their ranks are started.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use anyhow::{Context, Result, bail};

use crate::arguments::Transport;

/// The benchmark's source, which needs nothing but an MPI.
const SOURCE: &str = include_str!("../../c/mpi.c");

/// Variables that ranks read, which a launcher must hand on.
pub const HANDED_ON: [&str; 6] = [
    "PEERS_CTL",
    "PEERS_MAXBYTES",
    "PEERS_BIND",
    "PEERS_DIRTY",
    "PEERS_WINDOWS",
    "PEERS_OFFSET",
];

/// An MPI library, whose benchmark is built.
pub struct Peer {
    /// As it is named in tables.
    pub name: String,
    kind: Kind,
    launcher: PathBuf,
    bench: PathBuf,
}

/// How a library is told what to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Open MPI, of this major version.
    Open(u32),
    /// MPICH.
    Mpich,
    /// Intel MPI, whose root is this far above its launcher.
    Intel,
}

/// All that are installed and that build; of others it is said why not. `folder` keeps the programs.
///
/// # Errors
/// One of `others`, which somebody asked for, does not build: a comparison without it would not be the one that was asked for.
pub fn find(others: &[(String, PathBuf)], folder: &Path) -> Result<Vec<Peer>> {
    let source = folder.join("mpi.c");
    fs::write(&source, SOURCE).with_context(|| format!("writing {}", source.display()))?;
    let mut wanted = Vec::new();
    for name in ["openmpi", "mpich"] {
        // Debian's names, with which both live in one system.
        let tools = (
            which(&format!("mpicc.{name}")),
            which(&format!("mpirun.{name}")),
        );
        if let (Some(compiler), Some(launcher)) = tools {
            wanted.push((name.to_owned(), compiler, launcher));
        }
    }
    if wanted.is_empty()
        && let (Some(compiler), Some(launcher)) = (which("mpicc"), which("mpirun"))
    {
        wanted.push(("mpi".to_owned(), compiler, launcher));
    }
    for (name, prefix) in others {
        let bin = prefix.join("bin");
        wanted.push((name.clone(), bin.join("mpicc"), bin.join("mpirun")));
    }
    let mut peers = Vec::new();
    for (name, compiler, launcher) in wanted {
        match Peer::build(&name, &compiler, launcher, &source, folder) {
            Ok(peer) => peers.push(peer),
            Err(why) if others.iter().any(|other| other.0 == name) => {
                return Err(why.context(format!("--mpi {name}")));
            }
            Err(why) => eprintln!("{name} is left out: {why:#}"),
        }
    }
    Ok(peers)
}

impl Peer {
    fn build(
        name: &str,
        compiler: &Path,
        launcher: PathBuf,
        source: &Path,
        folder: &Path,
    ) -> Result<Self> {
        let mut asked = Command::new(&launcher);
        let asked = own_first(&mut asked, &launcher).arg("--version").output();
        let asked = asked.with_context(|| format!("starting {}", launcher.display()))?;
        let said = String::from_utf8_lossy(&asked.stdout).into_owned();
        let kind = Kind::of(&said)
            .with_context(|| format!("{} is no launcher that is known", launcher.display()))?;
        let bench = folder.join(format!("bench-{name}"));
        let mut command = Command::new(compiler);
        own_first(&mut command, &launcher)
            .args(["-O2", "-std=gnu11", "-Wall", "-o"])
            .arg(&bench)
            .arg(source);
        command.args(["-Wno-unused-result"]);
        let root = kind.root(&launcher);
        if let Some(root) = &root {
            // Its wrapper finds neither headers nor library when it lies in a virtual environment.
            let root = Path::new(root);
            let library = root.join("lib");
            command.env("I_MPI_ROOT", root);
            command
                .arg("-I")
                .arg(root.join("include"))
                .arg("-L")
                .arg(&library);
            command.arg(format!("-Wl,-rpath,{}", library.display()));
        }
        let built = command
            .output()
            .with_context(|| format!("starting {}", compiler.display()))?;
        if !built.status.success() {
            bail!(
                "its benchmark does not compile: {}",
                String::from_utf8_lossy(&built.stderr).trim()
            );
        }
        Ok(Self {
            name: name.to_owned(),
            kind,
            launcher,
            bench,
        })
    }

    /// Whether figures may be published with its name. Of others only "best peer" is said: their
    /// licences are their makers'.
    pub fn is_named(&self) -> bool {
        matches!(self.kind, Kind::Open(_) | Kind::Mpich)
    }

    /// What starts its ranks. `crowded`: there are more of them than cores.
    pub fn command(&self, ranks: u32, transport: Transport, crowded: bool) -> Command {
        let mut command = Command::new(&self.launcher);
        own_first(&mut command, &self.launcher);
        let tcp = transport == Transport::Tcp;
        match self.kind {
            Kind::Open(major) => open_mpi(&mut command, major, tcp, crowded),
            Kind::Mpich => mpich(&mut command, tcp, crowded),
            Kind::Intel => intel(&mut command, tcp, crowded),
        }
        command.envs(
            self.kind
                .root(&self.launcher)
                .iter()
                .map(|root| ("I_MPI_ROOT", root)),
        );
        command.args(["-n", &ranks.to_string()]).arg(&self.bench);
        command
    }
}

impl Kind {
    /// From what the launcher says of its version.
    fn of(said: &str) -> Option<Self> {
        if said.contains("Intel(R) MPI") {
            return Some(Self::Intel);
        }
        if said.contains("HYDRA") {
            return Some(Self::Mpich);
        }
        let (_, version) = said
            .split_once("(Open MPI) ")
            .or_else(|| said.split_once("(OpenRTE) "))?;
        let major = version.split('.').next()?.trim();
        major.parse().ok().map(Self::Open)
    }

    /// The folder that this library must be told, if any.
    fn root(self, launcher: &Path) -> Option<OsString> {
        let root = launcher.parent()?.parent()?;
        (self == Self::Intel).then(|| root.as_os_str().to_owned())
    }
}

fn open_mpi(command: &mut Command, major: u32, tcp: bool, crowded: bool) {
    // Refused for the superuser otherwise, as in containers.
    for runtime in ["OMPI", "PRTE"] {
        command.env(format!("{runtime}_ALLOW_RUN_AS_ROOT"), "1");
        command.env(format!("{runtime}_ALLOW_RUN_AS_ROOT_CONFIRM"), "1");
    }
    // Ranks bind themselves, alike for all libraries.
    command.args(["--bind-to", "none"]);
    if major < 5 {
        command.arg("--oversubscribe");
    } else {
        command.args(["--map-by", ":OVERSUBSCRIBE"]);
    }
    let shared = if major < 5 { "vader,self" } else { "sm,self" };
    let transport = if tcp { "tcp,self" } else { shared };
    command.args(["--mca", "pml", "ob1", "--mca", "btl", transport]);
    if tcp {
        command.args(["--mca", "btl_tcp_if_include", "lo"]);
    }
    if crowded {
        command.args(["--mca", "mpi_yield_when_idle", "1"]);
    }
    for name in HANDED_ON {
        command.args(["-x", name]);
    }
}

fn mpich(command: &mut Command, tcp: bool, crowded: bool) {
    if tcp {
        // Whichever of its two network modules it was built with.
        command.envs([
            ("MPIR_CVAR_NOLOCAL", "1"),
            ("UCX_TLS", "tcp,self"),
            ("UCX_NET_DEVICES", "lo"),
            ("FI_PROVIDER", "tcp"),
            ("FI_TCP_IFACE", "lo"),
        ]);
    }
    if crowded {
        command.env("MPIR_CVAR_POLLS_BEFORE_YIELD", "1");
        command.env("MPIR_CVAR_ENABLE_HEAVY_YIELD", "1");
    }
}

fn intel(command: &mut Command, tcp: bool, crowded: bool) {
    command.env("I_MPI_PIN", "0");
    if tcp {
        command.envs([
            ("I_MPI_FABRICS", "ofi"),
            ("FI_PROVIDER", "tcp"),
            ("FI_TCP_IFACE", "lo"),
            // Else collectives go through shared memory all the same.
            ("I_MPI_COLL_INTRANODE", "pt2pt"),
        ]);
    } else {
        command.env("I_MPI_FABRICS", "shm");
    }
    if crowded {
        command.env("I_MPI_THREAD_YIELD", "2");
    }
    command.args(["-launcher", "fork"]);
}

/// What a launcher or a compiler starts by name is looked for beside the launcher first: some are scripts that would else
/// start another library's.
fn own_first<'a>(command: &'a mut Command, launcher: &Path) -> &'a mut Command {
    let path = env::var_os("PATH").unwrap_or_default();
    let folders = launcher.parent().map(Path::to_owned).into_iter();
    // A folder whose name can't be in the list is left out of it.
    match env::join_paths(folders.chain(env::split_paths(&path))) {
        Ok(path) => command.env("PATH", path),
        Err(_) => command,
    }
}

fn which(name: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    env::split_paths(&path)
        .map(|folder| folder.join(name))
        .find(|file| file.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn launchers_are_known_by_what_they_say() {
        let open4 = "mpirun.openmpi (OpenRTE) 4.1.4\n\nReport bugs to";
        assert_eq!(Kind::of(open4), Some(Kind::Open(4)));
        assert_eq!(Kind::of("mpirun (Open MPI) 5.0.11\n"), Some(Kind::Open(5)));
        assert_eq!(
            Kind::of("HYDRA build details:\n Version: 4"),
            Some(Kind::Mpich)
        );
        let intel = "Intel(R) MPI Library for Linux* OS, Version 2021";
        assert_eq!(Kind::of(intel), Some(Kind::Intel));
        assert_eq!(Kind::of("make 4.3"), None);
    }

    #[test]
    fn what_lies_beside_a_launcher_comes_before_the_systems() {
        let mut command = Command::new("mpirun");
        own_first(&mut command, Path::new("/opt/mpi/bin/mpirun"));
        let (name, path) = command.get_envs().next().unwrap();
        let first = env::split_paths(path.unwrap()).next();
        assert_eq!(name, "PATH");
        assert_eq!(first, Some(PathBuf::from("/opt/mpi/bin")));
    }
}
