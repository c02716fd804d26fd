const hash = /(?<![^\s])#[^\n]*/
const slashes = /(?<!:)\/\/[^\n]*/

/** Comments by the language of a code block. Languages without an entry are not coloured. */
const comments: Readonly<Record<string, RegExp>> = {
  sh: hash,
  toml: hash,
  yaml: hash,
  ini: hash,
  python: hash,
  js: slashes,
  ts: slashes,
  go: slashes,
  json: slashes,
  sql: /--[^\n]*/,
}

const words =
  'and as async await break case catch class const continue def default defer else except export finally for from func function if import in interface is let new nil not null None or package raise range return struct switch throw true True try type var while with false False'
const keyword = new RegExp(`\\b(?:${words.replaceAll(' ', '|')})\\b`)

/** Quotes are escaped in HTML. A string ends with its line. */
const text = /&quot;(?:\\&quot;|(?!&quot;)[^\n])*&quot;|(?<!\w)'[^'\n]*'|`[^`]*`/

/** In a shell and in settings, most words are names. */
const isProse = (language: string) => ['sh', 'yaml', 'ini', 'toml'].includes(language)

/** Puts the parts of a code block into spans by which they are coloured. @param code as HTML */
export function highlight(code: string, language: string): string {
  const comment = comments[language]
  if (comment === undefined) return code
  const kinds: [name: string, pattern: RegExp][] = [
    ['comment', comment],
    ['string', text],
    ...(language === 'sh' ? [['name', /\$\{?\w+\}?|(?<=\s)--?[a-zA-Z][\w-]*/] as [string, RegExp]] : []),
    ...(['toml', 'ini', 'yaml'].includes(language)
      ? [['name', /(?<=^|\n)[ -]*[\w.-]+(?=\s*[=:])|(?<=^|\n)\[[^\n]*\]/] as [string, RegExp]]
      : []),
    ...(isProse(language) ? [] : [['keyword', keyword] as [string, RegExp]]),
    ['number', /\b\d+(?:\.\d+)?\b/],
  ]
  const pattern = new RegExp(kinds.map(([name, { source }]) => `(?<${name}>${source})`).join('|'), 'g')
  return code.replaceAll(pattern, (found: string, ...rest: unknown[]) => {
    const groups: Record<string, string | undefined> = Object(rest.at(-1))
    const kind = Object.keys(groups).find((name) => groups[name] !== undefined) ?? ''
    return `<span class="${kind}">${found}</span>`
  })
}
