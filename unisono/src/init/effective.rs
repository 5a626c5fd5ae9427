//! From the cluster in effect to the options of a communicator.

use unisono_bootstrap::{
    Heartbeat, InterfaceFilter, InterfacePattern, NodeId, RankInfo, RankSource, RootSpec, Secret,
    SecretSource,
};
use unisono_cluster::{Bytes, Cluster, Effective, Node, SecurityMode, UsedDevice};
use unisono_collectives::{InitOptions, MemoryOptions, PluginRequest, Timeouts};
use unisono_hal::{Loader, Origin, SearchPath};

use super::{Init, InitError, calibration, default_plugins, links, rules};

pub(super) fn options(init: &Init, effective: &Effective) -> Result<InitOptions, InitError> {
    let cluster = &effective.cluster;
    let lookup = |name: &str| init.variables.get(name).cloned();
    let info = RankInfo::discover(&lookup, &init.given)?;
    let root = match (&init.unique_id, &info.rendezvous) {
        (Some(id), _) => RootSpec::UniqueId(id.clone()),
        (None, Some(address)) => RootSpec::Address(address.clone()),
        (None, None) => RootSpec::Node,
    };
    let node = this_node(cluster);
    let mut options = InitOptions::new(info.rank, info.size, root);
    options.local_size = info.local_size;
    options.local_rank = info.local_rank;
    if let Some(name) = &init.name {
        options.name.clone_from(name);
    }
    options.secret = match secret(cluster)? {
        SecretSource::PeerCredentials if by_launcher(init, &info, &lookup) => {
            SecretSource::Launcher
        }
        source => source,
    };
    options.job = init.job.clone().unwrap_or(info.job);
    options.node_id = node_id(init, node)?;
    options.interfaces = interfaces(cluster, node)?;
    options.heartbeat = Heartbeat {
        interval: cluster.timeouts.heartbeat_interval.as_duration(),
        timeout: cluster.timeouts.heartbeat_timeout.as_duration(),
    };
    options.loader = Loader::new(search(init, effective));
    options.plugins = plugins(init, cluster);
    options.device = match device(init)? {
        None => device_of(cluster, info.local_rank)?,
        given => given,
    };
    options.without_links = without_links(init);
    options.overlays = links::overlays(effective)?;
    options.timeouts = Timeouts {
        init: cluster.timeouts.init.as_duration(),
        op: cluster.timeouts.op.as_duration(),
        abort_drain: cluster.timeouts.abort_drain.as_duration(),
        finalize: cluster.timeouts.finalize.as_duration(),
    };
    options.memory = MemoryOptions {
        budget: cluster.memory.budget.get(),
        slot: cluster.memory.slot.map(Bytes::get),
        slots: cluster.memory.slots,
        single_copy: cluster.memory.single_copy,
        swap_slots: cluster.memory.swap_slots,
    };
    options.rules = rules::rules(&cluster.algorithms);
    if info.rank == 0 {
        options.calibration = calibration::read(init, effective)?;
    }
    options.deterministic = init.deterministic;
    options.spin = cluster.progress.spin.as_duration();
    options.before_sleep = cluster.progress.yield_for.as_duration();
    options.direct = cluster.progress.direct;
    Ok(options)
}

/// What the file says about the machine that this process runs on.
fn this_node(cluster: &Cluster) -> Option<&Node> {
    cluster.node(&this_host())
}

fn this_host() -> String {
    let system = rustix::system::uname();
    system.nodename().to_string_lossy().into_owned()
}

/// Whether the launcher's key-value store is to give the secret: ranks that may be on several nodes, all of them
/// started by that launcher, and no secret given otherwise.
fn by_launcher(init: &Init, info: &RankInfo, lookup: unisono_bootstrap::Lookup<'_>) -> bool {
    let launched = matches!(
        info.source,
        RankSource::OpenMpi | RankSource::Pmi | RankSource::Slurm
    );
    launched
        && init.given.size.is_none()
        && info.local_size != Some(info.size)
        && unisono_bootstrap::has_store(lookup)
}

fn secret(cluster: &Cluster) -> Result<SecretSource, InitError> {
    let security = &cluster.security;
    if security.mode == SecurityMode::None {
        return Ok(SecretSource::Disabled);
    }
    if let Some(text) = &security.secret {
        let secret = Secret::from_text(text.expose().as_bytes(), "security.secret")?;
        return Ok(SecretSource::Given(secret));
    }
    if let Some(path) = &security.secret_file {
        return Ok(SecretSource::Given(Secret::from_file(path)?));
    }
    Ok(SecretSource::PeerCredentials)
}

