#pragma once

namespace weft::samples {

/// Two packages with a NUMA node each, two cores of two threads in the first, one in the second, a
/// GPU with three os-devices and an adapter behind one switch, a management display, a disk.
inline constexpr const char* kHwlocV2 = R"(<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE topology SYSTEM "hwloc2.dtd">
<topology version="2.0">
  <object type="Machine" os_index="0" cpuset="0x0000003f" complete_cpuset="0x000000ff" allowed_cpuset="0x0000003f" nodeset="0x3" complete_nodeset="0x3" allowed_nodeset="0x3" gp_index="1">
    <object type="Package" os_index="0" gp_index="2">
      <info name="CPUModel" value="Sample CPU  "/>
      <object type="NUMANode" os_index="0" cpuset="0x0000000f" gp_index="3" local_memory="1073741824"/>
      <object type="L3Cache" gp_index="4" cache_size="8388608" depth="3" cache_type="0">
        <object type="Core" os_index="0" gp_index="5">
          <object type="PU" os_index="0" gp_index="6"/>
          <object type="PU" os_index="2" gp_index="7"/>
        </object>
        <object type="Core" os_index="1" gp_index="8">
          <object type="PU" os_index="1" gp_index="9"/>
          <object type="PU" os_index="3" gp_index="10"/>
        </object>
      </object>
      <object type="Bridge" gp_index="20" bridge_type="0-1" depth="0" bridge_pci="0000:[00-05]">
        <object type="Bridge" gp_index="21" bridge_type="1-1" depth="1" bridge_pci="0000:[01-05]" pci_busid="0000:00:01.0" pci_type="0604 [8086:0001] [0000:0000] 00" pci_link_speed="31.507692">
          <object type="Bridge" gp_index="22" bridge_type="1-1" depth="2" bridge_pci="0000:[02-05]" pci_busid="0000:01:00.0" pci_type="0604 [1000:0002] [0000:0000] 00" pci_link_speed="31.507692">
            <object type="Bridge" gp_index="23" bridge_type="1-1" depth="3" bridge_pci="0000:[03-03]" pci_busid="0000:02:00.0" pci_type="0604 [1000:0002] [0000:0000] 00" pci_link_speed="15.753846">
              <object type="PCIDev" gp_index="24" pci_busid="0000:03:00.0" pci_type="0302 [10de:20b0] [10de:0000] a1" pci_link_speed="15.753846">
                <info name="PCIDevice" value="GA100 [A100 SXM4 40GB]"/>
                <object type="OSDev" gp_index="25" name="cuda0" subtype="CUDA" osdev_type="5">
                  <info name="GPUModel" value="NVIDIA A100-SXM4-40GB"/>
                  <info name="CUDAGlobalMemorySize" value="41409536"/>
                </object>
                <object type="OSDev" gp_index="26" name="opencl0d0" subtype="OpenCL" osdev_type="5"/>
                <object type="OSDev" gp_index="27" name="nvml0" subtype="NVML" osdev_type="1">
                  <info name="NVIDIAUUID" value="GPU-1"/>
                </object>
              </object>
            </object>
            <object type="Bridge" gp_index="28" bridge_type="1-1" depth="3" bridge_pci="0000:[04-04]" pci_busid="0000:02:01.0" pci_type="0604 [1000:0002] [0000:0000] 00" pci_link_speed="31.507692">
              <object type="PCIDev" gp_index="29" pci_busid="0000:04:00.0" pci_type="0207 [15b3:101b] [15b3:0000] 00" pci_link_speed="31.507692">
                <object type="OSDev" gp_index="30" name="ib0" osdev_type="2"/>
                <object type="OSDev" gp_index="31" name="mlx5_0" osdev_type="3"/>
              </object>
            </object>
          </object>
        </object>
        <object type="PCIDev" gp_index="32" pci_busid="0000:00:02.0" pci_type="0300 [1a03:2000] [1a03:2000] 41" pci_link_speed="0.000000"/>
        <object type="PCIDev" gp_index="33" pci_busid="0000:00:03.0" pci_type="0108 [144d:a808] [144d:a801] 00" pci_link_speed="3.938462">
          <object type="OSDev" gp_index="34" name="nvme0n1" subtype="Disk" osdev_type="0">
            <info name="Size" value="1048576"/>
          </object>
        </object>
      </object>
    </object>
    <object type="Package" os_index="1" gp_index="40">
      <object type="NUMANode" os_index="1" cpuset="0x00000030" gp_index="41" local_memory="2147483648"/>
      <object type="Core" os_index="0" gp_index="42">
        <object type="PU" os_index="4" gp_index="43"/>
        <object type="PU" os_index="5" gp_index="44"/>
      </object>
      <object type="Bridge" gp_index="50" bridge_type="0-1" depth="0" bridge_pci="0000:[80-80]">
        <object type="PCIDev" gp_index="51" pci_busid="0000:80:00.0" pci_type="0302 [10de:20b0] [10de:0000] a1" pci_link_speed="31.507692">
          <object type="OSDev" gp_index="52" name="cuda1" subtype="CUDA" osdev_type="5"/>
        </object>
      </object>
    </object>
  </object>
  <distances2 type="NUMANode" nbobjs="2" kind="5" name="NUMALatency" indexing="os">
    <indexes length="4">0 1 </indexes>
    <u64values length="12">10 21 21 10 </u64values>
  </distances2>
  <distances2 type="OSDev" nbobjs="2" kind="9" name="NVLinkBandwidth" indexing="gp">
    <indexes length="6">25 52 </indexes>
    <u64values length="40">1000000 100000 100000 1000000 </u64values>
  </distances2>
  <memattr name="Bandwidth" flags="5">
    <memattr_value target_obj_type="NUMANode" target_obj_gp_index="3" value="200000" initiator_cpuset="0x0000000f"/>
  </memattr>
</topology>
)";

