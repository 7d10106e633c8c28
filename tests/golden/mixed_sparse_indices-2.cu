// kiln: mixed_sparse_indices
#define KILN_PRELUDE
[[maybe_unused]] constexpr int kWindow = 128;
[[maybe_unused]] constexpr int kSwaWidth = 133;
[[maybe_unused]] constexpr int kImageWidth = 6;
[[maybe_unused]] constexpr int kCompressRatio = 128;
[[maybe_unused]] constexpr int kTopk = 8192;
[[maybe_unused]] constexpr int kDecodeTopk = 16;
[[maybe_unused]] constexpr bool kDecodeLocal = false;
[[maybe_unused]] constexpr int kSwaBlockSize = 64;
[[maybe_unused]] constexpr int kSwaSpan = 192;
[[maybe_unused]] constexpr int kSwaTableWidth = 4096;
[[maybe_unused]] constexpr int kSwaTableStride = 4100;
[[maybe_unused]] constexpr int kBlockSize = 2;
[[maybe_unused]] constexpr int kSpan = 6;
[[maybe_unused]] constexpr int kTableWidth = 977;
[[maybe_unused]] constexpr int kTableStride = 980;
[[maybe_unused]] constexpr int kThreads = 256;
[[maybe_unused]] constexpr int kRowThreads = 256;
[[maybe_unused]] constexpr int kOp = 5;
[[maybe_unused]] constexpr bool kChecked = false;
