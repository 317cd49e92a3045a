#include "textflag.h"

// func split(trap, arg0, arg1, child uintptr) (r uintptr)
//
// The child begins on a stack of its own, so what it needs is in a register that the kernel leaves alone.
TEXT ·split(SB), NOSPLIT, $0-40
	MOVQ trap+0(FP), AX
	MOVQ arg0+8(FP), DI
	MOVQ arg1+16(FP), SI
	MOVQ child+24(FP), R12
	XORL DX, DX
	XORL R10, R10
	XORL R8, R8
	SYSCALL
	TESTQ AX, AX
	JZ   born
	MOVQ AX, r+32(FP)
	RET

born:
	XORL BP, BP
	XORPS X15, X15 // as Go's functions have it
	CALL R12
	INT  $3
