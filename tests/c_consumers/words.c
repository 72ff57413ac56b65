/* Strings in and out: what a run makes, what lies in the input, what is constant. */
#include <string.h>

#include "check.h"
#include "words.h"

static cuvil_string text(const char *characters) {
  cuvil_string made = {characters, (int64_t)strlen(characters)};
  return made;
}

static int equals(cuvil_string a, const char *characters) {
  cuvil_string b = text(characters);
  return a.size == b.size && (!a.size || !memcmp(a.data, b.data, (size_t)a.size));
}

static void one_call(void) {
  cuvil_string x[2], marked[2], parts[4], label[2];
  int64_t id[2], shape[2];
  x[0] = text("one two"), x[1] = text("\xC3\xA9t\xC3\xA9");
  CHECK(words_inference(2, x, marked, parts, 4, id, label, shape) == CUVIL_OK);
  CHECK(equals(marked[0], "one two!") && equals(marked[1], "\xC3\xA9t\xC3\xA9!"));
  CHECK(shape[0] == 2 && shape[1] == 2);
  CHECK(equals(parts[0], "one") && equals(parts[1], "two"));
  CHECK(equals(parts[2], "\xC3\xA9t\xC3\xA9") && equals(parts[3], ""));
  CHECK(parts[0].data == x[0].data); /* a piece of the input, not a copy */
  CHECK(id[0] == -1 && id[1] == 7);
  CHECK(equals(label[0], "other") && equals(label[1], "summer"));
  CHECK(words_inference(2, x, marked, parts, 1, id, label, shape) == CUVIL_NEED_MEMORY);
}

static void full_use(void) {
  cuvil_string x[3], marked[3], label[3];
  int64_t id[3], count = 3;
  words_model *model;
  words_context *context;
  CHECK(words_open(NULL, &model) == CUVIL_OK);
  CHECK(words_context_create(model, &context) == CUVIL_OK);
  x[0] = text("a b c"), x[1] = text(""), x[2].data = NULL, x[2].size = 0;
  cuvil_value input = cuvil_tensor(CUVIL_STRING, x, 1, &count), outputs[4];
  for (int run = 0; run < 3; run++) {
    outputs[0] = cuvil_output(marked, sizeof marked);
    outputs[1] = cuvil_output(NULL, 0);
    outputs[2] = cuvil_output(id, sizeof id);
    outputs[3] = cuvil_output(label, sizeof label);
    CHECK(words_run(model, context, &input, outputs) == CUVIL_OK);
    CHECK(equals(marked[0], "a b c!") && equals(marked[2], "!"));
    CHECK(outputs[1].dtype == CUVIL_STRING && outputs[1].shape[1] == 3);
    CHECK(equals(((cuvil_string *)outputs[1].data)[2], "c"));
  }
  x[1].size = 3, x[1].data = NULL;
  CHECK(words_run(model, context, &input, outputs) == CUVIL_INVALID_ARGUMENT);
  CHECK(strstr(words_context_message(context), "input 'x': string 1 is of size 3"));
  x[1].size = -1, x[1].data = "x";
  CHECK(words_run(model, context, &input, outputs) == CUVIL_INVALID_ARGUMENT);
  words_context_destroy(context);
  words_close(model);
}

static void long_strings(void) {
  enum { SIZE = 100000 };
  static char letters[SIZE];
  cuvil_string x[1], marked[1], parts[1], label[1];
  int64_t id[1], shape[2];
  memset(letters, 'x', SIZE);
  x[0].data = letters, x[0].size = SIZE;
  for (int run = 0; run < 10; run++) {
    CHECK(words_inference(1, x, marked, parts, 1, id, label, shape) == CUVIL_OK);
    CHECK(marked[0].size == SIZE + 1 && marked[0].data[SIZE] == '!');
  }
}

int main(void) {
  one_call();
  full_use();
  long_strings();
  puts("fine");
  return 0;
}
