// Handlers that have one variant: memory, atomics, control flow, warp collectives.
#pragma once

#include "vgpu/form.h"
#include "vgpu/warp.h"

namespace kgate::vgpu {

Handler load_handler(uint32_t element_bytes);
Handler store_handler(uint32_t element_bytes);
Handler load_param_handler(uint32_t element_bytes);
Handler copy_async_handler();
Handler nothing_handler();
Handler convert_address_handler(bool to);
Handler is_space_handler();

// d = old value (0: none), a = address, b = operand, c = second operand of cas. `name`: "add", "cas", …
Handler atomic_handler(std::string_view name, ptx::Type type, bool noftz);

Handler branch_handler();        // target
Handler branch_table_handler();  // a = index (u32), extra->targets
Handler exit_handler();
Handler call_handler();     // target, extra: copies, hidden = register of return addresses
Handler return_handler();   // a = register of return addresses
Handler barrier_handler();  // see barrier.h
Handler trap_handler();     // extra->text
Handler assert_handler();
Handler unsupported_handler();     // extra->text
Handler clock_handler(bool wide);  // d
Handler print_handler();

// d = result, a = value, b = lane operand, c = segment operand, extra->regs[0] = member mask, [1] = predicate result or
// 0.
Handler shuffle_handler(std::string_view mode);
// d = result, a = predicate, imm = its flip, b = member mask.
Handler vote_handler(std::string_view mode);
Handler active_mask_handler();
Handler warp_sync_handler();                 // b = member mask
Handler match_handler(bool all, bool wide);  // d = mask, a = value, b = members, extra->regs[0] = predicate or 0
Handler reduce_handler(std::string_view name, ptx::Type type);  // d, a, b = members
Handler elect_handler();  // d = leader (0: sink), extra->regs[0] = predicate, b = members

}  // namespace kgate::vgpu
