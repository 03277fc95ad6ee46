#include "support/log.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

namespace kgate::log {

namespace {
Level g_level = Level::normal;
Color g_color = Color::automatic;

void line(const char* code, std::string_view label, std::string_view text) {
  if (label.empty())
    fmt::print(stderr, "{}\n", text);
  else if (color_enabled(STDERR_FILENO))
    fmt::print(stderr, "\033[{}m{}:\033[0m {}\n", code, label, text);
  else
    fmt::print(stderr, "{}: {}\n", label, text);
}
}  // namespace

void configure(Level level, Color color) {
  g_level = level;
  g_color = color;
}

bool color_enabled(int fd) {
  if (g_color != Color::automatic) return g_color == Color::always;
  const char* no_color = std::getenv("NO_COLOR");
  const char* term = std::getenv("TERM");
  if (no_color && *no_color) return false;
  if (term && std::string_view(term) == "dumb") return false;
  return ::isatty(fd) == 1;
}

void info(std::string_view text) {
  if (g_level != Level::quiet) line("", "", text);
}

void detail(std::string_view text) {
  if (g_level == Level::verbose) line("2", "debug", text);
}

void warning(std::string_view text) { line("33", "warning", text); }

void error(const Failure& failure) {
  line("31", "error", failure.where.empty() ? failure.what : failure.where + ": " + failure.what);
  if (!failure.hint.empty()) line("36", "hint", failure.hint);
}

Progress::Progress(std::string label) : label_(std::move(label)) {}

void Progress::update(double fraction, std::string_view note) {
  if (g_level == Level::quiet || ::isatty(STDERR_FILENO) != 1) return;
  constexpr int width = 24;
  int filled = static_cast<int>(std::clamp(fraction, 0.0, 1.0) * width);
  fmt::print(stderr, "\r\033[K{} [{}{}] {}", label_, std::string(filled, '#'), std::string(width - filled, '.'), note);
  std::fflush(stderr);
  shown_ = true;
}

Progress::~Progress() {
  if (shown_) fmt::print(stderr, "\r\033[K");
}

}  // namespace kgate::log
