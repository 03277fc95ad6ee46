// Messages for people, on stderr: results go to stdout, everything else comes through here.
#pragma once

#include <string>
#include <string_view>

#include "support/error.h"

namespace kgate::log {

enum class Level { quiet, normal, verbose };
enum class Color { automatic, always, never };

void configure(Level level, Color color);  // Color::automatic honours NO_COLOR, TERM=dumb and isatty(stderr)
bool color_enabled(int fd);                // for a stream that is written elsewhere (stdout)

void info(std::string_view text);      // not printed when quiet
void detail(std::string_view text);    // only when verbose
void warning(std::string_view text);   // always
void error(const Failure& failure);    // "error: where: what" and a "hint:" line

// One line that is rewritten in place; prints nothing unless stderr is a terminal and the level is not quiet.
class Progress {
 public:
  explicit Progress(std::string label);
  ~Progress();
  void update(double fraction, std::string_view note = {});

 private:
  std::string label_;
  bool shown_ = false;
};

}  // namespace kgate::log
