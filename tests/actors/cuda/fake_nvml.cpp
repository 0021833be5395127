// A library with NVML's names and layouts that stands for a machine with two GPUs: one with links
// to the other and to a switch whose address is hidden, one in MIG mode with one instance. It lacks
// nvmlDeviceGetMaxPcieLinkWidth, as an older version might. Written from NVML's reference manual
// and not from the code it tests.
#include <cstdio>
#include <cstring>

namespace {

struct PciInfo {
  char busIdLegacy[16];
  unsigned int domain, bus, device, pciDeviceId, pciSubSystemId;
  char busId[32];
};
struct Memory {
  unsigned long long total, free, used;
};
struct FieldValue {
  unsigned int fieldId, scopeId;
  long long timestamp, latencyUsec;
  int valueType, nvmlReturn;
  union {
    double dVal;
    unsigned int uiVal;
    unsigned long long ullVal;
  } value;
};

int gpus[3];  // two GPUs and an instance; their addresses are the handles
int started = 0;

void fill(PciInfo* pci, unsigned bus) {
  std::memset(pci, 0, sizeof *pci);
  pci->bus = bus;
  pci->domain = bus == 0xff ? 0xffffffffu : 0;
  pci->device = bus == 0xff ? 0xff : 0;
  pci->pciDeviceId = 0x233510de;
  std::snprintf(pci->busId, sizeof pci->busId, "%08X:%02X:%02X.0", pci->domain, pci->bus,
                pci->device);
}

}  // namespace

extern "C" {

int nvmlInit_v2() {
  return ++started, 0;
}
int nvmlShutdown() {
  return --started, 0;
}
const char* nvmlErrorString(int result) {
  return result == 0 ? "Success" : "Not Supported";
}
int nvmlSystemGetDriverVersion(char* text, unsigned int length) {
  std::snprintf(text, length, "580.65.06");
  return 0;
}
int nvmlDeviceGetCount_v2(unsigned int* count) {
  return *count = 2, started == 1 ? 0 : 1;
}
int nvmlDeviceGetHandleByIndex_v2(unsigned int index, void** device) {
  return *device = &gpus[index], index < 2 ? 0 : 2;
}
int nvmlDeviceGetName(void* device, char* text, unsigned int length) {
  std::snprintf(text, length, device == &gpus[2] ? "NVIDIA H200 MIG 1g.18gb" : "NVIDIA H200");
  return 0;
}
int nvmlDeviceGetUUID(void* device, char* text, unsigned int length) {
  const char* uuids[] = {"GPU-a", "GPU-b", "MIG-c"};
  std::snprintf(text, length, "%s", uuids[static_cast<int*>(device) - gpus]);
  return 0;
}
int nvmlDeviceGetMemoryInfo(void* device, Memory* memory) {
  *memory = {device == &gpus[2] ? 1ull << 34 : 1ull << 37, 0, 0};
  return 0;
}
int nvmlDeviceGetPciInfo_v3(void* device, PciInfo* pci) {
  fill(pci, device == &gpus[0] ? 0x3b : 0x86);
  return 0;
}
int nvmlDeviceGetCudaComputeCapability(void*, int* major, int* minor) {
  return *major = 9, *minor = 0, 0;
}
int nvmlDeviceGetMigMode(void* device, unsigned int* current, unsigned int* pending) {
  return *current = *pending = device == &gpus[1], 0;
}
int nvmlDeviceGetComputeMode(void* device, unsigned int* mode) {
  return *mode = device == &gpus[0] ? 2 : 0, 0;
}
struct C2cModeInfo {
  unsigned int isC2cEnabled;
};
int nvmlDeviceGetC2cModeInfoV(void* device, C2cModeInfo* info) {
  return info->isC2cEnabled = device == &gpus[0], 0;
}
int nvmlDeviceGetMaxMigDeviceCount(void*, unsigned int* count) {
  return *count = 7, 0;
}
int nvmlDeviceGetMigDeviceHandleByIndex(void*, unsigned int index, void** device) {
  return *device = &gpus[2], index == 3 ? 0 : 6;
}
int nvmlDeviceGetCurrPcieLinkGeneration(void*, unsigned int* value) {
  return *value = 1, 0;
}
int nvmlDeviceGetMaxPcieLinkGeneration(void*, unsigned int* value) {
  return *value = 5, 0;
}
int nvmlDeviceGetCurrPcieLinkWidth(void*, unsigned int* value) {
  return *value = 16, 0;
}
int nvmlDeviceGetFieldValues(void*, int count, FieldValue* values) {
  for (int i = 0; i < count; ++i) {
    values[i].nvmlReturn = values[i].fieldId == 90 ? 0 : 3;
    values[i].valueType = 1;
    values[i].value.uiVal = 26562;
  }
  return 0;
}
int nvmlDeviceGetNvLinkState(void* device, unsigned int link, unsigned int* active) {
  *active = link != 5;
  return device == &gpus[0] && link < 17 ? 0 : 3;
}
int nvmlDeviceGetNvLinkVersion(void*, unsigned int, unsigned int* version) {
  return *version = 6, 0;
}
int nvmlDeviceGetNvLinkRemoteDeviceType(void*, unsigned int link, unsigned int* type) {
  return *type = link < 4 ? 0 : 2, 0;
}
int nvmlDeviceGetNvLinkRemotePciInfo_v2(void*, unsigned int link, PciInfo* pci) {
  fill(pci, link < 4 ? 0x86 : 0xff);
  return 0;
}

}  // extern "C"
