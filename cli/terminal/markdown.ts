import type { Paint } from './text.ts'

type Style = { columns: number; hasColor: boolean; paint: Paint }

/**
 * Formats Markdown for the terminal. Code blocks are indented and nothing else, so that they can be copied; links between
 * guides become their text.
 */
export function formatMarkdown(markdown: string, { columns, hasColor, paint }: Style): string {
  return markdown
    .split(/(^```\w*\n[^]*?^```$)/m)
    .map((part) => {
      const [, language = '', code] = /^```(\w*)\n([^]*?)\n```$/m.exec(part) ?? []
      if (code !== undefined)
        return [
          ...(languages.has(language) ? [paint.dim(`  ${languages.get(language)}`)] : []),
          code.replaceAll(/^(?=.)(.*)$/gm, (line) => `    ${paint.cyan(line)}`),
        ].join('\n')
      return Bun.markdown.ansi(withoutLinks(part), { columns, colors: hasColor }).replaceAll(/^\n+|\s+$/g, '')
    })
    .filter((part) => part !== '')
    .join('\n\n')
}

/** Languages of samples, which follow each other. */
const languages = new Map([
  ['js', 'JavaScript'],
  ['python', 'Python'],
  ['go', 'Go'],
])

const withoutLinks = (markdown: string) =>
  markdown.replaceAll(/!\[[^\]]*\]\([^)]*\)\n*/g, '').replaceAll(/\[([^\]]+)\]\((?!\w+:)[^)]*\)/g, '$1')
