"""What NVIDIA's management library says of a GPU, asked through ctypes: it owes nothing to Sluice's own reading of it."""

import ctypes


class Missing(Exception):
    """There is no driver, or it has no GPU."""


class Memory(ctypes.Structure):
    _fields_ = [("total", ctypes.c_ulonglong), ("free", ctypes.c_ulonglong), ("used", ctypes.c_ulonglong)]


class Process(ctypes.Structure):
    _fields_ = [("pid", ctypes.c_uint), ("used", ctypes.c_ulonglong), ("gpu_instance", ctypes.c_uint), ("compute_instance", ctypes.c_uint)]


class Utilization(ctypes.Structure):
    _fields_ = [("gpu", ctypes.c_uint), ("memory", ctypes.c_uint)]


class NVML:
    """The library, and one GPU of it after another."""

    def __init__(self):
        try:
            self.lib = ctypes.CDLL("libnvidia-ml.so.1")
        except OSError as e:
            raise Missing("no NVIDIA driver (%s)" % e)
        code = self.lib.nvmlInit_v2()
        if code != 0:
            raise Missing("the NVIDIA driver does not answer (nvmlInit: %d)" % code)
        count = ctypes.c_uint()
        self._must("nvmlDeviceGetCount_v2", ctypes.byref(count))
        if count.value == 0:
            raise Missing("the NVIDIA driver has no GPU")
        self.gpus = []
        for i in range(count.value):
            handle = ctypes.c_void_p()
            self._must("nvmlDeviceGetHandleByIndex_v2", i, ctypes.byref(handle))
            self.gpus.append(handle)

    def _ask(self, call, *args):
        """The code of a call; what this driver has not is not supported."""
        function = getattr(self.lib, call, None)
        return 13 if function is None else function(*args)

    def _must(self, call, *args):
        code = self._ask(call, *args)
        if code != 0:
            raise RuntimeError("%s: %d" % (call, code))

    def _text(self, call, *handle):
        buffer = ctypes.create_string_buffer(128)
        self._must(call, *handle, buffer, 128)
        return buffer.value.decode()

    def driver(self):
        return self._text("nvmlSystemGetDriverVersion")

    def uuid(self, gpu):
        return self._text("nvmlDeviceGetUUID", gpu)

    def name(self, gpu):
        return self._text("nvmlDeviceGetName", gpu)

    def memory(self, gpu):
        """Bytes in all, and used by anybody, with what the driver keeps for itself."""
        m = Memory()
        self._must("nvmlDeviceGetMemoryInfo", gpu, ctypes.byref(m))
        return m.total, m.used

    def processes(self, gpu):
        """How many processes compute there; None if the driver does not say."""
        count = ctypes.c_uint(256)
        infos = (Process * 256)()
        code = self._ask("nvmlDeviceGetComputeRunningProcesses_v3", gpu, ctypes.byref(count), infos)
        if code == 13:
            code = self._ask("nvmlDeviceGetComputeRunningProcesses_v2", gpu, ctypes.byref(count), infos)
        return count.value if code == 0 else None

    def mig(self, gpu):
        """Whether MIG is on; None where there is no such thing."""
        now, pending = ctypes.c_uint(), ctypes.c_uint()
        return bool(now.value) if self._ask("nvmlDeviceGetMigMode", gpu, ctypes.byref(now), ctypes.byref(pending)) == 0 else None

    def power(self, gpu):
        """Watts drawn now; None if the driver does not say."""
        milliwatts = ctypes.c_uint()
        return milliwatts.value / 1000 if self._ask("nvmlDeviceGetPowerUsage", gpu, ctypes.byref(milliwatts)) == 0 else None

    def busy(self, gpu):
        """The share of the driver's last sampling period in which a kernel ran, in percent; None if it does not say."""
        u = Utilization()
        return u.gpu if self._ask("nvmlDeviceGetUtilizationRates", gpu, ctypes.byref(u)) == 0 else None
