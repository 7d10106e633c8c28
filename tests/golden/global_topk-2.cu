// kiln: global_topk
#define KILN_PRELUDE
[[maybe_unused]] constexpr int kTopk = 1024;
[[maybe_unused]] constexpr int kTopkStride = 1030;
[[maybe_unused]] constexpr int kSlotsStride = 1025;
[[maybe_unused]] constexpr int kBlockSize = 4352;
[[maybe_unused]] constexpr int kTableWidth = 137;
[[maybe_unused]] constexpr int kTableStride = 139;
[[maybe_unused]] constexpr int kDcpWorld = 4;
[[maybe_unused]] constexpr int kDcpInterleave = 2;
[[maybe_unused]] constexpr int kThreads = 128;
[[maybe_unused]] constexpr int kManyThreads = 128;
[[maybe_unused]] constexpr int kOp = 1;
[[maybe_unused]] constexpr bool kChecked = false;
