"""Check out revisions of a git repository as folders to run commands in, and build them.

A revision is a worktree in a cache with one folder per commit and build command. Git's files about it move there
too, so the repository never lists it. A worktree stays for later races until it was unused for a month, or its
files changed after the build. ``.`` is the working tree as it is.

A race over random builds has a new folder for each revision, and every round builds it again with another seed:
where code lands in memory changes how fast it runs, and a seed only changes that (extensions U1, U2).
"""

import hashlib
import os
import secrets
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from typing import Any

from platformdirs import user_cache_path

from truearm.commands import process
from truearm.commands.command import bind
from truearm.commands.measure import run_hook
from truearm.errors import InvalidArgument, printable
from truearm.problem import refuse

WORKING_TREE = "working tree"
SEED = "TRUEARM_SEED"  # the variable that holds the seed of a build
MAX_SEED = 2**31 - 1  # from 1 on: 0 and -1 are special to linkers
EQUAL_BUILDS = 4  # with different seeds show that the seed is ignored; fewer may be equal by chance
MAX_AGE_S = 30 * 86_400


@dataclass(frozen=True, slots=True, kw_only=True)
class Revision:
    """A revision and its place: `top` is the root of its files, `folder` corresponds to where truearm started."""

    name: str
    commit: str | None  # None for the working tree itself
    repository: str  # where git keeps the history
    top: str
    folder: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Builds:
    """How the revisions of a race, by arm, are built."""

    command: str
    revisions: Mapping[str, Revision]
    rounds: int | None = None
    """The largest number of rounds, each with a new build of every revision; None builds once for all rounds."""
    runs: int = 1  # runs of a build in its round

    @contextmanager
    def hold(self) -> Iterator[None]:
        """Remove the folders of the builds when the body ends."""
        tops, cache = [Path(one.top) for one in self.revisions.values()], cache_folder()
        for top in tops:  # a log may name any folder, and these are removed
            msg = f"builds of this race are in {str(top)!r}, not in the cache {str(cache)!r}; race again"
            refuse(not top.resolve().is_relative_to(cache.resolve()), msg)
        try:
            yield
        finally:
            for top in tops:
                _remove(top)


class Builder:
    """The builds of a race; a command that makes the same files for every seed is refused."""

    def __init__(self, builds: Builds) -> None:
        self._builds = builds
        self._digests: dict[str, list[str]] = {arm: [] for arm in builds.revisions}

    def build(self, arm: str) -> dict[str, Any]:
        """Build a revision with a new seed, in place of its last build, and return what the log notes."""
        command, revision, digests = self._builds.command, self._builds.revisions[arm], self._digests[arm]
        seed = 1 + secrets.randbelow(MAX_SEED)
        _make(revision, command, seed)
        digests.append(_digest(Path(revision.top)))
        what = f"--build {command!r} made the same files of {revision.name!r} with {EQUAL_BUILDS} seeds"
        msg = f"{what}: it ignores {{seed}}; let that, or ${SEED}, change the layout (docs/revisions.md)"
        refuse(len(digests) == EQUAL_BUILDS and len(set(digests)) == 1, msg)
        return {"seed": seed, "build": digests[-1]}


def check_out(
    names: Sequence[str], *, build: str | None = None, every_round: bool = False
) -> tuple[Revision, ...]:
    """Return the revisions (``.`` is the working tree) of the repository around us, checked out and built.

    `build` is run once in each revision's folder, and in the working tree each time. `every_round` only chooses a
    folder for each, to be built in every round; the working tree becomes a commit.
    """
    repository = _Repository()
    commits = [None if name == "." else repository.commit(name) for name in names]
    _prune()
    place = repository.reserve if every_round else partial(repository.check_out, build=build)
    return tuple(place(name, commit) for name, commit in zip(names, commits, strict=True))


def check_unchanged(folders: Iterable[str]) -> None:
    """Raise InvalidArgument if files changed in a worktree around one of these folders since it was built."""
    above = [(Path(folder), *Path(folder).parents) for folder in folders]
    found = {next((top for top in tops if _marker(top).exists()), None) for tops in above}
    for top in filter(None, found):
        commit = _marker(top).read_text(errors="replace").partition("\n")[0]
        with _lock(top):
            msg = f"files of {commit[:12]} in {str(top)!r} changed since the race; start a new race"
            refuse(not _is_ready(top, commit), msg)


