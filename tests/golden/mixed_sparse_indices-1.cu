// kiln: mixed_sparse_indices
#define KILN_PRELUDE
[[maybe_unused]] constexpr int kWindow = 128;
[[maybe_unused]] constexpr int kSwaWidth = 128;
[[maybe_unused]] constexpr int kImageWidth = 0;
[[maybe_unused]] constexpr int kCompressRatio = 4;
[[maybe_unused]] constexpr int kTopk = 512;
[[maybe_unused]] constexpr int kDecodeTopk = 512;
[[maybe_unused]] constexpr bool kDecodeLocal = true;
[[maybe_unused]] constexpr int kSwaBlockSize = 64;
[[maybe_unused]] constexpr int kSwaSpan = 64;
[[maybe_unused]] constexpr int kSwaTableWidth = 16384;
[[maybe_unused]] constexpr int kSwaTableStride = 16384;
[[maybe_unused]] constexpr int kBlockSize = 64;
[[maybe_unused]] constexpr int kSpan = 64;
[[maybe_unused]] constexpr int kTableWidth = 4096;
[[maybe_unused]] constexpr int kTableStride = 4096;
[[maybe_unused]] constexpr int kThreads = 128;
[[maybe_unused]] constexpr int kRowThreads = 32;
[[maybe_unused]] constexpr int kOp = 5;
[[maybe_unused]] constexpr bool kChecked = false;
