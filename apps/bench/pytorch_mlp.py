#!/usr/bin/env python3
"""The model of `weft mlp --devices socket0` in PyTorch on the same cores: seconds an epoch, and the
ratio. The best that PyTorch does without its data loader: the pictures lie in one tensor of bytes,
a minibatch is gathered by index and normalised, loss and accuracy are summed without a look at
them before the epoch ends.

    python3 apps/bench/pytorch_mlp.py build/release/bin/weft

Epochs of both alternate in pairs of runs, so that both see the same machine. Where torch is not
importable it says so and ends with 0.
"""
import argparse
import gzip
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time


def read_idx(folder, name):
    path = pathlib.Path(folder) / name
    raw = path.read_bytes() if path.exists() else gzip.decompress(
        pathlib.Path(f"{path}.gz").read_bytes())
    dimensions = raw[3]
    shape = [int.from_bytes(raw[4 + 4 * i:8 + 4 * i], "big") for i in range(dimensions)]
    return raw[4 + 4 * dimensions:], shape


def make_trainer(torch, options):
    raw, shape = read_idx(options.dataset, "train-images-idx3-ubyte")
    images = torch.frombuffer(bytearray(raw), dtype=torch.uint8).reshape(shape[0], -1)
    labels = torch.frombuffer(
        bytearray(read_idx(options.dataset, "train-labels-idx1-ubyte")[0]), dtype=torch.uint8).long()
    mean = images.float().mean(0)
    deviation = (images.float() - mean).std().item()
    torch.manual_seed(options.seed)
    model = torch.nn.Sequential(torch.nn.Linear(images.shape[1], options.hidden), torch.nn.ReLU(),
                                torch.nn.Linear(options.hidden, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=options.lr, momentum=options.momentum)
    criterion = torch.nn.CrossEntropyLoss()

    def epoch():
        start = time.perf_counter()
        order = torch.randperm(len(labels))
        loss_sum, correct = torch.zeros(()), torch.zeros((), dtype=torch.long)
        for indices in order.split(options.batch):
            x = images[indices].float().sub_(mean).mul_(1 / deviation)
            y = labels[indices]
            z = model(x)
            loss = criterion(z, y)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            with torch.no_grad():
                loss_sum += loss * len(y)
                correct += (z.argmax(1) == y).sum()
        mean_loss = (loss_sum / len(labels)).item()
        return time.perf_counter() - start, mean_loss, (correct / len(labels)).item()

    return epoch


def run_weft(options):
    command = [options.weft, "mlp", "--devices", "socket0", "--json", "-", "--dataset", options.dataset]
    for name in ("hidden", "batch", "epochs", "lr", "momentum", "seed"):
        command += [f"--{name}", str(getattr(options, name))]
    command += ["--eval-every", str(options.epochs)]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True)
    return json.loads(done.stdout)["epochs"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("weft", nargs="?", default="build/release/bin/weft")
    parser.add_argument("--dataset", default="/usr/share/datasets/fashion-mnist")
    parser.add_argument("--hidden", type=int, default=256)
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--epochs", type=int, default=4, help="a run; the first is warm-up")
    parser.add_argument("--repeats", type=int, default=5, help="runs of each")
    parser.add_argument("--lr", type=float, default=0.008)
    parser.add_argument("--momentum", type=float, default=0.9)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    try:
        import torch
    except ImportError:
        print("pytorch_mlp: skipped, torch is not importable (pip install torch)")
        return 0
    cores = len(os.sched_getaffinity(0))
    torch.set_num_threads(cores)
    epoch = make_trainer(torch, options)
    theirs, ours = [], []
    for _ in range(options.repeats):
        runs = [epoch() for _ in range(options.epochs)]
        theirs += [seconds for seconds, _, _ in runs[1:]]
        epochs = run_weft(options)
        ours += [one["seconds"] for one in epochs[1:]]
    print(f"machine: {cores} cores, torch {torch.__version__}, {torch.get_num_threads()} threads; "
          f"784-{options.hidden}-10, batch {options.batch}, momentum {options.momentum}, "
          f"{len(ours)} epochs of each")
    for name, seconds in (("pytorch", theirs), ("weft", ours)):
        print(f"{name:8} {statistics.median(seconds):.4f} s an epoch, median "
              f"({min(seconds):.4f} to {max(seconds):.4f})")
    print(f"ratio    {statistics.median(ours) / statistics.median(theirs):.3f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
