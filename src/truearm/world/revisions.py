"""Revisions of a git repository as folders to run commands in, each checked out and built once.

A revision is checked out as a worktree outside the repository, in a cache with one folder per commit and build
command, and stays there for the next race until it is removed, or its files are no longer those that were built;
``.`` is the working tree as it is. Nothing here measures. All git commands of the project are here.
"""

import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

from truearm.errors import CommandFailed, InvalidArgument
from truearm.world.commands import bind, neutralized

WORKING_TREE = "working tree"

_TAIL = 2000  # characters of a failed build's output: a screenful


@dataclass(frozen=True, slots=True, kw_only=True)
class Revision:
    """A revision, and where it lies.

    Parameters
    ----------
    name
        As the user wrote it; the working tree has a name of its own.
    commit
        None for the working tree.
    top, folder
        The root of its files, and the folder in it that corresponds to the one truearm was started in.
    """

    name: str
    commit: str | None
    top: str
    folder: str


def checked_out(
    names: Sequence[str],
    *,
    build: str | None = None,
    start: str = ".",
    cache: Path | None = None,
    known: Callable[[], object] = lambda: None,
) -> tuple[Revision, ...]:
    """Return the revisions of the repository around a folder, checked out and built.

    Parameters
    ----------
    names
        What git understands as a revision, or ``.`` for the working tree.
    build
        Command line to run once in each revision's folder; in the working tree it is run each time.
    cache
        Where worktrees are kept; the user's cache folder if None.
    known
        Called when git knows all of them, before the work begins.
    """
    repository = _Repository.around(Path(start), cache or default_cache())
    commits = [None if name == "." else repository.commit(name) for name in names]  # all, before any work is done
    known()
    return tuple(repository.revision(name, commit, build) for name, commit in zip(names, commits, strict=True))


def removed(revisions: Sequence[Revision]) -> None:
    """Remove the worktrees of revisions from the cache, except those in use."""
    for top in _tops(revisions):
        with suppress(BlockingIOError), _locked(top, alone=True, wait=False):
            common = _asked(top, "rev-parse", "--path-format=absolute", "--git-common-dir") if top.exists() else ""
            _marker(top).unlink(missing_ok=True)
            shutil.rmtree(top, ignore_errors=True)
            if common:  # else the repository itself is gone
                _git(Path(common), "worktree", "prune")


@contextmanager
def in_use(revisions: Sequence[Revision]) -> Iterator[None]:
    """Keep others from removing the worktrees of revisions meanwhile."""
    with ExitStack() as stack:
        for top in _tops(revisions):
            stack.enter_context(_locked(top))
        yield


def kept(folders: Iterable[str]) -> tuple[Revision, ...]:
    """Return the revisions in whose worktrees folders lie, for a race that goes on there.

    Raises
    ------
    InvalidArgument
        If their files are no longer those that were raced.
    """
    found: dict[Path, Revision] = {}
    for folder in folders:
        top = next((top for top in (Path(folder), *Path(folder).parents) if _marker(top).exists()), None)
        if top is None or top in found:
            continue
        commit = _marker(top).read_text(errors="replace").partition("\n")[0]
        if not _is_ready(top, commit):
            msg = (
                f"files of {commit[:12]} were changed in {str(top)!r} since it was raced; race the revisions anew"
            )
            raise InvalidArgument(msg)
        found[top] = Revision(name=commit[:12], commit=commit, top=str(top), folder=folder)
    return tuple(found.values())


def _tops(revisions: Sequence[Revision]) -> list[Path]:
    return sorted({Path(r.top) for r in revisions if r.commit is not None})


