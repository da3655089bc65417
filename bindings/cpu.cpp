// The module delassus._cpu: what the processor that runs has, and what each build of the core beside it was compiled
// for. It runs before a build is chosen, so it is compiled for the oldest processor of its kind.
#include <Python.h>

#include "spatial/target.h"

// DELASSUS_BUILD(its name, its table of features), from the slowest to the fastest
#define DELASSUS_BUILD(name, table) extern "C" const delassus::CompiledFeatures table;
#include "builds.inc"
#undef DELASSUS_BUILD

namespace {

struct Build {
  const char* name;
  const delassus::CompiledFeatures& compiled;
};
const Build builds[] = {
#define DELASSUS_BUILD(name, table) {name, table},
#include "builds.inc"
#undef DELASSUS_BUILD
};

// The names of the features for which `has` is true.
template <class F>
PyObject* names(F has) {
  PyObject* list = PyList_New(0);
  for (std::size_t k = 0; list && k < delassus::cpu_feature_count; ++k) {
    if (!has(k)) continue;
    PyObject* name = PyUnicode_FromString(delassus::cpu_features[k].name);
    if (!name || PyList_Append(list, name) < 0) Py_CLEAR(list);
    Py_XDECREF(name);
  }
  return list;
}

PyObject* features(PyObject*, PyObject*) {
  return names([](std::size_t k) { return delassus::cpu_has(delassus::cpu_features[k]); });
}

PyObject* all_builds(PyObject*, PyObject*) {
  PyObject* list = PyList_New(0);
  for (const Build& build : builds) {
    if (!list) break;
    PyObject* pair = Py_BuildValue("(sN)", build.name, names([&](std::size_t k) { return build.compiled.has[k]; }));
    if (!pair || PyList_Append(list, pair) < 0) Py_CLEAR(list);
    Py_XDECREF(pair);
  }
  return list;
}

PyMethodDef methods[] = {
    {"features", features, METH_NOARGS, "Names of the extensions that the processor and the operating system offer."},
    {"builds", all_builds, METH_NOARGS, "Name and features of every build of the core, the fastest last."},
    {nullptr, nullptr, 0, nullptr}};

int fill(PyObject* module) { return PyModule_AddStringConstant(module, "kind", delassus::cpu_kind); }

PyModuleDef_Slot slots[] = {{Py_mod_exec, reinterpret_cast<void*>(fill)},
#ifdef Py_mod_gil
                            {Py_mod_gil, Py_MOD_GIL_NOT_USED},
#endif
                            {0, nullptr}};
PyModuleDef definition = {PyModuleDef_HEAD_INIT,
                          "_cpu",
                          "The processor, and the builds of the core. Private.",
                          0,
                          methods,
                          slots,
                          nullptr,
                          nullptr,
                          nullptr};

}  // namespace

PyMODINIT_FUNC PyInit__cpu() { return PyModuleDef_Init(&definition); }
