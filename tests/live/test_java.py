"""The Java client against a real vLLM with the shim: its own live tests, which `mvn verify` leaves out."""

from __future__ import annotations

import subprocess

from tests.live.vllm_server import ROOT, VllmServer

JAVA = ROOT / "java-compat"


def test_lastword_java_against_vllm(vllm: VllmServer) -> None:
    """Whole answers, errors with their numbers, leaving, the deadline, and what the shim tells the JDK's default client."""
    command = [
        "mvn",
        "-q",
        "-B",
        "-f",
        str(JAVA / "pom.xml"),
        "-pl",
        "lastword-java",
        "test",
        "-Dmaven.javadoc.skip=true",
    ]
    command += ["-Dlastword.tests=live", "-Dlastword.tests.not=", f"-Dlastword.live={vllm.base_url}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=200)
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-2000:]
    report = JAVA / "lastword-java/target/surefire-reports/io.lastword.LiveTest.txt"
    assert "Tests run: 7, Failures: 0, Errors: 0, Skipped: 0" in report.read_text("utf-8")
    vllm.wait_idle()
