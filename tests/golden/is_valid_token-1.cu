// kiln: is_valid_token
#define KILN_PRELUDE
[[maybe_unused]] constexpr int kDcpWorld = 1;
[[maybe_unused]] constexpr int kThreads = 256;
[[maybe_unused]] constexpr int kOp = 9;
[[maybe_unused]] constexpr bool kChecked = false;
