/* Listens to a sound: how sure is the model of speech in each 32 ms, from 0 to 9? The state of one
 * call goes to the next; what comes is held against what ONNX Runtime said. */
#include "vad.h"

#include <string.h>

#include "board.h"
#include "sound.h"

enum { STATE = 2 * 128 };

static unsigned char memory[VAD_MEMORY_BYTES];

static int is_near(float a, float b) {
  float difference = a - b;
  return difference < 1e-4f && difference > -1e-4f;
}

static void put_number(int value) {
  char text[3] = {(char)('0' + value / 10), (char)('0' + value % 10), 0};
  board_put(text);
}

int main(void) {
  static float samples[CONTEXT + CHUNK], state[STATE], next[STATE];
  int equal = 0;
  for (int c = 0; c < CHUNKS; c++) {
    for (int i = 0; i < CHUNK; i++) samples[CONTEXT + i] = (float)sound[c][i] / 32768.0f;
    float speech;
    if (vad_inference(memory, sizeof memory, samples, state, &speech, next)) {
      board_put("vad_inference failed\n");
      return 1;
    }
    char text[2] = {speech >= 1 ? '9' : (char)('0' + (int)(speech * 10)), 0};
    board_put(text);
    equal += is_near(speech, expected[c]);
    memcpy(state, next, sizeof state);
    memcpy(samples, samples + CHUNK, CONTEXT * sizeof(float));
  }
  board_put("\n");
  put_number(equal);
  board_put(" of ");
  put_number(CHUNKS);
  board_put(" as ONNX Runtime says\n");
  return equal != CHUNKS;
}
