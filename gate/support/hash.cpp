#include "support/hash.h"

#include <openssl/evp.h>

#include "support/error.h"

namespace kgate {

namespace {
void check(int ok) {
  if (ok != 1) throw Error(Exit::internal, "SHA-256 failed in libcrypto");
}

std::string to_hex(const unsigned char* bytes, unsigned count) {
  static constexpr char digits[] = "0123456789abcdef";
  std::string text;
  for (unsigned i = 0; i < count; ++i) {
    text += digits[bytes[i] >> 4];
    text += digits[bytes[i] & 15];
  }
  return text;
}
}  // namespace

struct Sha256::State {
  EVP_MD_CTX* context = EVP_MD_CTX_new();
  ~State() { EVP_MD_CTX_free(context); }
};

Sha256::Sha256() : state_(std::make_unique<State>()) {
  check(EVP_DigestInit_ex(state_->context, EVP_sha256(), nullptr));
}

Sha256::~Sha256() = default;

Sha256& Sha256::add(std::string_view part) {
  uint64_t length = part.size();
  check(EVP_DigestUpdate(state_->context, &length, sizeof length));
  check(EVP_DigestUpdate(state_->context, part.data(), part.size()));
  return *this;
}

std::string Sha256::hex() {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned count = 0;
  check(EVP_DigestFinal_ex(state_->context, digest, &count));
  return to_hex(digest, count);
}

std::string sha256(std::string_view bytes) {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned count = 0;
  check(EVP_Digest(bytes.data(), bytes.size(), digest, &count, EVP_sha256(), nullptr));
  return to_hex(digest, count);
}

}  // namespace kgate
