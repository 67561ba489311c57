"""Labelled snippets for `scan`: what blocks a run on a Mac, by file and line.

The labels are judged by hand: a line is listed when the program, run as it stands on a
Mac without CUDA, stops there or its environment cannot be built. Traps look alike and
do not block. Labels were written before the scanner was run on the snippet.
"""

from __future__ import annotations

from typing import NamedTuple


class Snippet(NamedTuple):
    """One file.

    Attributes:
        name: What it shows.
        path: Its file name, which decides how it is read.
        text: Its content.
        blocks: Lines that block, from 1; empty for a trap. Line 0 is the whole file.
        trap: Whether it looks alike and does not block.
    """

    name: str
    path: str
    text: str
    blocks: tuple[int, ...] = ()

    @property
    def trap(self) -> bool:
        return not self.blocks


T = "import torch\n"
CORPUS = (
    # Devices.
    Snippet("cuda method", "a.py", T + "x = torch.ones(2).cuda()\n", (2,)),
    Snippet("to cuda", "a.py", T + "x = torch.ones(2).to('cuda')\n", (2,)),
    Snippet("device keyword", "a.py", T + "x = torch.ones(2, device='cuda:0')\n", (2,)),
    Snippet("f-string", "a.py", T + "r = 0\nd = torch.device(f'cuda:{r}')\n", (3,)),
    Snippet("plain name", "a.py", T + "device = 'cuda'\nx = torch.ones(2)\n", (2,)),
    Snippet("map_location", "a.py", T + "torch.load('a', map_location='cuda')\n", (2,)),
    Snippet(
        "else branch",
        "a.py",
        T + "m = torch.ones(1)\n"
        "if torch.cuda.is_available():\n    m.cuda()\nelse:\n    m.cuda()\n",
        (6,),
    ),
    Snippet(
        "not cpu is not cuda",
        "a.py",
        T + "d = 'mps'\nx = torch.ones(1)\nif d != 'cpu':\n    x.cuda()\n",
        (5,),
    ),
    Snippet("synchronize", "a.py", T + "torch.cuda.synchronize()\n", (2,)),
    Snippet(
        "from import", "a.py", "from torch import cuda\ncuda.set_device(0)\n", (2,)
    ),
    Snippet("alias", "a.py", "import torch as t\nt.cuda.current_device()\n", (2,)),
    Snippet("capability", "a.py", T + "torch.cuda.get_device_capability()\n", (2,)),
    Snippet("nvtx", "a.py", T + "torch.cuda.nvtx.range_push('x')\n", (2,)),
    Snippet("graphs", "a.py", T + "g = torch.cuda.CUDAGraph()\n", (2,)),
    Snippet("assert", "a.py", T + "assert torch.cuda.is_available()\n", (2,)),
    Snippet(
        "raise",
        "a.py",
        T + "if not torch.cuda.is_available():\n    raise SystemExit('no GPU')\n",
        (2,),
    ),
    Snippet("tensor type", "a.py", T + "x = torch.cuda.FloatTensor(3)\n", (2,)),
    Snippet(
        "through a list",
        "a.py",
        T + "ds = ['cuda']\nx = torch.ones(1).to(ds[0])\n",
        (3,),
    ),
    # Packages in code.
    Snippet("triton", "a.py", "import triton\n", (1,)),
    Snippet("flash", "a.py", "from flash_attn import flash_attn_func\n", (1,)),
    Snippet(
        "raised again",
        "a.py",
        "try:\n    import xformers\nexcept ImportError:\n    raise\n",
        (2,),
    ),
    Snippet(
        "wrong except",
        "a.py",
        "try:\n    import apex\nexcept KeyError:\n    pass\n",
        (2,),
    ),
    Snippet("pynvml", "a.py", "import pynvml\n", (1,)),
    Snippet("cupy", "a.py", "import cupy as cp\n", (1,)),
    Snippet("numba", "a.py", "from numba import cuda\n", (1,)),
    Snippet(
        "attention",
        "a.py",
        "import transformers as t\n"
        "t.AutoModel.from_pretrained('m', attn_implementation='flash_attention_2')\n",
        (2,),
    ),
    Snippet("deepspeed", "a.py", "import deepspeed\n", (1,)),
    # Kernels.
    Snippet("cu file", "k.cu", "__global__ void f() {}\n", (0,)),
    Snippet("cuda headers", "k.cpp", "#include <cuda_runtime.h>\n", (1,)),
    Snippet(
        "extension",
        "setup.py",
        "from setuptools import setup\n"
        "from torch.utils.cpp_extension import CUDAExtension\n"
        "setup(ext_modules=[CUDAExtension('k', ['k.cu'])])\n",
        (3,),
    ),
    Snippet(
        "compiled at run time",
        "a.py",
        "from torch.utils.cpp_extension import load\nk = load('k', ['k.cu'])\n",
        (2,),
    ),
    # Distributed.
    Snippet(
        "nccl",
        "a.py",
        "import torch.distributed as dist\ndist.init_process_group('nccl')\n",
        (2,),
    ),
    Snippet(
        "ddp",
        "a.py",
        "from torch.nn.parallel import DistributedDataParallel as D\nm = D(0)\n",
        (2,),
    ),
    Snippet("torchrun", "run.sh", "torchrun --nproc_per_node=8 a.py\n", (1,)),
    Snippet(
        "slurm", "job.sh", "#!/bin/bash\n#SBATCH --gres=gpu:4\npython a.py\n", (2,)
    ),
    # Files.
    Snippet("label", "requirements.txt", "numpy\ntorch==2.8.0+cu126\n", (2,)),
    Snippet("freeze", "requirements.txt", "nvidia-cublas-cu12==12.6.4.1\n", (1,)),
    Snippet(
        "index",
        "requirements.txt",
        "--index-url https://download.pytorch.org/whl/cu126\ntorch\n",
        (1,),
    ),
    Snippet(
        "wheel", "requirements.txt", "./x-1.0-cp311-cp311-linux_x86_64.whl\n", (1,)
    ),
    Snippet(
        "project",
        "pyproject.toml",
        '[project]\ndependencies = [\n"flash-attn>=2"]\n',
        (3,),
    ),
    Snippet("conda", "environment.yml", "dependencies:\n  - pytorch-cuda=12.1\n", (2,)),
    Snippet("config", "train.yaml", "model: x\ndevice: cuda\n", (2,)),
    Snippet("capability value", "gpu.json", '{\n"compute_capability": 8.0}\n', (2,)),
    Snippet("pip in a script", "install.sh", "pip install flash-attn\n", (1,)),
    Snippet("nvcc", "build.sh", "nvcc -o k k.cu\n", (1,)),
    Snippet("remote code", "a.py", "cmd = 'import triton'\nexec(cmd)\n", (2,)),
    # Traps: guarded.
    Snippet(
        "ternary", "a.py", T + "d = 'cuda' if torch.cuda.is_available() else 'cpu'\n"
    ),
    Snippet(
        "if",
        "a.py",
        T + "if torch.cuda.is_available():\n    torch.cuda.synchronize()\n",
    ),
    Snippet(
        "flag",
        "a.py",
        T + "ok = torch.cuda.is_available()\nif ok:\n    torch.ones(1).cuda()\n",
    ),
    Snippet(
        "negated",
        "a.py",
        T + "if not torch.cuda.is_available():\n    d = 0\n"
        "else:\n    torch.ones(1).cuda()\n",
    ),
    Snippet(
        "early return",
        "a.py",
        T + "def f(x):\n    if not torch.cuda.is_available():\n        return x\n"
        "    return x.cuda()\n",
    ),
    Snippet(
        "and",
        "a.py",
        T + "x = torch.cuda.is_available() and torch.cuda.current_device()\n",
    ),
    Snippet(
        "try",
        "a.py",
        "try:\n    import triton\nexcept ImportError:\n    triton = None\n",
    ),
    Snippet(
        "try broad",
        "a.py",
        "try:\n    from apex import amp\nexcept Exception:\n    amp = None\n",
    ),
    Snippet(
        "suppress",
        "a.py",
        "import contextlib\nwith contextlib.suppress(ImportError):\n"
        "    import xformers\n",
    ),
    Snippet(
        "find_spec",
        "a.py",
        "from importlib.util import find_spec\n"
        "if find_spec('triton'):\n    import triton\n",
    ),
    Snippet(
        "has flag",
        "a.py",
        "HAS_FLASH = False\nif HAS_FLASH:\n"
        "    from flash_attn import flash_attn_func\n",
    ),
    Snippet(
        "device type",
        "a.py",
        T + "x = torch.ones(1)\nif x.device.type == 'cuda':\n"
        "    torch.cuda.synchronize()\n",
    ),
    Snippet(
        "match",
        "a.py",
        T + "d = 'cpu'\nmatch d:\n    case 'cuda':\n        torch.cuda.synchronize()\n",
    ),
    Snippet("function import", "a.py", "def fast():\n    import triton\n"),
    # Traps: harmless or changeable.
    Snippet(
        "seed", "a.py", T + "torch.cuda.manual_seed_all(0)\ntorch.cuda.empty_cache()\n"
    ),
    Snippet("cudnn", "a.py", T + "torch.backends.cudnn.benchmark = True\n"),
    Snippet("scaler", "a.py", T + "s = torch.cuda.amp.GradScaler()\n"),
    Snippet(
        "option",
        "a.py",
        "import argparse\np = argparse.ArgumentParser()\n"
        "p.add_argument('--device', default='cuda')\n",
    ),
    Snippet("parameter", "a.py", "def f(x, device='cuda'):\n    return x.to(device)\n"),
    Snippet(
        "gloo", "a.py", "import torch.distributed as d\nd.init_process_group('gloo')\n"
    ),
    Snippet(
        "data parallel",
        "a.py",
        T + "m = torch.nn.DataParallel(torch.nn.Linear(1, 1))\n",
    ),
    Snippet(
        "mps first",
        "a.py",
        T
        + "x = torch.ones(1)\nif torch.backends.mps.is_available():\n    x.to('mps')\n"
        "elif torch.cuda.is_available():\n    x.to('cuda')\n",
    ),
    # Traps: words.
    Snippet("comment", "a.py", "# needs triton, cuda and nccl\nx = 1\n"),
    Snippet("docstring", "a.py", '"""Uses flash_attn on cuda."""\n'),
    Snippet("message", "a.py", "print('cuda or nccl is not available')\n"),
    Snippet("choices", "a.py", "DEVICES = ['cpu', 'cuda', 'mps']\n"),
    Snippet("other name", "a.py", "triton = 3\ncuda_free = triton + 1\n"),
    Snippet(
        "own method",
        "a.py",
        "class A:\n    def cuda(self):\n        return 1\n\n    def f(self):\n"
        "        return self.cuda()\n",
    ),
    Snippet("markdown", "README.md", "pip install flash-attn\n"),
    Snippet("echo", "run.sh", 'echo "needs nvcc and torchrun"\npython a.py\n'),
    Snippet("shell comment", "run.sh", "# torchrun --nproc 8\npython a.py\n"),
    # Traps: optional.
    Snippet("marker", "requirements.txt", 'triton==3.4 ; platform_system == "Linux"\n'),
    Snippet(
        "extra",
        "pyproject.toml",
        '[project]\n[project.optional-dependencies]\ngpu = ["flash-attn"]\n',
    ),
    Snippet(
        "guarded build",
        "setup.py",
        "from torch.utils.cpp_extension import CUDAExtension, CUDA_HOME\n"
        "ext = []\nif CUDA_HOME is not None:\n    ext = [CUDAExtension('k', [])]\n",
    ),
    Snippet("guarded tool", "run.sh", "nvidia-smi || true\npython a.py\n"),
    Snippet(
        "guarded script",
        "run.sh",
        "if command -v nvcc; then\n  nvcc -o k k.cu\nfi\npython a.py\n",
    ),
    Snippet(
        "extra index",
        "requirements.txt",
        "--extra-index-url https://a/whl/cu126\ntorch\n",
    ),
    Snippet("auto", "train.yaml", "device: auto\n# device: cuda\n"),
    Snippet(
        "similar name",
        "requirements.txt",
        "nvidia-riva-client\ntriton-model-navigator\n",
    ),
    Snippet(
        "type",
        "a.py",
        T + "def f(s):\n    return isinstance(s, torch.cuda.Stream)\n",
    ),
    Snippet("metal", "k.metal", "kernel void f() {}\n"),
    # Traps and blockers added in December 2026, labelled before the scan was run.
    Snippet(
        "early return, called",
        "a.py",
        T + "def f(x):\n    if not torch.cuda.is_available():\n        return x\n"
        "    return x.cuda()\n\n\nf(torch.ones(1))\n",
    ),
    Snippet(
        "ternary device",
        "a.py",
        T + "d = 'cuda' if torch.cuda.is_available() else 'mps'\n"
        "m = torch.ones(1).to(d)\n",
    ),
    Snippet(
        "suppressed import",
        "a.py",
        "import contextlib\nwith contextlib.suppress(ImportError):\n"
        "    import triton\n",
    ),
    Snippet(
        "test of a name",
        "a.py",
        T + "x = torch.ones(1)\nassert x.device.type in ('cpu', 'cuda', 'mps')\n",
    ),
    Snippet(
        "count is a question",
        "a.py",
        T + "n = torch.cuda.device_count()\nprint(n)\n",
    ),
    Snippet(
        "seed for all",
        "a.py",
        T + "torch.cuda.manual_seed_all(0)\n",
    ),
    Snippet("version of cuda", "a.py", T + "print(torch.version.cuda)\n"),
    Snippet("shell variable", "run.sh", "export CUDA_VISIBLE_DEVICES=0\npython a.py\n"),
    Snippet("mac requirement", "requirements.txt", "mlx ; sys_platform == 'darwin'\n"),
    Snippet(
        "empty cache",
        "a.py",
        T + "torch.cuda.empty_cache()\n",
    ),
    Snippet(
        "event",
        "a.py",
        T + "start = torch.cuda.Event(enable_timing=True)\n",
        (2,),
    ),
    Snippet(
        "stream",
        "a.py",
        T + "with torch.cuda.stream(torch.cuda.Stream()):\n    pass\n",
        (2,),
    ),
    # From reading ten more packages: names, enums, launchers, forms of one's own.
    Snippet(
        "type of ddp",
        "a.py",
        "from torch.nn.parallel import DistributedDataParallel as D\n"
        "def bare(m):\n    return m.module if isinstance(m, (D,)) else m\n",
    ),
    Snippet(
        "setting of fsdp",
        "a.py",
        "from torch.distributed.fsdp import ShardingStrategy\n"
        "s = ShardingStrategy['FULL_SHARD']\n",
    ),
    Snippet(
        "sharded",
        "a.py",
        T + "from torch.distributed.fsdp import FullyShardedDataParallel as F\n"
        "m = F(torch.nn.Linear(1, 1))\n",
        (3,),
    ),
    Snippet(
        "member of an enum",
        "a.py",
        "import torch.distributed as d\nfrom own import Kind, state\n"
        "if state.distributed_type == Kind.MULTI_GPU:\n"
        "    d.init_process_group('nccl')\n",
    ),
    Snippet(
        "no member of an enum",
        "a.py",
        "import torch.distributed as d\nfrom own import Kind, state\n"
        "if state.distributed_type == Kind.NO:\n"
        "    d.init_process_group('nccl')\n",
        (4,),
    ),
    Snippet(
        "variable of a launcher",
        "a.py",
        "import os\nimport torch.distributed as d\n"
        "if int(os.environ.get('LOCAL_RANK', -1)) != -1:\n"
        "    d.init_process_group('nccl')\n",
    ),
    Snippet(
        "question about a package",
        "a.py",
        "from own import is_megatron_lm_available\n"
        "if is_megatron_lm_available():\n    import megatron.core\n",
    ),
    Snippet(
        "question about another thing",
        "a.py",
        "from own import is_torch_available\n"
        "if is_torch_available():\n    import deepspeed\n",
        (3,),
    ),
    Snippet(
        "import for types",
        "a.py",
        "from typing import TYPE_CHECKING\n"
        "if TYPE_CHECKING:\n    from deepspeed import DeepSpeedEngine\n",
    ),
    Snippet(
        "other branch than types",
        "a.py",
        "from typing import TYPE_CHECKING\n"
        "if TYPE_CHECKING:\n    pass\nelse:\n    import deepspeed\n",
        (5,),
    ),
    Snippet(
        "own form of cuda",
        "a.py",
        T + "class M(torch.nn.Module):\n    def cuda(self, device=None):\n"
        "        return self._apply(lambda t: t.cuda(device))\n",
    ),
    Snippet(
        "called by what nobody calls",
        "a.py",
        "def low():\n    import deepspeed\n\n\ndef high():\n    low()\n",
    ),
    Snippet(
        "called through two",
        "a.py",
        "def low():\n    import deepspeed\n\n\ndef high():\n    low()\n\n\nhigh()\n",
        (2,),
    ),
    Snippet(
        "made by making an object",
        "a.py",
        "class Base:\n    def __init__(self):\n        import deepspeed\n\n\n"
        "class Run(Base):\n    pass\n\n\nRun()\n",
        (3,),
    ),
    # Names, fields and look-ups.
    Snippet("annotated", "a.py", "device: str = 'cuda:0'\n", (1,)),
    Snippet("tuple", "a.py", "device, size = 'cuda', 3\n", (1,)),
    Snippet("dictionary", "a.py", "settings = {'device': 'cuda', 'n': 3}\n", (1,)),
    Snippet(
        "through a name",
        "a.py",
        T + "g = 'cuda'\nx = torch.ones(1, device=g)\ny = torch.ones(1).to(g)\n",
        (3, 4),
    ),
    Snippet(
        "tensor type by name", "a.py", T + "x = y.type(torch.cuda.FloatTensor)\n", (2,)
    ),
    Snippet(
        "device context", "a.py", T + "with torch.cuda.device(0):\n    pass\n", (2,)
    ),
    Snippet("strategy", "a.py", "t = Trainer(strategy='ddp', gpus=4)\n", (1,)),
    Snippet("field", "a.py", "class C:\n    device: str = 'cuda'\n"),
    Snippet("look-up", "a.py", "import os\nd = os.environ.get('DEVICE', 'cuda')\n"),
    Snippet("or", "a.py", "d = arguments.device or 'cuda'\n"),
    Snippet(
        "a name set behind a guard",
        "a.py",
        T + "g = 'cpu'\nif torch.cuda.is_available():\n    g = 'cuda'\n"
        "x = torch.ones(1, device=g)\n",
    ),
    Snippet(
        "a name set anew",
        "a.py",
        T + "g = 'cuda'\nif not torch.cuda.is_available():\n    g = 'cpu'\n"
        "x = torch.ones(1, device=g)\n",
    ),
    Snippet(
        "a parameter of the same name",
        "a.py",
        T + "g = 'cuda'\ndef f(g):\n    return torch.ones(1, device=g)\n",
    ),
    # Scripts, recipes and settings.
    Snippet(
        "after a condition in one line",
        "a.sh",
        "if command -v nvidia-smi; then nvidia-smi; fi\npython a.py --device cuda\n",
        (2,),
    ),
    Snippet(
        "no driver, no run",
        "a.sh",
        "if ! command -v nvidia-smi; then\n  exit 1\nfi\n",
        (2,),
    ),
    Snippet("override", "a.sh", "python a.py model.device=cuda\n", (1,)),
    Snippet("exported", "a.sh", "export DEVICE=cuda\n", (1,)),
    Snippet("short options", "a.slurm", "#SBATCH -p gpu\npython a.py\n", (1,)),
    Snippet("PBS", "a.sh", "#PBS -l select=1:ngpus=4\npython a.py\n", (1,)),
    Snippet("containerfile", "Containerfile", 'CMD ["torchrun", "a.py"]\n', (1,)),
    Snippet(
        "apptainer",
        "a.def",
        "Bootstrap: docker\nFrom: nvidia/cuda:12.1.0\n%post\npip install flash-attn\n",
        (4,),
    ),
    Snippet(".env", ".env", "DEVICE=cuda\n", (1,)),
    Snippet("several", "a.yaml", "distributed_type: MULTI_GPU\ngpus: 8\n", (1, 2)),
    Snippet(
        "list in one line",
        "environment.yml",
        "dependencies: [python, pytorch-cuda=12.1, {pip: [apex]}]\n",
        (1,),
    ),
    Snippet("a default", "a.sh", "DEVICE=${DEVICE:-cuda}\n"),
    Snippet("a look-up in settings", "a.yaml", "device: ${oc.env:DEVICE,cuda}\n"),
    Snippet("switched off", "a.yaml", "ddp: false\ngpus: 1\n"),
    Snippet(
        "on a Mac only",
        "a.sh",
        "if ! nvidia-smi; then\n  python a.py --device mps\n  exit 0\nfi\n",
    ),
    Snippet("a macro file", "a.def", "EXPORTS\n  torchrun\n"),
    Snippet(
        "one process", "a.slurm", "# nodes, gpus and partition: none\npython a.py\n"
    ),
    Snippet(
        "a flag that is set",
        "a.py",
        T + "USE_CUDA = True\nif USE_CUDA:\n    torch.ones(1).cuda()\n",
        (4,),
    ),
    Snippet(
        "a flag that a missing package takes back",
        "a.py",
        "HAS_FLASH = True\ntry:\n    import flash_attn\nexcept ImportError:\n"
        "    HAS_FLASH = False\nif HAS_FLASH:\n    from flash_attn import a\n",
    ),
    Snippet(
        "too few",
        "a.py",
        T + "if torch.cuda.device_count() < 1:\n    raise RuntimeError('no GPU')\n",
        (2,),
    ),
    Snippet(
        "one is not several",
        "a.py",
        T + "if torch.cuda.device_count() == 1:\n    raise RuntimeError('one')\n",
    ),
    Snippet(
        "started launcher",
        "a.py",
        "import subprocess\nsubprocess.run(['torchrun', 'a.py'])\n",
        (2,),
    ),
)
