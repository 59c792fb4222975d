package launch

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// StopPrograms kills the processes whose program is in a folder: servers that a suite has started as envtest does, in process groups
// of their own, and has not stopped. Where there is no /proc it does nothing.
func StopPrograms(dir string) {
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline") // the pattern is valid
	for _, file := range files {
		arguments, err := os.ReadFile(file)
		if err != nil {
			continue // the process has ended
		}
		program, _, _ := bytes.Cut(arguments, []byte{0})
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		if err != nil || !strings.HasPrefix(string(program), dir+string(filepath.Separator)) {
			continue
		}
		if p, err := os.FindProcess(pid); err == nil {
			_ = p.Kill()
		}
	}
}
