// What a fidelity check measured goes into the recording's own file, so that it travels with it. The file is copied,
// the copy is changed and renamed over it: recordings are large, but a kill at any point must leave one whole.
#include <algorithm>
#include <system_error>

#include "workload/kgw.h"
#include "workload/kgw_database.h"
#include "workload/kgw_names.h"
#include "workload/kgw_open.h"
#include "workload/limits.h"

namespace kgate {

using namespace kgw;

Result<std::monostate> add_fidelity(const std::filesystem::path& path, const Fidelity& fidelity, Addresses addresses) {
  if (auto opened = open_kgw(path); !opened) return in_file(opened.failure(), path);
  Scratch scratch(path);
  std::error_code error;
  std::filesystem::copy_file(path, scratch.name(), std::filesystem::copy_options::overwrite_existing, error);
  if (error) cannot_write(path, error.message());
  auto read = read_kgw(scratch.name());  // the copy: the file may change at any time
  if (!read) return Failure{read.failure().what, path.string(), read.failure().hint};
  Workload& workload = *read;
  std::erase_if(workload.fidelity, [&](const Fidelity& other) { return other.device == fidelity.device; });
  if (workload.fidelity.size() >= cap::kMaxFidelity) workload.fidelity.erase(workload.fidelity.begin());
  workload.fidelity.push_back(fidelity);
  workload.addresses = addresses;
  if (auto valid = validate(workload); !valid)
    throw Error(Exit::internal, "figures of a fidelity check that cannot be: " + valid.failure().what, path.string());
  {
    Database db(scratch.name(), path);
    db.execute("BEGIN");
    db.execute(std::string("UPDATE meta SET addresses='") + addresses_name(addresses) + "'");
    db.execute("DELETE FROM fidelity");
    write_fidelity(db, workload.fidelity);
    db.execute("COMMIT");
  }
  scratch.rename_into_place();
  return std::monostate{};
}

}  // namespace kgate
