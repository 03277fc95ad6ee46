#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <thread>

#include "support/fd.h"
#include "worker/protocol.h"

namespace kgate::worker {
namespace {

struct Pair {
  Fd ours, theirs;
  Pair() {
    int fds[2];
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
    ours = Fd(fds[0]);
    theirs = Fd(fds[1]);
  }
  void write(std::string_view text) {
    while (!text.empty()) {
      ssize_t n = ::send(theirs.get(), text.data(), text.size(), MSG_NOSIGNAL);
      if (n <= 0) return;
      text.remove_prefix(static_cast<size_t>(n));
    }
  }
};

TEST(Channel, several_messages_in_one_write_arrive_one_by_one) {
  Pair pair;
  Channel channel(pair.ours.get());
  pair.write("{\"type\":\"start\"}\n{\"type\":\"go\"}\n");
  Message m;
  EXPECT_EQ(channel.receive(&m, 1000), ChannelState::message);
  EXPECT_EQ(m.type, Message::Type::start);
  EXPECT_EQ(channel.receive(&m, 1000), ChannelState::message);
  EXPECT_EQ(m.type, Message::Type::go);
  EXPECT_EQ(channel.receive(&m, 0), ChannelState::timeout);
}

TEST(Channel, a_partial_line_survives_a_timeout) {
  Pair pair;
  Channel channel(pair.ours.get());
  Message m;
  pair.write("{\"type\":");
  EXPECT_EQ(channel.receive(&m, 10), ChannelState::timeout);
  pair.write("\"go\"}\n");
  EXPECT_EQ(channel.receive(&m, 1000), ChannelState::message);
  EXPECT_EQ(m.type, Message::Type::go);
}

TEST(Channel, an_endless_line_is_garbage_long_before_it_ends) {
  Pair pair;
  Channel channel(pair.ours.get());
  std::thread writer([&] { pair.write(std::string(10'000'000, 'a')); });
  Message m;
  std::string garbage;
  EXPECT_EQ(channel.receive(&m, 10'000, &garbage), ChannelState::garbage);
  EXPECT_NE(garbage.find("64 KiB"), std::string::npos);
  EXPECT_LT(garbage.size(), 200u);
  pair.ours.reset();
  writer.join();
}

TEST(Channel, a_long_line_that_does_end_is_garbage_as_well) {
  Pair pair;
  Channel channel(pair.ours.get());
  std::string line = "{\"type\":\"go\"" + std::string(kMaxMessage, ' ') + "}\n";
  std::thread writer([&] { pair.write(line); });
  Message m;
  EXPECT_EQ(channel.receive(&m, 10'000), ChannelState::garbage);
  pair.ours.reset();
  writer.join();
}

TEST(Channel, garbage_carries_the_line_without_control_characters) {
  Pair pair;
  Channel channel(pair.ours.get());
  pair.write("\x1b[31mhello\n");
  Message m;
  std::string garbage;
  EXPECT_EQ(channel.receive(&m, 1000, &garbage), ChannelState::garbage);
  EXPECT_NE(garbage.find("[31mhello"), std::string::npos);
  EXPECT_EQ(garbage.find('\x1b'), std::string::npos);
}

TEST(Channel, a_peer_that_died_is_closed_even_in_the_middle_of_a_line) {
  Pair pair;
  Channel channel(pair.ours.get());
  pair.write("{\"type\":");
  pair.theirs.reset();
  Message m;
  EXPECT_EQ(channel.receive(&m, 1000), ChannelState::closed);
  EXPECT_FALSE(channel.send(m));
}

TEST(Channel, messages_sent_before_death_are_still_received) {
  Pair pair;
  Channel channel(pair.ours.get());
  pair.write("{\"type\":\"go\"}\n");
  pair.theirs.reset();
  Message m;
  EXPECT_EQ(channel.receive(&m, 1000), ChannelState::message);
  EXPECT_EQ(channel.receive(&m, 1000), ChannelState::closed);
}

TEST(Channel, what_one_side_sends_the_other_receives) {
  Pair pair;
  Channel ours(pair.ours.get()), theirs(pair.theirs.get());
  Message m, back;
  m.type = Message::Type::ready;
  m.pid = 4711;
  ASSERT_TRUE(theirs.send(m));
  ASSERT_EQ(ours.receive(&back, 1000), ChannelState::message);
  EXPECT_EQ(back.pid, 4711);
}

}  // namespace
}  // namespace kgate::worker
