import { describe, expect, test } from 'bun:test'
import { createColors } from 'picocolors'
import { formatTable, kept, optional, shortenIds, urlColumn, wrapped } from '../../../cli/terminal/table.ts'

const id = `app_${'0'.repeat(22)}cvvy`
const plain = createColors(false)

const headings = [
  kept('PHONE'),
  kept('STATUS'),
  'ABOUT',
  urlColumn('URL'),
  optional('ENV'),
  optional('TRIES'),
  'ID',
]
const row = [
  '+14155550100',
  '✓ verified',
  'Everything that is sold to anybody',
  'https://shop.example.com/hooks/otp',
  'live',
  '1/5',
  id,
]
const render = (width: number | null) => formatTable(headings, [row], plain, width).split('\n')

describe('a table', () => {
  test('is not truncated without a width', () =>
    expect(render(null)[1]).toBe(row.join('  ').replace('1/5', '1/5  ')))

  test('continues a sentence in further lines, whole words each', () => {
    const rows = [
      ['a', 'no more than thirty a day'],
      ['b', 'off'],
    ]
    expect(formatTable([kept('RULE'), wrapped('LIMIT')], rows, plain, 24).split('\n')).toEqual([
      'RULE  LIMIT',
      'a     no more than',
      '      thirty a day',
      'b     off',
    ])
  })

  test('truncates long text before it shortens ids', () =>
    expect(render(128)[1]).toMatch(/ Everything that .*…  https.* app_0000000000000000000000cvvy$/))

  test('shortens ids, then text and the paths of URLs', () =>
    expect(render(104)[1]).toMatch(
      / Everything .*…  https:\/\/shop\.example\.com.*…? +live  1\/5 +app_0000…cvvy$/,
    ))

  test('leaves out optional columns, the rightmost first', () => {
    const shown = (width: number) => render(width)[0]?.split(/ +/)
    expect(shown(96)).toContain('TRIES')
    expect(shown(90)).toEqual(['PHONE', 'STATUS', 'ABOUT', 'URL', 'ENV', 'ID'])
    expect(shown(84)).toEqual(['PHONE', 'STATUS', 'ABOUT', 'URL', 'ID'])
  })

  test('has whole ids again if a column that was left out makes room for them', () => {
    const lines = formatTable(
      [kept('PHONE'), optional('LAST SEEN FROM COUNTRY'), 'ID'],
      [['+14155550100', 'x'.repeat(40), id]],
      plain,
      46,
    )
    expect(lines.split('\n')[1]).toEndWith(id)
  })

  test.each([100, 88, 80])('keeps phone, status and host at %d columns', (width) => {
    const [, line = ''] = render(width)
    expect(line).toContain('+14155550100  ✓ verified')
    expect(line).toContain('https://shop.example.com')
    expect(line).toEndWith('app_0000…cvvy')
  })

  test.each([150, 100, 88, 80])('fits %d columns', (width) => {
    for (const line of render(width)) expect(Bun.stringWidth(line)).toBeLessThanOrEqual(width)
  })

  test('shortens ids inside a text', () => expect(shortenIds(`by ${id}.`)).toBe('by app_0000…cvvy.'))
})
