"""Say which torch build is installed, and when it is larger than this machine needs."""

import shutil
import sys

ADVICE = """\
note: this is a CUDA build and no usable NVIDIA GPU was found here. All works on the
      CPU, but the download is several GB. To take the CPU build instead, run
      `make clean` and name PyTorch's CPU wheel index in PIP_EXTRA_INDEX_URL.
"""


def main() -> None:
    """Print one line, and the advice where it applies."""
    import torch

    sys.stdout.write(f"torch {torch.__version__}\n")
    has_gpu = torch.cuda.is_available() or shutil.which("nvidia-smi") is not None
    if torch.version.cuda is not None and not has_gpu:
        sys.stdout.write(ADVICE)


if __name__ == "__main__":
    main()
