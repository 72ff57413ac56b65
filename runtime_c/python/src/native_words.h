/* Texts of up to 16 bytes as one vector: what most texts need takes no loop and no branch on the
 * length then. */
#ifndef CUVIL_NATIVE_WORDS_H
#define CUVIL_NATIVE_WORDS_H

#include <cstdint>
#include <cstring>

#include "native_types.h"

namespace cuvil::native {

enum : int64_t { SHORT_BYTES = 16 };

typedef unsigned char Chars __attribute__((vector_size(16)));

inline Chars read_chars(const void *data) {
  Chars found;
  std::memcpy(&found, data, sizeof found);
  return found;
}

/* Ones in the first `bytes` bytes, 16 at most. */
inline Chars first_bytes(int64_t bytes) {
  static const unsigned char ones[2 * SHORT_BYTES] = {255, 255, 255, 255, 255, 255, 255, 255,
                                                      255, 255, 255, 255, 255, 255, 255, 255};
  return read_chars(ones + SHORT_BYTES - bytes);
}

/* A text of 16 bytes at most, with zeros behind it. */
Chars copied(const char *data, int64_t bytes);

bool same_long(const char *a, const char *b, int64_t bytes);

/* Whether the next 16 bytes are not all in one page of memory. */
inline bool ends_page(const char *data) {
  enum : uintptr_t { PAGE_BYTES = 4096 };
  return reinterpret_cast<uintptr_t>(data) % PAGE_BYTES > PAGE_BYTES - SHORT_BYTES;
}

/* A text of 16 bytes at most, and anything behind it. What lies behind it in memory is read too,
 * where that is in the same page of memory, and so can be read. */
#if defined(__SANITIZE_ADDRESS__)
inline Chars short_text(const char *data, int64_t bytes) { return copied(data, bytes); }
#else
inline Chars short_text(const char *data, int64_t bytes) {
  if (__builtin_expect(ends_page(data), 0)) return copied(data, bytes);
  return read_chars(data);
}
#endif

/* Whether a text is of ASCII, and its 16 bytes from its begin on can be read at once. */
#if defined(__SANITIZE_ADDRESS__)
inline bool is_quick(const Str &) { return false; }
#else
inline bool is_quick(const Str &text) {
  uint64_t turned = text.meta >> KIND_BITS | text.meta << (64 - KIND_BITS); /* the kind on top */
  return turned <= uint64_t{SHORT_BYTES} && !ends_page(text.data);
}
#endif

/* A bit for each of 16 bytes, all ones or zeros: of the first byte the lowest. */
inline uint32_t bits_of(Chars set) {
#if defined(__SSE2__)
  typedef char Bytes __attribute__((vector_size(16)));
  return static_cast<uint32_t>(__builtin_ia32_pmovmskb128(reinterpret_cast<Bytes>(set)));
#else
  uint64_t words[2];
  std::memcpy(words, &set, sizeof words);
  auto bits = [](uint64_t word) {
    return (word & 0x8040201008040201u) * 0x0101010101010101u >> 56;
  };
  return static_cast<uint32_t>(bits(words[0]) | bits(words[1]) << 8);
#endif
}

inline bool same_bytes(const char *a, const char *b, int64_t bytes) {
  if (bytes > SHORT_BYTES) return same_long(a, b, bytes);
  uint32_t different =
      bits_of(reinterpret_cast<Chars>(short_text(a, bytes) != short_text(b, bytes)));
  return !(different & ((1u << bytes) - 1));
}

inline Chars between(Chars text, unsigned char first, unsigned char last) {
  Chars place = text - first, span = Chars{} + static_cast<unsigned char>(last - first);
  return reinterpret_cast<Chars>(place <= span);
}

/* Which characters are spaces to Python; of ASCII. */
inline Chars spaces(Chars text) { return between(text, 9, 13) | between(text, 28, 32); }

}  // namespace cuvil::native
#endif
