// One function a verb: adds its options to `app` and the run to `action`. An action returns the exit code and throws
// Error.
#pragma once

#include <functional>

#include "support/error.h"

namespace CLI {
class App;
}

namespace kgate::cli {

using Action = std::function<Exit()>;

// How the program was called, for "repeat with": argv quoted for a POSIX shell.
struct Invocation {
  std::string command;
};

void add_check(CLI::App& app, const Invocation& invocation, Action& action);
void add_compare(CLI::App& app, const Invocation& invocation, Action& action);
void add_report(CLI::App& app, Action& action);
void add_trace(CLI::App& app, const Invocation& invocation, Action& action);
void add_record(CLI::App& app, const Invocation& invocation, Action& action);
void add_init(CLI::App& app, Action& action);
void add_inspect(CLI::App& app, Action& action);
void add_query(CLI::App& app, Action& action);
void add_doctor(CLI::App& app, Action& action);

}  // namespace kgate::cli
