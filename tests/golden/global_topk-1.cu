// kiln: global_topk
#define KILN_PRELUDE
[[maybe_unused]] constexpr int kTopk = 512;
[[maybe_unused]] constexpr int kTopkStride = 512;
[[maybe_unused]] constexpr int kSlotsStride = 512;
[[maybe_unused]] constexpr int kBlockSize = 64;
[[maybe_unused]] constexpr int kTableWidth = 4096;
[[maybe_unused]] constexpr int kTableStride = 4096;
[[maybe_unused]] constexpr int kDcpWorld = 1;
[[maybe_unused]] constexpr int kDcpInterleave = 1;
[[maybe_unused]] constexpr int kThreads = 128;
[[maybe_unused]] constexpr int kManyThreads = 64;
[[maybe_unused]] constexpr int kOp = 1;
[[maybe_unused]] constexpr bool kChecked = false;
