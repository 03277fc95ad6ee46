// Lines over a socket, with a deadline for the whole line: a peer that drips one byte a second does not get more time.
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <chrono>

#include "support/text.h"
#include "worker/protocol.h"

namespace kgate::worker {

bool Channel::send(const Message& message) {
  std::string line = encode(message);
  if (line.size() > kMaxMessage) return false;
  for (size_t done = 0; done < line.size();) {
    ssize_t n = ::send(fd_, line.data() + done, line.size() - done, MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return false;
    done += static_cast<size_t>(n);
  }
  return true;
}

namespace {
using Clock = std::chrono::steady_clock;

// Milliseconds left for poll(): at least 0, and -1 for ever.
int remaining(Clock::time_point deadline, int timeout_ms) {
  if (timeout_ms < 0) return -1;
  auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
  return static_cast<int>(std::max<int64_t>(left, 0));
}
}  // namespace

ChannelState Channel::receive(Message* message, int timeout_ms, std::string* garbage) {
  auto deadline = Clock::now() + std::chrono::milliseconds(timeout_ms);
  auto refuse = [&](std::string text) {
    if (garbage) *garbage = std::move(text);
    return ChannelState::garbage;
  };
  for (size_t scanned = 0;;) {
    size_t end = buffer_.find('\n', scanned);
    if (end != std::string::npos && end < kMaxMessage) {
      auto decoded = decode(buffer_.substr(0, end));
      buffer_.erase(0, end + 1);
      if (!decoded) return refuse(decoded.failure().what);
      *message = std::move(*decoded);
      return ChannelState::message;
    }
    if (buffer_.size() >= kMaxMessage) return refuse("a line of more than 64 KiB: '" + sanitize(buffer_, 60) + "'");
    scanned = buffer_.size();

    pollfd readable{fd_, POLLIN, 0};
    int ready = ::poll(&readable, 1, remaining(deadline, timeout_ms));
    if (ready < 0 && errno != EINTR) return ChannelState::closed;
    if (ready == 0) return ChannelState::timeout;
    if (ready < 0) continue;
    char chunk[16 * 1024];
    ssize_t n = ::recv(fd_, chunk, sizeof chunk, 0);
    if (n < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (n <= 0) return ChannelState::closed;
    buffer_.append(chunk, static_cast<size_t>(n));
  }
}

}  // namespace kgate::worker
