package oracle

import (
	"fmt"
	"runtime"
	"strings"
)

// A Crash is a panic of the reference.
type Crash struct {
	Value any
	// In is the innermost function that was running and the one that called it, without the paths of their packages:
	// "cel.ValidFieldPath by validation.validateSelectableFields".
	In string
}

func (c *Crash) String() string { return fmt.Sprintf("%v in %s", c.Value, c.In) }

// crashed describes a panic. It must be called by the deferred function that recovered from it: the frames of the panic are
// on the stack until that function returns.
func crashed(value any) *Crash {
	pcs := make([]uintptr, 64)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs)])
	panicking, in := false, ""
	for {
		frame, more := frames.Next()
		name := frame.Function[strings.LastIndexByte(frame.Function, '/')+1:]
		switch {
		case name == "runtime.gopanic":
			panicking = true
		case !panicking || strings.HasPrefix(name, "runtime."):
		case in == "":
			in = name
		default:
			return &Crash{Value: value, In: in + " by " + name}
		}
		if !more {
			return &Crash{Value: value, In: in}
		}
	}
}
