/* SPDX-License-Identifier: Apache-2.0 */
/* The doctor finds what is there and what is not, and has advice for each fault. It opens
 * NVRTC and the driver itself, as a server would: the linker puts the fakes in their place. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/attr.h"
#include "base/status.h"
#include "support/fake_kiln.h"
#include "support/plain_user.h"

enum { MAX_FINDINGS = 16 };

struct kept {
    char topic[16], text[1024];
    enum kiln_finding_state state;
    bool has_advice;
};

struct doctor {
    struct fake_kiln *fake;
    bool without_driver;
    struct kept kept[MAX_FINDINGS];
    size_t n;
};

enum kiln_status __wrap_ki_driver_open(struct ki_driver *driver, struct kiln_error *err);
enum kiln_status __wrap_ki_nvrtc_open(struct ki_nvrtc *nvrtc,
                                      const struct ki_nvrtc_search *search,
                                      struct ki_text *report, struct kiln_error *err);

enum kiln_status __wrap_ki_driver_open(struct ki_driver *driver, struct kiln_error *err)
{
    const struct doctor *doctor = mock_ptr_type(struct doctor *);

    if (doctor->without_driver) {
        return ki_fail(err, KILN_E_DRIVER_MISSING, "no libcuda.so.1 here");
    }
    *driver = doctor->fake->driver_table;
    return KILN_OK;
}

enum kiln_status __wrap_ki_nvrtc_open(struct ki_nvrtc *nvrtc,
                                      const struct ki_nvrtc_search *search,
                                      struct ki_text *report, struct kiln_error *err)
{
    const struct doctor *doctor = mock_ptr_type(struct doctor *);

    (void)search;
    if (doctor->fake->without_nvrtc) {
        ki_text_string(report, "/a/libnvrtc.so: not there\n/b/libnvrtc.so: too old\n");
        return ki_fail(err, KILN_E_NVRTC_MISSING, "no usable NVRTC");
    }
    *nvrtc = doctor->fake->nvrtc_table;
    return KILN_OK;
}

static int setup(void **state)
{
    struct doctor *doctor = calloc(1, sizeof *doctor);

    *state = doctor;
    return doctor == NULL ? -1 : fake_kiln_setup((void **)&doctor->fake);
}

static int teardown(void **state)
{
    struct doctor *doctor = *state;
    int status;

    plain_user_end();
    status = fake_kiln_teardown((void **)&doctor->fake);
    free(doctor);
    return status;
}

static int setup_plain_user(void **state)
{
    int status = setup(state);

    if (status == 0) {
        const struct doctor *doctor = *state;

        plain_user_begin(doctor->fake->dir.path);
    }
    return status;
}

static void keep_finding(void *user, const struct kiln_finding *finding)
{
    struct doctor *doctor = user;
    struct kept *kept = &doctor->kept[doctor->n++];

    assert_in_range(doctor->n, 1, MAX_FINDINGS);
    assert_true(finding->state != KILN_FINDING_FAULT || finding->advice != NULL);
    snprintf(kept->topic, sizeof kept->topic, "%s", finding->topic);
    snprintf(kept->text, sizeof kept->text, "%s", finding->text);
    kept->state = finding->state;
    kept->has_advice = finding->advice != NULL;
}

/* Opens the kiln unless it is open, and looks. */
static void look(struct doctor *doctor)
{
    struct fake_kiln *fake = doctor->fake;

    if (fake->kiln == NULL) {
        assert_int_equal(fake_kiln_open(fake), KILN_OK);
    }
    doctor->n = 0;
    will_return(__wrap_ki_nvrtc_open, doctor);
    will_return(__wrap_ki_driver_open, doctor);
    assert_int_equal(kiln_doctor(fake->kiln, keep_finding, doctor, &fake->err), KILN_OK);
}

/* The finding whose text holds `text`; the test fails where there is none, or two. */
static const struct kept *find(const struct doctor *doctor, const char *topic,
                               enum kiln_finding_state state, const char *text)
{
    const struct kept *found = NULL;

