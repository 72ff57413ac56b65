/* How many cpus this process may use: a container's quota often is far below the machine's count.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <fcntl.h>
#include <sched.h>
#include <string.h>
#include <unistd.h>

#include "numa_linux.h"
#include "platform.h"
#include "text.h"

enum { GROUP_ROOM = 512 };
#ifdef __ANDROID__ /* compiled with headers of another C library, see tools/build_bitcode.py */
enum { CPUS_ONLINE = 97 };
#else
enum { CPUS_ONLINE = _SC_NPROCESSORS_ONLN };
#endif

size_t cuvil_read_text(const char *path, char *text, size_t room) {
  int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return 0;
  ssize_t length = read(file, text, room - 1);
  close(file);
  text[length > 0 ? length : 0] = 0;
  return length > 0 ? (size_t)length : 0;
}

/* The number at *text, which moves behind it; -1 when there is none ("max"). */
static int64_t number(const char **text) {
  int64_t value = -1;
  while (**text == ' ') ++*text;
  for (; **text >= '0' && **text <= '9' && value < INT64_MAX / 16; ++*text) {
    value = (value < 0 ? 0 : value) * 10 + (**text - '0');
  }
  return value;
}

static int32_t whole_cpus(int64_t quota, int64_t period, int32_t limit) {
  if (quota <= 0 || period <= 0) return limit;
  int64_t cpus = (quota + period - 1) / period;
  return cpus < limit ? (int32_t)cpus : limit;
}

static int32_t quota_v2(const char *folder, int32_t limit) {
  char path[GROUP_ROOM + 64], text[64];
  cuvil_format(path, sizeof path, "/sys/fs/cgroup%s/cpu.max", folder);
  if (!cuvil_read_text(path, text, sizeof text)) return limit;
  const char *at = text;
  int64_t quota = number(&at);
  return quota < 0 ? limit : whole_cpus(quota, number(&at), limit);
}

static int32_t quota_v1(const char *folder, int32_t limit) {
  static const char *const mounts[] = {"/sys/fs/cgroup/cpu", "/sys/fs/cgroup/cpu,cpuacct"};
  char path[GROUP_ROOM + 64], text[64];
  for (unsigned i = 0; i < sizeof mounts / sizeof mounts[0]; i++) {
    cuvil_format(path, sizeof path, "%s%s/cpu.cfs_quota_us", mounts[i], folder);
    if (!cuvil_read_text(path, text, sizeof text)) continue;
    const char *at = text;
    int64_t quota = number(&at);
    cuvil_format(path, sizeof path, "%s%s/cpu.cfs_period_us", mounts[i], folder);
    if (!cuvil_read_text(path, text, sizeof text)) continue;
    at = text;
    return whole_cpus(quota, number(&at), limit);
  }
  return limit;
}

/* The least quota of the group and of all groups above it. */
static int32_t quota_upwards(char *folder, int32_t limit,
                             int32_t (*quota)(const char *folder, int32_t limit)) {
  for (;;) {
    char *slash = strrchr(folder, '/');
    if (folder[0] == '/' && !folder[1]) folder[0] = 0;
    limit = quota(folder, limit);
    if (!slash || !folder[0]) return limit;
    *slash = 0;
  }
}

/* Lines of /proc/self/cgroup are "id:controllers:/folder"; version 2 has no controllers. */
static int32_t cgroup_limit(int32_t limit) {
  char text[4096];
  if (!cuvil_read_text("/proc/self/cgroup", text, sizeof text)) return limit;
  for (char *line = text, *next; line; line = next) {
    next = strchr(line, '\n');
    if (next) *next++ = 0;
    char *controllers = strchr(line, ':');
    char *folder = controllers ? strchr(controllers + 1, ':') : NULL;
    if (!folder || strlen(folder + 1) >= GROUP_ROOM) continue;
    *folder++ = 0;
    controllers++;
    if (!controllers[0]) limit = quota_upwards(folder, limit, quota_v2);
    if (!strcmp(controllers, "cpu") || !strncmp(controllers, "cpu,", 4) ||
        strstr(controllers, ",cpu,")) {
      limit = quota_upwards(folder, limit, quota_v1);
    }
  }
  return limit;
}

int32_t cuvil_platform_cpu_count(void) {
  cpu_set_t allowed;
  int32_t count;
  if (!sched_getaffinity(0, sizeof allowed, &allowed)) {
    count = CPU_COUNT(&allowed);
  } else {
    count = (int32_t)sysconf(CPUS_ONLINE); /* more cpus than a cpu_set_t holds */
  }
  count = cgroup_limit(count < 1 ? 1 : count);
  return count < 1 ? 1 : count;
}
