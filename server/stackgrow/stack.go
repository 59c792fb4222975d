package stackgrow

// room is about what the filters and handlers of a request need.
const room = 20 << 10

// Reserve makes the stack of the calling goroutine large enough for a request.
func Reserve() { reserve(0) }

// reserve has a large frame, for which every call makes room, and uses it only
// if told to, because using means clearing it.
//
//go:noinline
func reserve(use int) byte {
	if use == 0 {
		return 0
	}
	var frame [room]byte
	frame[use%room] = 1
	return frame[(use+1)%room]
}
