"""Rally's own files, from the source packages that its index has; none of them is stored here."""

import hashlib
import subprocess
import tarfile
from pathlib import Path

from loadstone.lab.environment import ServiceEnvironment
from loadstone.system import locks

# Name and version -> file, SHA-256. rally-openstack 3.0.0 has its samples in the old form.
SOURCES = {
    "rally==5.1.1": (
        "rally-5.1.1.tar.gz",
        "fde27bb20d77d08dc161c2737f9ce9db201b9d60e49ef22ca00f6a8cf841be94",
    ),
    "rally-openstack==4.1.0": (
        "rally_openstack-4.1.0.tar.gz",
        "c8b0e9f2c09ab3d88e5ebd57873717a9bc385b61840d21816203bcd115e47de4",
    ),
    "rally-openstack==3.0.0": (
        "rally-openstack-3.0.0.tar.gz",
        "96770abb75eedd13a5c0f7ccfc0e779c59fcd687e19c987be8c31b27e8ab13ef",
    ),
}
RALLY, NEW, OLD = "rally-5.1.1", "rally_openstack-4.1.0", "rally-openstack-3.0.0"
# What the packages want of the one who asks pip for their metadata.
BUILDERS = ("pip==25.3", "setuptools==80.9.0", "wheel==0.45.1", "pbr==7.0.3")


def unpacked(root: Path) -> Path:
    """Give the folder that holds the unpacked packages; what is missing is downloaded."""
    root.mkdir(parents=True, exist_ok=True)
    with locks.held(root / ".lock"):
        for requirement, (file, digest) in SOURCES.items():
            if not (root / file).exists():
                _download(root, requirement, digest)
            assert hashlib.sha256((root / file).read_bytes()).hexdigest() == digest, file
            if not (root / file.removesuffix(".tar.gz")).exists():
                _unpack(root / file, root)
    return root


def _download(root: Path, requirement: str, digest: str) -> None:
    environment = ServiceEnvironment(root, "pip", BUILDERS, None, root)
    environment.prepare(print)
    wanted = root / "wanted.txt"
    wanted.write_text(f"{requirement} --hash=sha256:{digest}\n")
    words = "download --quiet --no-deps --no-binary :all: --no-build-isolation --require-hashes"
    subprocess.run(
        [environment.python, "-m", "pip", *words.split(), "-d", root, "-r", wanted], check=True
    )


def _unpack(file: Path, root: Path) -> None:
    half = root / ".half"
    with tarfile.open(file) as archive:
        archive.extractall(half, filter="data")
    name = file.name.removesuffix(".tar.gz")
    (half / name).replace(root / name)
