/* Checks of the compiled model's constant, before anything of it is used. */
#include <string.h>

#include "internal.h"
#include "text.h"

cuvil_status cuvil_report_failure(const cuvil_report *report, cuvil_status status,
                                  const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  cuvil_format_list(report->message, report->room, format, arguments);
  va_end(arguments);
  return status;
}

static int tensors_are_sound(const cuvil_tensor_info *tensors, uint32_t count, uint32_t slots) {
  if (count && !tensors) return 0;
  for (uint32_t i = 0; i < count; i++) {
    const cuvil_tensor_info *t = &tensors[i];
    if (!t->name || t->rank > CUVIL_MAX_RANK || (t->rank && !t->dims)) return 0;
    if (!cuvil_dtype_size(t->dtype)) return 0;
    for (uint8_t d = 0; d < t->rank; d++) {
      if (t->dims[d] < 0 && (uint64_t)(-(t->dims[d] + 1)) >= slots) return 0;
    }
  }
  return 1;
}

static int symbols_are_sound(const cuvil_artefact *a) {
  if (a->symbol_count > a->dim_count || (a->dim_count && !a->prepare)) return 0;
  if (a->symbol_count && (!a->symbol_names || !a->symbol_bounds)) return 0;
  return a->arena_bytes >= 0 ? a->arena_bytes <= CUVIL_MAX_BYTES
                             : (uint64_t)(-(a->arena_bytes + 1)) < a->dim_count;
}

static int variants_are_sound(const cuvil_artefact *a) {
  if (!a->variant_count || !a->variants) return 0;
  for (uint32_t i = 0; i < a->variant_count; i++) {
    const cuvil_variant *v = &a->variants[i];
    if (!v->name || !v->main || v->scratch_bytes > (uint64_t)CUVIL_MAX_BYTES) return 0;
  }
  return !a->site_count || a->sites;
}

cuvil_status cuvil_check_artefact(const cuvil_artefact *a, const cuvil_report *report) {
  if (a->magic != CUVIL_ARTEFACT_MAGIC) {
    return cuvil_report_failure(report, CUVIL_BAD_ARTEFACT, "not a Cuvil artefact");
  }
  if (a->abi_version != CUVIL_ABI_VERSION) {
    return cuvil_report_failure(
        report, CUVIL_BAD_ARTEFACT,
        "the artefact has ABI version %d, this runtime %d: compile the model again",
        (int64_t)a->abi_version, (int64_t)CUVIL_ABI_VERSION);
  }
  if (!a->name || !tensors_are_sound(a->inputs, a->input_count, a->dim_count) ||
      !tensors_are_sound(a->outputs, a->output_count, a->dim_count) || !symbols_are_sound(a) ||
      !variants_are_sound(a) || !cuvil_devices_are_sound(a) || !cuvil_ports_are_sound(a) ||
      a->weights_bytes > (uint64_t)CUVIL_MAX_BYTES) {
    return cuvil_report_failure(report, CUVIL_BAD_ARTEFACT, "the artefact is inconsistent");
  }
  return CUVIL_OK;
}

static void name_features(const cuvil_artefact *a, uint64_t bits, char *text, size_t room) {
  size_t used = 0;
  text[0] = 0;
  for (int bit = 0; a->feature_names && a->feature_names[bit] && bit < 64; bit++) {
    if (!(bits >> bit & 1)) continue;
    cuvil_format(text + used, room - used, used ? ", %s" : "%s", a->feature_names[bit]);
    used += strlen(text + used);
  }
}

static cuvil_status refuse(const cuvil_artefact *a, const cuvil_variant *v, uint64_t missing,
                           const cuvil_report *report) {
  char names[160];
  name_features(a, missing, names, sizeof names);
  return cuvil_report_failure(report, CUVIL_UNSUPPORTED_CPU,
                              "variant '%s' of '%s' needs cpu features that are missing here: %s",
                              v->name, a->name, names[0] ? names : "?");
}

cuvil_status cuvil_choose_variant(const cuvil_artefact *a, const char *name,
                                  const cuvil_report *report, const cuvil_variant **variant) {
  uint64_t present = a->detect ? a->detect() : 0;
  const cuvil_variant *last = NULL;
  for (uint32_t i = 0; i < a->variant_count; i++) {
    const cuvil_variant *v = &a->variants[i];
    if (name && strcmp(name, v->name)) continue;
    last = v;
    if (v->required & ~present) continue;
    *variant = v;
    return CUVIL_OK;
  }
  if (last) return refuse(a, last, last->required & ~present, report);
  return cuvil_report_failure(report, CUVIL_INVALID_ARGUMENT, "'%s' has no variant '%s'", a->name,
                              name);
}
