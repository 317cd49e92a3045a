package health

// reach is what of a GPU an error concerns.
type reach uint8

const (
	nothing reach = iota
	instance
	card
)

// meaning is what follows from an Xid: who loses the GPU by it, and which slices are closed. A card that is closed must be reset, unless
// its driver says that it needs nothing; an instance that is closed goes on once what it ran is gone.
type meaning struct {
	name         string
	ends, closes reach
}

// meanings are the Xids that anything follows from. All others end at most the process that they are about, which is its own failure: a
// fault of the program (8, 11, 13, 25, 31, 32, 43, 68, 69, 109), cleaning up behind another error (45), the copy, video and JPEG engines
// (39-41, 70-72, 75-77, 82-89, 96-105, 126-135), news (63, 92, 93, 106, 107, 137, 154).
//
// The source is NVIDIA's catalog (https://docs.nvidia.com/deploy/xid-errors/analyzing-xid-catalog.html), its column "immediate action":
// RESET_GPU and RESTART_BM close the card; RESTART_APP and IGNORE are not listed, but for 94. Where a workflow stands there:
//   - 48 is followed by what it led to: 94, with which the rest of the GPU goes on, or 95. So it ends what it is about alone, and closes
//     the card until the driver says that it needs nothing, or has said 95. 171 and 172 say more of the same error.
//   - 74 loses links to other GPUs; what does not use them goes on. The NVLink errors of later GPUs (144-150) mean this or nothing by
//     their subcodes: their drivers say themselves what the GPU needs (Look.Told).
//   - 109 is a program that hangs as well as a GPU that does; NVIDIA's device plugin counts it as the program's
//     (https://github.com/NVIDIA/k8s-device-plugin, internal/rm/health.go: 13, 31, 43, 45, 68, 109), and so do we. The driver says if a
//     reset is needed.
//
// What is not in the catalog is not guessed: a driver that knows a newer Xid says itself what the GPU needs.
var meanings = map[uint32]meaning{ //nolint:gochecknoglobals // a table, written to by nobody
	46:  {"the GPU stopped processing", card, card},
	48:  {"double-bit ECC error", instance, card},
	62:  {"its micro-controller halted", card, card},
	64:  {"a memory row could not be remapped", nothing, card},
	74:  {"NVLink error", nothing, card},
	79:  {"the GPU has fallen off the bus", card, card},
	94:  {"contained memory error", instance, instance},
	95:  {"uncontained memory error", card, card},
	110: {"security fault", card, card},
	119: {"its system processor does not answer", card, card},
	120: {"error of its system processor", card, card},
	136: {"link training failed", nothing, card},
	140: {"unrecovered ECC error", card, card},
	143: {"the GPU could not be initialized", card, card},
	155: {"NVLink error that needs a reset", nothing, card},
	156: {"a part of it was retired, which needs a reset", nothing, card},
	158: {"fatal timeout", card, card},
	171: {"uncorrectable DRAM error", instance, card},
	172: {"uncorrectable SRAM error", instance, card},
}
