#include "probes/kgate_probe_wire.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace kgate::probe {

namespace {

constexpr size_t kMostDescriptors = 4;  // room for more than any packet has, so that too many are noticed

}  // namespace

void put_text(std::span<char> field, const std::string& text) {
  size_t length = std::min(text.size(), field.size() - 1);
  std::memcpy(field.data(), text.data(), length);
  field[length] = 0;
}

std::string get_text(std::span<const char> field) { return {field.data(), strnlen(field.data(), field.size())}; }

bool send_packet(int channel, std::span<const std::byte> bytes, std::span<const int> descriptors) {
  iovec part{const_cast<std::byte*>(bytes.data()), bytes.size()};
  alignas(cmsghdr) char control[CMSG_SPACE(kMostDescriptors * sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (!descriptors.empty()) {
    message.msg_control = control;
    message.msg_controllen = CMSG_SPACE(descriptors.size_bytes());
    cmsghdr* head = CMSG_FIRSTHDR(&message);
    head->cmsg_len = CMSG_LEN(descriptors.size_bytes());
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    std::memcpy(CMSG_DATA(head), descriptors.data(), descriptors.size_bytes());
  }
  ssize_t sent;
  while ((sent = ::sendmsg(channel, &message, MSG_NOSIGNAL)) < 0 && errno == EINTR) {
  }
  return sent == static_cast<ssize_t>(bytes.size());
}

std::string receive_packet(int channel, std::span<std::byte> bytes, std::vector<Fd>* descriptors) {
  iovec part{bytes.data(), bytes.size()};
  alignas(cmsghdr) char control[CMSG_SPACE(kMostDescriptors * sizeof(int))];
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  ssize_t got;
  while ((got = ::recvmsg(channel, &message, MSG_CMSG_CLOEXEC)) < 0 && errno == EINTR) {
  }
  if (got < 0 && errno != ECONNRESET) return std::strerror(errno);  // reset: it ended without reading
  if (got < 0) return "closed";
  std::vector<Fd> received;
  for (cmsghdr* head = CMSG_FIRSTHDR(&message); head != nullptr; head = CMSG_NXTHDR(&message, head)) {
    if (head->cmsg_level != SOL_SOCKET || head->cmsg_type != SCM_RIGHTS) continue;
    for (size_t at = CMSG_LEN(0); at + sizeof(int) <= head->cmsg_len; at += sizeof(int)) {
      int fd;
      std::memcpy(&fd, reinterpret_cast<char*>(head) + at, sizeof fd);
      received.emplace_back(fd);
    }
  }
  if (got == 0 && received.empty()) return "closed";
  if (message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) return "a packet that is too long";
  if (static_cast<size_t>(got) != bytes.size()) return "a packet of " + std::to_string(got) + " bytes";
  *descriptors = std::move(received);
  return {};
}

}  // namespace kgate::probe
