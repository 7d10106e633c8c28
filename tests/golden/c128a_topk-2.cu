// kiln: c128a_topk
#define KILN_PRELUDE
[[maybe_unused]] constexpr int kCompressRatio = 128;
[[maybe_unused]] constexpr int kCapacity = 7936;
[[maybe_unused]] constexpr int kBlockSize = 2;
[[maybe_unused]] constexpr int kTableWidth = 977;
[[maybe_unused]] constexpr int kTableStride = 980;
[[maybe_unused]] constexpr int kDcpWorld = 4;
[[maybe_unused]] constexpr int kDcpInterleave = 2;
[[maybe_unused]] constexpr int kThreads = 128;
[[maybe_unused]] constexpr int kOp = 2;
[[maybe_unused]] constexpr bool kChecked = false;
