#!/usr/bin/env python3
"""Build the Java client and run its tests, on the JDK that Maven uses and then on the newest other one that is here.

    scripts/java_tests.py          all of it: nullness and warnings are errors, Javadoc is checked
    scripts/java_tests.py --one    on Maven's JDK only

Then the conformance suite plays the client profile against both clients by the real command, with baselines that are empty.

A JDK that is newer in its main number is looked for in /usr/lib/jvm and in JAVA_HOME_25_X64 and the like, as CI machines set
them.  Exit status: 0 all passed, 1 something failed, 2 no Maven or no JDK 17.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree as ET

ROOT = Path(__file__).resolve().parents[1] / "java-compat"
MAVEN = ["mvn", "-q", "-B", "-Dstyle.color=never", "-f", str(ROOT / "pom.xml")]
KNOWN = Path(__file__).resolve().parents[1] / "tests/conformance/known"
# Of every module, however deep; these are cleared before a run and counted after it.
REPORTS = "**/target/surefire-reports/TEST-*.xml"
COUNTED = ("tests", "failures", "errors", "skipped")


def version_of(java: Path) -> str | None:
    """What ``java -version`` says, such as 25.0.3; None if it does not start."""
    try:
        said = subprocess.run([java, "-version"], capture_output=True, text=True, check=True).stderr
    except (OSError, subprocess.CalledProcessError):
        return None
    found = re.search(r'version "([\d._]+)', said)
    return found[1] if found else None


def mavens() -> Path:
    """The ``java`` that Maven uses."""
    home = os.environ.get("JAVA_HOME")
    return Path(home) / "bin/java" if home else Path("java")


def others() -> Iterator[Path]:
    """Every other ``java`` that could be meant."""
    yield from sorted(Path("/usr/lib/jvm").glob("*/bin/java"))
    yield from (
        Path(home) / "bin/java" for name, home in os.environ.items() if re.fullmatch(r"JAVA_HOME_\d+_\w+", name)
    )


def newest(than: str) -> tuple[str, Path] | None:
    """The newest JDK that is newer than ``than``, and its version."""
    found = {version: java for java in others() if (version := version_of(java)) and feature(version) > feature(than)}
    return max(found.items(), key=lambda each: feature(each[0]), default=None)


def feature(version: str) -> int:
    """The feature version: 17 of 17.0.15."""
    return int(version.partition(".")[0])


def run(version: str, *arguments: str) -> int:
    """One build with its tests; the exit status."""
    for report in ROOT.glob(REPORTS):
        report.unlink()
    began = time.monotonic()
    status = subprocess.run([*MAVEN, *arguments], check=False).returncode
    totals = dict.fromkeys(COUNTED, 0)
    for report in ROOT.glob(REPORTS):
        suite = ET.parse(report).getroot()
        for name in COUNTED:
            totals[name] += int(suite.get(name, 0))
    said = ", ".join(f"{count:,} {name}" for name, count in totals.items())
    print(f"java {version}: {said} ({time.monotonic() - began:.0f} s)", flush=True)
    return 1 if status or totals["skipped"] or not totals["tests"] else 0


def all_runs(one: bool) -> int:
    """Exit status: see the head of this file."""
    java = mavens()
    if not shutil.which("mvn") or not shutil.which(java):
        print("java: needs a JDK 17 or newer and Maven 3.8.7 (Debian: openjdk-17-jdk-headless maven)", file=sys.stderr)
        return 2
    version = version_of(java)
    if version is None or feature(version) < 17:
        print(f"java: needs a JDK 17 or newer, and found {version}", file=sys.stderr)
        return 2
    status = run(version, "verify")
    other = None if one or status else newest(version)
    if other is not None:
        status = run(other[0], "test", f"-Dlastword.java={other[1]}")
    return status or conformance(java)


def conformance(java: Path) -> int:
    """The client profile by the suite's own command; the exit status."""
    jar = str(ROOT / "conformance/target/lastword-conformance.jar")
    suite = [str(Path(sys.executable).with_name("lastword")), "conformance", "client", "--quiet", "--profile", "draft"]
    for adapter, baseline in (("lastword", "lastword-java"), ("openai-lastword", "openai-java-lastword")):
        known = KNOWN / f"{baseline}.txt"
        began = time.monotonic()
        command = [*suite, "--expected-failures", str(known), "--", str(java), "-jar", jar, adapter]
        if known.read_text(encoding="utf-8") or subprocess.run(command, check=False).returncode:
            print(f"java: {baseline} does not keep to the client profile", file=sys.stderr)
            return 1
        print(
            f"{baseline}: the client profile, nothing expected to fail ({time.monotonic() - began:.0f} s)", flush=True
        )
    return 0


if __name__ == "__main__":
    sys.exit(all_runs("--one" in sys.argv[1:]))
