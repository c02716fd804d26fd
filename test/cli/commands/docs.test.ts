import { expect, test } from 'bun:test'
import { reasons } from '../../../cli/guides/reference/error-reasons.ts'
import { formatMarkdown } from '../../../cli/terminal/markdown.ts'
import { createColors } from 'picocolors'
import { readSources } from '../../helpers/sources.ts'

const plain = { columns: 80, hasColor: false, paint: createColors(false) }

test('a guide on the terminal has no Markdown left, and code that can be copied', () => {
  const guide =
    '# Title\n\nSee [sending](sending.md#send), `code` and **bold**.\n\n![A picture](../a.svg)\n\n- [x](https://x.example)\n- two\n\n```sh\notpd serve\n```\n'
  expect(formatMarkdown(guide, plain)).toBe(
    'Title\n=====\n\nSee sending, code and bold.\n  * x (https://x.example)\n  * two\n\n    otpd serve',
  )
})

test('a table is as wide as the terminal at most', () => {
  const table = `| a | b |\n| - | - |\n| ${'word '.repeat(20)} | ${'text '.repeat(40)} |\n`
  for (const line of formatMarkdown(table, { ...plain, columns: 60 }).split('\n'))
    expect(line.length).toBeLessThanOrEqual(60)
})

test('samples in several languages say which', () => {
  const samples = '```sh\ncurl x\n```\n\n```js\nfetch(x)\n```\n'
  expect(formatMarkdown(samples, plain)).toBe('    curl x\n\n  JavaScript\n    fetch(x)')
})

test('every reason of an error is explained', async () => {
  const sources = await readSources('src/domain', 'src/http', 'src/auth')
  // Those of other APIs are translated into their own errors.
  const named = sources
    .filter(({ path }) => !path.startsWith('src/http/compat/'))
    .flatMap(({ text }) => [...text.matchAll(/\breason: '([A-Z_]+)'/g)].map(([, reason]) => reason))
  expect(named.length).toBeGreaterThan(20)
  const explained: ReadonlySet<string | undefined> = new Set(Object.values(reasons).flatMap(Object.keys))
  expect(named.filter((reason) => !explained.has(reason))).toEqual([])
})
