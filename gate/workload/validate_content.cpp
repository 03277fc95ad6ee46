#include <algorithm>
#include <cmath>

#include "support/text.h"
#include "workload/element.h"
#include "workload/limits.h"
#include "workload/validate_parts.h"

namespace kgate::validation {

using namespace cap;

bool good_text(const std::string& text, bool may_be_empty) {
  if (text.empty()) return may_be_empty;
  return text.size() <= kMaxName &&
         std::none_of(text.begin(), text.end(), [](unsigned char c) { return c < 0x20 || c == 0x7f; });
}

namespace {

std::string random_problem(const ContentRandom& random, uint64_t bytes) {
  const Element* element = element_named(random.dtype);
  if (!element) return "unknown dtype \"" + sanitize(random.dtype, 40) + "\"";
  if (bytes % element->bytes != 0) return "is not a whole number of " + random.dtype + " elements";
  const double low = random.low, high = random.high;
  if (!std::isfinite(low) || !std::isfinite(high) || !std::isfinite(high - low) || low > high)
    return "the range of its random content is not a range";
  if (low < element->lowest || high > element->highest)
    return "the range of its random content does not fit " + random.dtype;
  if (element->kind != ElementKind::floating && (low != std::floor(low) || high != std::floor(high)))
    return "the range of its random content must be whole numbers";
  return "";
}

std::string chunks_problem(const ContentChunks& content, uint64_t bytes, ContentBytesUsed& used) {
  const uint64_t needed = (bytes + kChunkBytes - 1) / kChunkBytes;
  if (content.chunks.size() != needed)
    return "its content has " + str(content.chunks.size()) + " chunks; " + str(needed) + " are needed";
  for (size_t i = 0; i < content.chunks.size(); ++i)
    if (content.chunks[i] != Sha256Digest{}) used.chunks += std::min(kChunkBytes, bytes - i * kChunkBytes);
  return used.chunks > kMaxAllChunkBytes ? "the contents in chunks are too large together" : "";
}

}  // namespace

std::string content_problem(const Content& content, uint64_t bytes, ContentBytesUsed& used) {
  if (content.valueless_by_exception()) return "has no content";
  if (const auto* chunks = std::get_if<ContentChunks>(&content)) return chunks_problem(*chunks, bytes, used);
  if (const auto* random = std::get_if<ContentRandom>(&content)) return random_problem(*random, bytes);
  const auto* held = std::get_if<ContentBytes>(&content);
  if (!held) return "";
  used.blobs += held->bytes.size();
  if (held->bytes.size() > bytes) return "its content is longer than the buffer";
  return held->bytes.size() > kMaxBlobBytes ? "its content is too large" : "";
}

Check check_payloads(const Workload& w, ContentBytesUsed& used) {
  for (size_t i = 0; i < w.payloads.size(); ++i) {
    const Payload& payload = w.payloads[i];
    if (payload.bytes < 1 || payload.bytes > kMaxBufferBytes)
      return at("payloads", i, "its size of " + str(payload.bytes) + " bytes is out of range");
    if (std::holds_alternative<ContentRandom>(payload.content) ||
        std::holds_alternative<ContentPoison>(payload.content))
      return at("payloads", i, "is neither bytes, chunks nor zeros");
    if (std::string problem = content_problem(payload.content, payload.bytes, used); !problem.empty())
      return at("payloads", i, problem);
    const auto* held = std::get_if<ContentBytes>(&payload.content);
    if (held && held->bytes.size() != payload.bytes)
      return at("payloads", i, "holds " + str(held->bytes.size()) + " bytes, not " + str(payload.bytes));
  }
  return {};
}

Check check_origin(const Workload& w) {
  const auto bad = [](const char* what) { return Failure{what, "origin", {}}; };
  const Origin& o = w.origin;
  if (!good_text(o.device, true)) return bad("the device's name holds control characters or is too long");
  if (!good_text(o.command, true)) return bad("the command holds control characters or is too long");
  if (!good_text(o.begun, true)) return bad("the date holds control characters or is too long");
  if (o.arch < 0 || o.sm_count < 0 || o.driver_version < 0) return bad("a figure of the device is negative");
  if (!o.recorded() &&
      (o.arch != 0 || o.sm_count != 0 || o.driver_version != 0 || !o.command.empty() || !o.begun.empty()))
    return bad("says where it was recorded without naming the device");
  if (auto c = check_count("notes", o.notes.size(), kMaxNotes)) return c;
  for (size_t i = 0; i < o.notes.size(); ++i)
    if (!good_text(o.notes[i], false)) return at("notes", i, "is empty, holds control characters or is too long");
  if (w.addresses > Addresses::pinned) return bad("unknown kind of addresses");
  if (auto c = check_count("fidelity", w.fidelity.size(), kMaxFidelity)) return c;
  for (size_t i = 0; i < w.fidelity.size(); ++i) {
    const Fidelity& f = w.fidelity[i];
    if (!good_text(f.device, false)) return at("fidelity", i, "has no usable device name");
    if (f.equal > f.blocks || f.shifted_equal > f.blocks)
      return at("fidelity", i, "more blocks are equal than compared");
    if (f.exact > f.buffers) return at("fidelity", i, "more buffers are placed exactly than there are");
    if (f.blocks > INT64_MAX || f.buffers > INT64_MAX) return at("fidelity", i, "a count is out of range");
  }
  return {};
}

}  // namespace kgate::validation