    for (size_t i = 0; i < doctor->n; i++) {
        const struct kept *kept = &doctor->kept[i];

        if (strcmp(kept->topic, topic) == 0 && kept->state == state &&
            strstr(kept->text, text) != NULL) {
            assert_null(found);
            found = kept;
        }
    }
    if (found == NULL) {
        for (size_t i = 0; i < doctor->n; i++) {
            print_error("%s %d %s\n", doctor->kept[i].topic, (int)doctor->kept[i].state,
                        doctor->kept[i].text);
        }
        fail_msg("no finding of %s: %s", topic, text);
    }
    return found;
}

static size_t count(const struct doctor *doctor, const char *topic)
{
    size_t n = 0;

    for (size_t i = 0; i < doctor->n; i++) {
        n += strcmp(doctor->kept[i].topic, topic) == 0 ? 1 : 0;
    }
    return n;
}

static void doctor_of_a_healthy_machine_finds_no_fault(void **state)
{
    struct doctor *doctor = *state;
    char folder[TMPDIR_PATH + 64];

    doctor->fake->driver.n_devices = 2;
    doctor->fake->nvrtc_table.archs[0] = (struct ki_target){5, 2};
    assert_int_equal(fake_kiln_open(doctor->fake), KILN_OK);
    assert_int_equal(fake_kiln_build(doctor->fake, 512), KILN_OK);

    look(doctor);

    snprintf(folder, sizeof folder, "writable folder %s: 1 kernels",
             doctor->fake->cache_dir);
    (void)find(doctor, "nvrtc", KILN_FINDING_OK,
               "NVRTC 13.0 at /fake/libnvrtc.so.13; targets sm_90 sm_100 sm_120");
    (void)find(doctor, "driver", KILN_FINDING_OK, "CUDA 13.0");
    (void)find(doctor, "gpu", KILN_FINDING_OK,
               "device 0: Fake GPU 0, sm_90, 132 multiprocessors");
    (void)find(doctor, "gpu", KILN_FINDING_OK, "device 1: Fake GPU 1, sm_90");
    (void)find(doctor, "cache", KILN_FINDING_OK, folder);
    assert_int_equal(doctor->n, 5);
}

static void doctor_lists_where_nvrtc_was_looked_for(void **state)
{
    struct doctor *doctor = *state;

    doctor->fake->without_nvrtc = true;

    look(doctor);

    (void)find(doctor, "nvrtc", KILN_FINDING_NOTE, "/a/libnvrtc.so: not there");
    (void)find(doctor, "nvrtc", KILN_FINDING_NOTE, "/b/libnvrtc.so: too old");
    (void)find(doctor, "nvrtc", KILN_FINDING_FAULT, "no usable NVRTC");
    assert_int_equal(count(doctor, "nvrtc"), 3);
}

static void doctor_without_memory_says_so(void **state)
{
    struct doctor *doctor = *state;
    struct fake_kiln *fake = doctor->fake;

    fake->without_nvrtc = true;
    assert_int_equal(fake_kiln_open(fake), KILN_OK);
    fake->mem.fail_nth = fake->mem.n_calls + 1;
    will_return(__wrap_ki_nvrtc_open, doctor);

    assert_int_equal(kiln_doctor(fake->kiln, keep_finding, doctor, &fake->err),
                     KILN_E_MEMORY);
}

/* A machine that only warms has no driver, which is no fault of it. */
static void doctor_takes_a_machine_without_a_driver(void **state)
{
    struct doctor *doctor = *state;

    doctor->without_driver = true;

    look(doctor);

    assert_true(find(doctor, "driver", KILN_FINDING_NOTE, "no libcuda.so.1")->has_advice);
    assert_int_equal(count(doctor, "gpu"), 0);
}

static void doctor_takes_a_driver_without_a_gpu(void **state)
{
    struct doctor *doctor = *state;

    doctor->fake->driver.n_devices = 0;
    look(doctor);
    assert_true(find(doctor, "gpu", KILN_FINDING_NOTE, "sees no GPU")->has_advice);
    assert_int_equal(count(doctor, "gpu"), 1);

    /* nor does it ask for devices whose number it was not told */
    doctor->fake->driver.n_devices = 1;
    doctor->fake->driver.fail_call = FAKE_device_get_count;
    doctor->fake->driver.fail_call_nth =
        fake_driver_count(&doctor->fake->driver, FAKE_device_get_count) + 1;
    look(doctor);
    (void)find(doctor, "gpu", KILN_FINDING_NOTE, "sees no GPU");
    assert_int_equal(count(doctor, "gpu"), 1);
}

