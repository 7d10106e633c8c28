// kiln: token_to_req
#define KILN_PRELUDE
[[maybe_unused]] constexpr int kPadReq = 0;
[[maybe_unused]] constexpr int kThreads = 256;
[[maybe_unused]] constexpr int kOp = 8;
[[maybe_unused]] constexpr bool kChecked = false;
