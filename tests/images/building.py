"""Building and running the images where no container engine runs: buildah with chroot isolation.

Everything made here is kept in the user's cache folder: the base image for a month, the packages
for as long as the locks say the same, and whatever layers of the images are still right.
"""

import asyncio
import contextlib
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import psutil

ROOT = Path(__file__).parents[2]
SUITE = "bookworm"
_CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "tabfarm" / "images"
_MARKER = re.compile(r" ; .*(?= \\$)", re.MULTILINE)
_TOOLS = ("buildah", "debootstrap", "crun")
_BUILDAH = ("buildah", "--root", str(_CACHE / "storage"), "--runroot", str(_CACHE / "run"))
_ALONE = ("--isolation", "chroot", "--network", "host")


def obstacle() -> str | None:
    """Say why images can't be built here; None if they can."""
    if os.geteuid() != 0:
        return "the images are built by root only"
    if missing := [tool for tool in _TOOLS if shutil.which(tool) is None]:
        return f"the images need {', '.join(missing)}: apt-get install -y {' '.join(missing)}"
    if "" not in mirrors():
        return "apt's sources name no Debian mirror to make a base image from"
    return None


def mirrors() -> dict[str, str]:
    """Return where this machine takes Debian from: by what follows the release's name."""
    listed = _run(
        *("apt-get", "indextargets", "--format", "$(RELEASE) $(COMPONENT) $(REPO_URI)"),
        "Created-By: Packages",
    )
    codename = _codename()
    found = {}
    for line in listed.splitlines():
        release, component, uri = line.split(" ", 2)
        if component == "main" and release in {codename + part for part in _PARTS}:
            found[release.removeprefix(codename)] = uri.rstrip("/")
    return found


_PARTS = ("", "-updates", "-security")


def _codename() -> str:
    lines = Path("/etc/os-release").read_text().splitlines()
    values = dict(line.split("=", 1) for line in lines if "=" in line)
    return values.get("VERSION_CODENAME", "") if values.get("ID") == "debian" else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Image:
    """An image that was built, and what it says of how it is run."""

    name: str
    command: tuple[str, ...]
    health: tuple[str, ...]
    user: str


def build(file: str, *, name: str, target: str | None = None) -> Image:
    """Build one of our images on a base of this machine's own Debian.

    Raises:
        AssertionError: If it does not build; says with which last words.
    """
    _CACHE.mkdir(parents=True, exist_ok=True)
    packages = _packages()
    tag = f"localhost/{name}"
    _run(
        *(*_BUILDAH, "bud", *_ALONE, "--format", "docker", "--layers", "--pull-never", "--quiet"),
        *("--build-arg", f"BASE={_base()}"),
        # pip is given a folder in the place of a registry, which may not be reachable from within.
        *("--volume", f"{packages}:/packages:ro"),
        *("--volume", f"{packages / 'pip.conf'}:/etc/pip.conf:ro"),
        *(("--target", target) if target else ()),
        *("--tag", tag, "--file", file, "."),
    )
    config = json.loads(_run(*_BUILDAH, "inspect", "--type", "image", tag))["Docker"]["config"]
    kind, *health = config["Healthcheck"]["Test"]
    assert kind == "CMD"
    return Image(
        name=tag,
        command=(*config["Entrypoint"], *config["Cmd"]),
        health=tuple(health),
        user=config["User"],
    )


