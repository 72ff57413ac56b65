/* What kernels call for strings, also on bytes that are not UTF-8. */
#include <stdlib.h>

#include "check.h"
#include "string_functions.h"

static void *room(cuvil_frame *frame, int64_t bytes) {
  (void)frame;
  return bytes > 1000 ? NULL : malloc((size_t)bytes);
}

static const cuvil_runtime_api api = {.size = sizeof api, .string_bytes = room};
static cuvil_frame run = {.api = &api};

static cuvil_string text(const char *characters) {
  return (cuvil_string){characters, (int64_t)strlen(characters)};
}

static int equals(cuvil_string a, const char *characters) {
  cuvil_string b = text(characters);
  return a.size == b.size && (!a.size || !memcmp(a.data, b.data, (size_t)a.size));
}

/* "b", "c", "c\xFF" and "" in the order of bytes */
static const struct {
  int64_t head[6];
  char bytes[4];
} words = {{4, 0, 0, 1, 2, 4}, {'b', 'c', 'c', (char)0xFF}};

static int64_t find(const char *word) {
  int64_t place;
  cuvil_string given = text(word);
  CHECK(cuvil_string_find(&run, &given, NULL, &words, &place) == CUVIL_OK);
  return place;
}

static void test_lists(void) {
  cuvil_string found;
  CHECK(cuvil_string_at(&run, NULL, (int64_t[]){3}, &words, &found) == CUVIL_OK);
  CHECK(equals(found, "c\xFF"));
  CHECK(find("") == 0 && find("b") == 1 && find("c") == 2 && find("c\xFF") == 3);
  CHECK(find("a") == 4 && find("cc") == 4 && find("d") == 4);
}

static void test_order_and_concat(void) {
  cuvil_string pair[] = {text("ab"), text("abc")}, made;
  int64_t order;
  CHECK(!cuvil_string_order(&run, pair, NULL, NULL, &order) && order < 0);
  pair[0] = (cuvil_string){NULL, 0}, pair[1] = text("");
  CHECK(!cuvil_string_order(&run, pair, NULL, NULL, &order) && !order);
  CHECK(!cuvil_string_concat(&run, pair, NULL, NULL, &made) && made.size == 0);
  pair[0] = text("a\xFF"), pair[1] = text("b");
  CHECK(!cuvil_string_concat(&run, pair, NULL, NULL, &made) && equals(made,
                                                                      "a\xFF"
                                                                      "b"));
  free((void *)made.data);
  pair[1].size = 2000; /* no room: nothing is read */
  CHECK(cuvil_string_concat(&run, pair, NULL, NULL, &made) == CUVIL_OUT_OF_MEMORY && !made.size);
}

static void check_case(const char *before, const char *after) {
  static const uint32_t upper[] = {3, 'a', 'A', 0xE9, 0xC9, 0x23F, 0x2C7E}; /* the last grows */
  cuvil_string given = text(before), made;
  CHECK(!cuvil_string_case(&run, &given, NULL, upper, &made) && equals(made, after));
  free((void *)made.data);
}

static void test_case(void) {
  check_case("abc", "Abc");
  check_case("\xC3\xA9\xC8\xBF", "\xC3\x89\xE2\xB1\xBE");
  check_case("a\xC3", "A\xC3"); /* what is no character stays */
  check_case("\xFF\x80\xF0\x9F\x98", "\xFF\x80\xF0\x9F\x98");
  check_case("", "");
}

static void check_pieces(const char *given, const char *delimiter, int64_t splits,
                         const char *const *expected) {
  struct {
    int64_t head[3];
    char bytes[4];
  } table = {{1, 0, (int64_t)strlen(delimiter)}, {0}};
  memcpy(table.bytes, delimiter, strlen(delimiter));
  cuvil_string whole = text(given), piece;
  int64_t count, wanted = 0;
  while (expected[wanted]) wanted++;
  CHECK(!cuvil_string_count(&run, &whole, &splits, &table, &count) && count == wanted);
  for (int64_t i = 0; i <= wanted; i++) {
    CHECK(!cuvil_string_piece(&run, &whole, (int64_t[]){i, splits}, &table, &piece));
    CHECK(equals(piece, i < wanted ? expected[i] : ""));
  }
}

static void test_pieces(void) {
  check_pieces("a,b,,c", ",", -1, (const char *const[]){"a", "b", "", "c", NULL});
  check_pieces("a,b,,c", ",", 2, (const char *const[]){"a", "b", ",c", NULL});
  check_pieces("", ",", -1, (const char *const[]){"", NULL});
  check_pieces("", "", -1, (const char *const[]){NULL});
  check_pieces(
      " a\xE2\x80\x83"
      "b\n",
      "", -1, (const char *const[]){"a", "b", NULL});
  check_pieces(" a b c ", "", 1, (const char *const[]){"a", "b c ", NULL});
  check_pieces("\xE2\x80", "", -1, (const char *const[]){"\xE2\x80", NULL});
  check_pieces("aaa", "aa", -1, (const char *const[]){"", "a", NULL});
}

/* a*b: classes other, a, b; states none, start, end */
static const struct {
  uint32_t head[2];
  uint8_t classes[256], accepts[4];
  uint32_t follow[9];
} as_and_b = {{3, 3}, {['a'] = 1, ['b'] = 2}, {0, 0, 1}, {0, 0, 0, 0, 1, 2, 0, 0, 0}};

static void test_match(void) {
  static const char *const words_of[] = {"b", "aab", "", "a", "ba", "a\xFF"};
  for (int i = 0; i < 6; i++) {
    cuvil_string given = text(words_of[i]);
    int64_t found;
    CHECK(!cuvil_string_match(&run, &given, NULL, &as_and_b, &found) && found == (i < 2));
  }
}

static void check_tokens(const char *given, int64_t least, const char *const *expected) {
  cuvil_string whole = text(given), token;
  int64_t count, wanted = 0;
  while (expected[wanted]) wanted++;
  CHECK(!cuvil_string_tokens(&run, &whole, &least, &as_and_b, &count) && count == wanted);
  for (int64_t i = 0; i <= wanted; i++) {
    CHECK(!cuvil_string_token(&run, &whole, (int64_t[]){i, least}, &as_and_b, &token));
    CHECK(equals(token, i < wanted ? expected[i] : ""));
  }
}

static void test_tokens(void) {
  check_tokens("aabb\xC3\xA9 ab\xFF xa", 1, (const char *const[]){"aab", "b", "ab", NULL});
  check_tokens("aabb\xC3\xA9 ab\xFF xa", 2, (const char *const[]){"aab", "ab", NULL});
  check_tokens("", 1, (const char *const[]){NULL});
  check_tokens("\xF0\x9F", 1, (const char *const[]){NULL});
}

int main(void) {
  test_lists();
  test_order_and_concat();
  test_case();
  test_pieces();
  test_match();
  test_tokens();
  return check_result();
}
