#include "topology/quantity.hpp"

#include "support/catch.hpp"
#include "topology/names.hpp"

using namespace weft;

using List = std::vector<std::uint32_t>;

TEST_CASE("lists of processors are written and read as the kernel does", "[topology]") {
  CHECK(format_cpu_list({0, 1, 2, 3, 32, 33, 40}) == "0-3,32-33,40");
  CHECK(format_cpu_list({}).empty());
  CHECK(parse_cpu_list(" 0-3, 8-8,32 ") == List{0, 1, 2, 3, 8, 32});
  CHECK(parse_cpu_list("3,1,1-2") == List{1, 2, 3});
  CHECK(parse_cpu_list("") == List{});
  for (const char* bad : {"-3", "3-1", "1,,2", "a", "1-", "0-99999999", "1 2", "1,"})
    CHECK_FALSE(parse_cpu_list(bad));
}

TEST_CASE("lists and masks are as long as is asked for", "[topology]") {
  CHECK(parse_cpu_list("0-8", 8)->size() == 9);
  CHECK_FALSE(parse_cpu_list("0-9", 8));
  CHECK(parse_cpu_mask("80000000,0", 64) == List{63});
  CHECK_FALSE(parse_cpu_mask("1,0,0", 64));
}

TEST_CASE("masks of processors are read in all their spellings", "[topology]") {
  CHECK(parse_cpu_mask("0x00000005") == List{0, 2});
  CHECK(parse_cpu_mask("c0c0") == List{6, 7, 14, 15});
  CHECK(parse_cpu_mask("0x1,,0x80000000") == List{31, 64});
  CHECK(parse_cpu_mask("00000000,0000000f") == List{0, 1, 2, 3});
  CHECK(parse_cpu_mask("") == List{});
  for (const char* bad : {"xyz", "0x1ffffffff", "1;2", "0xf...f"}) CHECK_FALSE(parse_cpu_mask(bad));
}

TEST_CASE("sizes are binary and rates decimal", "[topology]") {
  CHECK(parse_bytes("64 GB") == 64.0 * (1ull << 30));
  CHECK(parse_bytes("1.5TiB") == 1.5 * (1ull << 40));
  CHECK(parse_bytes("4096") == 4096.0);
  CHECK(parse_bytes("2kB") == 2048.0);
  CHECK(parse_rate("25 GB/s") == 25e9);
  CHECK(parse_rate("1 GiB/s") == 1.0 * (1ull << 30));
  for (const char* bad : {"", "GB", "-1 GB", "1 G", "1 EB", "1e9", "nan", "9999999 TB"})
    CHECK_FALSE(parse_bytes(bad));
  for (const char* bad : {"25 GB", "fast", "/s", "1 GB/s/s"}) CHECK_FALSE(parse_rate(bad));
}

TEST_CASE("sizes and rates are short for people", "[topology]") {
  CHECK(format_bytes(0) == "0 B");
  CHECK(format_bytes(std::size_t{64} << 30) == "64 GiB");
  CHECK(format_bytes(48 << 10) == "48 KiB");
  CHECK(format_rate(25.2e9) == "25.2 GB/s");
  CHECK(format_rate(1.2e12) == "1.2 TB/s");
  CHECK(format_rate(0) == "out of order");
}

TEST_CASE("addresses and ids are read and written alike", "[topology]") {
  for (const char* text : {"0000:3b:00.0", "0035:04:1f.7", "10000:e1:00.0"})
    CHECK(to_string(*parse_pci_address(text)) == text);
  CHECK(parse_pci_address("3b:00.1") == PciAddress{0, 0x3b, 0, 1});
  for (const char* bad : {"", "0000", "zz:00.0", "0000:100:00.0", "fffffff:ffff:ff", "1:2:3:4.0"})
    CHECK_FALSE(parse_pci_address(bad));
  CHECK(parse_node("gpu12") == Node(GpuId{12}));
  for (const char* bad : {"gpu", "gpu-1", "gpu01", "cat1", "gpu1x", "gpu4294967295"})
    CHECK_FALSE(parse_node(bad));
}

TEST_CASE("text from files is made printable", "[topology]") {
  CHECK(printable("plain ünïcödé 漢字 🙂") == "plain ünïcödé 漢字 🙂");
  CHECK(printable("a\x1b[31mb\n") == "a?[31mb?");
  CHECK(printable("\xff\xfe") == "??");
  CHECK(printable("\xc0\xaf") == "??");
  CHECK(printable("\xed\xa0\x80") == "???");
  CHECK(printable("\xe2\x82") == "??");
}