def default_cache() -> Path:
    """Return the folder for worktrees in the user's cache."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "truearm" / "revisions"


@dataclass(frozen=True, slots=True)
class _Repository:
    top: Path
    common: Path  # where git keeps the history, the same for all worktrees
    prefix: str  # from the top to where truearm was started
    cache: Path

    @classmethod
    def around(cls, start: Path, cache: Path) -> "_Repository":
        if shutil.which("git") is None:
            msg = "--rev needs git, which was not found on this machine; install it"
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
        found = (
            "" if name.startswith("-") else _asked(self.top, "rev-parse", "--verify", "-q", f"{name}^{{commit}}")
        )
        if found:
            return found
        known = _git(self.top, "for-each-ref", "--format=%(refname:short)").split()
        close = get_close_matches(name, known, n=3)
        hint = f"did you mean {', '.join(close)}?" if close else "`git log --oneline --all` shows what there is"
        if _git(self.top, "rev-parse", "--is-shallow-repository") == "true":
            hint = "the clone is shallow: `git fetch --unshallow --tags` brings the rest (in CI: fetch-depth: 0)"
        msg = f"--rev {neutralized(name)!r} is not a revision of the repository {str(self.top)!r}; {hint}"
        raise InvalidArgument(msg)

    def revision(self, name: str, commit: str | None, build: str | None) -> Revision:
        if commit is None:
            folder = self.top / self.prefix
            if build is not None:
                _built(build, folder, WORKING_TREE)
            return Revision(name=WORKING_TREE, commit=None, top=str(self.top), folder=str(folder))
        top = self.place(commit, build)
        with _locked(top):
            ready = _is_ready(top, commit)
        if not ready:
            self._make(top, name, commit, build)
        return Revision(name=name, commit=commit, top=str(top), folder=str(_inside(top, self.prefix, name)))

    def _make(self, top: Path, name: str, commit: str, build: str | None) -> None:
        with _locked(top, alone=True):
            if _is_ready(top, commit):  # another race made it meanwhile
                return
            _marker(top).unlink(missing_ok=True)
            self._check_out(top, commit)
            folder = _inside(top, self.prefix, name)
            if build is not None:
                _built(build, folder, name)
            _marker(top).write_text(f"{commit}\n{build or ''}\n{_state(top, commit)}\n")

    def place(self, commit: str, build: str | None) -> Path:
        """Return the folder of a commit that is built in this way: another way gets another folder."""
        where = hashlib.sha256(os.fsencode(self.common)).hexdigest()[:12]
        how = hashlib.sha256(f"{build}\0{self.prefix}".encode(errors="surrogateescape")).hexdigest()[:8]
        return self.cache / f"{self.top.name}-{where}" / f"{commit[:12]}-{how}"

    def _check_out(self, top: Path, commit: str) -> None:
        """Make the worktree, anew if an earlier try or build broke off."""
        if top.exists():
            shutil.rmtree(top)
        _git(self.common, "worktree", "prune")
        _git(self.common, "worktree", "add", "--quiet", "--detach", str(top), commit)
        if (top / ".gitmodules").exists():
            _git(top, "submodule", "update", "--init", "--recursive", "--quiet")


def _inside(top: Path, prefix: str, name: str) -> Path:
    folder = top / prefix
    if not folder.is_dir():
        msg = f"revision {name!r} has no folder {prefix!r}; start truearm from a folder that all revisions have"
        raise InvalidArgument(msg)
    return folder


def _built(build: str, folder: Path, name: str) -> None:
    """Run the build command to its end."""
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
        said = output.read().decode(errors="replace")[-_TAIL:]
    if code != 0:
        msg = f"--build {build!r} of revision {name!r} ended with exit code {code}, in {str(folder)!r}; " + (
            f"it said:\n{neutralized(said.strip(), lines=True)}" if said.strip() else "it printed nothing"
        )
        raise CommandFailed(msg, command=build, exit_code=code, stderr_tail=said, stage="build")


def _marker(top: Path) -> Path:
    return top.parent / f"{top.name}.ready"


def _is_ready(top: Path, commit: str) -> bool:
    """Tell whether a worktree was built, and its files are still what they were then."""
    if not (_marker(top).exists() and top.exists()):
        return False
    noted, now = _marker(top).read_text(errors="replace").splitlines()[-1:], _state(top, commit)
    return now is not None and noted == [now]


def _state(top: Path, commit: str) -> str | None:
    """Return a digest of how the files of a commit were changed in its worktree, such as by a build."""
    try:
        changes = _git(top, "diff", "--no-ext-diff", "--no-textconv", "--no-color", "--binary", commit)
    except InvalidArgument:  # the repository it belongs to is another one by now
        return None
    return hashlib.sha256(os.fsencode(changes)).hexdigest()


@contextmanager
def _locked(top: Path, *, alone: bool = False, wait: bool = True) -> Iterator[None]:
    """Hold the lock of a worktree, with others who only use it, or alone: who builds it keeps all waiting."""
    import fcntl  # not on Windows, where no command is raced

    top.parent.mkdir(parents=True, exist_ok=True)
    with top.with_name(f"{top.name}.lock").open("a") as lock:
        fcntl.flock(lock, (fcntl.LOCK_EX if alone else fcntl.LOCK_SH) | (0 if wait else fcntl.LOCK_NB))
        yield


def _asked(folder: Path, *words: str) -> str:
    """Return what git answers, "" where it says no."""
    try:
        return _git(folder, *words)
    except InvalidArgument:
        return ""


def _git(folder: Path, *words: str) -> str:
    """Run git in a folder and return what it printed."""
    # a hook of git's own that starts truearm would point all this at its repository
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
        said = neutralized(done.stderr.decode(errors="replace").strip(), lines=True)
        msg = f"git {words[0]} failed in {str(folder)!r}: {said or f'exit code {done.returncode}'}"
        raise InvalidArgument(msg)
    return os.fsdecode(done.stdout).strip()
