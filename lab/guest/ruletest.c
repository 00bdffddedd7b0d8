// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * What the kernel says to values that are written to its attributes.
 *
 *   ruletest dump PATH...           every attribute below: its path, a tab, its text; of one that cannot be read the path alone
 *   ruletest try VALUES PATH...     each line of VALUES to every attribute below that can be written: path, value, errno
 *                                   (0: taken), what it reads afterwards; what it read before is written back each time
 *
 * Texts are without the last newline; \n, \t, \r and \\ are written so. Links are not followed.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MOST 4096

static char values[128][128];
static size_t lengths[128];
static int count;

/* Its text, or that it cannot be read. */
static bool text(const char *path, char *out)
{
	int file = open(path, O_RDONLY | O_NONBLOCK);
	ssize_t n = file < 0 ? -1 : read(file, out, MOST - 1);

	if (file >= 0)
		close(file);
	if (n < 0)
		return false;
	if (n && out[n - 1] == '\n')
		n--;
	out[n] = 0;
	return true;
}

static void show(const char *from, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		switch (from[i]) {
		case '\n': fputs("\\n", stdout); break;
		case '\t': fputs("\\t", stdout); break;
		case '\r': fputs("\\r", stdout); break;
		case '\\': fputs("\\\\", stdout); break;
		default: putchar(from[i]);
		}
	}
}

static void dump(const char *path)
{
	char now[MOST];

	fputs(path + 1, stdout);
	if (text(path, now)) {
		putchar('\t');
		show(now, strlen(now));
	}
	putchar('\n');
}

/*
 * Limits take effect in a worker (cpufreq_notifier_max()), which a busy host delays. To choose the governor in force again applies
 * them at once, and does nothing else (cpufreq_set_policy()).
 */
static void apply_limits(const char *limit)
{
	char path[MOST], governor[MOST];
	int folder = strrchr(limit, '/') - limit;

	if (snprintf(path, sizeof(path), "%.*s/scaling_governor", folder, limit) < (int)sizeof(path) && text(path, governor)) {
		int file = open(path, O_WRONLY);

		if (file < 0 || write(file, governor, strlen(governor)) < 0)
			fprintf(stderr, "ruletest: %s: %s\n", path, strerror(errno));
		if (file >= 0)
			close(file);
	}
}

static int put(const char *path, const char *value, size_t n)
{
	int file = open(path, O_WRONLY | O_NONBLOCK);
	int failed = file < 0 || write(file, value, n) < 0 ? errno : 0;

	if (file >= 0)
		close(file);
	if (!failed && strstr(path, "/scaling_m"))
		apply_limits(path);
	return failed;
}

static void try(const char *path)
{
	/* No power state is behind these, or what they do cannot be taken back. */
	static const char *const others[] = { "uevent", "reload", "probe", "release", "control", "autosuspend_delay_ms",
					      "autosuspend", "fail", "state", "target", "emul_temp", "reset", NULL };
	const char *name = strrchr(path, '/') + 1;
	char before[MOST], after[MOST];
	struct stat s;

	if (stat(path, &s) || !(s.st_mode & S_IWUSR))
		return;
	for (const char *const *other = others; *other; other++)
		if (!strcmp(name, *other))
			return;
	bool readable = text(path, before);
	for (int v = 0; v < count; v++) {
		int failed = put(path, values[v], lengths[v]);
		bool read = text(path, after);

		printf("%s\t", path + 1);
		show(values[v], lengths[v]);
		printf("\t%d\t", failed);
		show(read ? after : "", read ? strlen(after) : 0);
		putchar('\n');
		if (readable && !(read && !strcmp(before, after)))
			put(path, before, strlen(before));
	}
}

static void each(const char *path, void (*what)(const char *))
{
	char below[MOST];
	struct dirent **all;
	struct stat s;

	if (lstat(path, &s) || S_ISLNK(s.st_mode))
		return;
	if (S_ISREG(s.st_mode)) {
		what(path);
		return;
	}
	if (!S_ISDIR(s.st_mode))
		return;
	int n = scandir(path, &all, NULL, alphasort);
	for (int i = 0; i < n; i++) {
		if (strcmp(all[i]->d_name, ".") && strcmp(all[i]->d_name, "..") &&
		    snprintf(below, sizeof(below), "%s/%s", path, all[i]->d_name) < (int)sizeof(below))
			each(below, what);
		free(all[i]);
	}
	if (n >= 0)
		free(all);
}

static bool read_values(const char *path)
{
	FILE *file = fopen(path, "r");
	char line[256];

	if (!file)
		return false;
	while (count < 128 && fgets(line, sizeof(line), file)) {
		size_t n = 0;

		for (char *c = line; *c && *c != '\n' && n < sizeof(values[0]); c++) {
			char plain = *c;

			if (plain == '\\' && c[1]) {
				c++;
				plain = *c == 'n' ? '\n' : *c == 't' ? '\t' : *c == 'r' ? '\r' : *c;
			}
			values[count][n++] = plain;
		}
		lengths[count++] = n;
	}
	fclose(file);
	return true;
}

int main(int n, char **all)
{
	bool trying = n > 2 && !strcmp(all[1], "try");

	if (n < 3 || (!trying && strcmp(all[1], "dump"))) {
		fprintf(stderr, "ruletest: expected dump PATH... or try VALUES PATH...\n");
		return 2;
	}
	if (trying && !read_values(all[2])) {
		fprintf(stderr, "ruletest: %s: %s\n", all[2], strerror(errno));
		return 2;
	}
	for (int i = trying ? 3 : 2; i < n; i++)
		each(all[i], trying ? try : dump);
	return 0;
}
