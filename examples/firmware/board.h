/* What the example needs of a board; a debugger, or QEMU, answers both (semihosting). */
#ifndef BOARD_H
#define BOARD_H

void board_put(const char *text);
void board_exit(int failed);
int main(void);

#endif
