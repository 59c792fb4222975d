package server_test

import (
	"bytes"
	"io"
	"os"
	"sync"
	"testing"

	"k8s.io/klog/v2"
)

// capture has the log for as long as the test runs.
func capture(t *testing.T) *lockedBuffer {
	t.Helper()
	log := &lockedBuffer{}
	klog.LogToStderr(false)
	klog.SetOutput(io.Discard)
	klog.SetOutputBySeverity("INFO", log) // has the lines of all
	t.Cleanup(func() {
		klog.Flush()
		klog.SetOutput(os.Stderr)
		klog.LogToStderr(true)
	})
	return log
}

// lockedBuffer is written to by many goroutines.
type lockedBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}
