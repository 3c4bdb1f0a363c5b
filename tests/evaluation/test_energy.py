# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""Energy meters: counters as Linux shows them, a stand-in for NVML, and machines without any."""

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from radical_haystack.evaluation import energy
from radical_haystack.evaluation.energy import EnergyMeter, MeterError, RAPLCounter, open_meter


class Powercap:
    """The files of the kernel's counters, in microjoules."""

    def __init__(self, folder: Path, **counters: int) -> None:
        self.folder = folder / "powercap"
        self._zones = [self.folder / "intel-rapl" / f"intel-rapl:{number}" for number in range(len(counters))]
        for zone, (name, value) in zip(self._zones, counters.items(), strict=True):
            zone.mkdir(parents=True)
            (zone / "name").write_text(name.replace("_", "-"))
            (zone / "max_energy_range_uj").write_text("1000000000000")
            (zone / "energy_uj").write_text(str(value))

    def set(self, zone: int, value: int) -> None:
        (self._zones[zone] / "energy_uj").write_text(str(value))


def test_rapl_counts_what_all_processors_took(tmp_path: Path) -> None:
    machine = Powercap(tmp_path, package_0=5_000_000_000, package_1=70_000_000_000, psys=1)
    counter = RAPLCounter(str(machine.folder))
    assert counter.joules() == 0
    machine.set(0, 5_000_000_000 + 12_500_000)
    machine.set(1, 70_000_000_000 + 30_000_000)
    machine.set(2, 999_000_000)
    assert counter.joules() == pytest.approx(42.5, rel=1e-5)
    assert counter.joules() == 0
    machine.set(0, 1_000_000)  # the counter began again
    assert counter.joules() == pytest.approx(1_000_000 - 5_012.5 + 1, rel=1e-5)


def test_a_machine_without_counters(tmp_path: Path) -> None:
    with pytest.raises(MeterError, match="no RAPL counters"):
        RAPLCounter(str(tmp_path / "none"))
    with pytest.raises(MeterError, match="no RAPL counters"):
        RAPLCounter(str(Powercap(tmp_path).folder))


def test_a_counter_that_is_lost_ends_the_meter(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    machine = Powercap(tmp_path, package_0=1_000_000)
    meter = EnergyMeter(RAPLCounter(str(machine.folder)))
    assert (meter.name, meter.reason) == ("RAPL", None)
    machine.set(0, 4_000_000)
    assert meter.joules() == pytest.approx(3, rel=1e-5)

    class Lost:
        name = "lost"

        def joules(self) -> float:
            raise MeterError("it is gone")

    meter = EnergyMeter(Lost())
    assert (meter.name, meter.reason) == ("lost", None)
    assert meter.joules() is None
    assert (meter.name, meter.reason) == (None, "it is gone")
    assert meter.joules() is None
    assert capsys.readouterr().err == ""


def test_there_is_always_a_meter_or_a_reason(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    meter = open_meter(torch.device("cpu"))
    assert (meter.name is None) != (meter.reason is None)
    assert "'mps'" in open_meter(torch.device("mps")).reason
    monkeypatch.setitem(sys.modules, "codecarbon", None)
    monkeypatch.setitem(sys.modules, "codecarbon.core.cpu", None)
    missing = open_meter(torch.device("cpu"))
    assert (missing.name, missing.joules()) == (None, None)
    assert "codecarbon.core.cpu is not installed" in missing.reason
    assert "radical-haystack[energy]" in missing.reason


def test_a_processor_is_measured_where_it_can_be(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    machine = Powercap(tmp_path, package_0=1_000_000)
    monkeypatch.setattr(RAPLCounter.__init__, "__defaults__", (str(machine.folder),))
    assert open_meter(torch.device("cpu")).name == "RAPL"
    assert energy.RAPL_FOLDER.startswith("/sys/")


class NVML:
    """Stands in for `pynvml`, which needs a GPU: as many of its calls as are made."""

    class NVMLError(Exception):
        pass

    def __init__(self, driver: bool = True, counter: bool = True) -> None:
        self.driver, self.counter, self.millijoules = driver, counter, 7_000

    def nvmlInit(self) -> None:
        if not self.driver:
            raise self.NVMLError("Driver Not Loaded")

    def nvmlDeviceGetHandleByUUID(self, uuid: str) -> str:
        return uuid

    def nvmlDeviceGetTotalEnergyConsumption(self, handle: str) -> int:
        assert handle == "GPU-3f0c-11"
        if not self.counter:
            raise self.NVMLError("Not Supported")
        return self.millijoules


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> list[torch.device]:
    """Something that PyTorch takes for a GPU, and for what it was waited."""
    waited: list[torch.device] = []
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda _: SimpleNamespace(name="a GPU", uuid="3f0c-11"))
    monkeypatch.setattr(torch.cuda, "synchronize", waited.append)
    return waited


def test_nvml_counts_what_one_gpu_took(monkeypatch: pytest.MonkeyPatch, gpu: list[torch.device]) -> None:
    nvml, device = NVML(), torch.device("cuda:1")
    monkeypatch.setitem(sys.modules, "pynvml", nvml)
    meter = open_meter(device)
    assert (meter.name, meter.reason) == ("NVML, a GPU", None)
    nvml.millijoules += 2_500
    assert meter.joules() == 2.5
    assert meter.joules() == 0
    assert gpu == [device, device]
    nvml.counter = False
    assert meter.joules() is None
    assert "Not Supported" in meter.reason


@pytest.mark.parametrize(
    ("module", "reason"),
    [
        (None, "pynvml is not installed"),
        (NVML(driver=False), "Driver Not Loaded"),
        (NVML(counter=False), "Not Supported"),
    ],
)
def test_a_gpu_without_a_meter(
    monkeypatch: pytest.MonkeyPatch, gpu: list[torch.device], module: NVML | None, reason: str
) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", module)
    meter = open_meter(torch.device("cuda"))
    assert (meter.name, meter.joules()) == (None, None)
    assert reason in meter.reason


def test_nothing_is_asked_of_the_network_or_written(tmp_path: Path) -> None:
    """In a process of its own, in which codecarbon is imported for the first time."""
    code = f"""
import sys, torch
from radical_haystack.evaluation.energy import RAPLCounter, open_meter
seen = []
def watch(event, args):
    if event in ("socket.connect", "socket.getaddrinfo", "socket.gethostbyname"):
        seen.append((event, args))
    if event == "open" and isinstance(args[1], str) and set(args[1]) & set("wax+") and args[0] != "/dev/null":
        seen.append((event, args[:2]))
assert "codecarbon" not in sys.modules
sys.addaudithook(watch)
sys.dont_write_bytecode = True
open_meter(torch.device("cpu")).joules()
RAPLCounter({str(Powercap(tmp_path, package_0=1_000_000).folder)!r}).joules()
print(seen)
"""
    root = Path(__file__).parents[2]
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=root)
    assert (done.stdout, done.returncode) == ("[]\n", 0), done.stderr