/// `UNISONO_NODE_ID` is the engine's to read, and wins over the file.
fn node_id(init: &Init, node: Option<&Node>) -> Result<Option<NodeId>, InitError> {
    if let Some(text) = init.variable("UNISONO_NODE_ID") {
        return Ok(Some(NodeId::discover(&|_| Some(text.to_owned()))));
    }
    let Some(id) = node.and_then(|node| node.id.as_ref()) else {
        return Ok(None);
    };
    let id: unisono_graph::NodeId = (id.parse()).map_err(|e: unisono_graph::ParseIdError| {
        InitError::setting("the id of this node in the cluster file", e.to_string())
    })?;
    Ok(Some(NodeId(id.0)))
}

fn interfaces(cluster: &Cluster, node: Option<&Node>) -> Result<InterfaceFilter, InitError> {
    let wanted = node
        .and_then(|node| node.interfaces.as_ref())
        .unwrap_or(&cluster.interfaces);
    let parse = |list: &[unisono_cluster::InterfacePattern]| {
        list.iter()
            .map(|pattern| pattern.to_string().parse::<InterfacePattern>())
            .collect::<Result<Vec<_>, _>>()
    };
    Ok(InterfaceFilter {
        include: parse(&wanted.include)?,
        exclude: parse(&wanted.exclude)?,
    })
}

/// The program's folders, then the file's, then the standard ones, which begin with those of
/// `UNISONO_PLUGIN_PATH`.
fn search(init: &Init, effective: &Effective) -> SearchPath {
    let mut path = SearchPath::standard();
    for folder in effective.cluster.plugin_path.iter().rev() {
        let named_by_variable = path
            .places()
            .iter()
            .any(|(origin, place)| *origin == Origin::Environment && place == folder);
        if !named_by_variable {
            path = path.first(Origin::ClusterFile, folder);
        }
    }
    for folder in init.plugin_path.iter().rev() {
        // A loader takes absolute places only; a program's are relative to where it runs.
        let folder = std::path::absolute(folder).unwrap_or_else(|_| folder.clone());
        path = path.first(Origin::Program, folder);
    }
    path
}

fn plugins(init: &Init, cluster: &Cluster) -> Vec<PluginRequest> {
    let of_file: Vec<PluginRequest> = cluster.plugins.iter().map(request).collect();
    let by_name = |name: &str| {
        let known = of_file.iter().find(|request| request.name == name).cloned();
        known.unwrap_or_else(|| PluginRequest::named(name))
    };
    if !init.plugins.is_empty() {
        let bare =
            |r: &PluginRequest| r.path.is_none() && r.linked.is_none() && r.params.is_empty();
        let add = |request: &PluginRequest| match bare(request) {
            true => by_name(&request.name),
            false => request.clone(),
        };
        return init.plugins.iter().map(add).collect();
    }
    if let Some(names) = init.plugin_names() {
        return list(names).map(by_name).collect();
    }
    if of_file.is_empty() {
        default_plugins()
    } else {
        of_file
    }
}

fn request(plugin: &unisono_cluster::Plugin) -> PluginRequest {
    PluginRequest {
        path: plugin.path.clone(),
        params: (plugin.params.iter())
            .map(|(name, value)| (name.clone(), value.to_string()))
            .collect(),
        ..PluginRequest::named(&plugin.name)
    }
}

fn device(init: &Init) -> Result<Option<(String, u32)>, InitError> {
    let (what, text) = match (&init.device, init.variable("UNISONO_DEVICE")) {
        (Some(text), _) => ("the device", text.as_str()),
        (None, Some(text)) => ("UNISONO_DEVICE", text),
        (None, None) => return Ok(None),
    };
    match text.parse::<UsedDevice>() {
        Ok(device) => Ok(Some((device.plugin, device.number))),
        Err(error) => Err(InitError::setting(what, error.to_string())),
    }
}

/// The device that the file gives this rank of its machine.
fn device_of(
    cluster: &Cluster,
    local_rank: Option<u32>,
) -> Result<Option<(String, u32)>, InitError> {
    let devices = cluster.ranks_on(&this_host());
    if devices.is_empty() {
        return Ok(None);
    }
    let Some(local_rank) = local_rank else {
        return Err(InitError::setting(
            "`ranks` of the cluster file",
            "it names a device for each rank of this machine, and nobody says which of them this \
             process is: set UNISONO_LOCAL_RANK (0 is the machine's first), or the device itself \
             with UNISONO_DEVICE",
        ));
    };
    let device = devices.get(local_rank as usize);
    Ok(device.map(|device| (device.plugin.clone(), device.number)))
}

fn without_links(init: &Init) -> Vec<String> {
    let mut kinds = init.without_links.clone();
    if kinds.is_empty() {
        kinds = init
            .variable("UNISONO_WITHOUT_LINKS")
            .map(|kinds| list(kinds).map(str::to_owned).collect())
            .unwrap_or_default();
    }
    kinds
}

fn list(text: &str) -> impl Iterator<Item = &str> {
    text.split(',')
        .map(str::trim)
        .filter(|item| !item.is_empty())
}
