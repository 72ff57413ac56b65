/* Where in a sound is speech? Prints one bar for every 32 ms.
 *
 *   listen SOUND [PROBABILITIES]
 *
 * Both files are raw float32; the sound is mono at 16 kHz. The model looks at 512 new samples with
 * the 64 before them, and hands back a state for its next call. */
#include <stdio.h>
#include <string.h>

#include "vad.h"

enum { CONTEXT = 64, CHUNK = 512, STATE = 2 * 128 };

int main(int count, char **arguments) {
  static const char *bars[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  static float sound[CONTEXT + CHUNK], state[STATE], next[STATE];
  const int64_t rate = 16000;
  FILE *input = count > 1 ? fopen(arguments[1], "rb") : NULL;
  FILE *output = count > 2 ? fopen(arguments[2], "wb") : NULL;
  if (!input || (count > 2 && !output)) {
    fprintf(stderr, "usage: listen SOUND [PROBABILITIES]\n");
    return 1;
  }
  while (fread(sound + CONTEXT, sizeof(float), CHUNK, input) == CHUNK) {
    float speech;
    int32_t status = vad_inference(1, CONTEXT + CHUNK, sound, state, &rate, &speech, next);
    if (status) {
      fprintf(stderr, "%s\n", vad_status_text(status));
      return 1;
    }
    fputs(bars[speech >= 1 ? 7 : (int)(speech * 8)], stdout);
    if (output) fwrite(&speech, sizeof speech, 1, output);
    memcpy(state, next, sizeof state);
    memcpy(sound, sound + CHUNK, CONTEXT * sizeof(float));
  }
  puts("");
  fclose(input);
  return output && fclose(output) != 0;
}
