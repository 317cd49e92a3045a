// A pretended libnvidia-ml.so.1 with one GPU, for rehearsals: as much of it as Sluice's inventory and the trials' witness ask for. The
// GPU's memory is what programs/device.py claims: each file claim-* in $GPU_TRIAL_CLAIMS that a living process has locked, as long as
// what it claims. Which process that is the kernel says, in /proc/locks.
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "nvml.h"

#define UUID "GPU-00000000-1111-2222-3333-444444444444"
#define RESERVED (64ull << 20)

static int gpu;

typedef struct {
	unsigned int pid;
	unsigned long long bytes;
} claim;

// holder is the process that has the lock of a file, 0 if it can't be seen from here.
static unsigned int holder(ino_t inode) {
	FILE *locks = fopen("/proc/locks", "r");
	char line[256];
	unsigned int pid = 0;
	while (locks && fgets(line, sizeof line, locks)) {
		unsigned int owner;
		unsigned long number;
		if (sscanf(line, "%*s FLOCK %*s %*s %u %*x:%*x:%lu", &owner, &number) == 2 && number == inode)
			pid = owner;
	}
	if (locks)
		fclose(locks);
	return pid;
}

static int claims(claim *found, int most) {
	const char *path = getenv("GPU_TRIAL_CLAIMS");
	DIR *dir = path ? opendir(path) : NULL;
	struct dirent *entry;
	int n = 0;
	while (dir && (entry = readdir(dir)) && n < most) {
		if (strncmp(entry->d_name, "claim-", 6))
			continue;
		int fd = openat(dirfd(dir), entry->d_name, O_RDONLY | O_CLOEXEC);
		struct stat s;
		if (fd < 0)
			continue;
		if (flock(fd, LOCK_SH | LOCK_NB) != 0 && fstat(fd, &s) == 0) {
			found[n].pid = holder(s.st_ino);
			found[n++].bytes = s.st_size;
		}
		close(fd);
	}
	if (dir)
		closedir(dir);
	return n;
}

static unsigned long long total(void) {
	const char *path = getenv("GPU_TRIAL_CLAIMS");
	char name[4096];
	unsigned long long bytes = 0;
	snprintf(name, sizeof name, "%s/total", path ? path : ".");
	FILE *f = fopen(name, "r");
	if (f && fscanf(f, "%llu", &bytes) != 1)
		bytes = 0;
	if (f)
		fclose(f);
	return bytes + RESERVED;
}

static unsigned long long used(void) {
	claim all[256];
	unsigned long long sum = RESERVED;
	for (int i = claims(all, 256) - 1; i >= 0; i--)
		sum += all[i].bytes;
	return sum;
}

nvmlReturn_t nvmlInit_v2(void) { return NVML_SUCCESS; }
nvmlReturn_t nvmlShutdown(void) { return NVML_SUCCESS; }
const char *nvmlErrorString(nvmlReturn_t r) { return r == NVML_ERROR_NOT_SUPPORTED ? "Not Supported" : "pretended error"; }

nvmlReturn_t nvmlSystemGetDriverVersion(char *version, unsigned int length) {
	snprintf(version, length, "000.00 (pretended)");
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetCount_v2(unsigned int *count) {
	*count = 1;
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned int index, nvmlDevice_t *device) {
	device->handle = (void *)&gpu; // go-nvml has handles in a struct of one field, which is passed as a plain pointer is
	return index == 0 ? NVML_SUCCESS : NVML_ERROR_INVALID_ARGUMENT;
}

nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t device, char *uuid, unsigned int length) {
	snprintf(uuid, length, "%s", UUID);
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t device, char *name, unsigned int length) {
	snprintf(name, length, "Pretended GPU");
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMinorNumber(nvmlDevice_t device, unsigned int *minor) {
	*minor = 0;
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMigMode(nvmlDevice_t device, unsigned int *now, unsigned int *pending) {
	*now = *pending = NVML_DEVICE_MIG_DISABLE;
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t *m) {
	m->total = total();
	m->used = used();
	m->free = m->total - m->used;
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, nvmlMemory_v2_t *m) {
	m->total = total();
	m->reserved = RESERVED;
	m->used = used() - RESERVED;
	m->free = m->total - used();
	return NVML_SUCCESS;
}

// A process with several claims is listed once, as a driver lists it.
nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice_t device, unsigned int *count, nvmlProcessInfo_t *infos) {
	claim all[256];
	unsigned int n = 0, most = *count;
	for (int i = claims(all, 256) - 1; i >= 0; i--) {
		unsigned int k = 0;
		while (k < n && k < most && infos[k].pid != all[i].pid)
			k++;
		if (k < n && k < most) {
			infos[k].usedGpuMemory += all[i].bytes;
			continue;
		}
		if (n < most)
			infos[n] = (nvmlProcessInfo_t){.pid = all[i].pid, .usedGpuMemory = all[i].bytes,
				.gpuInstanceId = 0xFFFFFFFF, .computeInstanceId = 0xFFFFFFFF};
		n++;
	}
	*count = n;
	return n > most ? NVML_ERROR_INSUFFICIENT_SIZE : NVML_SUCCESS;
}

// One claim draws 100 W; there is no such GPU.
nvmlReturn_t nvmlDeviceGetPowerUsage(nvmlDevice_t device, unsigned int *milliwatts) {
	claim all[256];
	*milliwatts = 50000 + (claims(all, 256) > 0 ? 100000 : 0);
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetUtilizationRates(nvmlDevice_t device, nvmlUtilization_t *rates) {
	claim all[256];
	rates->gpu = claims(all, 256) > 0 ? 100 : 0;
	rates->memory = 0;
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetFieldValues(nvmlDevice_t device, int count, nvmlFieldValue_t *values) {
	for (int i = 0; i < count; i++)
		values[i].nvmlReturn = NVML_ERROR_NOT_SUPPORTED;
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetRemappedRows(nvmlDevice_t device, unsigned int *a, unsigned int *b, unsigned int *c, unsigned int *d) {
	return NVML_ERROR_NOT_SUPPORTED;
}

nvmlReturn_t nvmlDeviceGetRetiredPagesPendingStatus(nvmlDevice_t device, nvmlEnableState_t *pending) { return NVML_ERROR_NOT_SUPPORTED; }

nvmlReturn_t nvmlDeviceGetSupportedEventTypes(nvmlDevice_t device, unsigned long long *kinds) {
	*kinds = nvmlEventTypeXidCriticalError;
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlEventSetCreate(nvmlEventSet_t *set) {
	set->handle = (void *)&gpu;
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceRegisterEvents(nvmlDevice_t device, unsigned long long kinds, nvmlEventSet_t set) { return NVML_SUCCESS; }

nvmlReturn_t nvmlEventSetWait_v2(nvmlEventSet_t set, nvmlEventData_t *data, unsigned int milliseconds) {
	usleep(milliseconds * 1000);
	return NVML_ERROR_TIMEOUT;
}

nvmlReturn_t nvmlEventSetFree(nvmlEventSet_t set) { return NVML_SUCCESS; }
