package manifest

// Chunks returns the end of each part of a YAML text that Parse reads on its own: each
// document, with the line that begins it. It reports false for texts that Parse reads as
// one: JSON, and YAML with directives or explicit ends of documents.
func Chunks(text []byte) ([]int, bool) {
	if looksLikeJSON(text) || unusual(text) {
		return nil, false
	}
	var ends []int
	for at := 0; at < len(text); {
		at += nextDocument(text[at:])
		ends = append(ends, at)
	}
	return ends, true
}

// Offset returns the byte at a line and column, which count from 1, or the end of the text.
func (f *File) Offset(line, column int) int { return f.offset(line, column) }
