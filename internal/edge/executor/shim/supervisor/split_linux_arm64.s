#include "textflag.h"

// func split(trap, arg0, arg1, child uintptr) (r uintptr)
//
// The child begins on a stack of its own, so what it needs is in a register that the kernel leaves alone.
TEXT ·split(SB), NOSPLIT, $0-40
	MOVD trap+0(FP), R8
	MOVD arg0+8(FP), R0
	MOVD arg1+16(FP), R1
	MOVD child+24(FP), R20
	MOVD $0, R2
	MOVD $0, R3
	MOVD $0, R4
	SVC
	CBZ  R0, born
	MOVD R0, r+32(FP)
	RET

born:
	MOVD $0, R29
	BL   (R20)
	BRK
