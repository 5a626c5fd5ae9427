// What kernels need of the machine that they are compiled for, and nothing else.
//
// One source is compiled three ways, without any vendor's headers: to PTX (clang -x cuda), to AMD code
// objects (clang -x hip), and to host code (clang -x c++), in which the emulators of tests/emulators
// run each thread of a grid one after the other. A kernel has one parameter, a struct, so that the
// three agree on how it is passed.

#ifndef UNISONO_KERNELS_DEVICE_H
#define UNISONO_KERNELS_DEVICE_H

typedef signed char i8;
typedef unsigned char u8;
typedef short i16;
typedef unsigned short u16;
typedef int i32;
typedef unsigned int u32;
typedef long long i64;
typedef unsigned long long u64;

#if defined(__NVPTX__) || defined(__AMDGCN__) || defined(__CUDA__) || defined(__HIP__)
#define DEVICE __attribute__((device)) static inline
#define KERNEL(name, Arguments)                                                                    \
  extern "C" __attribute__((global)) void unisono_##name(Arguments arguments)
#else
#define DEVICE static inline
#define KERNEL(name, Arguments)                                                                    \
  static void kernel_##name(Arguments arguments);                                                  \
  extern "C" void unisono_##name(const Arguments *arguments) { kernel_##name(*arguments); }        \
  static void kernel_##name(Arguments arguments)
#endif

// Accesses of a range of memory, for the host build: what a device would fault on is checked there, and bytes of messages
// are counted, those of flags apart.
enum Access { READ = 0, WRITE = 1, READ_FLAG = 2, WRITE_FLAG = 3 };

// Kernels with barriers share variables among the threads of their block (SHARED), and take turns at them by `exchange`. Not
// on AMD's devices, which have no such kernel.

#if defined(__NVPTX__)

DEVICE u64 thread_index() { return __nvvm_read_ptx_sreg_tid_x(); }
DEVICE u64 thread_count() { return __nvvm_read_ptx_sreg_ntid_x(); }
DEVICE u64 block_index() { return __nvvm_read_ptx_sreg_ctaid_x(); }
DEVICE u64 block_count() { return __nvvm_read_ptx_sreg_nctaid_x(); }
DEVICE u64 row_index() { return __nvvm_read_ptx_sreg_ctaid_y(); }
DEVICE u64 row_count() { return __nvvm_read_ptx_sreg_nctaid_y(); }
DEVICE u8 *range(u64 address, u64, Access) { return (u8 *)address; }
DEVICE u64 load_acquire(const u64 *at) {
  u64 value;
  asm volatile("ld.acquire.sys.global.u64 %0, [%1];" : "=l"(value) : "l"(at) : "memory");
  return value;
}
DEVICE void store_release(u64 *at, u64 value) {
  asm volatile("st.release.sys.global.u64 [%0], %1;" : : "l"(at), "l"(value) : "memory");
}
DEVICE void fence_system() { asm volatile("fence.acq_rel.sys;" : : : "memory"); }
DEVICE void relax() { asm volatile("nanosleep.u32 100;" : : : "memory"); }
DEVICE void block_barrier() { asm volatile("barrier.sync 0;" : : : "memory"); }
#define SHARED __attribute__((shared)) static
DEVICE u32 exchange(u32 *at, u32 value) {
  u32 before;
  asm volatile("atom.exch.b32 %0, [%1], %2;" : "=r"(before) : "l"(at), "r"(value) : "memory");
  return before;
}

#elif defined(__AMDGCN__)

DEVICE u64 thread_index() { return __builtin_amdgcn_workitem_id_x(); }
DEVICE u64 thread_count() { return __builtin_amdgcn_workgroup_size_x(); }
DEVICE u64 block_index() { return __builtin_amdgcn_workgroup_id_x(); }
DEVICE u64 block_count() { return __builtin_amdgcn_grid_size_x() / __builtin_amdgcn_workgroup_size_x(); }
DEVICE u64 row_index() { return __builtin_amdgcn_workgroup_id_y(); }
DEVICE u64 row_count() { return __builtin_amdgcn_grid_size_y() / __builtin_amdgcn_workgroup_size_y(); }
DEVICE u8 *range(u64 address, u64, Access) { return (u8 *)address; }
DEVICE u64 load_acquire(const u64 *at) { return __atomic_load_n(at, __ATOMIC_ACQUIRE); }
DEVICE void store_release(u64 *at, u64 value) { __atomic_store_n(at, value, __ATOMIC_RELEASE); }
DEVICE void fence_system() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
DEVICE void relax() { __builtin_amdgcn_s_sleep(8); }

#elif defined(__CUDA__) || defined(__HIP__)

// The host's half of a device compilation: never run.
DEVICE u64 thread_index();
DEVICE u64 thread_count();
DEVICE u64 block_index();
DEVICE u64 block_count();
DEVICE u64 row_index();
DEVICE u64 row_count();
DEVICE u8 *range(u64, u64, Access);
DEVICE u64 load_acquire(const u64 *);
DEVICE void store_release(u64 *, u64);
DEVICE void fence_system();
DEVICE void relax();
DEVICE void block_barrier();
#define SHARED __attribute__((shared)) static
DEVICE u32 exchange(u32 *, u32);

#else

// Host: an emulator says which thread runs, and where device addresses lie.
struct Position {
  u64 thread, threads, block, blocks, row, rows;
};
struct Machine {
  u8 *(*range)(u64 address, u64 bytes, int access);
  void (*relax)();
  void (*barrier)();
};
static thread_local Position position;
static Machine machine;
extern "C" void unisono_host_position(const Position *now) { position = *now; }
extern "C" void unisono_host_machine(const Machine *now) { machine = *now; }

DEVICE u64 thread_index() { return position.thread; }
DEVICE u64 thread_count() { return position.threads; }
DEVICE u64 block_index() { return position.block; }
DEVICE u64 block_count() { return position.blocks; }
DEVICE u64 row_index() { return position.row; }
DEVICE u64 row_count() { return position.rows; }
DEVICE u8 *range(u64 address, u64 bytes, Access access) {
  return machine.range(address, bytes, access);
}
DEVICE u64 load_acquire(const u64 *at) { return __atomic_load_n(at, __ATOMIC_ACQUIRE); }
DEVICE void store_release(u64 *at, u64 value) { __atomic_store_n(at, value, __ATOMIC_RELEASE); }
DEVICE void fence_system() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
DEVICE void relax() { machine.relax(); }
// Kernels with barriers run as one thread there.
DEVICE void block_barrier() { machine.barrier(); }
#define SHARED
DEVICE u32 exchange(u32 *at, u32 value) {
  u32 before = *at;
  *at = value;
  return before;
}

#endif

#endif
