import { expect, test } from 'bun:test'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { cases } from '../bench/cases.ts'
import { goals } from '../bench/goals.ts'
import { drawCharts } from '../pictures/charts.ts'

const root = join(import.meta.dir, '../..')
const guide = readFileSync(join(root, 'src/docs/performance.md'), 'utf8')

/** Returns the cells of the tables below a heading, without heads and separators. */
function tableRows(heading: string): string[][] {
  const [, section = ''] = guide.split(`## ${heading}\n`)
  return (section.split('\n## ')[0] ?? '')
    .split('\n')
    .filter((line) => /^\| (?!-)/.test(line))
    .map((line) => line.split('|').map((cell) => cell.trim()))
}

test('the performance guide explains every row of the bench, and no other', () => {
  const explained = tableRows('What the rows mean').flatMap(([, names = '']) =>
    [...names.matchAll(/`([^`]+)`/g)].map(([, name]) => name),
  )
  expect(explained.toSorted()).toEqual(cases.flatMap(({ rows }) => Object.keys(rows)).toSorted())
})

test('the performance guide has every goal of the bench', () => {
  const stated = new Map(tableRows('Goals').map(([, text = '', bound = '']) => [text, bound]))
  for (const { text, atLeast, atMost } of goals) {
    if (atLeast !== undefined) expect([text, stated.get(text)]).toEqual([text, `≥ ${atLeast}`])
    if (atMost !== undefined) expect([text, stated.get(text)]).toEqual([text, `≤ ${atMost}`])
  }
})

test('the charts of the performance guide show its tables', () => {
  for (const [name, svg] of Object.entries(drawCharts()))
    expect([name, readFileSync(join(root, '.github/media', name), 'utf8')]).toEqual([name, svg])
})

test('the files that the performance guide names exist', () => {
  const files = [...guide.matchAll(/`((?:src|test)\/[^`]+)`/g)].map(([, file = '']) => file)
  expect(files.filter((file) => !existsSync(join(root, file)))).toEqual([])
})
