import { fileName, type Guide } from './markdown.ts'

/**
 * Lists the guides as https://llmstxt.org describes it: a title, a summary, and links with notes. Links are relative to
 * the root of the server.
 */
export function renderLlmsText(guides: readonly Guide[]): string {
  const sections = [...new Set(guides.map(({ section }) => section))]
  const lists = sections.map((section) => {
    const items = guides.filter((guide) => guide.section === section).map(renderLink)
    return `## ${section}\n\n${items.join('\n')}\n`
  })
  return `# otpd

> otpd issues and verifies one-time passcodes for phone numbers. It is self-hosted: one executable with a JSON API over HTTP. A backend
> makes two calls, \`POST /v1/otp/send\` and \`POST /v1/otp/verify\`.

Read [For coding agents](docs/agents.md) first: it has both calls, a whole backend, and the ten common mistakes. Each guide is
Markdown; without a server, \`otpd docs NAME --format md\` prints it. [The OpenAPI document](v1/openapi.json) describes every call.

${lists.join('\n')}`
}

const renderLink = ({ name, title, markdown }: Guide) =>
  `- [${title}](docs/${name}.md): ${firstSentence(markdown)}`

/** Returns the first sentence of a guide as plain text. @throws Error for a guide that does not begin with a sentence */
function firstSentence(markdown: string): string {
  const [, paragraph = ''] = /^# .*\n\n((?:.+\n)+)/.exec(markdown) ?? []
  const text = paragraph
    .trim()
    .replaceAll('\n', ' ')
    .replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1')
  const sentence = /^[\p{L}`"].*?(?:\.(?= |$)|:$)/u.exec(text)?.[0]
  if (sentence === undefined) throw new Error(`Begin this guide with a sentence: ${markdown.slice(0, 80)}`)
  return sentence.replace(/:$/, '.')
}

/** Prepares the Markdown of a guide for its address: pictures are next to it, other files of the repository are not served. */
export const toServedMarkdown = (markdown: string) =>
  markdown
    .replaceAll(/(!\[[^\]]*\])\(([^)]*)\)/g, (_, text: string, path: string) => `${text}(${fileName(path)})`)
    .replaceAll(/\[([^\]]*)\]\(\.\.\/\.\.\/[^)]*\)/g, '$1')
