#!/usr/bin/env python3
"""Runs a file of steps again: replay.py GRAPH STEPS OP BYTES RANKS ROOT

Prints the time in microseconds, and exits with 1 if an output holds a wrong contribution. It knows
the format of the file (see the crate's docs on steps) and nothing else of the planner.
"""
import json
import sys
from collections import defaultdict


def split(buffer, at):
    """Makes a run of a buffer begin at a place."""
    for start in list(buffer):
        end, value = buffer[start]
        if start < at < end:
            buffer[start] = (at, value)
            buffer[at] = (end, [(r, o + at - start) for r, o in value])


def load(memory, rank, name, at, count):
    if name == "in":
        return [(0, count, [(rank, at)])]
    buffer = memory[rank, name]
    split(buffer, at)
    split(buffer, at + count)
    runs = sorted((s, *buffer[s]) for s in buffer if at <= s < at + count)
    assert sum(end - start for start, end, _ in runs) == count, f"{name} of {rank} not written"
    return [(start - at, end - at, value) for start, end, value in runs]


def add(one, other):
    cuts = sorted({c for run in one + other for c in run[:2]})
    result = []
    for start, end in zip(cuts, cuts[1:]):
        value = []
        for runs in (one, other):
            begin, _, sums = next(run for run in runs if run[0] <= start < run[1])
            value += [(r, o + start - begin) for r, o in sums]
        result.append((start, end, sorted(value)))
    return result


def store(memory, rank, name, at, count, runs):
    buffer = memory[rank, name]
    split(buffer, at)
    split(buffer, at + count)
    for start in [s for s in buffer if at <= s < at + count]:
        del buffer[start]
    for start, end, value in runs:
        buffer[at + start] = (at + end, value)


def contributions(steps):
    memory = defaultdict(dict)
    for step in steps:  # nothing waits for what comes later in the file
        for run in [step] + step.get("more", []):
            if run["bytes"]:
                value = load(memory, step["rank"], run["buffer"], run["offset"], run["bytes"])
                if "with_buffer" in run:
                    other = load(memory, step["rank"], run["with_buffer"], run["with_offset"], run["bytes"])
                    value = add(value, other)
                store(memory, step["peer"], run["to_buffer"], run["to_offset"], run["bytes"], value)
    return memory


def wrong(memory, op, size, p, root):
    e = next(e for e in (4, 2, 1) if size % e == 0)
    cut = lambda r: size // e // p * e * r if op == "all_to_all" else size // e * r // p * e
    for rank in range(p):
        own, end, all_of = cut(rank), cut(rank + 1), lambda at: [(r, at) for r in range(p)]
        expected = {
            "all_reduce": [(0, size, all_of(0))],
            "reduce": [(0, size, all_of(0))] * (rank == root),
            "reduce_scatter": [(0, end - own, all_of(own))],
            "broadcast": [(0, size, [(root, 0)])],
            "scatter": [(0, end - own, [(root, own)])],
            "all_gather": [(cut(r), cut(r + 1), [(r, 0)]) for r in range(p)],
            "gather": [(cut(r), cut(r + 1), [(r, 0)]) for r in range(p)] * (rank == root),
            "all_to_all": [(cut(r), cut(r + 1), [(r, own)]) for r in range(p)],
        }
        for start, stop, value in expected.get(op, []):
            for s, _, got in load(memory, rank, "out", start, stop - start):
                if got != [(r, o + s) for r, o in value]:
                    return f"out[{start + s}] of rank {rank} holds {got}"


def rates(flows, capacity):
    left, rate = dict(capacity), {}
    while len(rate) < len(flows):
        users = defaultdict(int)
        for flow in flows:
            for link in flows[flow] if flow not in rate else ():
                users[link] += 1
        link = min(users, key=lambda link: left[link] / users[link])
        share = left[link] / users[link]
        for flow in [f for f in flows if f not in rate and link in flows[f]]:
            rate[flow] = share
            for used in flows[flow]:
                left[used] = max(left[used] - share, 0.0)
    return rate


def seconds(steps, capacity, latency):
    last, waits, then = {}, [0] * len(steps), defaultdict(list)
    for i, step in enumerate(steps):
        lane = (step["rank"], step["lane"])
        for before in step["after"] + ([last[lane]] if lane in last else []):
            waits[i] += 1
            then[before].append(i)
        last[lane] = i
    paths = [[tuple(map(str, link)) for link in step["path"]] for step in steps]
    total = [sum(run["bytes"] for run in [s] + s.get("more", [])) for s in steps]
    now, delayed, left = 0.0, {}, {}
    ready = [i for i in range(len(steps)) if not waits[i]]
    while ready or delayed or left:
        for i in ready:
            delayed[i] = now + sum(latency[link] for link in paths[i])
        ready = []
        for i in [i for i in delayed if delayed[i] <= now * (1 + 1e-10)]:
            del delayed[i]
            left[i] = total[i] if steps[i]["kind"] == "put" else 0
        ended = [i for i in left if left[i] <= 1e-6]
        for i in ended:
            del left[i]
            for next_one in then[i]:
                waits[next_one] -= 1
                ready += [next_one] * (waits[next_one] == 0)
        if ended or not (delayed or left):
            continue
        rate = rates({i: paths[i] for i in left}, capacity)
        soon = min([delayed[i] for i in delayed] + [now + left[i] / rate[i] for i in left])
        for i in left:
            left[i] -= rate[i] * (soon - now)
            left[i] *= left[i] > rate[i] * soon * 1e-10 + 1e-6
        now = soon
    return now


def main():
    graph, steps = (json.load(open(path)) for path in sys.argv[1:3])
    op, (size, ranks, root) = sys.argv[3], map(int, sys.argv[4:7])
    capacity, latency, seen = {}, {}, defaultdict(int)
    for edge in graph["edges"]:
        ends = (str(edge["src"]), str(edge["dst"]))
        link = ends + ((str(seen[ends]),) if seen[ends] else ())
        seen[ends] += 1
        capacity[link], latency[link] = edge["GBps"] * 1e9, edge.get("latency_us", 0) * 1e-6
    fault = wrong(contributions(steps), op, size, ranks, root)
    print(fault or seconds(steps, capacity, latency) * 1e6)
    sys.exit(bool(fault))


main()
