package docgen

import "strings"

// block is a part of a description: a paragraph, a list, or text to be shown as
// it is.
type block struct {
	List bool
	Code string
	// Items are the items of a list; a paragraph has one.
	Items [][]span
}

// span is a piece of text that is plain, code, or a link.
type span struct {
	Text string
	Code bool
	URL  string // where the link leads: http or https
}

// prose finds the structure that authors of descriptions give to plain text:
// paragraphs, lists, code and addresses.
func prose(text string) []block {
	var (
		blocks []block
		lines  []string // of the paragraph or item being read
		list   bool
		fenced bool
	)
	flush := func() {
		if len(lines) == 0 {
			return
		}
		item := spans(strings.Join(lines, " "))
		lines = nil
		if n := len(blocks); list && n > 0 && blocks[n-1].List {
			blocks[n-1].Items = append(blocks[n-1].Items, item)
			return
		}
		blocks = append(blocks, block{List: list, Items: [][]span{item}})
	}
	var code []string
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\r\n")
		trimmed := strings.TrimSpace(line)
		if strings.HasPrefix(trimmed, "```") {
			if flush(); fenced {
				blocks = append(blocks, block{Code: strings.Join(code, "\n")})
				code = nil
			}
			fenced = !fenced
			continue
		}
		if fenced {
			code = append(code, line)
			continue
		}
		if trimmed == "" {
			flush()
			list = false
			continue
		}
		if item, ok := bullet(trimmed); ok {
			flush()
			list = true
			trimmed = item
		}
		lines = append(lines, trimmed)
	}
	flush()
	if len(code) > 0 {
		blocks = append(blocks, block{Code: strings.Join(code, "\n")})
	}
	return blocks
}

// bullet returns what follows the mark of a list's item.
func bullet(line string) (string, bool) {
	for _, mark := range []string{"- ", "* ", "• "} {
		if item, ok := strings.CutPrefix(line, mark); ok {
			return strings.TrimSpace(item), true
		}
	}
	return "", false
}

// spans finds code and addresses.
func spans(text string) []span {
	var list []span
	for {
		before, rest, opened := strings.Cut(text, "`")
		code, after, closed := strings.Cut(rest, "`")
		if !opened || !closed {
			return append(list, addresses(text)...)
		}
		list = append(list, addresses(before)...)
		if code != "" {
			list = append(list, span{Text: code, Code: true})
		}
		text = after
	}
}

// addresses finds addresses of pages in plain text, and links as in Markdown.
func addresses(text string) []span {
	var list []span
	plain := func(s string) {
		if s != "" {
			list = append(list, span{Text: s})
		}
	}
	for {
		at := addressAt(text)
		if at < 0 {
			plain(text)
			return list
		}
		end := len(text)
		if n := strings.IndexAny(text[at:], " \t\n<>\"'`()[]{}|\\^"); n >= 0 {
			end = at + n
		}
		label, before := linkLabel(text[:at])
		if label != "" && end < len(text) && text[end] == ')' {
			plain(before)
			list = append(list, span{Text: label, URL: text[at:end]})
			text = text[end+1:]
			continue
		}
		for strings.IndexByte(".,;:!?", text[end-1]) >= 0 {
			end--
		}
		plain(text[:at])
		list = append(list, span{Text: text[at:end], URL: text[at:end]})
		text = text[end:]
	}
}

// addressAt returns where the first address begins, or -1.
func addressAt(text string) int {
	for at := 0; ; at += len("http") {
		n := strings.Index(text[at:], "http")
		if n < 0 {
			return -1
		}
		at += n
		if rest := text[at+len("http"):]; strings.HasPrefix(rest, "://") || strings.HasPrefix(rest, "s://") {
			return at
		}
	}
}

// linkLabel returns the label before the address of a link, if text ends with
// one, and what is before it.
func linkLabel(text string) (label, before string) {
	inside, ok := strings.CutSuffix(text, "](")
	open := strings.LastIndexByte(inside, '[')
	if !ok || open < 0 {
		return "", ""
	}
	return inside[open+1:], inside[:open]
}
