/* Sequences and optionals: what a caller sees as one value is any number of tensors for the model.
 */
#include "internal.h"

/* The tensors of all ports are those of the artefact, and each port's kind allows its count. */
static int side_is_sound(const cuvil_port_info *ports, uint32_t count, uint32_t tensors) {
  uint64_t total = 0;
  if (count && !ports) return 0;
  for (uint32_t i = 0; i < count; i++) {
    const cuvil_port_info *p = &ports[i];
    if (!p->name || p->kind > CUVIL_SEQUENCE) return 0;
    if (p->kind != CUVIL_SEQUENCE && p->count != (p->kind == CUVIL_TENSOR)) return 0;
    total += p->count;
  }
  return total == tensors;
}

int cuvil_ports_are_sound(const cuvil_artefact *a) {
  const cuvil_port_list *ports = a->has_ports ? a->ports : NULL;
  if (!ports) return !a->has_ports;
  return side_is_sound(ports->inputs, ports->input_count, a->input_count) &&
         side_is_sound(ports->outputs, ports->output_count, a->output_count);
}

static const char *kind_name(uint8_t kind) {
  static const char *const names[] = {"a tensor", "nothing", "a sequence"};
  return kind <= CUVIL_SEQUENCE ? names[kind] : "an unknown kind";
}

static cuvil_status check_input(cuvil_context *c, const cuvil_port_info *port,
                                const cuvil_value *value) {
  if (value->kind != port->kind) {
    return cuvil_context_fail(c, CUVIL_INVALID_ARGUMENT, "input '%s': expected %s, got %s%s",
                              port->name, kind_name(port->kind), kind_name(value->kind),
                              port->optional ? " (this is known when a model is compiled)" : "");
  }
  if (port->kind != CUVIL_SEQUENCE) return CUVIL_OK;
  if (value->shape[0] != port->count) {
    return cuvil_context_fail(c, CUVIL_SHAPE_MISMATCH,
                              "input '%s': expected a sequence of %d, got one of %d", port->name,
                              (int64_t)port->count, value->shape[0]);
  }
  if (port->count && !value->data) {
    return cuvil_context_fail(c, CUVIL_INVALID_ARGUMENT, "input '%s': no elements", port->name);
  }
  return CUVIL_OK;
}

/* The values behind a sequence. */
static cuvil_value *items_of(const cuvil_value *value) {
  return (cuvil_value *)((char *)value->data + value->byte_offset);
}

cuvil_status cuvil_spread_inputs(cuvil_context *c, const cuvil_value **inputs) {
  const cuvil_port_list *ports = c->model->ports;
  cuvil_value *tensor = c->tensors;
  if (!ports) return CUVIL_OK;
  for (uint32_t i = 0; i < ports->input_count; i++) {
    const cuvil_value *value = &(*inputs)[i];
    cuvil_status status = check_input(c, &ports->inputs[i], value);
    if (status) return status;
    const cuvil_value *items = value->kind == CUVIL_SEQUENCE ? items_of(value) : value;
    for (uint32_t k = 0; k < ports->inputs[i].count; k++) *tensor++ = items[k];
  }
  *inputs = c->tensors;
  return CUVIL_OK;
}

/* How many elements of an output the caller has given a place. */
static uint32_t places(const cuvil_port_info *port, const cuvil_value *value) {
  if (port->kind != CUVIL_SEQUENCE) return port->count;
  uint64_t given = value->kind == CUVIL_SEQUENCE ? value->capacity / sizeof *value : 0;
  return given < port->count ? (uint32_t)given : port->count;
}

cuvil_status cuvil_spread_outputs(cuvil_context *c, cuvil_value **outputs) {
  const cuvil_port_list *ports = c->model->ports;
  cuvil_value *tensor = c->tensors + c->model->artefact->input_count;
  cuvil_status status = CUVIL_OK;
  if (!ports) return CUVIL_OK;
  for (uint32_t i = 0; i < ports->output_count; i++) {
    const cuvil_port_info *port = &ports->outputs[i];
    cuvil_value *value = &(*outputs)[i];
    uint32_t given = places(port, value);
    cuvil_value *items = port->kind == CUVIL_SEQUENCE ? items_of(value) : value;
    for (uint32_t k = 0; k < port->count; k++) {
      *tensor++ = k < given ? items[k] : cuvil_output(NULL, 0);
    }
    if (given < port->count && !status) {
      status =
          cuvil_context_fail(c, CUVIL_NEED_MEMORY, "output '%s': a sequence of %d, places for %d",
                             port->name, (int64_t)port->count, (int64_t)given);
    }
  }
  *outputs = c->tensors + c->model->artefact->input_count;
  return status;
}

static void gather(const cuvil_port_info *port, const cuvil_value *tensors, cuvil_value *value) {
  if (port->kind == CUVIL_TENSOR) {
    *value = *tensors;
    return;
  }
  uint32_t given = places(port, value);
  for (uint32_t k = 0; k < given; k++) items_of(value)[k] = tensors[k];
  value->kind = port->kind;
  value->rank = port->kind == CUVIL_SEQUENCE;
  value->dtype = port->count ? tensors->dtype : 0;
  value->shape[0] = port->count;
}

void cuvil_gather_outputs(cuvil_context *c, cuvil_value *outputs) {
  const cuvil_port_list *ports = c->model->ports;
  const cuvil_value *tensor = c->tensors + c->model->artefact->input_count;
  for (uint32_t i = 0; ports && i < ports->output_count; i++) {
    gather(&ports->outputs[i], tensor, &outputs[i]);
    tensor += ports->outputs[i].count;
  }
}
