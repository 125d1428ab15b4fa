// The small Python types: dtype, device, Size, memory_format, layout, Generator.
#pragma once

#include "ops/core/value.h"
#include "ops/random/generator.h"
#include "python/errors.h"

namespace taeda::py {

extern PyTypeObject* DTypeType;
extern PyTypeObject* DeviceType_;
extern PyTypeObject* SizeType;
extern PyTypeObject* MemoryFormatType;
extern PyTypeObject* LayoutType;
extern PyTypeObject* GeneratorType;

// All of these return new references.
PyObject* dtype_object(DType d);
PyObject* device_object(Device d);
PyObject* size_object(DimsRef d);
PyObject* memory_format_object(MemoryFormat m);
PyObject* strided_object();
PyObject* generator_object(Generator g);
PyObject* scalar_object(const Scalar& s);

// Converts `o`; false if it is not such an object (dtype: also the types bool, int, float, complex;
// device: also a str or an index). Throws for values of the right type but without meaning, like
// 'gpu'.
bool as_dtype(PyObject* o, DType* d);
bool as_device(PyObject* o, Device* d);
bool as_memory_format(PyObject* o, MemoryFormat* m);
bool as_generator(PyObject* o, Generator* g);

// The device of `with device:` or set_default_device, for functions called without a device.
Device current_device();
bool has_current_device();

void init_dtype_device(PyObject* module);
void init_size(PyObject* module);
void init_generator(PyObject* module);

}  // namespace taeda::py
