// A recording's records as plain values, for tests.
#pragma once

#include <cstring>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "support/fd.h"
#include "workload/recording.h"

namespace kgate::test {

struct OneRecord {
  recording::Head head{};
  std::string bytes;  // of the whole record

  template <typename T>
  T as() const {
    T value{};
    std::memcpy(&value, bytes.data(), std::min(sizeof value, bytes.size()));
    return value;
  }
  std::string_view tail(size_t fixed) const { return std::string_view(bytes).substr(fixed); }
};

struct RecordedFile {
  recording::FileHeader header{};
  std::vector<OneRecord> records;
  std::string blobs;

  explicit RecordedFile(const std::filesystem::path& path) {
    const std::string content = *read_file(path);
    std::memcpy(&header, content.data(), std::min(sizeof header, content.size()));
    size_t at = sizeof header;
    const size_t end = std::min<size_t>(content.size(), sizeof header + header.used_bytes);
    while (at + sizeof(recording::Head) <= end) {
      OneRecord record;
      std::memcpy(&record.head, content.data() + at, sizeof record.head);
      if (record.head.bytes < sizeof record.head || record.head.bytes > end - at) break;
      record.bytes = content.substr(at, record.head.bytes);
      at += record.head.bytes;
      records.push_back(std::move(record));
    }
    whole = at == end && content.size() == end;
    blobs = *read_file(std::filesystem::path(path).replace_extension(".blobs"));
  }

  std::vector<OneRecord> of(recording::Kind kind) const {
    std::vector<OneRecord> found;
    for (const OneRecord& record : records)
      if (record.head.kind == kind) found.push_back(record);
    return found;
  }
  size_t position(recording::Kind kind) const {
    for (size_t i = 0; i < records.size(); ++i)
      if (records[i].head.kind == kind) return i;
    return records.size();
  }
  std::string blob(const recording::BlobRef& ref) const { return blobs.substr(ref.offset, ref.bytes); }
  std::vector<std::string> notes(bool refused) const {
    std::vector<std::string> texts;
    for (const OneRecord& record : of(recording::Kind::note)) {
      const auto note = record.as<recording::NoteRecord>();
      if ((note.refused != 0) == refused) texts.emplace_back(record.tail(sizeof note).substr(0, note.length));
    }
    return texts;
  }

  bool whole = false;  // nothing lies behind the last record
};

}  // namespace kgate::test
