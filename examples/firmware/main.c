/* Tells drawn digits: the model is constants in flash, its run takes DIGITS_MEMORY_BYTES of RAM. */
#include "digits.h"

#include "board.h"
#include "samples.h"

static unsigned char memory[DIGITS_MEMORY_BYTES];

static int best_of(const float *values, int count) {
  int best = 0;
  for (int i = 1; i < count; i++) best = values[i] > values[best] ? i : best;
  return best;
}

static void put_number(int value) {
  char text[4], *at = text + sizeof text - 1;
  *at = 0;
  do *--at = (char)('0' + value % 10);
  while (value /= 10);
  board_put(at);
}

int main(void) {
  int right = 0;
  for (int s = 0; s < SAMPLES; s++) {
    float pixels[64], probabilities[10];
    for (int i = 0; i < 64; i++) pixels[i] = (float)images[s][i] / 255.0f;
    int32_t status = digits_inference(memory, sizeof memory, pixels, probabilities);
    if (status) {
      board_put("digits_inference: status ");
      put_number(status);
      board_put("\n");
      return 1;
    }
    int found = best_of(probabilities, 10);
    right += found == labels[s];
    put_number(found);
    board_put(found == labels[s] ? " " : "! ");
  }
  board_put("\n");
  put_number(right);
  board_put(" of ");
  put_number(SAMPLES);
  board_put(" right\n");
  return right * 10 < SAMPLES * 9;
}
