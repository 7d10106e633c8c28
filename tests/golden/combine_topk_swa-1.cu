// kiln: combine_topk_swa
#define KILN_PRELUDE
[[maybe_unused]] constexpr int kTopk = 512;
[[maybe_unused]] constexpr int kTopkStride = 512;
[[maybe_unused]] constexpr int kWindow = 128;
[[maybe_unused]] constexpr int kCompressRatio = 4;
[[maybe_unused]] constexpr int kImageWidth = 0;
[[maybe_unused]] constexpr int kAlign = 128;
[[maybe_unused]] constexpr int kCombinedStride = 640;
[[maybe_unused]] constexpr int kThreads = 128;
[[maybe_unused]] constexpr int kManyThreads = 64;
[[maybe_unused]] constexpr int kOp = 3;
[[maybe_unused]] constexpr bool kChecked = false;
