"""The lock: every installed distribution of the environment a run was made in.

``lock/environment.json`` is read from the live environment, so it holds what really
was imported from, local labels such as ``+cpu`` included. It carries no credentials
and no path of a home folder; addresses only in the form that reaches a package again.
"""

from typing import Annotated, Final, Literal

import msgspec

from reprobundle.format.record import Count, Digest

LOCK_SCHEMA: Final = "reprobundle/lock/1"
LOCK_MEMBER = "lock/environment.json"
PYLOCK_MEMBER = "lock/pylock.toml"

# A lock comes from a stranger and its fields end up in a requirements file: a name or
# version that could carry a space, a line break or an option must not decode at all.
Name = Annotated[str, msgspec.Meta(pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$", max_length=200)]
Version = Annotated[
    str, msgspec.Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9.!+_-]*$", max_length=200)
]
Label = Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9._-]*$", max_length=100)]
Detail = Annotated[str, msgspec.Meta(pattern=r"^[^\x00-\x20\x7f]*$", max_length=2000)]
Sha256 = Annotated[str, msgspec.Meta(pattern=r"^([0-9a-f]{64})?$", max_length=64)]
Origin = Literal["index", "url", "vcs", "editable", "local"]

# Published for one operating system only, by their makers.
_PLATFORM_BOUND_PREFIXES = ("nvidia-", "cuda-", "triton", "pytorch-triton")


class Interpreter(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True
):
    """The Python that the run used.

    Attributes:
        version: Full version, such as ``3.11.7``.
        implementation: ``CPython``, ``PyPy``.
        architecture: What the interpreter was built for: ``x86_64``, ``arm64``.
        system: ``linux``, ``darwin``.
        platform: Platform of the wheels it installs: ``linux_x86_64``,
            ``macosx_14_0_arm64``.
        libc: C library with its version, such as ``glibc 2.36``; empty elsewhere.
    """

    version: Annotated[str, msgspec.Meta(pattern=r"^\d+\.\d+[0-9A-Za-z.+]*$")]
    implementation: str
    architecture: str
    system: str
    platform: str
    libc: str = ""

    @property
    def minor(self) -> str:
        """The version that decides which wheels fit, such as ``3.11``."""
        return ".".join(self.version.split(".")[:2])


class Distribution(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True
):
    """One installed distribution.

    Attributes:
        name: Normalised: lower case, ``-`` between words.
        version: Full version with its local label, such as ``2.13.0+cpu``.
        local_label: The part behind ``+``; it names a build, not a release.
        origin: Where it came from: ``index`` (an index or a folder of wheels),
            ``url`` (an archive's address), ``vcs`` (a commit), ``editable`` (a source
            folder), ``local`` (a file or folder on that machine).
        detail: For ``url`` the address, for ``vcs`` ``git+address@commit``, for
            ``editable`` ``{project}`` or the folder with its commit, for ``local``
            ``{project}`` or the name of the file or folder; empty for ``index``.
        sha256: Digest of the archive it was installed from; empty when the installer
            did not keep it (none does for ``index``).
        installer: What installed it, as it says itself: ``pip``, ``uv``, ``conda``.
        record_digest: BLAKE3 over the sorted ``path,hash`` lines of its RECORD
            without what the installer adds: the same wheel gives the same digest in
            every environment. None when there is no RECORD.
        record_unknown: Why there is no digest.
        size_bytes: Installed size by its RECORD; None when unknown.
        requires: Its requirements as its metadata state them.
    """

    name: Name
    version: Version
    local_label: Label = ""
    origin: Origin = "index"
    detail: Detail = ""
    sha256: Sha256 = ""
    installer: str = ""
    record_digest: Digest | None = None
    record_unknown: str = ""
    size_bytes: Count | None = None
    requires: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Refuse a digest that is both known and unknown, and a label of its own."""
        if (self.record_digest is None) != bool(self.record_unknown):
            message = "a distribution has either a RECORD digest or the reason why not"
            raise ValueError(message)
        if self.local_label != self.version.partition("+")[2]:
            message = "the local label is not the one in the version"
            raise ValueError(message)

    @property
    def platform_bound(self) -> bool:
        """Whether its makers publish it for one operating system only."""
        return self.name.startswith(_PLATFORM_BOUND_PREFIXES)


class Lock(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One environment.

    Attributes:
        schema: Always ``reprobundle/lock/1``.
        python: Its interpreter.
        distributions: All distributions found on its path, by name, each once.
        unreadable: Installed metadata that could not be read, by folder name.
        pylock_unknown: Why there is no ``lock/pylock.toml`` for other systems beside
            it; empty when there is one.
    """

    schema: Literal["reprobundle/lock/1"] = LOCK_SCHEMA
    python: Interpreter
    distributions: tuple[Distribution, ...]
    unreadable: tuple[str, ...] = ()
    pylock_unknown: str = ""

    def __post_init__(self) -> None:
        """Refuse a name that occurs twice, and distributions out of order."""
        names = [distribution.name for distribution in self.distributions]
        if names != sorted(set(names)):
            message = "the distributions are not sorted by name, each once"
            raise ValueError(message)

    def find(self, name: str) -> Distribution | None:
        """Return the distribution called `name`, or None."""
        return next((item for item in self.distributions if item.name == name), None)

    @property
    def size_bytes(self) -> int:
        """Installed size of all distributions whose size is known."""
        return sum(item.size_bytes or 0 for item in self.distributions)


def lock_digest(lock: Lock, pylock: bytes | None = None) -> str:
    """Return one BLAKE3 digest, in hexadecimal, of what an environment is built from.

    Args:
        lock: Taken as JSON with sorted keys, without why there is no pylock.
        pylock: The lock for all targets, if there is one.
    """
    from blake3 import blake3

    plain = msgspec.structs.replace(lock, pylock_unknown="")
    hasher = blake3(msgspec.json.encode(plain, order="sorted"))
    if pylock is not None:
        hasher.update(b"\0" + pylock)
    return str(hasher.hexdigest())
