package fault

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/espalier-dev/espalier/conformance/launch"
)

// Skew builds our server into dir with a clock that can be wrong: time.Now of the standard library adds the seconds of SkewVariable. The
// kernel has no clock per process (time namespaces shift the monotonic clock only), and a static program takes no library before
// libc: so it is the compiler that is told another time package. It compiles everything once more, which takes minutes.
func Skew(ctx context.Context, dir string) (string, error) {
	if os.Getenv("ESPALIER_BIN") != "" {
		return "", errors.New("a wrong clock is compiled in: unset ESPALIER_BIN")
	}
	file, err := overlay(ctx, dir)
	if err != nil {
		return "", err
	}
	return launch.Build(ctx, dir, "-overlay", file)
}

// overlay writes into dir what tells the compiler of the other time package, and returns its path.
func overlay(ctx context.Context, dir string) (string, error) {
	out, err := exec.CommandContext(ctx, "go", "env", "GOROOT").Output()
	if err != nil {
		return "", err
	}
	folder := filepath.Join(strings.TrimSpace(string(out)), "src", "time")
	original := filepath.Join(folder, "time.go")
	source, err := os.ReadFile(original)
	if err != nil {
		return "", err
	}
	const read, now = "sec, nsec, mono := runtimeNow()", "\nfunc Now() Time {\n\t"
	if strings.Count(string(source), now+read) != 1 {
		return "", fmt.Errorf("%s has another time.Now than this was written for", original)
	}
	changed := strings.Replace(string(source), now+read, now+read+"\n\tsec += skew", 1)
	replace := map[string]string{}
	for name, text := range map[string]string{"time.go": changed, "skew.go": skewSource} {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			return "", err
		}
		replace[filepath.Join(folder, name)] = file
	}
	data, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	file := filepath.Join(dir, "overlay.json")
	return file, os.WriteFile(file, data, 0o600)
}

// skewSource is a file of package time. It can import next to nothing.
const skewSource = `package time

import "syscall"

var skew = func() int64 {
	text, _ := syscall.Getenv("` + SkewVariable + `")
	sign, n := int64(1), int64(0)
	for _, c := range []byte(text) {
		switch {
		case c == '-':
			sign = -1
		case c >= '0' && c <= '9':
			n = 10*n + int64(c-'0')
		}
	}
	return sign * n
}()
`
