// kiln: gather_lens
#define KILN_PRELUDE
[[maybe_unused]] constexpr int kWindow = 128;
[[maybe_unused]] constexpr int kThreads = 128;
[[maybe_unused]] constexpr int kOp = 10;
[[maybe_unused]] constexpr bool kChecked = false;