static void doctor_names_a_device_that_does_not_answer(void **state)
{
    static const struct {
        enum fake_call call;
        int nth;
    } asked[] = {
        {FAKE_device_get, 1},           {FAKE_device_get_name, 1},
        {FAKE_device_get_attribute, 1}, {FAKE_device_get_attribute, 2},
        {FAKE_device_get_attribute, 3},
    };
    struct doctor *doctor = *state;

    doctor->fake->driver.n_devices = 2;
    for (size_t i = 0; i < KI_COUNT_OF(asked); i++) {
        fake_driver_forget(&doctor->fake->driver);
        doctor->fake->driver.fail_call = asked[i].call;
        doctor->fake->driver.fail_call_nth = asked[i].nth;

        look(doctor);

        (void)find(doctor, "gpu", KILN_FINDING_FAULT, "device 0 does not answer");
        (void)find(doctor, "gpu", KILN_FINDING_OK, "device 1");
    }
}

static void doctor_counts_entries_that_do_not_verify(void **state)
{
    struct doctor *doctor = *state;
    struct fake_kiln *fake = doctor->fake;
    char path[TMPDIR_PATH + 128];
    FILE *file;

    assert_int_equal(fake_kiln_open(fake), KILN_OK);
    assert_int_equal(fake_kiln_build(fake, 512), KILN_OK);
    snprintf(path, sizeof path, "%s/kiln-v1/00", fake->cache_dir);
    assert_true(mkdir(path, 0700) == 0 || errno == EEXIST);
    snprintf(path, sizeof path, "%s/kiln-v1/00/%062d.kiln", fake->cache_dir, 0);
    file = fopen(path, "w");
    assert_non_null(file);
    assert_int_equal(fclose(file), 0);

    look(doctor);

    (void)find(doctor, "cache", KILN_FINDING_OK, ": 1 kernels");
    (void)find(doctor, "cache", KILN_FINDING_FAULT, ": 1 entries do not verify");
}

static void doctor_looks_at_read_only_folders(void **state)
{
    struct doctor *doctor = *state;
    struct fake_kiln *fake = doctor->fake;
    char image[TMPDIR_PATH], own[TMPDIR_PATH], gone[TMPDIR_PATH];
    const char *dirs[] = {image, gone};

    snprintf(image, sizeof image, "%s", fake->cache_dir);
    assert_int_equal(fake_kiln_open(fake), KILN_OK);
    assert_int_equal(fake_kiln_build(fake, 512), KILN_OK);
    fake_kiln_close(fake);
    fake->options.cache_dir = tmpdir_join(&fake->dir, "own", own);
    fake->options.read_only_dirs = dirs;
    fake->options.n_read_only_dirs = KI_COUNT_OF(dirs);
    tmpdir_join(&fake->dir, "gone", gone);

    look(doctor);

    assert_non_null(
        strstr(find(doctor, "cache", KILN_FINDING_OK, "read-only folder")->text, image));
    (void)find(doctor, "cache", KILN_FINDING_FAULT, gone);
}

static void doctor_notes_a_folder_that_it_cannot_write_to(void **state)
{
    struct doctor *doctor = *state;
    struct fake_kiln *fake = doctor->fake;
    char path[TMPDIR_PATH + 16];
    const char *text;

    assert_int_equal(fake_kiln_open(fake), KILN_OK);
    assert_int_equal(fake_kiln_build(fake, 512), KILN_OK);
    snprintf(path, sizeof path, "%s/kiln-v1", fake->cache_dir);
    assert_int_equal(chmod(path, 0555), 0);

    look(doctor);

    text = find(doctor, "cache", KILN_FINDING_NOTE, ": 1 kernels; cannot be written to")
               ->text;
    assert_non_null(strstr(text, path));
    assert_int_equal(count(doctor, "cache"), 1);
}

