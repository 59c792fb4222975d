package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// source is what is built.
type source struct {
	root     string // of the repository
	version  string
	commit   string
	time     time.Time // of the commit, or SOURCE_DATE_EPOCH
	modified bool      // it is not just the commit
}

// versions are semantic versions, which all package managers can compare. They are parts of names of files and of flags
// of the linker.
var versions = regexp.MustCompile(`^v\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?$`)

// describe asks git what is in a folder. Changes that are not committed are refused
// unless dirty is set, since others could not build them.
func describe(ctx context.Context, dir, version string, dirty bool) (s source, err error) {
	if s.root, err = git(ctx, dir, "rev-parse", "--show-toplevel"); err != nil {
		return s, err
	}
	if s.commit, err = git(ctx, s.root, "rev-parse", "HEAD"); err != nil {
		return s, err
	}
	seconds, err := git(ctx, s.root, "log", "-1", "--format=%ct")
	if err != nil {
		return s, err
	}
	if epoch := os.Getenv("SOURCE_DATE_EPOCH"); epoch != "" {
		seconds = epoch
	}
	unix, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil {
		return s, fmt.Errorf("SOURCE_DATE_EPOCH: %w", err)
	}
	s.time = time.Unix(unix, 0).UTC()
	status, err := git(ctx, s.root, "status", "--porcelain")
	if err != nil {
		return s, err
	}
	s.modified = status != ""
	if s.modified && !dirty {
		return s, fmt.Errorf("the work tree has uncommitted changes, so others could not build this release; commit them, or give -dirty for a trial:\n%s", status)
	}
	if s.version, err = versionOf(ctx, s.root, version, s.modified); err != nil {
		return s, err
	}
	return s, nil
}

// versionOf is the version that was asked for, or what git makes of the last tag. Without a tag it is before all
// releases.
func versionOf(ctx context.Context, root, version string, modified bool) (string, error) {
	if version == "" {
		tags, err := git(ctx, root, "tag", "--merged", "HEAD", "--list", "v*")
		if err != nil {
			return "", err
		}
		args := []string{"describe", "--tags", "--match", "v*"}
		if tags == "" {
			args = []string{"log", "-1", "--date=format-local:%Y%m%d%H%M%S", "--abbrev=12", "--format=v0.0.0-%cd-%h"}
		}
		if version, err = git(ctx, root, args...); err != nil {
			return "", err
		}
	}
	if modified {
		version += "+dirty"
	}
	if !versions.MatchString(version) {
		return "", fmt.Errorf("version %q: give a semantic version, such as v1.2.3 or v1.2.3-rc.1", version)
	}
	return version, nil
}

// git runs a command of git and returns what it prints.
func git(ctx context.Context, dir string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "TZ=UTC") // for dates
	out, err := cmd.Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		err = fmt.Errorf("%w: %s", err, strings.TrimSpace(string(exit.Stderr)))
	}
	if err != nil {
		return "", fmt.Errorf("git %s: %w", args[0], err)
	}
	return strings.TrimSpace(string(out)), nil
}
