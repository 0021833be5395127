#!/usr/bin/env python3
"""Tests of scripts/gpu_figures.py: gpu_figures_test.py SCRIPT"""

import json
import os
import subprocess
import sys
import tempfile
import unittest

SCRIPT = os.path.abspath(sys.argv.pop(1))


def overlap(row, seconds, precision="fp32", to="pinned", n=4000, engine="cuda"):
    return {"experiments": [{"name": row, "seconds": seconds}], "n": n, "ops": 50, "dtype": "f32",
            "precision": precision, "to": to, "devices": [{"id": "gpu0", "engine": engine}]}


class Figures(unittest.TestCase):
    def run_script(self, floor, weft, arguments=()):
        with tempfile.TemporaryDirectory() as folder:
            paths = {}
            for kind, documents in (("floor", floor), ("weft", weft)):
                paths[kind] = []
                for i, document in enumerate(documents):
                    paths[kind].append(os.path.join(folder, f"{kind}{i}.json"))
                    with open(paths[kind][-1], "w", encoding="utf-8") as file:
                        file.write(document if isinstance(document, str) else json.dumps(document))
            command = [sys.executable, SCRIPT, "--floor", *paths["floor"], "--weft", *paths["weft"]]
            return subprocess.run([*command, *arguments], capture_output=True, text=True, check=False)

    def line(self, done, what):
        lines = [line for line in done.stdout.splitlines() if line.startswith(f"| {what} |")]
        self.assertEqual(len(lines), 1, done.stdout + done.stderr)
        return [cell.strip() for cell in lines[0].strip("|").split("|")]

    def test_a_time_is_held_against_the_best_floor(self):
        floor = {"fp32 50 gemm both GPUs, 1 stream(s) each s": 0.131,
                 "fp32 50 gemm both GPUs, 2 stream(s) each s": 0.125, "a note": "fast"}
        done = self.run_script([floor], [overlap("two_gpus/both", 0.126)])
        self.assertEqual(self.line(done, "fp32, both GPUs"),
                         ["fp32, both GPUs", "126 ms", "125 ms", "1.008", "<= 1.01", "yes"])
        self.assertEqual(done.returncode, 0)
        done = self.run_script([floor], [overlap("two_gpus/both", 0.127)])
        self.assertEqual(self.line(done, "fp32, both GPUs")[-1], "no")
        self.assertEqual(done.returncode, 1)

    def test_a_rate_must_be_large(self):
        floor = {"exp12": {"D2H staged pageable best GB/s": 50,
                           "D2H flag-staged pageable best (8 workers, 1024 KB) GB/s": 40}}
        for rate, reached in ((45, "yes"), (43, "no")):
            links = {"bench": "links", "results": [
                {"name": "gpu0 to pageable", "bytes": 4096, "gb_per_s": 99},
                {"name": "gpu0 to pageable", "bytes": 1 << 30, "gb_per_s": rate}]}
            done = self.run_script([floor], [{"links": links}])
            self.assertEqual(self.line(done, "GPU to pageable memory")[1:],
                             [f"{rate} GB/s", "50 GB/s", f"{rate / 50:.3f}", ">= 0.88", reached])

    def test_what_is_missing_is_said_and_is_no_failure(self):
        done = self.run_script([{"fp32 50 gemm both GPUs, 2 stream(s) each s": 0.125}], [])
        self.assertEqual(self.line(done, "fp32, both GPUs")[-1], "not measured")
        self.assertIn("1 not measured", done.stdout)
        self.assertEqual(done.returncode, 0)

    def test_other_work_and_other_results_are_not_taken(self):
        floor = {"fp32 50 gemm both GPUs, 2 stream(s) each s": 0.125}
        for other in (overlap("two_gpus/both", 0.1, n=128),
                      overlap("two_gpus/both", 0.1, precision="tf32"),
                      overlap("two_gpus/both", 0.1, to="pageable"),
                      {"overlap_relay": overlap("two_gpus/both", 0.1)}):
            self.assertEqual(self.line(self.run_script([floor], [other]), "fp32, both GPUs")[1], "-")

    def test_emulated_gpus_reach_no_goal(self):
        done = self.run_script([{"fp32 50 gemm both GPUs, 2 stream(s) each s": 0.125}],
                               [overlap("two_gpus/both", 0.1, engine="emulated")])
        self.assertEqual(self.line(done, "fp32, both GPUs")[-1], "not measured")
        self.assertIn("emulated", done.stdout)

    def test_sums_over_gpus_against_own_kernels_and_nccl(self):
        floor = {"NCCL streams 4096 B us": 9, "LL streams 4096 B us": 4, "pull streams 4096 B us": 6,
                 "NCCL streams 1048576 B us": 14, "NCCL graph 1048576 B us": 12}
        results = [{"operation": "all_reduce", "asked_for": asked, "bytes": size, "us": us}
                   for asked, size, us in (("ring", 4096, 1), ("auto", 4096, 5), ("auto", 1 << 20, 15))]
        done = self.run_script([floor], [{"c": {"bench": "collectives", "results": results}}])
        self.assertEqual(self.line(done, "4 KiB / own kernel")[1:],
                         ["5 us", "4 us", "1.250", "<= 1.3", "yes"])
        self.assertEqual(self.line(done, "4 KiB / NCCL")[4:], ["", ""])
        self.assertEqual(self.line(done, "1 MiB / NCCL")[3:], ["1.071", "<= 1.05", "no"])

    def test_epochs_leave_out_the_first_and_are_known_by_name(self):
        floor = {"fp32 h4096 b4096 2 GPU P2P, resident, streams s/epoch": 0.010,
                 "fp32 h4096 b4096 2 GPU P2P 4 panels, resident, streams s/epoch": 0.001,
                 "fp32 h4096 b4096 2 GPU NCCL, resident, streams s/epoch": 0.011,
                 "fp32 h4096 b4096 2 GPU P2P, resident, graph s/epoch": 0.002}
        weft = {name: {"epochs": [{"seconds": s} for s in seconds]} for name, seconds in (
            ("mlp_h4096_b4096_1gpu", (9, 0.018)), ("mlp_h4096_b4096_2gpu", (9, 0.012, 0.010, 0.009)),
            ("mlp_h4096_b4096_2gpu_fed", (9, 0.0104)))}
        done = self.run_script([floor], [weft])
        self.assertEqual(self.line(done, "h4096 b4096, 2 GPUs")[1:4], ["10 ms", "10 ms", "1.000"])
        self.assertEqual(self.line(done, "h4096 b4096, 2 GPUs, fed from host memory / resident")[3:],
                         ["1.040", "<= 1.05", "yes"])
        self.assertEqual(self.line(done, "h4096 b4096, 2 GPUs / 1 GPU")[3:],
                         ["1.800", ">= 1.7", "yes"])

    def test_a_broken_file_is_named_and_left_out(self):
        done = self.run_script(['{"fp32 50 gemm'], [overlap("two_gpus/both", 0.1)])
        self.assertIn("floor0.json is left out", done.stderr)
        self.assertEqual(self.line(done, "fp32, both GPUs")[1], "100 ms")

    def test_the_table_goes_to_a_file_too(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "table.md")
            done = self.run_script([], [overlap("two_gpus/both", 0.1)], ["--markdown", path])
            with open(path, encoding="utf-8") as file:
                self.assertEqual(file.read(), done.stdout)

    def test_nothing_to_show_is_an_error(self):
        done = self.run_script([], [])
        self.assertEqual(done.returncode, 2)
        self.assertIn("--floor and --weft", done.stderr)


if __name__ == "__main__":
    unittest.main()