static void doctor_makes_no_folder(void **state)
{
    struct doctor *doctor = *state;
    struct fake_kiln *fake = doctor->fake;

    fake->options.no_write = true;

    look(doctor);

    assert_true(find(doctor, "cache", KILN_FINDING_NOTE, "is not there")->has_advice);
    assert_int_equal(count(doctor, "cache"), 1);
    assert_int_equal(access(fake->cache_dir, F_OK), -1);
}

static void doctor_finds_a_folder_at_fault_that_cannot_be_made(void **state)
{
    struct doctor *doctor = *state;
    struct fake_kiln *fake = doctor->fake;

    assert_int_equal(chmod(fake->dir.path, 0500), 0);

    look(doctor);

    (void)find(doctor, "cache", KILN_FINDING_FAULT, "is not there and cannot be made");
    assert_int_equal(count(doctor, "cache"), 1);
}

/* Memory that runs out while a folder is looked at is no fault of the folder. */
static void doctor_without_memory_blames_no_folder(void **state)
{
    struct doctor *doctor = *state;
    struct fake_kiln *fake = doctor->fake;
    enum kiln_status status = KILN_E_MEMORY;

    assert_int_equal(fake_kiln_open(fake), KILN_OK);
    assert_int_equal(fake_kiln_build(fake, 512), KILN_OK);
    for (int n = 1; status != KILN_OK; n++) {
        doctor->n = 0;
        fake->mem.fail_nth = fake->mem.n_calls + n;
        will_return(__wrap_ki_nvrtc_open, doctor);
        will_return(__wrap_ki_driver_open, doctor);
        status = kiln_doctor(fake->kiln, keep_finding, doctor, &fake->err);
        assert_true(status == KILN_OK || status == KILN_E_MEMORY);
        assert_int_equal(count(doctor, "cache"), status == KILN_OK ? 1 : 0);
        assert_true(n < 1000);
    }
    (void)find(doctor, "cache", KILN_FINDING_OK, ": 1 kernels");
}

static void doctor_takes_the_options_word_for_no_folder(void **state)
{
    struct doctor *doctor = *state;

    doctor->fake->options.cache_dir = NULL;
    doctor->fake->options.no_disk = true;

    look(doctor);

    (void)find(doctor, "cache", KILN_FINDING_NOTE, "as the options say");
    assert_int_equal(count(doctor, "cache"), 1);
}

static void doctor_refuses_null(void **state)
{
    struct doctor *doctor = *state;
    struct kiln *none = NULL;

    assert_int_equal(fake_kiln_open(doctor->fake), KILN_OK);
    assert_int_equal(kiln_doctor(none, keep_finding, NULL, NULL), KILN_E_ARGUMENT);
    assert_int_equal(kiln_doctor(doctor->fake->kiln, NULL, NULL, NULL), KILN_E_ARGUMENT);
}

#define DOCTOR_TEST(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

#define DOCTOR_TEST_PLAIN_USER(test)                                                     \
    cmocka_unit_test_setup_teardown(test, setup_plain_user, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        DOCTOR_TEST(doctor_of_a_healthy_machine_finds_no_fault),
        DOCTOR_TEST(doctor_lists_where_nvrtc_was_looked_for),
        DOCTOR_TEST(doctor_without_memory_says_so),
        DOCTOR_TEST(doctor_takes_a_machine_without_a_driver),
        DOCTOR_TEST(doctor_takes_a_driver_without_a_gpu),
        DOCTOR_TEST(doctor_names_a_device_that_does_not_answer),
        DOCTOR_TEST(doctor_counts_entries_that_do_not_verify),
        DOCTOR_TEST(doctor_looks_at_read_only_folders),
        DOCTOR_TEST_PLAIN_USER(doctor_notes_a_folder_that_it_cannot_write_to),
        DOCTOR_TEST(doctor_makes_no_folder),
        DOCTOR_TEST_PLAIN_USER(doctor_finds_a_folder_at_fault_that_cannot_be_made),
        DOCTOR_TEST(doctor_without_memory_blames_no_folder),
        DOCTOR_TEST(doctor_takes_the_options_word_for_no_folder),
        DOCTOR_TEST(doctor_refuses_null),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
