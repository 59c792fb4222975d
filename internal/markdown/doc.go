// Package markdown writes text that comes from anybody into Markdown.
package markdown
