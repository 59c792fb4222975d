package cli

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/espalier-dev/espalier/cmd/internal/report"
	"github.com/espalier-dev/espalier/crd/manifest"
)

// planFiles plans with the objects of files.
func (a *App) planFiles(ctx context.Context, after map[string]*manifest.Document, s *settings, o *planOptions) (report.Plans, error) {
	// A backup or dump is read as it is: what git ignores is part of it.
	files, err := manifest.Expand(o.objects, s.excludes)
	if err != nil {
		return nil, err
	}
	if slices.Contains(files, manifest.Stdin) { // it is read twice
		text, err := io.ReadAll(a.In)
		if err != nil {
			return nil, err
		}
		in := bytes.NewReader(text)
		a.In = rewound{in}
	}
	before, err := a.oldCRDs(ctx, files, s, o)
	if err != nil {
		return nil, err
	}
	var all []*planning
	byKind := map[groupKind]*planning{}
	known := 0
	for _, name := range sortedNames(after) {
		var old []byte
		if d := before[name]; d != nil {
			old = d.JSON
			known++
		}
		p, err := newPlanning(after[name], old, strings.Join(o.objects, ", "), o.list)
		if err != nil {
			return nil, err
		}
		all = append(all, p)
		if old == nil {
			continue
		}
		if err := p.compile(false); err != nil {
			return nil, err
		}
		if p.change != nil {
			byKind[groupKind{p.old.Group, p.old.Kind}] = p
		}
	}
	if known == 0 {
		return nil, fmt.Errorf("the CRD as it is now is missing: there is no %s in %s: give it with --old", strings.Join(sortedNames(after), ", "), strings.Join(slices.Concat(o.old, o.objects), ", "))
	}
	if err := a.planObjects(ctx, files, byKind); err != nil {
		return nil, err
	}
	var plans report.Plans
	for _, p := range all {
		if p.old == nil {
			plans = append(plans, p.created(strings.Join(slices.Concat(o.old, o.objects), ", ")))
			continue
		}
		plan, err := p.finish(ctx)
		if err != nil {
			return nil, err
		}
		plans = append(plans, plan)
	}
	return plans, nil
}

// rewound is standard input that begins again at its end.
type rewound struct{ *bytes.Reader }

func (r rewound) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	if err == io.EOF { //nolint:errorlint // a bytes.Reader returns it as it is
		_, _ = r.Seek(0, io.SeekStart)
	}
	return n, err
}

// oldCRDs are those of --old, or those among the objects.
func (a *App) oldCRDs(ctx context.Context, files []string, s *settings, o *planOptions) (map[string]*manifest.Document, error) {
	if len(o.old) > 0 {
		return a.named(ctx, o.old, s, o.charts())
	}
	byName := map[string]*manifest.Document{}
	for _, path := range files {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if err := a.dump(path, crdMark, func(d *manifest.Document) error { return addCRD(byName, d) }); err != nil {
			return nil, err
		}
	}
	return byName, nil
}

// planObjects gives the objects of files to the plans for their kinds.
func (a *App) planObjects(ctx context.Context, files []string, plans map[groupKind]*planning) error {
	bar := a.progress(len(files), "files")
	defer bar.stop()
	seen := map[[sha256.Size]byte]struct{}{}
	repeated := map[*planning]int{}
	for _, path := range files {
		err := a.dump(path, "", func(d *manifest.Document) error {
			meta := typeMetaOf(d)
			p := plans[groupKind{meta.group(), meta.kind}]
			if p == nil {
				return ctx.Err()
			}
			id := objectID(d)
			if _, twice := seen[id]; twice {
				repeated[p]++
				return nil
			}
			seen[id] = struct{}{}
			return p.add(ctx, d.JSON)
		})
		if err != nil {
			return err
		}
		bar.add(1)
	}
	for p, n := range repeated {
		p.Notes = append(p.Notes, fmt.Sprintf("the files contain %s more than once; each counts once", count(n, "object")))
	}
	return nil
}

// objectID tells objects apart. Backups have an object in several files, one for each version that
// is served; its UID is the same. What has no UID is the same object if it is the same text.
func objectID(d *manifest.Document) [sha256.Size]byte {
	var object struct {
		Metadata struct {
			UID string `json:"uid"`
		} `json:"metadata"`
	}
	if json.Unmarshal(d.JSON, &object) == nil && object.Metadata.UID != "" {
		return sha256.Sum256([]byte(d.Kind + "\x00" + d.Namespace + "\x00" + d.Name + "\x00" + object.Metadata.UID))
	}
	return sha256.Sum256(d.JSON)
}
