"""Check out revisions of a git repository as folders to run commands in, each built once.

A revision is a worktree outside of the repository, in a cache with one folder per commit and build command. After
a race it is taken off the repository's list of worktrees; the files stay for the next race until they were unused
for a month, or changed since they were built. ``.`` is the working tree as it is.
"""

import hashlib
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

from filelock import FileLock, Timeout
from platformdirs import user_cache_path

from truearm.commands.command import bind
from truearm.errors import CommandFailed, InvalidArgument, printable

WORKING_TREE = "working tree"
MAX_AGE_S = 30 * 86_400
_TAIL_CHARACTERS = 2000  # of a failed build's output: a screenful


@dataclass(frozen=True, slots=True, kw_only=True)
class Revision:
    """A revision and its place: `top` is the root of its files, `folder` corresponds to where truearm started."""

    name: str
    commit: str | None
    """None for the working tree."""
    top: str
    folder: str


def check_out(
    names: Sequence[str],
    *,
    build: str | None = None,
    start: str = ".",
    cache: Path | None = None,
    announce: Callable[[], object] = lambda: None,
) -> tuple[Revision, ...]:
    """Return the revisions of the repository around a folder, checked out and built.

    Parameters
    ----------
    names
        What git understands as a revision, or ``.`` for the working tree.
    build
        Command line to run once in each revision's folder; in the working tree it is run each time.
    announce
        Called once all names are known to git, before the work begins.
    """
    root = cache or user_cache_path("truearm") / "revisions"
    repository = _Repository.around(Path(start), root)
    commits = [None if name == "." else repository.commit(name) for name in names]
    announce()
    _prune(root)
    return tuple(repository.check_out(name, commit, build) for name, commit in zip(names, commits, strict=True))


@contextmanager
def hold(revisions: Sequence[Revision]) -> Iterator[None]:
    """Take the worktrees off the repository's list when the body ends; their files stay in the cache."""
    try:
        yield
    finally:
        for top in {Path(one.top) for one in revisions if one.commit is not None}:
            with suppress(Timeout, OSError), _lock(top, timeout=0):
                _unregister(top)


def reopen(folders: Iterable[str]) -> tuple[Revision, ...]:
    """Return the revisions whose worktrees contain folders, for a race that continues there.

    Raises
    ------
    InvalidArgument
        If their files have changed.
    """
    found: dict[Path, Revision] = {}
    for folder in folders:
        top = next((top for top in (Path(folder), *Path(folder).parents) if _marker(top).exists()), None)
        if top is None or top in found:
            continue
        commit = _marker(top).read_text(errors="replace").partition("\n")[0]
        with _lock(top):
            if not _is_ready(top, commit):
                msg = f"files of {commit[:12]} in {str(top)!r} changed since the race; start a new race"
                raise InvalidArgument(msg)
        found[top] = Revision(name=commit[:12], commit=commit, top=str(top), folder=folder)
    return tuple(found.values())


@dataclass(frozen=True, slots=True)
class _Repository:
    top: Path
    common: Path  # where git keeps the history, the same for all worktrees
    prefix: str  # from the top to where truearm was started
    cache: Path

    @classmethod
    def around(cls, start: Path, cache: Path) -> "_Repository":
        if shutil.which("git") is None:
            msg = "--rev needs git, which is not on the PATH; install it"
            raise InvalidArgument(msg)
        try:
            top = Path(_git(start, "rev-parse", "--show-toplevel"))
        except InvalidArgument as error:
            if "not a git repository" not in str(error):
                raise
            msg = f"--rev needs a git repository, but {str(start)!r} is not in one; start truearm inside it"
            raise InvalidArgument(msg) from None
        common = Path(_git(start, "rev-parse", "--path-format=absolute", "--git-common-dir"))
        return cls(top, common, _git(start, "rev-parse", "--show-prefix"), cache)

    def commit(self, name: str) -> str:
        if not name.startswith("-"):
            with suppress(InvalidArgument):
                return _git(self.top, "rev-parse", "--verify", "-q", f"{name}^{{commit}}")
        close = get_close_matches(name, _git(self.top, "for-each-ref", "--format=%(refname:short)").split(), n=3)
        hint = f"did you mean {', '.join(close)}?" if close else "`git log --oneline --all` lists them"
        if _git(self.top, "rev-parse", "--is-shallow-repository") == "true":
            hint = "the clone is shallow: `git fetch --unshallow --tags` brings the rest (in CI: fetch-depth: 0)"
        msg = f"--rev {printable(name)!r} is not a revision of the repository {str(self.top)!r}; {hint}"
        raise InvalidArgument(msg)

    def check_out(self, name: str, commit: str | None, build: str | None) -> Revision:
        if commit is None:
            folder = self.top / self.prefix
            if build is not None:
                _build(build, folder, WORKING_TREE)
            return Revision(name=WORKING_TREE, commit=None, top=str(self.top), folder=str(folder))
        top = self.place(commit, build)
        with _lock(top):  # another race may be building it
            if not _is_ready(top, commit):
                self._make(top, name, commit, build)
            os.utime(_marker(top))
        return Revision(name=name, commit=commit, top=str(top), folder=str(self._inside(top, name)))

    def place(self, commit: str, build: str | None) -> Path:
        """Return the folder of a commit with this build command."""
        repository = hashlib.sha256(os.fsencode(self.common)).hexdigest()[:12]
        how = hashlib.sha256(f"{build}\0{self.prefix}".encode(errors="surrogateescape")).hexdigest()[:8]
        return self.cache / f"{self.top.name}-{repository}" / f"{commit[:12]}-{how}"

    def _make(self, top: Path, name: str, commit: str, build: str | None) -> None:
        _remove(top)
        # by force, because a folder that was deleted by hand may still be on the list
        _git(self.common, "worktree", "add", "--force", "--quiet", "--detach", str(top), commit)
        if (top / ".gitmodules").exists():
            _git(top, "submodule", "update", "--init", "--recursive", "--quiet")
        folder = self._inside(top, name)
        if build is not None:
            _build(build, folder, name)
        _marker(top).write_text(f"{commit}\n{_changes(top, commit)}\n")

    def _inside(self, top: Path, name: str) -> Path:
        folder = top / self.prefix
        if not folder.is_dir():
            msg = f"revision {name!r} has no folder {self.prefix!r}; start truearm from a folder that all have"
            raise InvalidArgument(msg)
        return folder