class _Repository:
    def __init__(self) -> None:
        refuse(shutil.which("git") is None, "--rev needs git, which is not on the PATH; install it")
        try:
            self.top = Path(_git(Path(), "rev-parse", "--show-toplevel"))
        except InvalidArgument as error:
            raise InvalidArgument(f"--rev needs a git repository; start truearm inside it ({error})") from None
        # the history is the same for all worktrees; the prefix leads from the top to where truearm was started
        self.common = Path(_git(Path(), "rev-parse", "--path-format=absolute", "--git-common-dir"))
        self.prefix = _git(Path(), "rev-parse", "--show-prefix")

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
        """Return a revision that is built; the cache has one folder for each commit, build and prefix."""
        if commit is None:
            revision = self._revision(WORKING_TREE, None, self.top)
            if build is not None:
                _build(revision, build)
            return revision
        how = hashlib.sha256(f"{build}\0{self.prefix}".encode(errors="surrogateescape")).hexdigest()[:8]
        top = self._place(commit, how)
        revision = self._revision(name, commit, top)
        with _lock(top):  # another race may be building it
            if not _is_ready(top, commit):
                _make(revision, build)
            os.utime(_marker(top))
        return revision

    def reserve(self, name: str, commit: str | None) -> Revision:
        """Return a revision with a new, empty folder that no other race uses."""
        known = commit or self._commit_working_tree()
        name = WORKING_TREE if commit is None else name
        return self._revision(name, known, self._place(known, secrets.token_hex(4)))

    def _revision(self, name: str, commit: str | None, top: Path) -> Revision:
        where = {"repository": str(self.common), "top": str(top), "folder": str(top / self.prefix)}
        return Revision(name=name, commit=commit, **where)

    def _place(self, commit: str, how: str) -> Path:
        repository = hashlib.sha256(os.fsencode(self.common)).hexdigest()[:12]
        return cache_folder() / f"{self.top.name}-{repository}" / f"{commit[:12]}-{how}"

    def _commit_working_tree(self) -> str:
        """Return a commit, on no branch, of the files that git tracks or would add."""
        with tempfile.TemporaryDirectory() as folder:
            index = Path(folder, "index")
            # with its time, by which git finds files that changed within the second in which they were added
            shutil.copy2(_git(self.top, "rev-parse", "--path-format=absolute", "--git-path", "index"), index)
            roles = ("AUTHOR_NAME", "AUTHOR_EMAIL", "COMMITTER_NAME", "COMMITTER_EMAIL")
            env = {**{f"GIT_{role}": "truearm" for role in roles}, "GIT_INDEX_FILE": str(index)}
            _git(self.top, "add", "--all", env=env)
            tree = _git(self.top, "write-tree", env=env)
            return _git(self.top, "commit-tree", tree, "-m", WORKING_TREE, env=env)


def _make(revision: Revision, build: str | None, seed: int | None = None) -> None:
    """Check out a revision in place of the present files, and build it."""
    top, commit = Path(revision.top), revision.commit
    assert commit is not None
    _remove(top)
    where = Path(revision.repository)
    # by force, because a folder that was deleted by hand may still be on the list
    _git(where, "worktree", "add", "--force", "--quiet", "--detach", str(top), commit)
    _unlist(top, where)
    if (top / ".gitmodules").exists():
        _git(top, "submodule", "update", "--init", "--recursive", "--quiet")
    inside = f"{Path(revision.folder).relative_to(top)}/"
    msg = f"revision {revision.name!r} has no folder {inside!r}; start truearm from a folder that all have"
    refuse(not Path(revision.folder).is_dir(), msg)
    if build is not None:
        _build(revision, build, seed)
    _marker(top).write_text(f"{commit}\n{_changes(top, commit)}\n")


