"""What the other machine is: boot, processes, memory, disk, system, packages."""

import contextlib
import os
import platform
import shutil
import subprocess

BOOT_FILE = "/proc/sys/kernel/random/boot_id"
ASK_PACKAGES = (
    "import importlib.metadata as m, platform, sys; print(platform.python_version());"
    "print(*sorted({'%s==%s' % (d.metadata['Name'], d.version)"
    " for d in m.distributions()}), sep='\\n')"
)


def output(*command: str) -> str:
    """Return what a command of the system prints, empty when it cannot be had."""
    try:
        done = subprocess.run(
            command,
            env=dict(os.environ, LC_ALL="C"),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            check=False,
            timeout=60,
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.decode(errors="replace").strip()


def boot_id() -> str:
    """Return what changes at each start of the machine; empty when unknown."""
    with contextlib.suppress(OSError), open(BOOT_FILE) as stream:
        return stream.read().strip()
    found = output("/usr/sbin/sysctl", "-n", "kern.bootsessionuuid")
    return found or output("/usr/sbin/sysctl", "-n", "kern.boottime")


def start_token(pid: int) -> str:
    """Return what tells this process from a later one of its id; empty for none."""
    if os.path.exists("/proc/self/stat"):
        try:
            with open(f"/proc/{pid}/stat", errors="replace") as stream:
                fields = stream.read().rpartition(")")[2].split()
        except OSError:
            return ""
        return "" if fields[0] in ("Z", "X") else fields[19]
    state, _, started = output("ps", "-o", "stat=,lstart=", "-p", str(pid)).partition(
        " "
    )
    return "" if not state or state.startswith("Z") else " ".join(started.split())


def memory_bytes() -> "dict[str, int]":
    """Return total and available memory in bytes; 0 for what is not known."""
    total, free = 0, 0
    with contextlib.suppress(OSError, ValueError):
        page = os.sysconf("SC_PAGE_SIZE")
        total = page * os.sysconf("SC_PHYS_PAGES")
        free = page * os.sysconf("SC_AVPHYS_PAGES")
    try:
        with open("/proc/meminfo") as stream:
            lines = dict(line.split(":", 1) for line in stream)
        free = 1024 * int(lines["MemAvailable"].split()[0])
    except (OSError, KeyError, ValueError):
        total = total or int(output("/usr/sbin/sysctl", "-n", "hw.memsize") or 0)
        free = free or free_pages()
    return {"total_bytes": total, "free_bytes": free}


def free_pages() -> int:
    """Return the memory that macOS could hand out, by ``vm_stat``, in bytes."""
    lines = output("/usr/bin/vm_stat").splitlines()
    if not lines:
        return 0
    digits = "".join(c for c in lines[0] if c.isdigit())
    pages = 0
    for line in lines[1:]:
        name, _, value = line.partition(":")
        if name in ("Pages free", "Pages inactive", "Pages speculative"):
            pages += int(value.strip(" ."))
    return pages * int(digits or 4096)


def existing(path: str) -> str:
    """Return `path`, or its nearest parent that exists."""
    while not os.path.exists(path):
        path = os.path.dirname(path)
    return path


def disk_free(path: str) -> int:
    """Return the bytes this user may still write at `path` or its nearest parent."""
    while not os.path.exists(path):
        path = os.path.dirname(path)
    return shutil.disk_usage(path).free


def system_facts() -> "dict[str, str]":
    """Return the facts about the system that a change of would be told."""
    return {
        "host": platform.node(),
        "system": platform.system(),
        "machine": platform.machine(),
        "kernel": platform.release(),
        "os": platform.mac_ver()[0] or " ".join(platform.libc_ver()),
        "build": output("/usr/bin/sw_vers", "-buildVersion") or platform.version(),
    }


def environment(python: str) -> "dict[str, str]":
    """Return the facts of the system and of the interpreter that runs the command."""
    facts = system_facts()
    lines = output(python, "-I", "-c", ASK_PACKAGES).splitlines() if python else []
    if lines:
        facts["python"] = lines[0]
        for line in lines[1:]:
            name, _, version = line.partition("==")
            facts["package " + name] = version
    elif python:
        facts["python"] = "cannot be asked"
    return facts


def changes(before: "dict[str, str]", now: "dict[str, str]") -> "list[str]":
    """Return each difference of two environments as a phrase."""
    names = sorted(set(before) | set(now))
    return [
        "{} was {}, is {}".format(
            name, before.get(name, "absent"), now.get(name, "absent")
        )
        for name in names
        if before.get(name) != now.get(name)
    ]
