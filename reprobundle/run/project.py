"""The user's project: where it is, which files it has, and copies of them.

A run never happens in the project itself. Its files are copied once into a pristine
*stage* and from there into a scratch folder for each pass, so that whatever the run
writes is seen, and the project stays as it was.
"""

from __future__ import annotations

import dataclasses
import errno
import os
import stat
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from reprobundle.errors import BadCallError, PackRefusedError
from reprobundle.format.archive import write_all
from reprobundle.format.digests import digest_file
from reprobundle.format.positions import flags
from reprobundle.run.git_state import GitState, read_git_state, run_git

# Above this size a file is not copied where the disk cannot share blocks; the scratch
# folder then gets a link to the original, which is checked for changes afterwards.
COPY_LIMIT_BYTES = 64 << 20

_GONE = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ELOOP})

# Folders that hold what tools leave behind, never a project's own content.
CACHE_FOLDERS = frozenset(
    {
        ".git",
        ".hg",
        ".svn",
        "__pycache__",
        ".mypy_cache",
        ".pytest_cache",
        ".ruff_cache",
        ".ipynb_checkpoints",
        ".tox",
        ".nox",
        "node_modules",
    }
)


@dataclass(frozen=True)
class Project:
    """A project on disk.

    Attributes:
        root: Its top folder, absolute and resolved.
        git: Its state in git, or None where git does not know it.
    """

    root: Path
    git: GitState | None


def find_project(working_directory: Path, explicit: Path | None) -> Project:
    """Return the project that `working_directory` belongs to.

    Args:
        working_directory: Where the command is to run.
        explicit: The top folder if the user named it; else the top of the git
            repository, else the working directory itself.

    Raises:
        BadCallError: The named folder does not exist or does not hold the working
            directory.
    """
    where = working_directory.resolve()
    if explicit is None:
        top = run_git(where, "rev-parse", "--show-toplevel")
        root = Path(top.decode().strip()) if top else where
    else:
        root = explicit.resolve()
        if not root.is_dir():
            raise BadCallError(f"project folder {str(explicit)!r} does not exist")
        if not where.is_relative_to(root):
            raise BadCallError(
                f"the working directory {str(where)!r} is not inside the project "
                f"folder {str(root)!r}",
                advice="change into the project, or name another --project",
            )
    return Project(root=root, git=read_git_state(root))


def list_files(project: Project, *, exclude: frozenset[Path]) -> tuple[str, ...]:
    """Return the project's files as sorted paths with ``/``, relative to its top.

    In a repository these are the tracked files that exist and the untracked ones
    that git does not ignore; elsewhere all files outside caches and environments.

    Args:
        project: The project.
        exclude: Absolute paths left out, such as the bundle being written.
    """
    listed = run_git(
        project.root, "ls-files", "-z", "--cached", "--others", "--exclude-standard"
    )
    if listed is not None and project.git is not None:
        names = {name for name in os.fsdecode(listed).split("\0") if name}
    else:
        names = set(walked(project.root, on_error=_refuse_folder))
    kept = [inner for name in sorted(names) for inner in _files_of(project, name)]
    left_out = {str(path) for path in exclude}
    return tuple(
        name
        for name in kept
        if not CACHE_FOLDERS.intersection(name.split("/"))
        and f"{project.root}/{name}" not in left_out
    )


def _files_of(project: Project, name: str) -> list[str]:
    """Return the files that a listed name stands for."""
    path = project.root / name
    try:
        is_folder = stat.S_ISDIR(path.stat().st_mode)
    except OSError as error:
        if error.errno not in _GONE:
            raise
        return []  # It was deleted, or is a link to nothing.
    if not is_folder:
        return [name]
    if project.root.is_relative_to(path.resolve()):
        return []  # A link to a folder around it: the files are there already.
    # A submodule or a linked folder: git lists it as one name.
    return [f"{name}/{inner}" for inner in walked(path)]


def _check_utf8(name: str) -> None:
    """Refuse a file that no bundle can name.

    Raises:
        PackRefusedError: Its name is no UTF-8.
    """
    try:
        name.encode()
    except UnicodeEncodeError as error:
        raise PackRefusedError(
            f"the name of {name!a} is not UTF-8",
            advice="rename the file or have git ignore it, or set a UTF-8 locale",
        ) from error


