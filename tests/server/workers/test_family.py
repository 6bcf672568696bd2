"""The process table: descendants, memory, and signals that reach only those who were meant."""

import os
import shutil
import signal
import subprocess
import sys
from dataclasses import replace

import pytest

from inductoscope.server.workers import family

# Starts a child in a session of its own, says its number, and waits to be ended.
PARENT = """
import subprocess, sys
child = subprocess.Popen([sys.executable, "-c", "print(flush=True); input()"], stdin=subprocess.PIPE,
                         stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True)
child.stdout.readline()
print(child.pid, flush=True)
input()
"""


@pytest.fixture
def tree():
    parent = subprocess.Popen([sys.executable, "-c", PARENT], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    child = int(parent.stdout.readline())
    yield parent, child
    parent.kill()
    parent.communicate()


def test_members_include_what_left_the_process_group(tree):
    parent, child = tree
    assert [member.pid for member in family.members(parent.pid)] == [parent.pid, child]


def test_memory_is_that_of_all(tree):
    parent, child = tree
    both, one = family.resident_bytes(parent.pid), family.resident_bytes(child)
    assert both > one > 1 << 20


FORKS = """
import os, sys
held = bytearray(os.urandom(1 << 20) * 64)
children = []
for _ in range(3):
    child = os.fork()
    if not child:
        sys.stdin.readline()
        os._exit(0)
    children.append(child)
print("ready", flush=True)
sys.stdin.readline()
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells")
def test_what_forks_share_counts_once():
    process = subprocess.Popen([sys.executable, "-c", FORKS], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        assert family.resident_bytes(process.pid) > 3 * (64 << 20)
        assert 64 << 20 < family.proportional_bytes(process.pid) < 2 * (64 << 20)
    finally:
        family.send_signal(family.members(process.pid), signal.SIGKILL)
        process.communicate()


def test_a_process_that_has_ended_holds_nothing():
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    assert family.proportional_bytes(process.pid) == 0


def test_signal_reaches_all(tree):
    parent, _child = tree
    family.send_signal(family.members(parent.pid), signal.SIGKILL)
    assert parent.wait(timeout=10) == -signal.SIGKILL
    assert family.members(parent.pid) == ()


def test_a_process_that_took_over_the_number_is_left_alone(tree):
    parent, _child = tree
    earlier = [replace(member, started="earlier") for member in family.members(parent.pid)]
    family.send_signal(earlier, signal.SIGKILL)
    assert parent.poll() is None


@pytest.mark.skipif(sys.platform != "linux", reason="/proc")
def test_a_name_with_brackets_and_spaces_is_read():
    fields = ["S", "41", *["0"] * 17, "777", "0", "3"]
    member = family._from_stat(42, f"42 (a) b (c)) {' '.join(fields)}", 4096)
    assert member == family.Member(42, 41, "777", 3 * 4096)


@pytest.mark.skipif(shutil.which("ps") is None, reason="needs ps")
def test_ps_and_proc_agree(tree):
    parent, child = tree
    by_ps = {member.pid: member for member in family._from_ps()}
    assert by_ps[child].parent == parent.pid
    assert by_ps[parent.pid].parent == os.getpid()
    assert by_ps[child].resident_bytes > 1 << 20
