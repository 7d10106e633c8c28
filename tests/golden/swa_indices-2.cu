// kiln: swa_indices
#define KILN_PRELUDE
[[maybe_unused]] constexpr int kWindow = 128;
[[maybe_unused]] constexpr int kIndexWidth = 192;
[[maybe_unused]] constexpr int kIndexStride = 195;
[[maybe_unused]] constexpr int kBlockSize = 64;
[[maybe_unused]] constexpr int kTableWidth = 513;
[[maybe_unused]] constexpr int kTableStride = 520;
[[maybe_unused]] constexpr int kImageWidth = 5;
[[maybe_unused]] constexpr bool kCausal = false;
[[maybe_unused]] constexpr int kDcpWorld = 4;
[[maybe_unused]] constexpr int kDcpInterleave = 2;
[[maybe_unused]] constexpr int kDcpStorage = 1;
[[maybe_unused]] constexpr int kThreads = 128;
[[maybe_unused]] constexpr int kFewRows = 1024;
[[maybe_unused]] constexpr int kRowsOfWarp = 1;
[[maybe_unused]] constexpr int kOp = 4;
[[maybe_unused]] constexpr bool kChecked = false;