def walked(
    root: Path,
    *,
    with_links: bool = False,
    on_error: Callable[[OSError], None] | None = None,
) -> list[str]:
    """Return the names of all that lies below `root`, but for folders and caches.

    Args:
        root: Where to look; names are relative to it and use ``/``.
        with_links: Whether links to folders count; they are never followed.
        on_error: Takes what a folder that cannot be read ends in; by default it
            counts as empty.
    """
    found: list[str] = []
    for folder, folders, files in os.walk(root, onerror=on_error):
        here = Path(folder)
        inside = here.relative_to(root).as_posix()
        prefix = "" if inside == "." else f"{inside}/"
        if with_links:
            files.extend(name for name in folders if (here / name).is_symlink())
        folders[:] = sorted(
            name
            for name in folders
            if name not in CACHE_FOLDERS and not _is_environment(here / name)
        )
        found.extend(prefix + name for name in files)
    return found


def _is_environment(folder: Path) -> bool:
    # Unlike `Path.exists`, this is no error where the folder cannot be searched.
    return os.access(folder / "pyvenv.cfg", os.F_OK)


def _refuse_folder(error: OSError) -> None:
    """Refuse a project of which a part cannot be copied.

    Raises:
        PackRefusedError: Always.
    """
    raise PackRefusedError(
        f"{error.filename!r} cannot be copied: {(error.strerror or '').lower()}",
        advice="fix its permission, or move it out of the project",
    ) from error


@dataclass
class Stage:
    """A pristine copy of the project's files that no run ever touches.

    Attributes:
        folder: Where the copies lie, under the project's own relative names.
        names: The files, sorted.
        linked: Large files that were linked instead of copied, with the size and
            modification time (ns) they had.
        replaced: Files whose content lies elsewhere: the holder's copy of a withheld
            file, or a sample in its place.
    """

    folder: Path
    names: list[str] = field(default_factory=list)
    linked: dict[str, tuple[int, int]] = field(default_factory=dict)
    replaced: dict[str, Path] = field(default_factory=dict)

    def path(self, name: str) -> Path:
        """Return where the pristine content of `name` lies."""
        return self.replaced.get(name, self.folder / name)

    def with_replaced(self, replaced: Mapping[str, Path]) -> Stage:
        """Return the same files, with the content of some taken from elsewhere."""
        names = sorted({*self.names, *replaced})
        return dataclasses.replace(
            self, names=names, replaced={**self.replaced, **replaced}
        )

    def changed_links(self) -> tuple[str, ...]:
        """Return the linked files that no longer are what they were."""
        return tuple(
            name
            for name, seen in self.linked.items()
            if _identity(self.path(name)) != seen
        )


def make_stage(
    root: Path, names: tuple[str, ...], folder: Path, declared: tuple[Path, ...] = ()
) -> Stage:
    """Copy the named files of the project below `root` into `folder`.

    Args:
        root: Top of the project.
        names: Files relative to it.
        folder: New folder for the copies.
        declared: Files or folders given with ``--input`` inside the project; they are
            added even where git ignores them.

    Raises:
        PackRefusedError: A file vanished or cannot be read.
    """
    stage = Stage(folder=folder)
    folders = _Folders()
    extra = [inner for path in declared for inner in _declared_names(root, path)]
    for name in sorted({*names, *extra}):
        _check_utf8(name)
        folders.make_above(folder / name)
        _stage_file(stage, root / name, name)
    return stage


class _Folders:
    """Makes each folder once, for files that come folder by folder."""

    def __init__(self) -> None:
        self._made: set[Path] = set()

    def make_above(self, path: Path) -> None:
        """Make the folder of `path` and all above it, unless they are there."""
        folder = path.parent
        if folder not in self._made:
            folder.mkdir(parents=True, exist_ok=True)
            self._made.add(folder)


def _declared_names(root: Path, path: Path) -> list[str]:
    if not path.exists():
        raise PackRefusedError(
            f"input {str(path)!r} does not exist", advice="check the --input path"
        )
    top = placed_in(root, path) or path.resolve()
    if top.is_file():
        return [top.relative_to(root).as_posix()]
    return [(top / name).relative_to(root).as_posix() for name in walked(top)]


def placed_in(root: Path, path: Path) -> Path | None:
    """Return where in a project a path stands, None if it is not in it.

    A link in the project that leads out of it stands where it is: the command finds
    what it leads to there.

    Args:
        root: Top of the project, resolved.
        path: Absolute.
    """
    if ".." not in path.parts and path.is_relative_to(root):
        return path
    real = path.resolve()
    return real if real.is_relative_to(root) else None


def _stage_file(stage: Stage, source: Path, name: str) -> None:
    target = stage.folder / name
    try:
        if not stat.S_ISREG(source.stat().st_mode):
            raise PackRefusedError(
                f"{name!r} is no regular file",
                advice="remove it or have git ignore it",
            )
        if not copy_file(source, target, limit_bytes=COPY_LIMIT_BYTES):
            real = source.resolve(strict=True)
            target.symlink_to(real)
            stage.linked[name] = _identity(real)
    except OSError as error:
        raise PackRefusedError(
            f"{name!r} cannot be copied: {error.strerror}",
            advice="fix its permission, or have git ignore it",
        ) from error
    stage.names.append(name)


