# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""Energy, where a meter can be read: NVML on NVIDIA GPUs, RAPL on CPUs (extra `energy`). Nothing is ever estimated."""

import importlib
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol

import torch

RAPL_FOLDER = "/sys/class/powercap/intel-rapl/subsystem"
"""Where Linux shows the counters of Intel's and AMD's processors."""

_JOULES_PER_KWH = 3.6e6


class MeterError(RuntimeError):
    """A counter that cannot be read; the message is the reason."""


class EnergyCounter(Protocol):
    """Counts the energy that a device takes, whoever uses it."""

    name: str
    """What is read, and of which device."""

    def joules(self) -> float:
        """
        What was taken since the last call, or since the counter was opened.

        :raises MeterError: If it cannot be read any more.
        """


class EnergyMeter:
    """
    A meter that may be missing, and never fails.

    :param counter: What it reads, or why there is nothing to read.
    """

    def __init__(self, counter: EnergyCounter | str) -> None:
        self._counter = counter

    @property
    def name(self) -> str | None:
        """What is read; `None` if there is no meter."""
        return None if isinstance(self._counter, str) else self._counter.name

    @property
    def reason(self) -> str | None:
        """Why there is no meter; `None` if there is one."""
        return self._counter if isinstance(self._counter, str) else None

    def joules(self) -> float | None:
        """What was taken since the last call, or since the meter was opened; `None` if there is no meter."""
        if isinstance(self._counter, str):
            return None
        try:
            return self._counter.joules()
        except MeterError as error:
            self._counter = str(error)
            return None


class NVMLCounter:
    """
    The energy counter of one NVIDIA GPU (Volta or later), which is that of the whole board.

    :param device: The GPU as PyTorch counts them.
    :raises ImportError: If `nvidia-ml-py` is not installed.
    :raises MeterError: If the driver or the GPU has no such counter.
    """

    def __init__(self, device: torch.device) -> None:
        self._nvml: Any = importlib.import_module("pynvml")  # it comes without types
        self._device = device
        properties = torch.cuda.get_device_properties(device)
        self.name = f"NVML, {properties.name}"
        try:
            self._nvml.nvmlInit()
            # PyTorch numbers the GPUs that it may see, NVML all of them.
            self._handle = self._nvml.nvmlDeviceGetHandleByUUID(f"GPU-{properties.uuid}")
        except self._nvml.NVMLError as error:
            raise MeterError(f"NVML cannot be read ({error})") from error
        self._last = self._total()

    def joules(self) -> float:
        """See `EnergyCounter`; waits until the GPU has done what it was given."""
        torch.cuda.synchronize(self._device)
        last, self._last = self._last, self._total()
        return self._last - last

    def _total(self) -> float:
        try:
            return float(self._nvml.nvmlDeviceGetTotalEnergyConsumption(self._handle)) / 1000
        except self._nvml.NVMLError as error:
            raise MeterError(f"the GPU has no energy counter that NVML can read ({error})") from error


class RAPLCounter:
    """
    The counters of all processors of this machine, without their memory, read through codecarbon.

    Codecarbon's trackers are not used: they would ask the network, write files, and estimate where nothing is measured.

    :param folder: Where the counters are.
    :raises ImportError: If `codecarbon` is not installed.
    :raises MeterError: If there are no counters, or they may not be read.
    """

    name = "RAPL"

    def __init__(self, folder: str = RAPL_FOLDER) -> None:
        from codecarbon.core.cpu import IntelRAPL, is_rapl_available
        from codecarbon.core.units import Time

        with _quiet_codecarbon():
            if not is_rapl_available(folder):
                raise MeterError(f"this machine has no RAPL counters that this user may read (in '{folder}')")
            self._second = Time.from_seconds(1.0)
            self._rapl = IntelRAPL(rapl_dir=folder)
        self.joules()

    def joules(self) -> float:
        """See `EnergyCounter`. Counters start again from 0 now and then, some every half hour: read it more often."""
        with _quiet_codecarbon():
            details = self._rapl.get_cpu_details(self._second)  # the time matters for power only
        energies = [kwh for name, kwh in details.items() if "Energy" in name]
        if not energies:
            raise MeterError("the RAPL counters cannot be read any more")
        return _JOULES_PER_KWH * sum(energies)


def open_meter(device: torch.device) -> EnergyMeter:
    """
    Find the meter of the device that a model runs on: of the GPU alone, or of the processors alone.

    :param device: The device.
    :returns: The meter; if there is none, one that says why not.
    """
    try:
        if device.type == "cuda":
            return EnergyMeter(NVMLCounter(device))
        if device.type == "cpu":
            return EnergyMeter(RAPLCounter())
    except ImportError as error:
        return EnergyMeter(f"{error.name} is not installed (pip install 'radical-haystack[energy]')")
    except MeterError as error:
        return EnergyMeter(str(error))
    return EnergyMeter(f"there is none for devices of type '{device.type}'")


@contextmanager
def _quiet_codecarbon() -> Iterator[None]:
    """Its warnings say what a missing meter's reason says."""
    logger = logging.getLogger("codecarbon")
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(level)
