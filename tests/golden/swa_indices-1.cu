// kiln: swa_indices
#define KILN_PRELUDE
[[maybe_unused]] constexpr int kWindow = 128;
[[maybe_unused]] constexpr int kIndexWidth = 128;
[[maybe_unused]] constexpr int kIndexStride = 128;
[[maybe_unused]] constexpr int kBlockSize = 64;
[[maybe_unused]] constexpr int kTableWidth = 16384;
[[maybe_unused]] constexpr int kTableStride = 16384;
[[maybe_unused]] constexpr int kImageWidth = 0;
[[maybe_unused]] constexpr bool kCausal = true;
[[maybe_unused]] constexpr int kDcpWorld = 1;
[[maybe_unused]] constexpr int kDcpInterleave = 1;
[[maybe_unused]] constexpr int kDcpStorage = 0;
[[maybe_unused]] constexpr int kThreads = 128;
[[maybe_unused]] constexpr int kFewRows = 1024;
[[maybe_unused]] constexpr int kRowsOfWarp = 2;
[[maybe_unused]] constexpr int kOp = 4;
[[maybe_unused]] constexpr bool kChecked = false;
