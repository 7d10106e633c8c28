// kiln: image_visibility
#define KILN_PRELUDE
[[maybe_unused]] constexpr int kImageWidth = 16;
[[maybe_unused]] constexpr int kThreads = 256;
[[maybe_unused]] constexpr int kOp = 11;
[[maybe_unused]] constexpr bool kChecked = false;
