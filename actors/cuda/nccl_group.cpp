#include "actors/cuda/nccl_group.hpp"

#include <nccl.h>

#include <algorithm>
#include <cstdlib>
#include <mutex>
#include <thread>
#include <utility>

#include "actors/cuda/device_state.hpp"
#include "framework/failure.hpp"

namespace weft::cuda {
namespace {

void set_environment_once() {
  static std::once_flag once;
  std::call_once(once, [] {
    constexpr int kKeep = 0;
    setenv("NCCL_NVLS_ENABLE", "0", kKeep);
    setenv("NCCL_RUNTIME_CONNECT", "0", kKeep);
  });
}

ncclDataType_t type_of(ElementKind kind) {
  switch (kind) {
    case ElementKind::I8:
      return ncclInt8;
    case ElementKind::U8:
      return ncclUint8;
    case ElementKind::I32:
      return ncclInt32;
    case ElementKind::U32:
      return ncclUint32;
    case ElementKind::I64:
      return ncclInt64;
    case ElementKind::U64:
      return ncclUint64;
    case ElementKind::F16:
      return ncclFloat16;
    case ElementKind::BF16:
      return ncclBfloat16;
    case ElementKind::F32:
      return ncclFloat32;
    case ElementKind::F64:
      return ncclFloat64;
  }
  throw UsageError("NCCL has no element kind number " + std::to_string(static_cast<int>(kind)));
}

std::string names(const std::vector<int>& ordinals) {
  std::string all;
  for (const int ordinal : ordinals) all += (all.empty() ? "" : ", ") + std::to_string(ordinal);
  return all;
}

}  // namespace

NcclGroup::NcclGroup(const std::vector<int>& ordinals)
    : ordinals_(ordinals), communicators_(ordinals.size(), nullptr) {
  std::vector<int> sorted = ordinals;
  std::sort(sorted.begin(), sorted.end());
  if (sorted.empty() || std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end())
    throw UsageError("NCCL group of devices [" + names(ordinals) +
                     "]: it takes one device or more, each of them once");
  set_environment_once();
  const CurrentDevice current(ordinals_.front());
  try {
    check("ncclCommInitAll", ncclCommInitAll(communicators_.data(),
                                             static_cast<int>(ordinals_.size()), ordinals_.data()));
  } catch (const DeviceError&) {
    abort();
    throw;
  }
}

NcclGroup::~NcclGroup() {
  if (is_aborted_) return;
  try {
    if (!asynchronous_error().empty()) {
      abort();
      return;
    }
    const CurrentDevice current(ordinals_.front());
    for (ncclComm* communicator : communicators_) ncclCommDestroy(communicator);
  } catch (const std::exception&) {  // a lost device: nothing is left to give back
  }
}

void NcclGroup::check(const char* call, int result) {
  auto status = static_cast<ncclResult_t>(result);
  // Only where NCCL_COMM_BLOCKING=0 is set: the call goes on in a thread of NCCL's.
  while (status == ncclInProgress) {
    std::this_thread::yield();
    status = ncclSuccess;
    for (ncclComm* communicator : communicators_) {
      ncclResult_t one = ncclSuccess;
      if (communicator && ncclCommGetAsyncError(communicator, &one) == ncclSuccess &&
          one != ncclSuccess && (status == ncclSuccess || status == ncclInProgress))
        status = one;
    }
  }
  if (status == ncclSuccess) return;
  const char* detail = ncclGetLastError(nullptr);
  throw DeviceError(std::string(call) + " on devices " + names(ordinals_) + ": " +
                    ncclGetErrorString(status) +
                    (detail && *detail ? std::string(", ") + detail : std::string()));
}

template <class Each>
void NcclGroup::run(const char* call, std::span<const Part> parts, const Each& each) {
  if (is_aborted_)
    throw DeviceError(std::string(call) + " on devices " + names(ordinals_) +
                      ": the group was aborted; a new one has to be made");
  if (parts.size() != ordinals_.size())
    throw UsageError(std::string(call) + ": " + std::to_string(parts.size()) +
                     " parts for a group of " + std::to_string(ordinals_.size()) +
                     " devices; one a device is wanted");
  const CurrentDevice current(ordinals_.front());
  check("ncclGroupStart", ncclGroupStart());
  ncclResult_t first = ncclSuccess;
  for (std::size_t member = 0; member < parts.size(); ++member) {
    const ncclResult_t result = each(member);
    if (first == ncclSuccess && result != ncclInProgress) first = result;
  }
  // Also after an error, which leaves nothing enqueued: NCCL's group would stay open.
  const ncclResult_t end = ncclGroupEnd();
  check(call, first == ncclSuccess ? end : first);
}

void NcclGroup::all_reduce(std::span<const Part> parts, std::size_t count, ElementKind kind) {
  if (count == 0) return;
  const ncclDataType_t type = type_of(kind);
  run("ncclAllReduce", parts, [&](std::size_t member) {
    const Part& part = parts[member];
    return ncclAllReduce(part.from, part.to, count, type, ncclSum, communicators_[member],
                         part.stream);
  });
}

void NcclGroup::broadcast(std::span<const Part> parts, std::size_t count, ElementKind kind,
                          std::size_t root) {
  if (root >= ordinals_.size())
    throw UsageError("ncclBroadcast: root " + std::to_string(root) + " of a group of " +
                     std::to_string(ordinals_.size()) + " devices, which are counted from 0");
  if (count == 0) return;
  const ncclDataType_t type = type_of(kind);
  run("ncclBroadcast", parts, [&](std::size_t member) {
    const Part& part = parts[member];
    return ncclBroadcast(member == root ? part.from : part.to, part.to, count, type,
                         static_cast<int>(root), communicators_[member], part.stream);
  });
}

void NcclGroup::reduce_scatter(std::span<const Part> parts, std::size_t result_count,
                               ElementKind kind) {
  if (result_count == 0) return;
  const ncclDataType_t type = type_of(kind);
  run("ncclReduceScatter", parts, [&](std::size_t member) {
    const Part& part = parts[member];
    return ncclReduceScatter(part.from, part.to, result_count, type, ncclSum,
                             communicators_[member], part.stream);
  });
}

void NcclGroup::all_gather(std::span<const Part> parts, std::size_t count, ElementKind kind) {
  if (count == 0) return;
  const ncclDataType_t type = type_of(kind);
  run("ncclAllGather", parts, [&](std::size_t member) {
    const Part& part = parts[member];
    return ncclAllGather(part.from, part.to, count, type, communicators_[member], part.stream);
  });
}

std::string NcclGroup::asynchronous_error() {
  for (std::size_t member = 0; member < communicators_.size(); ++member) {
    if (!communicators_[member]) continue;
    ncclResult_t error = ncclSuccess;
    const ncclResult_t asked = ncclCommGetAsyncError(communicators_[member], &error);
    if (asked != ncclSuccess) error = asked;
    if (error != ncclSuccess && error != ncclInProgress)
      return "NCCL on device " + std::to_string(ordinals_[member]) + ": " +
             ncclGetErrorString(error);
  }
  return "";
}

void NcclGroup::abort() noexcept {
  if (is_aborted_) return;
  is_aborted_ = true;
  try {
    const CurrentDevice current(ordinals_.front());
    // NCCL takes the communicators of one process apart when the last of them is aborted: by then
    // all devices have been told to leave.
    for (ncclComm*& communicator : communicators_)
      if (communicator) ncclCommAbort(std::exchange(communicator, nullptr));
  } catch (const std::exception&) {  // a lost device
  }
}

}  // namespace weft::cuda
