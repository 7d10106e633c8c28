// kiln: combine_topk_swa
#define KILN_PRELUDE
[[maybe_unused]] constexpr int kTopk = 7936;
[[maybe_unused]] constexpr int kTopkStride = 7940;
[[maybe_unused]] constexpr int kWindow = 133;
[[maybe_unused]] constexpr int kCompressRatio = 128;
[[maybe_unused]] constexpr int kImageWidth = 5;
[[maybe_unused]] constexpr int kAlign = 64;
[[maybe_unused]] constexpr int kCombinedStride = 8192;
[[maybe_unused]] constexpr int kThreads = 128;
[[maybe_unused]] constexpr int kManyThreads = 96;
[[maybe_unused]] constexpr int kOp = 3;
[[maybe_unused]] constexpr bool kChecked = false;