def _build(revision: Revision, build: str, seed: int | None = None) -> None:
    values, env = {"rev": revision.name, "dir": revision.folder}, dict[str, str]()
    if seed is not None:
        values["seed"] = env[SEED] = str(seed)
    run_hook(bind(build, values, env=env, cwd=revision.folder), "--build", of=f" of revision {revision.name!r}")


def _digest(top: Path) -> str:
    """Return a digest of all files below a folder, but those of git."""
    found = hashlib.sha256()
    for path in sorted(path for path in top.rglob("*") if ".git" not in path.relative_to(top).parts):
        found.update(os.fsencode(path.relative_to(top)) + b"\0")
        if path.is_symlink():
            found.update(os.fsencode(path.readlink()))
        elif path.is_file():
            with path.open("rb") as file:
                found.update(hashlib.file_digest(file, "sha256").digest())
    return found.hexdigest()


def cache_folder() -> Path:
    """Return where worktrees are kept."""
    return user_cache_path("truearm") / "revisions"


def _marker(top: Path) -> Path:
    """Return the file that marks a worktree as built: its commit, and a digest of what the build changed."""
    return top.parent / f"{top.name}.ready"  # also for the root, which has no name


def _is_ready(top: Path, commit: str) -> bool:
    """Return True if a worktree was built and its files have not changed since."""
    changes = _changes(top, commit) if _marker(top).exists() and (top / ".git").exists() else None
    return changes is not None and _marker(top).read_text(errors="replace").splitlines()[-1:] == [changes]


def _changes(top: Path, commit: str) -> str | None:
    """Return a digest of how files of a commit differ in its worktree, such as by a build."""
    try:
        changes = _git(top, "diff", "--no-ext-diff", "--no-textconv", "--no-color", "--binary", commit)
    except InvalidArgument:  # its repository has moved
        return None
    return hashlib.sha256(os.fsencode(changes)).hexdigest()


def _git_files(top: Path) -> Path:
    return top.with_name(f"{top.name}.git")


def _unlist(top: Path, repository: Path) -> None:
    """Take a worktree off its repository's list: git's files of it move next to it and point back."""
    listed, own = top / (top / ".git").read_text().removeprefix("gitdir: ").rstrip("\n"), _git_files(top)
    shutil.move(listed, own)
    (own / "commondir").write_text(f"{repository}\n")
    (top / ".git").write_text(f"gitdir: {own}\n")
    with suppress(OSError):  # the user has worktrees too
        listed.parent.rmdir()


def _remove(top: Path) -> None:
    """Remove a worktree and everything stored about it."""
    _marker(top).unlink(missing_ok=True)
    for folder in (top, _git_files(top)):
        shutil.rmtree(folder, ignore_errors=True)


def _prune() -> None:
    """Remove worktrees that were not used for a month, half-made ones included."""
    for top in cache_folder().glob("*/*-*[0-9a-f]"):
        used = _marker(top) if _marker(top).exists() else top
        with suppress(OSError):
            if top.is_dir() and time.time() - used.stat().st_mtime > MAX_AGE_S:
                with _lock(top, timeout=0):
                    _remove(top)


def _lock(top: Path, timeout: float = -1) -> AbstractContextManager[Any]:
    from filelock import FileLock  # other races do not need it

    top.parent.mkdir(parents=True, exist_ok=True)
    return FileLock(top.with_name(f"{top.name}.lock"), timeout=timeout)


def _git(folder: Path, *words: str, env: Mapping[str, str] | None = None) -> str:
    """Run git in a folder and return what it printed."""
    # a git hook that starts truearm would point all this at its own repository
    inherited = {k: v for k, v in os.environ.items() if k not in ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE")}
    done = process.run(
        ["git", *words],
        streams={"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE},
        env={**inherited, "LC_ALL": "C", "GIT_TERMINAL_PROMPT": "0", **(env or {})},
        cwd=str(folder),
        max_output=sys.maxsize,  # a difference of trees is read to its end
    )
    printed = printable(done.stderr.text.strip(), lines=True)
    msg = f"git {words[0]} failed in {str(folder)!r}: {printed or f'exit code {done.exit_code}'}"
    refuse(done.exit_code != 0, msg)
    return os.fsdecode(bytes(done.stdout.kept)).strip()
