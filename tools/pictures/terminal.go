package main

import (
	"context"
	"errors"
	"fmt"
	"html"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"golang.org/x/tools/txtar"
)

// terminalColumns is the width of a terminal; longer lines go on in the next one.
const terminalColumns = 96

// terminals draws what commands print, by the path of their pictures. A source is a txtar archive: its comment has
// the commands, the files are there when they run.
func terminals(root string) (map[string]string, error) {
	sources, err := filepath.Glob(filepath.Join(root, "docs", "pictures", "*.txtar"))
	if err != nil || len(sources) == 0 {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "pictures-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	build := exec.CommandContext(context.Background(), "go", "build", "-o", filepath.Join(dir, "espalier"), "./cmd/espalier")
	build.Dir, build.Stderr, build.Env = root, os.Stderr, append(os.Environ(), "GOWORK=")
	if err := build.Run(); err != nil {
		return nil, fmt.Errorf("build espalier: %w", err)
	}
	drawn := map[string]string{}
	for i, path := range sources {
		source, err := txtar.ParseFile(path)
		if err != nil {
			return nil, err
		}
		text, err := session(dir, filepath.Join(dir, fmt.Sprint(i)), source)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		drawn[strings.TrimSuffix(path, ".txtar")+".svg"] = terminal(text)
	}
	return drawn, nil
}

// session runs the commands of a source, and returns them with what they print.
func session(programs, dir string, source *txtar.Archive) (string, error) {
	for _, f := range source.Files {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, f.Name)), 0o755); err != nil {
			return "", err
		}
		if err := os.WriteFile(filepath.Join(dir, f.Name), f.Data, 0o644); err != nil {
			return "", err
		}
	}
	b := strings.Builder{}
	for line := range strings.Lines(string(source.Comment)) {
		command, ok := strings.CutPrefix(strings.TrimSpace(line), "$ ")
		if !ok {
			continue
		}
		cmd := exec.CommandContext(context.Background(), "sh", "-c", strings.Replace(command, "espalier ", "espalier --color always ", 1))
		cmd.Dir = dir
		cmd.Env = []string{"PATH=" + programs + ":" + os.Getenv("PATH"), "HOME=" + dir, "COLUMNS=" + fmt.Sprint(terminalColumns)}
		out, err := cmd.CombinedOutput()
		var exit *exec.ExitError
		if err != nil && (!errors.As(err, &exit) || exit.ExitCode() != 1) { // 1 says that there are findings
			return "", fmt.Errorf("%s: %w\n%s", command, err, out)
		}
		fmt.Fprintf(&b, "\x1b[2m$ \x1b[0m\x1b[1m%s\x1b[0m\n%s\n", command, out)
	}
	if b.Len() == 0 {
		return "", errors.New("no line begins with \"$ \": there is no command")
	}
	return strings.TrimRight(b.String(), "\n"), nil
}

// classes are the styles that espalier uses, by their codes.
var classes = map[string]string{"1": "b", "2": "d", "1;31": "e", "1;33": "w", "1;34": "i", "32": "g", "31": "r", "33": "y", "36": "c"}

// terminal draws text with escape codes of colours.
func terminal(text string) string {
	const width, height, left, top = 785, 18, 16, 44
	lines := wrap(text)
	b := &strings.Builder{}
	w, h := left*2+terminalColumns*width/100, top+len(lines)*height
	fmt.Fprintf(b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" font-family="ui-monospace,SFMono-Regular,Menlo,Consolas,monospace" font-size="13">
<style>.b{font-weight:700}.d{opacity:.6}.e{font-weight:700;fill:#ff7b72}.w{font-weight:700;fill:#e3b341}.i{font-weight:700;fill:#79c0ff}.g{fill:#7ee787}.r{fill:#ff7b72}.y{fill:#e3b341}.c{fill:#76e3ea}</style>
<rect width="%d" height="%d" rx="8" fill="#161b1a"/><g fill="#4d5753"><circle cx="20" cy="18" r="6"/><circle cx="40" cy="18" r="6"/><circle cx="60" cy="18" r="6"/></g>
<g fill="#dfe7e3">
`, w, h, w, w, h)
	for i, line := range lines {
		fmt.Fprintf(b, `<text x="%d" y="%d">`, left, top+4+i*height)
		for _, s := range line {
			s.text = strings.ReplaceAll(s.text, " ", "\u00a0") // SVG folds spaces
			if class := classes[s.code]; class != "" {
				fmt.Fprintf(b, `<tspan class="%s">%s</tspan>`, class, html.EscapeString(s.text))
			} else {
				b.WriteString(html.EscapeString(s.text))
			}
		}
		b.WriteString("</text>\n")
	}
	b.WriteString("</g>\n</svg>\n")
	return b.String()
}

// span is text of one style.
type span struct{ code, text string }

// wrap reads the styles, and breaks lines at spaces.
func wrap(text string) [][]span {
	var lines [][]span
	code := ""
	for line := range strings.SplitSeq(text, "\n") {
		var now []span
		used, indent := 0, len(line)-len(strings.TrimLeft(line, " "))
		for _, part := range strings.Split("\x1b["+code+"m"+line, "\x1b[") {
			if part == "" {
				continue
			}
			style, rest, _ := strings.Cut(part, "m")
			if code = style; code == "0" {
				code = ""
			}
			for _, word := range strings.SplitAfter(rest, " ") {
				for long := []rune(word); len(long) > terminalColumns; long = long[terminalColumns:] {
					lines, now, used, word = append(lines, now, []span{{code, string(long[:terminalColumns])}}), nil, 0, string(long[terminalColumns:])
				}
				n := utf8.RuneCountInString(word)
				if used+utf8.RuneCountInString(strings.TrimRight(word, " ")) > terminalColumns && used > indent {
					lines, now, used = append(lines, now), []span{{"", strings.Repeat(" ", indent+5)}}, indent+5
				}
				if last := len(now) - 1; last >= 0 && now[last].code == code {
					now[last].text += word
				} else if word != "" {
					now = append(now, span{code, word})
				}
				used += n
			}
		}
		lines = append(lines, now)
	}
	return lines
}