def _base() -> str:
    """Return the base image; make it unless there is one of this month."""
    name = f"localhost/tabfarm-base:{SUITE}-{datetime.now(UTC):%Y-%m}"
    if _known(name):
        return name
    # What was built on an older base is of no use any more.
    _run(*_BUILDAH, "rm", "--all")
    _run(*_BUILDAH, "rmi", "--all", "--force")
    sources = mirrors()
    root = _CACHE / "root"
    shutil.rmtree(root, ignore_errors=True)
    include = "--include=ca-certificates,python3,python3-venv"
    _run("debootstrap", "--variant=minbase", include, SUITE, str(root), sources[""])
    lines = [f"deb {uri} {SUITE}{part} main\n" for part, uri in sources.items()]
    (root / "etc/apt/sources.list").write_text("".join(lines))
    working = _run(*_BUILDAH, "from", "scratch").strip()
    try:
        packed = _CACHE / "root.tar"
        _run("tar", "-C", str(root), "--exclude=./var/cache/apt/archives/*.deb", "-cf", packed, ".")
        _run(*_BUILDAH, "add", "--quiet", working, packed, "/")
        _run(*_BUILDAH, "commit", "--quiet", working, name)
    finally:
        _run(*_BUILDAH, "rm", working)
    shutil.rmtree(root)
    packed.unlink()
    return name


def _known(image: str) -> bool:
    asked = (*_BUILDAH, "inspect", "--type", "image", image)
    return subprocess.run(asked, capture_output=True, check=False).returncode == 0


def _packages() -> Path:
    """Return a folder with every package that the locks name, and a pip.conf that says so.

    Whatever the locks say of other Pythons: that of the images is not the one that runs this.
    """
    locks = {
        name: _MARKER.sub("", (ROOT / "docker" / name).read_text())
        for name in ("build.lock", "runtime.lock")
    }
    content = "".join(locks.values()).encode()
    folder = _CACHE / f"packages-{hashlib.sha256(content).hexdigest()[:16]}"
    if folder.is_dir():
        return folder
    partial = folder.with_suffix(".partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir()
    for name, text in locks.items():
        lock = partial / name
        lock.write_text(text)
        _run(
            *(sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check"),
            *("--require-hashes", "--no-deps", "--only-binary=:all:", "--python-version=3.11"),
            *("--requirement", lock, "--dest", partial),
        )
    (partial / "pip.conf").write_text("[global]\nno-index = true\nfind-links = /packages\n")
    partial.rename(folder)
    return folder


@asynccontextmanager
async def running(
    image: Image, *, env: Mapping[str, str], log: Path, files: Mapping[Path, str] | None = None
) -> AsyncIterator["Container"]:
    """Run an image as its own settings say, until it or the block ends; `log` has what it says.

    Chroot isolation has no namespace of processes: what is left at the end is found and killed.
    """
    working = _run(*_BUILDAH, "from", "--pull-never", image.name).strip()
    options = [
        *(f"--env={name}={value}" for name, value in env.items()),
        *(f"--volume={path}:{place}:ro" for path, place in (files or {}).items()),
    ]
    start = (*_BUILDAH, "run", *_ALONE, *options, working, "--")
    try:
        with log.open("wb") as said:
            process = await asyncio.create_subprocess_exec(
                *start, *image.command, stdout=said, stderr=said, start_new_session=True
            )
        container = Container(image=image, process=process, start=start)
        try:
            yield container
        finally:
            left = container.processes()
            for one in left:
                with contextlib.suppress(psutil.NoSuchProcess):
                    one.kill()
            await process.wait()
            psutil.wait_procs(left, timeout=10)
            # Shown by pytest where the test fails.
            print(log.read_text(errors="replace"))
    finally:
        _run(*_BUILDAH, "rm", working)


@dataclass(frozen=True, slots=True, kw_only=True)
class Container:
    """An image that runs."""

    image: Image
    process: asyncio.subprocess.Process
    start: Sequence[str]

    def processes(self) -> list[psutil.Process]:
        """Return every process of it that is there now."""
        try:
            return psutil.Process(self.process.pid).children(recursive=True)
        except psutil.NoSuchProcess:
            return []

    async def health(self) -> int:
        """Run the check of its health, in it; return how that ended."""
        check = await asyncio.create_subprocess_exec(
            *self.start,
            *self.image.health,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
        )
        return await check.wait()


def _run(*command: str | Path) -> str:
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    last_words = "\n".join((done.stdout + done.stderr).splitlines()[-40:])
    assert done.returncode == 0, f"{' '.join(map(str, command[:8]))} …\n{last_words}"
    return done.stdout