def _identity(path: Path) -> tuple[int, int]:
    seen = path.stat()
    return seen.st_size, seen.st_mtime_ns


def copy_file(source: Path, target: Path, *, limit_bytes: int | None = None) -> bool:
    """Copy content and the execute bit, sharing blocks where the disk can.

    Args:
        source: An existing regular file.
        target: A path that does not exist yet.
        limit_bytes: Largest size that is copied byte by byte; None for any.

    Returns:
        False if the file is larger than the limit and blocks cannot be shared; then
        nothing was written.
    """
    # Without streams, which cost more than a file of a few kilobytes does.
    reader = os.open(source, flags("O_RDONLY"))
    try:
        writer = os.open(target, flags("O_WRONLY", "O_CREAT", "O_EXCL"), 0o666)
        try:
            if not _share_blocks(reader, writer):
                size_bytes = os.fstat(reader).st_size
                if limit_bytes is not None and size_bytes > limit_bytes:
                    target.unlink()
                    return False
                _copy_bytes(reader, writer)
            is_executable = os.access(source, os.X_OK)
            os.chmod(writer, 0o755 if is_executable else 0o644)  # noqa: PTH101
        finally:
            os.close(writer)
    finally:
        os.close(reader)
    return True


def _copy_bytes(reader: int, writer: int) -> None:
    offset = 0
    while piece := os.read(reader, 1 << 20):
        write_all(writer, piece, offset)
        offset += len(piece)


def _share_blocks(source_fd: int, target_fd: int) -> bool:
    # FICLONE of linux/fs.h; other systems and most file systems refuse it.
    ficlone = 0x40049409
    try:
        import fcntl

        fcntl.ioctl(target_fd, ficlone, source_fd)
    except (ImportError, OSError):
        return False
    return True


def make_scratch(stage: Stage, names: list[str], folder: Path) -> None:
    """Fill `folder` with copies of the staged files that a run may change."""
    folder.mkdir(parents=True, exist_ok=True)
    folders = _Folders()
    for name in names:
        target = folder / name
        folders.make_above(target)
        source = stage.path(name)
        if source.is_symlink():
            target.symlink_to(source.resolve())
        else:
            copy_file(source, target)


def snapshot(folder: Path) -> dict[str, tuple[int, int]]:
    """Return size and modification time (ns) of every file below `folder`.

    Caches of tools are left out; names use ``/`` and are relative to the folder.

    Raises:
        PackRefusedError: A folder below cannot be read.
    """
    found = {}
    for name in walked(folder, on_error=_refuse_unreadable):
        try:
            found[name] = _identity(folder / name)
        except PermissionError as error:
            _refuse_unreadable(error)
        except OSError:
            continue  # It has gone, or is a link to nothing.
    return found


def _refuse_unreadable(error: OSError) -> None:
    """Refuse to go on without what lies in a folder, which might be the result.

    Raises:
        PackRefusedError: Unless the folder has gone meanwhile.
    """
    if isinstance(error, FileNotFoundError):
        return
    raise PackRefusedError(
        f"{Path(error.filename).name!r}, which the command left, cannot be read: "
        f"{(error.strerror or '').lower()}",
        advice="have the command leave it readable, and the folder that it lies in",
    ) from error


def changed_files(folder: Path, before: dict[str, tuple[int, int]]) -> tuple[str, ...]:
    """Return the files below `folder` that a run created or changed, sorted.

    A file whose time moved but whose bytes equal the staged ones counts as changed
    too: the run wrote it, and the equal content is its result.
    """
    return tuple(
        sorted(
            name
            for name, seen in snapshot(folder).items()
            if before.get(name) != seen and _is_file(folder / name)
        )
    )


def _is_file(path: Path) -> bool:
    """Whether a path is a regular file: of a pipe there is no end to read to."""
    return path.is_file() and not path.is_symlink()


def files_digest(members: list[tuple[str, str]]) -> str:
    """Return the digest over ``(path, blake3)`` pairs of the files a run starts from.

    Source: spec.md, "Run record", field ``files_digest``.
    """
    from reprobundle.format.digests import digest_bytes

    lines = "".join(f"{digest}  {path}\n" for path, digest in sorted(members))
    return digest_bytes(lines.encode())


def digest_stage(stage: Stage, names: list[str]) -> dict[str, str]:
    """Return the BLAKE3 digest of each named staged file."""
    return {name: digest_file(stage.path(name)) for name in names}
