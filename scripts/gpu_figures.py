#!/usr/bin/env python3
"""Weft's figures on GPUs beside those of hand-written CUDA programs for the same work.

    gpu_figures.py --floor FLOOR.json … --weft WEFT.json … [--markdown OUT.md]

FLOOR.json: what a hand-written program measured, `{"what it measured": number, …}`, or several of
them as `{"program": {…}, …}`. WEFT.json: what `weft bench …`, `weft overlap` or `weft mlp` wrote with
--json, or several of them as `{"name": {…}, …}`; a result of `weft mlp` is known by its name,
mlp_h256_b2048_2gpu or mlp_…_1gpu_fed. Prints a table in Markdown: what, weft's figure, the floor,
their ratio, the goal and whether it is reached. Both must come from one run on one machine: figures
that the host has a part in differ between machines. Exit status 1 if a goal is missed.
"""

import argparse
import json
import re
import statistics
import sys
from collections import namedtuple

Row = namedtuple("Row", "group what weft floor unit limit at_most")
SIZES = [4 ** k for k in range(1, 16)]


class Floor:
    """All figures of the hand-written programs, by what they measured."""

    def __init__(self, documents):
        self.figures = {}
        for document in documents:
            parts = [document] + [v for v in document.values() if isinstance(v, dict)]
            for part in parts:
                self.figures.update({k: v for k, v in part.items() if isinstance(v, (int, float))})

    def matching(self, pattern):
        return [v for k, v in self.figures.items() if re.fullmatch(pattern, k)]

    def least(self, pattern):
        return min(self.matching(pattern), default=None)

    def most(self, pattern):
        return max(self.matching(pattern), default=None)


class Weft:
    """All of weft's results."""

    def __init__(self, documents):
        self.named = []  # (name, document)
        for document in documents:
            if any(key in document for key in ("results", "experiments", "epochs")):
                self.named.append(("", document))
            else:
                self.named += [(k, v) for k, v in document.items() if isinstance(v, dict)]

    def is_emulated(self):
        return any(device.get("engine") == "emulated"
                   for _, document in self.named for device in document.get("devices", []))

    def overlap(self, precision, to, row, relay=False):
        """Seconds of an experiment of `weft overlap`."""
        for name, document in self.named:
            if (document.get("precision"), document.get("to")) != (precision, to):
                continue
            if ("relay" in name) != relay or document.get("dtype") != "f32":
                continue
            if (document.get("n"), document.get("ops")) != (4000, 50):
                continue  # other work than the floor's
            for entry in document.get("experiments", []):
                if entry["name"] == row:
                    return entry["seconds"]
        return None

    def results(self, bench):
        return [entry for _, document in self.named if document.get("bench") == bench
                for entry in document["results"]]

    def link(self, name):
        """GB/s of the largest copies."""
        rows = [entry for entry in self.results("links") if entry["name"] == name]
        return max(rows, key=lambda entry: entry["bytes"])["gb_per_s"] if rows else None

    def gpu_op(self, name):
        return next((e["us"] for e in self.results("gpu-ops") if e["name"] == name), None)

    def all_reduce(self, size):
        return next((e["us"] for e in self.results("collectives")
                     if (e["operation"], e["asked_for"], e["bytes"]) == ("all_reduce", "auto", size)),
                    None)

    def epoch(self, hidden, batch, gpus, fed=False):
        """Seconds of the median epoch of `weft mlp`, the first, which warms up, left out."""
        wanted = f"mlp_h{hidden}_b{batch}_{gpus}gpu" + ("_fed" if fed else "")
        for name, document in self.named:
            seconds = [epoch["seconds"] for epoch in document.get("epochs", [])][1:]
            if name == wanted and seconds:
                return statistics.median(seconds)
        return None


def format_size(size):
    for unit, power in (("GiB", 30), ("MiB", 20), ("KiB", 10)):
        if size >= 1 << power:
            return f"{size >> power} {unit}"
    return f"{size} B"


