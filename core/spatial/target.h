// All that depends on the kind of processor: how wide its registers are, how a thread waits, and which instructions the
// compiler was allowed to use beside those that the processor has.
#pragma once

#include <cstddef>

#if defined(__x86_64__) || defined(__i386__)
#include <cpuid.h>
#elif defined(__aarch64__) && defined(__linux__)
#include <sys/auxv.h>
#endif

namespace delassus {

// A vector register: AVX-512, AVX, SSE2 and NEON.
#if defined(__AVX512F__)
inline constexpr int vector_bytes = 64;
#elif defined(__AVX__)
inline constexpr int vector_bytes = 32;
#else
inline constexpr int vector_bytes = 16;
#endif

// Links and states side by side: a register, or two where it holds less than four numbers of double precision.
inline constexpr int register_bytes = vector_bytes < 32 ? 32 : vector_bytes;

// Between two looks at what another thread is to change.
inline void relax() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

// An extension of the instruction set that a compiler uses of its own accord.
struct CpuFeature {
  const char* name;
  bool compiled;  // it was allowed to in the file that includes this one
  // where the processor tells that it has it
  unsigned leaf, part, word, bit;
  unsigned state;  // bits of the registers that the operating system must save
};

// A macro that is defined is 1, one that is not is its own name.
#define DELASSUS_TEXT(macro) #macro
#define DELASSUS_HAS(macro) (DELASSUS_TEXT(macro)[0] == '1')

#if defined(__x86_64__) || defined(__i386__)

inline constexpr char cpu_kind[] = "x86-64";
// leaf and sub-leaf of CPUID, register (eax, ebx, ecx, edx) and bit; states of XCR0
inline constexpr CpuFeature cpu_features[] = {
    {"sse3", DELASSUS_HAS(__SSE3__), 1, 0, 2, 0, 0},
    {"ssse3", DELASSUS_HAS(__SSSE3__), 1, 0, 2, 9, 0},
    {"sse4_1", DELASSUS_HAS(__SSE4_1__), 1, 0, 2, 19, 0},
    {"sse4_2", DELASSUS_HAS(__SSE4_2__), 1, 0, 2, 20, 0},
    {"movbe", DELASSUS_HAS(__MOVBE__), 1, 0, 2, 22, 0},
    {"popcnt", DELASSUS_HAS(__POPCNT__), 1, 0, 2, 23, 0},
    {"sse4a", DELASSUS_HAS(__SSE4A__), 0x80000001, 0, 2, 6, 0},
    {"lzcnt", DELASSUS_HAS(__LZCNT__), 0x80000001, 0, 2, 5, 0},
    {"bmi", DELASSUS_HAS(__BMI__), 7, 0, 1, 3, 0},
    {"bmi2", DELASSUS_HAS(__BMI2__), 7, 0, 1, 8, 0},
    {"tbm", DELASSUS_HAS(__TBM__), 0x80000001, 0, 2, 21, 0},
    {"adx", DELASSUS_HAS(__ADX__), 7, 0, 1, 19, 0},
    {"gfni", DELASSUS_HAS(__GFNI__), 7, 0, 2, 8, 0},
    {"avx", DELASSUS_HAS(__AVX__), 1, 0, 2, 28, 0x6},
    {"f16c", DELASSUS_HAS(__F16C__), 1, 0, 2, 29, 0x6},
    {"fma", DELASSUS_HAS(__FMA__), 1, 0, 2, 12, 0x6},
    {"fma4", DELASSUS_HAS(__FMA4__), 0x80000001, 0, 2, 16, 0x6},
    {"xop", DELASSUS_HAS(__XOP__), 0x80000001, 0, 2, 11, 0x6},
    {"avx2", DELASSUS_HAS(__AVX2__), 7, 0, 1, 5, 0x6},
    {"avxvnni", DELASSUS_HAS(__AVXVNNI__), 7, 1, 0, 4, 0x6},
    {"avxifma", DELASSUS_HAS(__AVXIFMA__), 7, 1, 0, 23, 0x6},
    {"avxvnniint8", DELASSUS_HAS(__AVXVNNIINT8__), 7, 1, 3, 4, 0x6},
    {"avxneconvert", DELASSUS_HAS(__AVXNECONVERT__), 7, 1, 3, 5, 0x6},
    {"avxvnniint16", DELASSUS_HAS(__AVXVNNIINT16__), 7, 1, 3, 10, 0x6},
    {"avx512f", DELASSUS_HAS(__AVX512F__), 7, 0, 1, 16, 0xe6},
    {"avx512cd", DELASSUS_HAS(__AVX512CD__), 7, 0, 1, 28, 0xe6},
    {"avx512bw", DELASSUS_HAS(__AVX512BW__), 7, 0, 1, 30, 0xe6},
    {"avx512dq", DELASSUS_HAS(__AVX512DQ__), 7, 0, 1, 17, 0xe6},
    {"avx512vl", DELASSUS_HAS(__AVX512VL__), 7, 0, 1, 31, 0xe6},
    {"avx512er", DELASSUS_HAS(__AVX512ER__), 7, 0, 1, 27, 0xe6},
    {"avx512ifma", DELASSUS_HAS(__AVX512IFMA__), 7, 0, 1, 21, 0xe6},
    {"avx512vbmi", DELASSUS_HAS(__AVX512VBMI__), 7, 0, 2, 1, 0xe6},
    {"avx512vbmi2", DELASSUS_HAS(__AVX512VBMI2__), 7, 0, 2, 6, 0xe6},
    {"avx512vnni", DELASSUS_HAS(__AVX512VNNI__), 7, 0, 2, 11, 0xe6},
    {"avx512bitalg", DELASSUS_HAS(__AVX512BITALG__), 7, 0, 2, 12, 0xe6},
    {"avx512vpopcntdq", DELASSUS_HAS(__AVX512VPOPCNTDQ__), 7, 0, 2, 14, 0xe6},
    {"avx512vp2intersect", DELASSUS_HAS(__AVX512VP2INTERSECT__), 7, 0, 3, 8, 0xe6},
    {"avx512bf16", DELASSUS_HAS(__AVX512BF16__), 7, 1, 0, 5, 0xe6},
    {"avx512fp16", DELASSUS_HAS(__AVX512FP16__), 7, 0, 3, 23, 0xe6},
    {"apx_f", DELASSUS_HAS(__APX_F__), 7, 1, 3, 21, 0x80000},
};

// Whether the processor has it, and the operating system saves its registers.
inline bool cpu_has(const CpuFeature& feature) {
  unsigned words[4]{};
  if (!__get_cpuid_count(1, 0, &words[0], &words[1], &words[2], &words[3])) return false;
  unsigned saved = 0, high = 0;
  if (words[2] & (1u << 27)) __asm__ volatile("xgetbv" : "=a"(saved), "=d"(high) : "c"(0));
#if defined(__APPLE__)
  saved |= 0xe0;  // macOS begins to save the registers of AVX-512 when they are first used
#endif
  if (!__get_cpuid_count(feature.leaf, feature.part, &words[0], &words[1], &words[2], &words[3])) return false;
  return (words[feature.word] >> feature.bit & 1) && (saved & feature.state) == feature.state;
}

#elif defined(__aarch64__) && defined(__linux__)

inline constexpr char cpu_kind[] = "aarch64";
// bits of AT_HWCAP and AT_HWCAP2
inline constexpr CpuFeature cpu_features[] = {
    {"lse", DELASSUS_HAS(__ARM_FEATURE_ATOMICS), AT_HWCAP, 0, 0, 8, 0},
    {"fp16", DELASSUS_HAS(__ARM_FEATURE_FP16_VECTOR_ARITHMETIC), AT_HWCAP, 0, 0, 10, 0},
    {"rdm", DELASSUS_HAS(__ARM_FEATURE_QRDMX), AT_HWCAP, 0, 0, 12, 0},
    {"fcma", DELASSUS_HAS(__ARM_FEATURE_COMPLEX), AT_HWCAP, 0, 0, 14, 0},
    {"rcpc", DELASSUS_HAS(__ARM_FEATURE_RCPC), AT_HWCAP, 0, 0, 15, 0},
    {"dotprod", DELASSUS_HAS(__ARM_FEATURE_DOTPROD), AT_HWCAP, 0, 0, 20, 0},
    {"sve", DELASSUS_HAS(__ARM_FEATURE_SVE), AT_HWCAP, 0, 0, 22, 0},
    {"sve2", DELASSUS_HAS(__ARM_FEATURE_SVE2), AT_HWCAP2, 0, 0, 1, 0},
    {"frint", DELASSUS_HAS(__ARM_FEATURE_FRINT), AT_HWCAP2, 0, 0, 8, 0},
    {"i8mm", DELASSUS_HAS(__ARM_FEATURE_MATMUL_INT8), AT_HWCAP2, 0, 0, 13, 0},
    {"bf16", DELASSUS_HAS(__ARM_FEATURE_BF16_VECTOR_ARITHMETIC), AT_HWCAP2, 0, 0, 14, 0},
};

inline bool cpu_has(const CpuFeature& feature) { return getauxval(feature.leaf) >> feature.bit & 1; }

#else

// no extension is known: what was compiled is taken to run
inline constexpr char cpu_kind[] = "unknown";
inline constexpr CpuFeature cpu_features[] = {{"", false, 0, 0, 0, 0, 0}};

inline bool cpu_has(const CpuFeature&) { return false; }

#endif

inline constexpr std::size_t cpu_feature_count = sizeof(cpu_features) / sizeof(cpu_features[0]);

// A feature each: whether the compiler was allowed to use it.
struct CompiledFeatures {
  bool has[cpu_feature_count];
};

}  // namespace delassus
