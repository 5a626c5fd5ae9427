//! Max-min fair rates, kept up to date as flows come and go.

mod fill;
mod grow;

use crate::model::{Hop, Model, Routes};
use crate::{RouteId, SimulateError};

/// Rates that differ by less than this part are the same.
const SAME: f64 = 1e-9;
/// The bottleneck of a route whose own limit holds it.
const BY_LIMIT: u32 = u32::MAX;

/// The max-min fair rates of flows that all run at once, one for each route named (a route named
/// twice has two flows), in bytes a second. Infinite over [`RouteId::FREE`].
pub fn max_min_rates(model: &Model, flows: &[RouteId]) -> Result<Vec<f64>, SimulateError> {
    check_routes(model)?;
    let routes = model.routes.len();
    if let Some(bad) = flows.iter().position(|flow| flow.0 as usize >= routes) {
        return Err(SimulateError::NoSuchRoute {
            task: bad as u32,
            route: flows[bad].0,
            routes,
        });
    }
    let mut rates = Rates::new(&model.capacities, &model.routes);
    let mut touched = Vec::new();
    for flow in flows {
        if !model.routes.is_free(flow.0) {
            rates.states[flow.0 as usize].flows += 1;
            touched.push(flow.0);
        }
    }
    rates.settle(&touched, &mut Vec::new());
    Ok(flows
        .iter()
        .map(|flow| match model.routes.is_free(flow.0) {
            true => f64::INFINITY,
            false => rates.states[flow.0 as usize].rate,
        })
        .collect())
}

/// Every route must name resources that are there, and be able to carry something.
pub(crate) fn check_routes(model: &Model) -> Result<(), SimulateError> {
    for route in 0..model.routes.len() as u32 {
        for hop in model.routes.of(route) {
            match model.capacities.get(hop.resource as usize) {
                None => {
                    return Err(SimulateError::NoSuchResource {
                        route,
                        resource: hop.resource,
                        resources: model.capacities.len(),
                    });
                }
                Some(0) => return Err(SimulateError::NoCapacity { route }),
                Some(_) => {}
            }
        }
        if model.routes.limits[route as usize] == Some(0) {
            return Err(SimulateError::NoCapacity { route });
        }
    }
    Ok(())
}

impl Routes {
    /// Whether nothing holds back what takes this route.
    pub(crate) fn is_free(&self, route: u32) -> bool {
        self.limits[route as usize].is_none() && self.range(route).is_empty()
    }
}

/// The rates of all routes that have flows.
pub(crate) struct Rates<'m> {
    capacity: Vec<f64>,
    routes: &'m Routes,
    pub(crate) states: Vec<State>,
    /// The routes with flows on each resource.
    members: Vec<Vec<Member>>,
    /// For each hop, where it stands in its resource's `members`.
    place: Vec<u32>,
    /// How many rates have been solved, those included that were solved again.
    pub(crate) solved: u64,
    work: Work,
}

/// What is known of a route.
#[derive(Debug, Clone, Copy)]
pub(crate) struct State {
    /// Rate of each of its flows, in bytes a second.
    pub(crate) rate: f64,
    /// Its flows now. Whoever changes it tells [`Rates::settle`].
    pub(crate) flows: u32,
    /// Its flows when its rate was last settled.
    settled: u32,
    /// The resource that holds its rate, or [`BY_LIMIT`].
    bottleneck: u32,
    /// The epoch in which it was chosen.
    chosen_at: u32,
    /// Whether it has its rate, if it is chosen.
    fixed: bool,
}

/// A route that has flows, on a resource that it passes.
#[derive(Debug, Clone, Copy)]
struct Member {
    route: u32,
    hop: u32,
    /// How often it passes.
    times: u32,
}

/// Memory that is reused from one settling to the next.
struct Work {
    /// Settlings so far; marks of older ones don't count.
    epoch: u32,
    /// The routes that are being solved, and their rates before.
    chosen: Vec<(u32, f64)>,
    /// The resources that the chosen routes pass.
    around: Vec<u32>,
    around_at: Vec<u32>,
    /// What is left of each resource for the chosen routes that aren't fixed.
    left: Vec<f64>,
    /// How many uses of each resource by them that is for.
    uses: Vec<u64>,
}

impl<'m> Rates<'m> {
    pub(crate) fn new(capacities: &[u64], routes: &'m Routes) -> Self {
        let (resources, count) = (capacities.len(), routes.len());
        let state = State {
            rate: 0.0,
            flows: 0,
            settled: 0,
            bottleneck: BY_LIMIT,
            chosen_at: 0,
            fixed: false,
        };
        Self {
            capacity: capacities.iter().map(|&c| c as f64).collect(),
            routes,
            states: vec![state; count],
            members: vec![Vec::new(); resources],
            place: vec![0; routes.hops.len()],
            solved: 0,
            work: Work {
                epoch: 0,
                chosen: Vec::new(),
                around: Vec::new(),
                around_at: vec![0; resources],
                left: vec![0.0; resources],
                uses: vec![0; resources],
            },
        }
    }

    /// Solves the rates again after the flows of the `touched` routes changed. Appends the routes
    /// whose rate is another now to `changed`.
    pub(crate) fn settle(&mut self, touched: &[u32], changed: &mut Vec<u32>) {
        self.begin();
        let mut any = false;
        for &route in touched {
            let state = &mut self.states[route as usize];
            let before = std::mem::replace(&mut state.settled, state.flows);
            let now = state.flows;
            if now == before {
                continue;
            }
            any = true;
            match (before, now) {
                (0, _) => self.list(route),
                (_, 0) => self.unlist(route),
                _ => {}
            }
            self.choose_around(route);
        }
        if !any {
            return;
        }
        self.solve_and_grow();
        for place in 0..self.work.chosen.len() {
            let (route, before) = self.work.chosen[place];
            let now = &mut self.states[route as usize].rate;
            if (*now - before).abs() <= before * 1e-12 {
                *now = before;
            } else {
                changed.push(route);
            }
        }
    }

    fn list(&mut self, route: u32) {
        for hop in self.routes.range(route) {
            let Hop { resource, times } = self.routes.hops[hop];
            let members = &mut self.members[resource as usize];
            self.place[hop] = members.len() as u32;
            members.push(Member {
                route,
                hop: hop as u32,
                times,
            });
        }
        // Its rate is unknown yet; as it was never announced, any value is a change.
        self.states[route as usize].rate = 0.0;
    }

    fn unlist(&mut self, route: u32) {
        for hop in self.routes.range(route) {
            let members = &mut self.members[self.routes.hops[hop].resource as usize];
            let place = self.place[hop] as usize;
            members.swap_remove(place);
            if let Some(moved) = members.get(place) {
                self.place[moved.hop as usize] = place as u32;
            }
        }
    }

    /// What all flows of a route take of the resource of one of its hops.
    fn take(&self, member: Member) -> f64 {
        let state = &self.states[member.route as usize];
        state.rate * f64::from(state.flows) * f64::from(member.times)
    }
}
