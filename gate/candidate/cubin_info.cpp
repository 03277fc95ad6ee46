#include "candidate/cubin_info.h"

#include <fmt/format.h>

#include "candidate/elf_view.h"

namespace kgate {

Result<std::vector<InfoRecord>> read_info_records(std::string_view section) {
  std::vector<InfoRecord> records;
  size_t at = 0;
  while (at + 4 <= section.size()) {
    auto format = static_cast<uint8_t>(section[at]);
    InfoRecord record;
    record.attribute = static_cast<InfoAttribute>(section[at + 1]);
    record.value = load_u16(section, at + 2);
    if (format < 1 || format > 4)
      return Failure{fmt::format("record of unknown format {} at byte {}", format, at), {}, {}};
    at += 4;
    if (format == 4) {
      if (record.value > section.size() - at)
        return Failure{fmt::format("record 0x{:02x} of {} bytes passes the end", section[at - 3], record.value), {}, {}};
      record.payload = section.substr(at, record.value);
      at += (size_t{record.value} + 3) & ~size_t{3};
    }
    records.push_back(record);
  }
  return records;
}

}  // namespace kgate
