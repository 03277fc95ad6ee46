// The program's outline: one call a verb. The only place that catches what ends a run.

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cstdio>
#include <string_view>

#include "cli/verbs.h"
#include "support/log.h"
#include "support/process.h"
#include "support/text.h"

namespace kgate {
namespace {

// Verbs of the design that this version does not have: named, so that nobody takes a typo for a missing feature.
constexpr std::array kPlanned{"baseline"};

std::string shell_command(int argc, char** argv) {
  std::string command = "kgate";
  for (int i = 1; i < argc; ++i) {
    std::string_view arg = argv[i];
    bool plain =
        !arg.empty() &&
        arg.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_=./:,+@%") == arg.npos;
    command += ' ';
    if (plain) {
      command += arg;
      continue;
    }
    command += '\'';
    for (char c : arg) command += c == '\'' ? std::string("'\\''") : std::string(1, c);
    command += '\'';
  }
  return command;
}

constexpr std::array kVerbs{"check", "record", "trace", "init", "compare", "report", "inspect", "query", "doctor"};

// Before the options are parsed, since the parser would only say that a verb is missing.
void check_verb(int argc, char** argv) {
  if (argc < 2 || argv[1][0] == '-') return;
  std::string verb = argv[1];
  std::vector<std::string> verbs(kVerbs.begin(), kVerbs.end());
  if (std::find(verbs.begin(), verbs.end(), verb) != verbs.end()) return;
  auto near = did_you_mean(verb, verbs);
  throw Error(Exit::usage, "unknown verb '" + sanitize(verb, 60) + "'", {},
              near ? "did you mean 'kgate " + *near + "'?" : "kgate --help lists the verbs");
}

void refuse_planned(int argc, char** argv) {
  for (const char* verb : kPlanned)
    if (argc > 1 && std::string_view(argv[1]) == verb)
      throw Error(Exit::usage, std::string("'") + verb + "' is not part of this version", {},
                  "kgate --help lists what is");
}

int run(int argc, char** argv) {
  refuse_planned(argc, argv);
  check_verb(argc, argv);
  CLI::App app{"kgate: does this GPU kernel compute the same, and does it regress p99 on production traffic?"};
  app.require_subcommand(1);
  app.set_version_flag("--version", "kgate " KGATE_VERSION);
  bool quiet = false, verbose = false;
  std::string color = "auto";
  app.add_flag("-q,--quiet", quiet, "errors and results only");
  app.add_flag("-v,--verbose", verbose, "say more on stderr");
  app.add_option("--color", color, "auto, always or never (NO_COLOR is honoured)")
      ->check(CLI::IsMember({"auto", "always", "never"}));
  app.footer(
      "Exit codes: 0 pass, 1 regression, 3 inconclusive, 4 no baseline, 5 environment unfit, 6 candidate broken,\n"
      "64 usage, 65 bad input, 70 internal error, 130 interrupted.");

  cli::Invocation invocation{shell_command(argc, argv)};
  cli::Action action;
  cli::add_check(app, invocation, action);
  cli::add_record(app, invocation, action);
  cli::add_init(app, action);
  cli::add_compare(app, invocation, action);
  cli::add_report(app, action);
  cli::add_trace(app, invocation, action);
  cli::add_inspect(app, action);
  cli::add_query(app, action);
  cli::add_doctor(app, action);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& success) {
    return app.exit(success);  // --help, --version
  } catch (const CLI::ParseError& error) {
    throw Error(Exit::usage, sanitize(error.what()), {}, "kgate --help, or kgate VERB --help");
  }
  log::configure(quiet     ? log::Level::quiet
                 : verbose ? log::Level::verbose
                           : log::Level::normal,
                 color == "always"  ? log::Color::always
                 : color == "never" ? log::Color::never
                                    : log::Color::automatic);
  Exit code = action();
  // Results that nobody could read are no pass.
  if ((std::fflush(stdout) != 0 || std::ferror(stdout)) && code == Exit::pass)
    throw Error(Exit::environment, "cannot write the results to stdout", {}, "give it a place to write to");
  return static_cast<int>(code);
}

}  // namespace
}  // namespace kgate

int main(int argc, char** argv) {
  kgate::install_interrupt_handler();
  try {
    return kgate::run(argc, argv);
  } catch (const kgate::Error& error) {
    kgate::log::error(error.failure());
    return static_cast<int>(error.code());
  } catch (const std::exception& error) {
    kgate::log::error(
        {error.what(), "kgate itself failed", "this is a bug in kgate: please report it with the command"});
    return static_cast<int>(kgate::Exit::internal);
  }
}
