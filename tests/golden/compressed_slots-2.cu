// kiln: compressed_slots
#define KILN_PRELUDE
[[maybe_unused]] constexpr int kCompressRatio = 128;
[[maybe_unused]] constexpr int kBlockSize = 2;
[[maybe_unused]] constexpr int kTableWidth = 1001;
[[maybe_unused]] constexpr int kTableStride = 1003;
[[maybe_unused]] constexpr int kDcpWorld = 4;
[[maybe_unused]] constexpr int kDcpInterleave = 2;
[[maybe_unused]] constexpr int kThreads = 256;
[[maybe_unused]] constexpr int kOp = 6;
[[maybe_unused]] constexpr bool kChecked = false;
