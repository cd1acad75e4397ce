/* Records every change that a process makes to the files under a folder, in order.
 *
 * Loaded by LD_PRELOAD. TRACE_ROOT names the folder, TRACE_LOG the file to append to. A record is
 * a kind, three numbers (file, offset, length of the data) and two lengths of paths, then the
 * paths and the data; `replay.py` reads them. A file is known by a number of its own, given when
 * it is made or first opened, so that what is written after a rename still finds its file.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

#define MOST 4096

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char root[PATH_MAX];
static size_t root_length;
static int out = -1;
static int traced[MOST]; /* by descriptor: whether it is of a file or folder under the root */

__attribute__((constructor)) static void begin(void) {
    const char *folder = getenv("TRACE_ROOT"), *log = getenv("TRACE_LOG");
    if (!folder || !log || !realpath(folder, root)) return;
    root_length = strlen(root);
    out = syscall(SYS_openat, AT_FDCWD, log, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
}

static int whole(const void *data, size_t size) {
    const char *at = data;
    while (size) {
        ssize_t done = syscall(SYS_write, out, at, size);
        if (done <= 0) return -1;
        at += done, size -= done;
    }
    return 0;
}

/* One record. Where it cannot be written the trace would lie, so the process ends. */
static void record(char kind, uint64_t file, uint64_t offset, const void *data, uint64_t size,
                   const char *path, const char *other) {
    uint64_t numbers[3] = {file, offset, size};
    uint32_t lengths[2] = {path ? strlen(path) : 0, other ? strlen(other) : 0};
    if (whole(&kind, 1) || whole(numbers, sizeof numbers) || whole(lengths, sizeof lengths) ||
        (path && whole(path, lengths[0])) || (other && whole(other, lengths[1])) ||
        (size && data && whole(data, size)))
        _exit(99);
}

/* The path below the root, or NULL where it lies elsewhere. */
static const char *below(int folder, const char *path, char *into) {
    char whole_path[PATH_MAX * 2], parent[PATH_MAX];
    if (out < 0 || !path) return NULL;
    if (path[0] == '/') {
        snprintf(whole_path, sizeof whole_path, "%s", path);
    } else if (folder == AT_FDCWD) {
        if (!getcwd(parent, sizeof parent)) return NULL;
        snprintf(whole_path, sizeof whole_path, "%s/%s", parent, path);
    } else {
        char link[64];
        snprintf(link, sizeof link, "/proc/self/fd/%d", folder);
        ssize_t length = readlink(link, parent, sizeof parent - 1);
        if (length < 0) return NULL;
        parent[length] = 0;
        snprintf(whole_path, sizeof whole_path, "%s/%s", parent, path);
    }
    /* The parent is resolved, the last name kept: it may not be there. */
    char *slash = strrchr(whole_path, '/');
    if (!slash) return NULL;
    const char *name = slash + 1;
    *slash = 0;
    if (!realpath(whole_path[0] ? whole_path : "/", parent)) return NULL;
    if (snprintf(into, PATH_MAX, "%s/%s", parent, name) >= PATH_MAX) return NULL;
    if (strncmp(into, root, root_length)) return NULL;
    if (!into[root_length]) return into + root_length;
    return into[root_length] == '/' ? into + root_length + 1 : NULL;
}

static uint64_t number_of(int fd) {
    struct stat seen;
    return fstat(fd, &seen) ? 0 : seen.st_ino;
}

static int opened(int folder, const char *path, int flags, mode_t mode) {
    char place[PATH_MAX];
    pthread_mutex_lock(&lock);
    const char *under = below(folder, path, place);
    struct stat before;
    int was = under && !fstatat(folder, path, &before, 0);
    int fd = syscall(SYS_openat, folder, path, flags, mode);
    int failed = errno;
    if (fd >= 0 && fd < MOST) traced[fd] = under != NULL;
    if (fd >= 0 && under) {
        struct stat seen;
        fstat(fd, &seen);
        if (!was) record('c', seen.st_ino, 0, NULL, 0, under, NULL);
        else if (S_ISREG(seen.st_mode) && (flags & O_TRUNC) && (flags & (O_WRONLY | O_RDWR)))
            record('t', seen.st_ino, 0, NULL, 0, NULL, NULL);
    }
    pthread_mutex_unlock(&lock);
    errno = failed;
    return fd;
}

static mode_t mode_of(int flags, va_list rest) {
    return flags & (O_CREAT | O_TMPFILE) ? va_arg(rest, mode_t) : 0;
}

#define OPEN(name)                                                                                 \
    int name(const char *path, int flags, ...) {                                                   \
        va_list rest;                                                                              \
        va_start(rest, flags);                                                                     \
        mode_t mode = mode_of(flags, rest);                                                        \
        va_end(rest);                                                                              \
        return opened(AT_FDCWD, path, flags, mode);                                                \
    }
#define OPENAT(name)                                                                               \
    int name(int folder, const char *path, int flags, ...) {                                       \
        va_list rest;                                                                              \
        va_start(rest, flags);                                                                     \
        mode_t mode = mode_of(flags, rest);                                                        \
        va_end(rest);                                                                              \
        return opened(folder, path, flags, mode);                                                  \
    }
OPEN(open)
OPEN(open64)
OPENAT(openat)
OPENAT(openat64)

static int watched(int fd) { return out >= 0 && fd >= 0 && fd < MOST && traced[fd]; }

static ssize_t wrote(int fd, const void *data, size_t size, off_t at, int placed) {
    pthread_mutex_lock(&lock);
    off_t offset = at;
    if (!placed) {
        struct stat seen;
        int flags = fcntl(fd, F_GETFL);
        fstat(fd, &seen);
        offset = flags & O_APPEND ? seen.st_size : lseek(fd, 0, SEEK_CUR);
    }
    ssize_t done = placed ? syscall(SYS_pwrite64, fd, data, size, at)
                          : syscall(SYS_write, fd, data, size);
    int failed = errno;
    if (done > 0) record('w', number_of(fd), offset, data, done, NULL, NULL);
    pthread_mutex_unlock(&lock);
    errno = failed;
    return done;
}

ssize_t write(int fd, const void *data, size_t size) {
    return watched(fd) ? wrote(fd, data, size, 0, 0) : syscall(SYS_write, fd, data, size);
}
ssize_t pwrite(int fd, const void *data, size_t size, off_t at) {
    return watched(fd) ? wrote(fd, data, size, at, 1) : syscall(SYS_pwrite64, fd, data, size, at);
}
ssize_t pwrite64(int fd, const void *data, size_t size, off_t at) {
    return pwrite(fd, data, size, at);
}
ssize_t writev(int fd, const struct iovec *parts, int count) {
    if (!watched(fd)) return syscall(SYS_writev, fd, parts, count);
    ssize_t all = 0;
    for (int part = 0; part < count; part++) {
        ssize_t done = wrote(fd, parts[part].iov_base, parts[part].iov_len, 0, 0);
        if (done < 0) return all ? all : done;
        all += done;
        if ((size_t)done < parts[part].iov_len) break;
    }
    return all;
}
/* Copies inside the kernel are refused, so that callers fall back to writing. */
ssize_t copy_file_range(int in, off_t *from, int to, off_t *at, size_t size, unsigned flags) {
    if (!watched(to)) return syscall(SYS_copy_file_range, in, from, to, at, size, flags);
    errno = ENOSYS;
    return -1;
}
ssize_t sendfile(int to, int in, off_t *from, size_t size) {
    if (!watched(to)) return syscall(SYS_sendfile, to, in, from, size);
    errno = EINVAL;
    return -1;
}
ssize_t sendfile64(int to, int in, off_t *from, size_t size) { return sendfile(to, in, from, size); }

static int cut(int fd, off_t size) {
    pthread_mutex_lock(&lock);
    int done = syscall(SYS_ftruncate, fd, size);
    int failed = errno;
    if (!done && watched(fd)) record('t', number_of(fd), size, NULL, 0, NULL, NULL);
    pthread_mutex_unlock(&lock);
    errno = failed;
    return done;
}
int ftruncate(int fd, off_t size) { return cut(fd, size); }
int ftruncate64(int fd, off_t size) { return cut(fd, size); }
int fallocate(int fd, int mode, off_t at, off_t size) {
    if (!watched(fd)) return syscall(SYS_fallocate, fd, mode, at, size);
    errno = EOPNOTSUPP;
    return -1;
}
int fallocate64(int fd, int mode, off_t at, off_t size) { return fallocate(fd, mode, at, size); }

static int synced(int fd, int how) {
    pthread_mutex_lock(&lock);
    int done = syscall(how, fd);
    int failed = errno;
    if (!done && watched(fd)) record('s', number_of(fd), 0, NULL, 0, NULL, NULL);
    pthread_mutex_unlock(&lock);
    errno = failed;
    return done;
}
int fsync(int fd) { return synced(fd, SYS_fsync); }
int fdatasync(int fd) { return synced(fd, SYS_fdatasync); }

static int moved(int from_folder, const char *from, int to_folder, const char *to, unsigned how) {
    char one[PATH_MAX], two[PATH_MAX];
    pthread_mutex_lock(&lock);
    const char *source = below(from_folder, from, one), *target = below(to_folder, to, two);
    int done = syscall(SYS_renameat2, from_folder, from, to_folder, to, how);
    int failed = errno;
    if (!done && (source || target)) record('r', 0, 0, NULL, 0, source, target);
    pthread_mutex_unlock(&lock);
    errno = failed;
    return done;
}
int rename(const char *from, const char *to) { return moved(AT_FDCWD, from, AT_FDCWD, to, 0); }
int renameat(int a, const char *from, int b, const char *to) { return moved(a, from, b, to, 0); }
int renameat2(int a, const char *from, int b, const char *to, unsigned how) {
    return moved(a, from, b, to, how);
}

static int linked(int a, const char *from, int b, const char *to, int flags) {
    char one[PATH_MAX], two[PATH_MAX];
    pthread_mutex_lock(&lock);
    const char *source = below(a, from, one), *target = below(b, to, two);
    int done = syscall(SYS_linkat, a, from, b, to, flags);
    int failed = errno;
    if (!done && (source || target)) record('l', 0, 0, NULL, 0, source, target);
    pthread_mutex_unlock(&lock);
    errno = failed;
    return done;
}
int link(const char *from, const char *to) { return linked(AT_FDCWD, from, AT_FDCWD, to, 0); }
int linkat(int a, const char *from, int b, const char *to, int flags) {
    return linked(a, from, b, to, flags);
}

static int removed(int folder, const char *path, int flags) {
    char place[PATH_MAX];
    pthread_mutex_lock(&lock);
    const char *under = below(folder, path, place);
    int done = syscall(SYS_unlinkat, folder, path, flags);
    int failed = errno;
    if (!done && under) record('u', 0, 0, NULL, 0, under, NULL);
    pthread_mutex_unlock(&lock);
    errno = failed;
    return done;
}
int unlink(const char *path) { return removed(AT_FDCWD, path, 0); }
int unlinkat(int folder, const char *path, int flags) { return removed(folder, path, flags); }
int remove(const char *path) {
    int done = unlink(path);
    return done && (errno == EISDIR || errno == EPERM) ? removed(AT_FDCWD, path, AT_REMOVEDIR) : done;
}
int rmdir(const char *path) { return removed(AT_FDCWD, path, AT_REMOVEDIR); }

static int made(int folder, const char *path, mode_t mode) {
    char place[PATH_MAX];
    pthread_mutex_lock(&lock);
    const char *under = below(folder, path, place);
    int done = syscall(SYS_mkdirat, folder, path, mode);
    int failed = errno;
    if (!done && under) {
        struct stat seen;
        fstatat(folder, path, &seen, 0);
        record('d', seen.st_ino, 0, NULL, 0, under, NULL);
    }
    pthread_mutex_unlock(&lock);
    errno = failed;
    return done;
}
int mkdir(const char *path, mode_t mode) { return made(AT_FDCWD, path, mode); }
int mkdirat(int folder, const char *path, mode_t mode) { return made(folder, path, mode); }

int close(int fd) {
    if (fd >= 0 && fd < MOST) traced[fd] = 0;
    return syscall(SYS_close, fd);
}