def overlap_rows(weft, floor):
    def row(what, ours, theirs, limit):
        return Row("50 products of 4000 x 4000 a GPU", what, ours, theirs, "s", limit, True)

    streams = r"\d stream\(s\)"
    both = "both GPUs, " + streams + " each s"
    yield row("fp32, one GPU", weft.overlap("fp32", "pinned", "two_gpus/gpu0"),
              floor.least("fp32 50 gemm GPU0, " + streams + " s"), None)
    yield row("fp32, both GPUs", weft.overlap("fp32", "pinned", "two_gpus/both"),
              floor.least("fp32 50 gemm " + both), 1.01)
    yield row("tf32, both GPUs", weft.overlap("tf32", "pinned", "two_gpus/both"),
              floor.least("tf32 50 gemm " + both), None)
    for precision, limit in (("fp32", None), ("tf32", 1.02)):
        yield row(f"{precision}, run and copy, one GPU, its own link",
                  weft.overlap(precision, "pinned", "copy/run_and_copy"),
                  floor.least(precision + r" run\+copy pinned GPU0, \d compute.*, own link s"), limit)
    yield row("tf32, run and copy, one GPU, the other's link too",
              weft.overlap("tf32", "pinned", "copy/run_and_copy", relay=True),
              floor.least(r"tf32 run\+copy pinned GPU0, \d compute.*, both PCIe links s"), 1.08)
    for precision, limit in (("fp32", 1.01), ("tf32", None)):
        yield row(f"{precision}, run and copy, both GPUs",
                  weft.overlap(precision, "pinned", "copy_both/both"),
                  floor.least(precision + r" run\+copy pinned both GPUs.* s"), limit)
    for precision, limit in (("fp32", 1.02), ("tf32", 1.10)):
        yield row(f"{precision}, run and copy to warm pageable memory, one GPU",
                  weft.overlap(precision, "pageable", "copy/run_and_copy"),
                  floor.least(precision + r" run\+copy (flag-staged )?pageable \(warm\), 1 GPU.* s"),
                  limit)
        yield row(f"{precision}, run and copy to warm pageable memory, both GPUs",
                  weft.overlap(precision, "pageable", "copy_both/both"),
                  floor.least(precision + r" run\+copy (flag-staged )?pageable \(warm\), 2 GPU.* s"),
                  None)


def link_rows(weft, floor):
    def row(what, name, theirs, limit=None):
        return Row("Links", what, weft.link(name), theirs, "GB/s", limit, False)

    yield row("GPU to pinned memory", "gpu0 to socket0", floor.most("D2H pinned GPU0 GB/s"))
    yield row("pinned memory to GPU", "socket0 to gpu0", floor.most("H2D pinned GPU0 GB/s"))
    yield row("both ways, one GPU", "socket0 and gpu0", floor.most(r"D2H\+H2D GPU0 together GB/s"))
    yield row("both ways, both GPUs", "all GPUs and socket0, both ways",
              floor.most(r"D2H\+H2D both GPUs together GB/s"))
    yield row("GPU to GPU", "gpu0 to gpu1", floor.most("P2P 0->1 copy engine GB/s"))
    yield row("GPU to GPU, both ways", "gpu0 and gpu1", floor.most("P2P both ways together GB/s"))
    yield row("GPU to pageable memory", "gpu0 to pageable",
              floor.most(r"D2H (flag-)?staged pageable best.* GB/s"), 0.88)
    yield row("pageable memory to GPU", "pageable to gpu0",
              floor.most(r"H2D (flag-)?staged pageable best.* GB/s"), 0.85)
    for direction, name in (("D2H", "all GPUs to pageable"), ("H2D", "pageable to all GPUs")):
        yield row(name, name, floor.most(direction + r" (flag-)?staged pageable, both GPUs.* GB/s"))


def op_rows(weft, floor):
    def row(what, name, theirs, limit=None):
        return Row("Small operations", what, weft.gpu_op(name), theirs, "us", limit, True)

    launch = floor.least(r"launch steady 1 stream us/op( \(again\))?")
    yield row("op in a chain on one GPU / bare launch", "chain_4B", launch, 1.25)
    yield row("op in one of 16 chains / bare launch", "chains_16", launch)
    yield row("hop to the other GPU / events", "cross_gpu",
              floor.least("host-issued chain, cross-GPU events us/hop"), 1.25)
    yield row("GPU, CPU, GPU, a round / kernel sets the host's flag", "host_round",
              floor.least("host round: kernel stores host flag us"), 1.2)
    yield row("the same, 4 B read by the CPU / kernel, copy, synchronise", "host_read",
              floor.least(r"host round: kernel\+D2H copy 4B\+cudaStreamSynchronize us"))
    yield row("op, program waits for it / kernel, event, query", "host_wait",
              floor.least(r"host round: kernel\+event, cudaEventQuery spin us"))


