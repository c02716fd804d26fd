import { describe, expect, test } from 'bun:test'
import { createColors } from 'picocolors'
import { formatTable } from '../../../cli/terminal/text.ts'

const id = `app_${'0'.repeat(26)}`
const plain = createColors(false)

const other = `dev_${'1'.repeat(26)}`
const render = (width: number | null) =>
  formatTable(['ID', 'ABOUT', 'BY'], [[id, 'Everything that is sold to anybody', other]], plain, width).split(
    '\n',
  )

describe('a table', () => {
  test('is not truncated without a width', () =>
    expect(render(null)[1]).toBe(`${id}  Everything that is sold to anybody  ${other}`))

  test('truncates text before an id', () =>
    expect(render(84)[1]).toBe(`${id}  Everything that is …  ${other}`))

  test('truncates ids other than the first when text would become unreadable', () =>
    expect(render(64)[1]).toBe(`${id}  Everything …  dev_1111111111111…`))

  test.each([84, 64, 54, 50])('fits %d columns', (width) => {
    for (const line of render(width)) expect(Bun.stringWidth(line)).toBeLessThanOrEqual(width)
  })
})
