"""Measure what the recorder costs three real steps: GPT, ResNet-50, a small network.

    python benchmarks/models.py --device cuda      # GPT of 124 million parameters …
    python benchmarks/models.py --model mlp        # one of them, here on the CPU

Each process trains one model for some steps, and its clock is read with the device
idle after every step. Three kinds of process take turns: without a recorder; with the
hooks of a measured pass; and with an evidence pass, whose steps are told apart into
those with the census of operators alone and those sampled for the profile and the
fingerprints too (steps 1 to 3, then 4, 8, 16, …). Shown are medians over all processes,
and their ratio to the median without a recorder. The first ten steps are left out, but
among the sampled ones, where those from step 4 on count.

The models are drawn, not downloaded: their shapes are those of GPT-2 (12 layers of 768,
12 heads, a vocabulary of 50,257) and of ResNet-50 (bottlenecks of 3, 4, 6 and 3).
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RECORDER = ROOT / "reprobundle" / "recorder"
WARMUP_STEPS = 10
LOOP = Path(__file__).with_name("models_loop.py")


def train(folder: Path, pass_name: str, arguments: list[str]) -> tuple[int, list[int]]:
    """Return the number of parameters and the nanoseconds of each step.

    Args:
        folder: Empty.
        pass_name: ``measured``, ``evidence``, or empty for no recorder.
        arguments: Of the loop.
    """
    project = folder / "project"
    project.mkdir()
    shutil.copyfile(LOOP, project / "loop.py")
    environment = dict(os.environ)
    if pass_name:
        environment.update(entered(folder, project, pass_name))
    done = subprocess.run(
        [sys.executable, "loop.py", *arguments],
        cwd=project,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        check=True,
    )
    parameters, times = json.loads(done.stdout.splitlines()[-1])
    return parameters, times


def entered(folder: Path, project: Path, pass_name: str) -> dict[str, str]:
    """Return the variables that put a recorder into a Python process."""
    session = folder / "session"
    (session / "events").mkdir(parents=True)
    (session / "values").mkdir()
    enter = session / "enter"
    shutil.copytree(
        RECORDER,
        enter / "_reprobundle_recorder",
        ignore=shutil.ignore_patterns("__pycache__"),
    )
    shutil.copyfile(RECORDER / "entry" / "sitecustomize.py", enter / "sitecustomize.py")
    config = {"project": str(project), "pass": pass_name}
    (session / "config.json").write_text(json.dumps(config))
    return {"REPROBUNDLE_SESSION": str(session), "PYTHONPATH": str(enter)}


def is_sampled(step: int) -> bool:
    """Whether the profile and the fingerprints look at this step, counted from 1."""
    return step & (step - 1) == 0


def measure(model: str, options: argparse.Namespace) -> None:
    """Print the rows of one model."""
    size = "full" if options.device == "cuda" else "small"
    arguments = [model, options.device, str(options.steps), size]
    found: dict[str, list[int]] = {"none": [], "hooks": [], "census": [], "sampled": []}
    parameters = 0
    for _ in range(options.processes):
        for pass_name in ("", "measured", "evidence"):
            with tempfile.TemporaryDirectory() as folder:
                parameters, times = train(Path(folder), pass_name, arguments)
            for step, elapsed_ns in enumerate(times, 1):
                if pass_name == "evidence" and step > 3 and is_sampled(step):
                    found["sampled"].append(elapsed_ns)
                elif step > WARMUP_STEPS:
                    kind = {"": "none", "measured": "hooks"}.get(pass_name, "census")
                    found[kind].append(elapsed_ns)
    base = statistics.median(found["none"])
    for kind, times in found.items():
        middle = statistics.median(times)
        print(
            f"| {model}, {parameters / 1e6:.1f} M | {kind} | {middle / 1e6:.2f} ms | "
            f"{(middle / base - 1) * 100:+.1f} % | {len(times)} |",
            flush=True,
        )


def main() -> None:
    """Measure the models asked for."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--model", choices=("gpt", "resnet50", "mlp"), action="append")
    parser.add_argument("--processes", type=int, default=3)
    parser.add_argument("--steps", type=int, default=70)
    options = parser.parse_args()
    print("| model | recorder | step, wall time | added | steps |")
    print("|---|---|---|---|---|")
    for model in options.model or ("gpt", "resnet50", "mlp"):
        measure(model, options)


if __name__ == "__main__":
    main()
