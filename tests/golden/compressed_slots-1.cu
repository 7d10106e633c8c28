// kiln: compressed_slots
#define KILN_PRELUDE
[[maybe_unused]] constexpr int kCompressRatio = 4;
[[maybe_unused]] constexpr int kBlockSize = 64;
[[maybe_unused]] constexpr int kTableWidth = 4096;
[[maybe_unused]] constexpr int kTableStride = 4096;
[[maybe_unused]] constexpr int kDcpWorld = 1;
[[maybe_unused]] constexpr int kDcpInterleave = 1;
[[maybe_unused]] constexpr int kThreads = 256;
[[maybe_unused]] constexpr int kOp = 6;
[[maybe_unused]] constexpr bool kChecked = false;