def _build(build: str, folder: Path, name: str) -> None:
    command = bind(build, {"rev": name, "dir": str(folder)}, cwd=str(folder))
    with tempfile.TemporaryFile() as output:
        try:
            code = subprocess.run(
                command.argv, cwd=folder, stdin=subprocess.DEVNULL, stdout=output, stderr=output, check=False
            ).returncode
        except OSError as error:
            msg = f"--build {build!r} cannot be started: {error.strerror or error}"
            raise CommandFailed(msg, command=build, exit_code=127, stage="build") from None
        output.seek(0)
        printed = output.read().decode(errors="backslashreplace")[-_TAIL_CHARACTERS:]
    if code != 0:
        msg = f"--build {build!r} of revision {name!r} ended with exit code {code}, in {str(folder)!r}; " + (
            f"it printed:\n{printable(printed.strip(), lines=True)}" if printed.strip() else "it printed nothing"
        )
        raise CommandFailed(msg, command=build, exit_code=code, stderr_tail=printed, stage="build")


def _marker(top: Path) -> Path:
    """Return the file that marks a worktree as built: its commit, and a digest of what the build changed."""
    return top.parent / f"{top.name}.ready"  # `reopen` also asks for that of the root


def _is_ready(top: Path, commit: str) -> bool:
    """Register a worktree that was built; return False if there is none, or its files have changed since."""
    if not (_marker(top).exists() and (top / ".git").exists() and _register(top)):
        return False
    changes = _changes(top, commit)
    return changes is not None and _marker(top).read_text(errors="replace").splitlines()[-1:] == [changes]


def _changes(top: Path, commit: str) -> str | None:
    """Return a digest of how files of a commit differ in its worktree, such as by a build."""
    try:
        changes = _git(top, "diff", "--no-ext-diff", "--no-textconv", "--no-color", "--binary", commit)
    except InvalidArgument:  # it belongs to another repository by now
        return None
    return hashlib.sha256(os.fsencode(changes)).hexdigest()


def _listed_at(top: Path) -> Path:
    """Return the folder in the repository by which git knows a worktree."""
    return Path((top / ".git").read_text().removeprefix("gitdir: ").rstrip("\n"))


def _kept_at(top: Path) -> Path:
    return top.with_name(f"{top.name}.git")


def _register(top: Path) -> bool:
    """Put a worktree back on its repository's list; return False if that is not possible."""
    listed = _listed_at(top)
    if not listed.exists() and _kept_at(top).exists() and listed.parent.parent.exists():
        listed.parent.mkdir(exist_ok=True)
        shutil.move(_kept_at(top), listed)
    return listed.exists()


def _unregister(top: Path) -> None:
    listed = _listed_at(top)
    if listed.exists():
        shutil.rmtree(_kept_at(top), ignore_errors=True)
        shutil.move(listed, _kept_at(top))
        with suppress(OSError):  # the user has worktrees too
            listed.parent.rmdir()


def _remove(top: Path) -> None:
    _marker(top).unlink(missing_ok=True)
    with suppress(OSError):
        shutil.rmtree(_listed_at(top), ignore_errors=True)
    for folder in (top, _kept_at(top)):
        shutil.rmtree(folder, ignore_errors=True)


def _prune(cache: Path) -> None:
    """Remove worktrees that were not used for a month."""
    for marker in cache.glob("*/*.ready"):
        top = marker.with_suffix("")
        with suppress(OSError, Timeout):
            if time.time() - marker.stat().st_mtime > MAX_AGE_S:
                with _lock(top, timeout=0):
                    _remove(top)


def _lock(top: Path, timeout: float = -1) -> FileLock:
    top.parent.mkdir(parents=True, exist_ok=True)
    return FileLock(top.with_name(f"{top.name}.lock"), timeout=timeout)


def _git(folder: Path, *words: str) -> str:
    """Run git in a folder and return what it printed."""
    # a git hook that starts truearm would point all this at its own repository
    env = {k: v for k, v in os.environ.items() if k not in ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE")}
    done = subprocess.run(
        ["git", *words],
        cwd=folder,
        env=env | {"LC_ALL": "C", "GIT_TERMINAL_PROMPT": "0"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
    )
    if done.returncode != 0:
        printed = printable(done.stderr.decode(errors="backslashreplace").strip(), lines=True)
        msg = f"git {words[0]} failed in {str(folder)!r}: {printed or f'exit code {done.returncode}'}"
        raise InvalidArgument(msg)
    return os.fsdecode(done.stdout).strip()
