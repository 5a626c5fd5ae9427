//! What can be wrong with a model.

/// A model that can't be simulated.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SimulateError {
    /// A task waits for one that isn't there.
    #[error("task {task} waits for task {after}, but there are only {tasks} tasks")]
    NoSuchTask {
        /// The task that waits.
        task: u32,
        /// What it waits for.
        after: u32,
        /// How many tasks there are.
        tasks: usize,
    },
    /// A route names a resource that isn't there.
    #[error("route {route} uses resource {resource}, but there are only {resources} resources")]
    NoSuchResource {
        /// The route.
        route: u32,
        /// The resource.
        resource: u32,
        /// How many resources there are.
        resources: usize,
    },
    /// A task names a route that isn't there.
    #[error("task {task} takes route {route}, but there are only {routes} routes")]
    NoSuchRoute {
        /// The task.
        task: u32,
        /// Its route.
        route: u32,
        /// How many routes there are.
        routes: usize,
    },
    /// A task takes its turn in a lane that isn't there.
    #[error("task {task} is in lane {lane}, but there are only {lanes} lanes")]
    NoSuchLane {
        /// The task.
        task: u32,
        /// Its lane.
        lane: u32,
        /// How many lanes there are.
        lanes: usize,
    },
    /// A resource or a limit of zero bytes a second: what uses it would never end.
    #[error("route {route} can carry 0 bytes a second: give its resources and limit a rate")]
    NoCapacity {
        /// The route.
        route: u32,
    },
    /// Tasks wait for each other in a circle, by what they name and by their lanes.
    #[error(
        "{left} tasks never start, among them task {task}: tasks wait for each other in a circle"
    )]
    Circle {
        /// The first task that never starts.
        task: u32,
        /// How many there are.
        left: usize,
    },
}
