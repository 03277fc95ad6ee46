// Paired statistics on rounds. The pair is the unit; one-sided bounds from Student's t; three outcomes. Source of the
// rules and simulations of their error rates: docs/metrics.md.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace kgate {

enum class Outcome { pass, fail, inconclusive };
const char* outcome_name(Outcome outcome);

// One-sided analysis of `effects` (one a pair) against `margin`, both on the same scale (log ratio, or excess in ns).
struct PairedResult {
  double mean = 0, sd = 0;
  double lower = 0, upper = 0;  // one-sided bounds at alpha
  double p_fail = 1;            // of H0: effect <= margin
  double p_pass = 1;            // of H0: effect >= margin
  uint32_t pairs = 0;
  uint32_t pairs_to_decide = 0;  // for 80 % power; 0: unknown or the effect sits at the margin
};

// Fewer than two effects or a non-finite one: bounds are infinite and nothing is decided. Constant data: the bounds are
// the mean.
PairedResult analyse(const std::vector<double>& effects, double margin, double alpha);

// P(a mean at least as large | H0: effect <= margin) when every deviation may flip its sign: no distribution is
// assumed. Exact for up to 16 pairs, else by 65536 seeded flips. 1 for no effects or non-finite ones.
double sign_flip_p(const std::vector<double>& effects, double margin);

// Holm's step-down: which of the hypotheses with p-values `p` are rejected at family-wise `alpha`.
std::vector<bool> holm(const std::vector<double>& p, double alpha);

// Planned looks: after 6, 12 and 24 pairs, each at alpha/3.
struct Looks {
  std::vector<uint32_t> pairs{6, 12, 24};
  double alpha = 0.05;
  double alpha_per_look() const { return alpha / static_cast<double>(pairs.size()); }
};

}  // namespace kgate