def collective_rows(weft, floor):
    for size in SIZES:
        ours = weft.all_reduce(size)
        own = floor.least(rf"(LL|pull) streams {size} B us")
        nccl = floor.least(rf"NCCL streams {size} B us")
        name = "Sum over 2 GPUs"
        if size <= 256 << 10 and own is not None:
            yield Row(name, f"{format_size(size)} / own kernel", ours, own, "us", 1.3, True)
        if nccl is not None:
            yield Row(name, f"{format_size(size)} / NCCL", ours, nccl, "us",
                      1.05 if size >= 1 << 20 else None, True)


def mlp_rows(weft, floor):
    group = "Perceptron 784-h-10, an epoch of 60000, strict fp32"
    for hidden, batch in ((256, 256), (256, 2048), (4096, 4096)):
        config = f"h{hidden} b{batch}"
        for gpus, comm in ((1, ""), (2, "(NCCL|P2P), ")):
            what = f"{config}, {gpus} GPU" + ("s" if gpus > 1 else "")
            ours = weft.epoch(hidden, batch, gpus)
            yield Row(group, what, ours,
                      floor.least(f"fp32 {config} {gpus} GPU {comm}resident, streams s/epoch"),
                      "s", 1.3, True)
            yield Row(group, what + ", fed from host memory / resident",
                      weft.epoch(hidden, batch, gpus, fed=True), ours, "s", 1.05, True)
    one, two = weft.epoch(4096, 4096, 1), weft.epoch(4096, 4096, 2)
    if one and two:  # a rate: epochs a second
        yield Row(group, "h4096 b4096, 2 GPUs / 1 GPU", 1 / two, 1 / one, "1/s", 1.7, False)


def number(value, unit):
    if value is None:
        return "-"
    if unit == "s":
        value, unit = value * 1e3, "ms"
    return f"{value:.4g} {unit}"


def table(rows, emulated):
    """The rows in Markdown, and how many goals are reached, missed and not measured."""
    lines, counts, group = [], {"yes": 0, "no": 0, "not measured": 0}, None
    for row in rows:
        if row.weft is None and row.floor is None:
            continue
        if row.group != group:
            group = row.group
            lines += ["", f"**{group}**", "", "| what | weft | floor | ratio | goal | reached |",
                      "| --- | ---: | ---: | ---: | ---: | --- |"]
        known = bool(row.weft) and bool(row.floor)
        ratio = row.weft / row.floor if known else None
        reached = ""
        if row.limit is not None:
            reached = "not measured"
            if known and not emulated:
                reached = "yes" if (ratio <= row.limit if row.at_most else ratio >= row.limit) else "no"
            counts[reached] += 1
        goal = "" if row.limit is None else f"{'<=' if row.at_most else '>='} {row.limit:g}"
        shown = "-" if ratio is None else f"{ratio:.3f}"
        lines.append(f"| {row.what} | {number(row.weft, row.unit)} | {number(row.floor, row.unit)} | "
                     f"{shown} | {goal} | {reached} |")
    total = sum(counts.values())
    lines += ["", f"Goals: {counts['yes']} of {total} reached, {counts['no']} missed, "
              f"{counts['not measured']} not measured."]
    if emulated:
        lines.append("Weft ran on emulated GPUs: the ratios say nothing about a GPU, and reach no goal.")
    return "\n".join(lines).strip() + "\n", counts


def read(paths):
    documents = []
    for path in paths:
        try:
            with open(path, encoding="utf-8") as file:
                document = json.load(file)
        except (OSError, ValueError) as error:
            print(f"gpu_figures: {path} is left out: {error}", file=sys.stderr)
            continue
        if isinstance(document, dict):
            documents.append(document)
        else:
            print(f"gpu_figures: {path} is left out: wanted a JSON object", file=sys.stderr)
    return documents


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--floor", nargs="*", default=[], metavar="FILE")
    parser.add_argument("--weft", nargs="*", default=[], metavar="FILE")
    parser.add_argument("--markdown", metavar="FILE", help="write the table to this file too")
    options = parser.parse_args()
    weft, floor = Weft(read(options.weft)), Floor(read(options.floor))
    if not weft.named and not floor.figures:
        parser.error("no figures: give files with --floor and --weft")
    rows = [row for part in (overlap_rows, link_rows, op_rows, collective_rows, mlp_rows)
            for row in part(weft, floor)]
    text, counts = table(rows, weft.is_emulated())
    print(text, end="")
    if options.markdown:
        with open(options.markdown, "w", encoding="utf-8") as file:
            file.write(text)
    return 1 if counts["no"] else 0


if __name__ == "__main__":
    sys.exit(main())
