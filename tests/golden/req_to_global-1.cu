// kiln: req_to_global
#define KILN_PRELUDE
[[maybe_unused]] constexpr int kTopk = 2048;
[[maybe_unused]] constexpr int kTopkStride = 2048;
[[maybe_unused]] constexpr int kOutStride = 2048;
[[maybe_unused]] constexpr int kBlockSize = 64;
[[maybe_unused]] constexpr int kPageStride = 64;
[[maybe_unused]] constexpr int kTableWidth = 2560;
[[maybe_unused]] constexpr int kTableStride = 2560;
[[maybe_unused]] constexpr int kDcpWorld = 1;
[[maybe_unused]] constexpr int kDcpInterleave = 1;
[[maybe_unused]] constexpr int kThreads = 512;
[[maybe_unused]] constexpr int kManyThreads = 128;
[[maybe_unused]] constexpr int kOp = 7;
[[maybe_unused]] constexpr bool kChecked = false;
