import { afterAll, beforeAll, expect, test } from 'bun:test'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import {
  codeBlocks,
  commandLines,
  createReader,
  expectCommandsExist,
  readDocument,
  type Reader,
} from '../helpers/guide-blocks.ts'

const readme = readDocument('README.md')
let reader: Reader
beforeAll(async () => void (reader = await createReader()))
afterAll(() => reader.stop())

test('the README shows commands that lead to the first verified code', async () => {
  const lines = commandLines(codeBlocks(readme, 'sh', '### The first verified code').join(''))
  expect(lines).toHaveLength(7)
  await reader.verifyFirstCode(lines)
})

test('the README shows how a backend does the same', async () => {
  const [send = '', verify = ''] = codeBlocks(readme, 'sh', '### The same from a backend')
  const response: { data: Record<string, unknown> } = JSON.parse(await reader.type(send))
  const shown: { data: Record<string, unknown> } = JSON.parse(codeBlocks(readme, 'json').join(''))
  expect(Object.keys(response.data)).toEqual(Object.keys(shown.data))
  const code = /\b\d{6}\b/.exec(await reader.type('otpd inbox --limit 1'))?.[0] ?? ''
  const typed = verify.replace('otp_…', String(response.data['requestId'])).replace('123456', code)
  const verified: unknown = JSON.parse(await reader.type(`. ./.env.otpd\n${typed}`))
  expect(verified).toMatchObject({ data: { status: 'verified' } })
})

test('the README names only commands and flags that exist', () => {
  expect(expectCommandsExist(readme)).toBeGreaterThan(3)
})

test('the README has at most 250 lines, and links only to headings and files that exist', () => {
  expect(readme.split('\n').length).toBeLessThanOrEqual(250)
  const slugs = (markdown: string) =>
    [...markdown.matchAll(/^#+ (.*)$/gm)].map(([, title]) =>
      (title ?? '')
        .toLowerCase()
        .replaceAll(/[^\p{L}\p{N}_ -]/gu, '')
        .replaceAll(' ', '-'),
    )
  const links = [...readme.matchAll(/\]\(([^):]*)\)/g)].map(([, link]) => link ?? '')
  expect(links.length).toBeGreaterThan(30)
  for (const link of links) {
    const [path = '', anchor] = link.split('#')
    expect([link, path === '' || existsSync(join(import.meta.dir, '../..', path))]).toEqual([link, true])
    if (anchor !== undefined)
      expect([link, slugs(path === '' ? readme : readDocument(path))]).toEqual([
        link,
        expect.arrayContaining([anchor]),
      ])
  }
})