inline constexpr const char* kHwlocV1 = R"(<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE topology SYSTEM "hwloc.dtd">
<topology>
  <object type="Machine" os_index="0" cpuset="0x00000003" complete_cpuset="0x00000003" online_cpuset="0x00000003" allowed_cpuset="0x00000003" local_memory="4294967296">
    <object type="Socket" os_index="0" cpuset="0x00000003">
      <object type="Cache" cpuset="0x00000003" cache_size="2097152" depth="2" cache_type="0">
        <object type="Core" os_index="0"><object type="PU" os_index="0"/></object>
        <object type="Core" os_index="1"><object type="PU" os_index="1"/></object>
      </object>
    </object>
    <object type="Bridge" os_index="0" bridge_type="0-1" depth="0" bridge_pci="0000:[00-00]">
      <object type="PCIDev" os_index="32" name="NVIDIA Corporation GK110BGL [Tesla K40c]" pci_busid="0000:00:02.0" pci_type="0302 [10de:1024] [10de:0983] a1" pci_link_speed="0.000000">
        <object type="OSDev" name="card0" osdev_type="1"/>
      </object>
    </object>
  </object>
</topology>
)";

inline constexpr const char* kNccl = R"(<system version="1">
  <cpu numaid="1" affinity="000000ff,00000000" arch="x86_64" vendor="GenuineIntel" familyid="6" modelid="143">
    <pci busid="0000:80:00.0" class="0x030200" vendor="0x10de" device="0x20b0" link_speed="16.0 GT/s PCIe" link_width="16">
      <gpu dev="1" sm="80" rank="1" gdr="1">
        <nvlink target="0000:03:00.0" count="4" tclass="0x030200"/>
      </gpu>
    </pci>
  </cpu>
  <cpu numaid="0" affinity="0000000f" arch="x86_64" vendor="GenuineIntel" familyid="6" modelid="143">
    <pci busid="0000:01:00.0" class="0x060400" vendor="0x1000" device="0xc010" link_speed="16.0 GT/s PCIe" link_width="16">
      <pci busid="0000:03:00.0" class="0x030200" vendor="0x10de" device="0x20b0" link_speed="16.0 GT/s PCIe" link_width="16">
        <gpu dev="0" sm="80" rank="0" gdr="1">
          <nvlink target="0000:80:00.0" count="4" tclass="0x030200"/>
        </gpu>
      </pci>
      <pci busid="0000:04:00.0" class="0x020700" vendor="0x15b3" device="0x101b" link_speed="16.0 GT/s PCIe" link_width="16">
        <nic>
          <net name="mlx5_0" dev="0" speed="200000" port="1" guid="0x1" maxconn="1" gdr="1"/>
        </nic>
      </pci>
    </pci>
    <nic>
      <net name="docker0" dev="1" speed="10000" port="0" guid="0x2" maxconn="1" gdr="0"/>
    </nic>
  </cpu>
</system>
)";

inline constexpr const char* kSmi =
    "\t\033[4mGPU0\tGPU1\tNIC0\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\033[0m\n"
    "GPU0\t X \tNV4\tPIX\t0-3\t0\t\tN/A\n"
    "GPU1\tNV4\t X \tSYS\t4-5\t1\t\tN/A\n"
    "NIC0\tPIX\tSYS\t X \t\t\t\t\n"
    "\n"
    "Legend:\n\n  X    = Self\n  NV#  = Connection traversing a bonded set of # NVLinks\n\n"
    "NIC Legend:\n\n  NIC0: mlx5_0\n";

inline constexpr const char* kMachineFile = R"({
  "kind": "weft-machine",
  "comment": "by hand",
  "source": "sample",
  "sockets": [{"cpus": "0-7", "cores": 4, "memories": ["mem0"]}],
  "memories": [
    {"kind": "dram", "bytes": "64 GB", "near": ["socket0"], "cpus": "0-7"},
    {"kind": "gpu", "bytes": 17179869184, "gpu": "gpu0"}
  ],
  "gpus": [{"vendor": "NVIDIA", "model": "sample", "pci": "0000:01:00.0", "memory": "mem1", "near": ["mem0"]}],
  "links": [
    {"kind": "bus", "a": "mem0", "b": "socket0", "bytes_per_second": "100 GB/s", "latency_ns": 100},
    {"id": "link1", "kind": "pcie", "a": "socket0", "b": "gpu0", "bytes_per_second": [25e9, 20000000000], "provenance": "measured"}
  ]
})";

}  // namespace weft::samples
