package main

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
)

func main() {
	root := flag.String("root", "..", "the repository")
	flag.Parse()
	drawn, err := draw(*root)
	if err == nil {
		err = write(drawn)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "pictures:", err)
		os.Exit(1)
	}
}

// draw returns all pictures by the path of their file.
func draw(root string) (map[string]string, error) {
	folder := filepath.Join(root, "docs", "pictures")
	sources, err := filepath.Glob(filepath.Join(folder, "*.txt"))
	if err != nil {
		return nil, err
	}
	drawn := map[string]string{}
	for _, path := range sources {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		d, err := parse(string(text))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		drawn[strings.TrimSuffix(path, ".txt")+".svg"] = d.svg()
	}
	results, err := os.ReadFile(filepath.Join(root, "docs", "results.json"))
	if err != nil {
		return nil, err
	}
	if drawn[filepath.Join(folder, "speed.svg")], err = speed(results); err != nil {
		return nil, err
	}
	if drawn[filepath.Join(folder, "scale.svg")], err = scale(results); err != nil {
		return nil, err
	}
	sessions, err := terminals(root)
	maps.Copy(drawn, sessions)
	return drawn, err
}

func write(drawn map[string]string) error {
	for path, text := range drawn {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}
