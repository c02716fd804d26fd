import { describe, expect, test } from 'bun:test'
import { DrizzleQueryError } from 'drizzle-orm'
import { DatabaseError } from 'pg'
import type { LogLevel } from '../../src/log/log.ts'
import { collectLog, jsonLine, textLine } from '../helpers/log.ts'

describe('a line', () => {
  test('of JSON begins with level and message', async () => {
    const { log, text } = collectLog()
    log.info('ready', { url: 'http://127.0.0.1:8080', pid: 123456 })
    expect(await text()).toBe(
      '{"level":"info","msg":"ready","url":"http://127.0.0.1:8080","pid":123456,"time":"2026-11-20T12:00:00.000Z"}\n',
    )
  })

  test('of text is readable for people', async () => {
    const fields = {
      url: 'http://127.0.0.1:8080',
      name: 'two words',
      quoted: 'a"b',
      empty: '',
      none: null,
      on: true,
    }
    expect(await textLine('ready', fields)).toBe(
      '2026-11-20T12:00:00.000Z info  ready url=http://127.0.0.1:8080 name="two words" quoted="a\\"b" empty="" none=null on=true\n',
    )
  })

  test.each<[LogLevel, string[]]>([
    ['debug', ['debug', 'info', 'warn', 'error']],
    ['warn', ['warn', 'error']],
    ['error', ['error']],
  ])('is omitted below level %s', async (level, levels) => {
    const { log, text } = collectLog('json', level)
    log.debug('x')
    log.info('x')
    log.warn('x')
    log.error('x')
    expect([...((await text()).match(/(?<="level":")\w+/g) ?? [])]).toEqual(levels)
  })

  test('keeps its own level, message and time whatever the names of the fields', async () => {
    const entry = await jsonLine('real', { level: 'error', msg: 'false', time: 'never', fields: 1 })
    expect(entry).toEqual({ level: 'info', msg: 'real', fields: 1, time: '2026-11-20T12:00:00.000Z' })
  })

  test('omits undefined fields', async () => {
    expect(await jsonLine('x', { gone: undefined })).not.toHaveProperty('gone')
  })

  test('shows plain values and lists, and only the type of other objects', async () => {
    const at = new Date(0)
    const fields = {
      at,
      bad: new Date(NaN),
      list: [1, 'two'],
      big: 12n,
      nan: NaN,
      object: { a: 1 },
      call: () => 1,
    }
    expect(await jsonLine('x', fields)).toMatchObject({
      at: '1970-01-01T00:00:00.000Z',
      bad: 'no date',
      list: [1, 'two'],
      big: '12',
      nan: 'NaN',
      object: '[object]',
      call: '[function]',
    })
  })

  test('is written for values that throw when they are read', async () => {
    const hostile = new Error('x')
    Object.defineProperty(hostile, 'message', {
      get: () => {
        throw new Error('no')
      },
    })
    expect(await jsonLine('x', { error: hostile })).toMatchObject({ error: '[not printable]' })
  })
})

describe('a hostile text', () => {
  const hostile = [
    'a\n{"level":"error"}',
    'a\r\nb',
    '\u001b[2J\u001b]0;x\u0007',
    '\u009b31m',
    'a\u2028b\u2029c',
    '\u202eabc\u2066d',
    'a\u0000b\u007f',
    'tab\there',
  ]

  test.each(hostile)('stays on its line in text: %p', async (text) => {
    const line = await textLine(text, { field: text, list: [text], [text]: 1 })
    expect(line.endsWith('\n')).toBe(true)
    expect(line.slice(0, -1)).not.toMatch(/[\p{Cc}\u2028\u2029\u202a-\u202e\u2066-\u2069]/u)
  })

  test.each(hostile)('survives in JSON without steering a terminal: %p', async (text) => {
    const { log, text: written } = collectLog()
    log.info(text, { field: text })
    const line = await written()
    expect(line.slice(0, -1)).not.toMatch(/[\p{Cc}\u2028\u2029\u202a-\u202e\u2066-\u2069]/u)
    expect(JSON.parse(line)).toMatchObject({ msg: text, field: text })
  })
})

describe('an error', () => {
  test('is shown by name, message, code and cause', async () => {
    const cause = Object.assign(new TypeError('no route to +14155552671'), { code: 'EHOSTUNREACH' })
    const { error } = await jsonLine('failed', { error: new Error('delivery failed', { cause }) })
    expect(error).toEqual({
      name: 'Error',
      message: 'delivery failed',
      cause: { name: 'TypeError', message: 'no route to +1•••••2671', code: 'EHOSTUNREACH' },
    })
  })

  test('has its stack at level debug only, without the message in it', async () => {
    const { error } = await jsonLine(
      'failed',
      { error: new Error('code 123456\n    at evil +14155552671') },
      'debug',
    )
    expect(JSON.stringify(error)).not.toMatch(/123456|41555/)
    expect(JSON.stringify(error)).toContain('log.test.ts')
  })

  test('of drizzle never shows a parameter', async () => {
    const cause = Object.assign(new Error('duplicate key: Key (phone)=(+14155552671)'), { code: '23505' })
    const params = ['+14155552671', 'secret-hash']
    const error = new DrizzleQueryError('insert into identities values ($1, $2)', params, cause)
    for (const level of ['info', 'debug'] as const) {
      const line = await jsonLine('failed', { error: new Error('outer', { cause: error }) }, level)
      expect(JSON.stringify(line)).toContain('"code":"23505"')
      expect(JSON.stringify(line)).not.toMatch(/secret-hash|41555|insert into/)
    }
  })

  test('of PostgreSQL never shows a value', async () => {
    const error = new DatabaseError('invalid input syntax for type integer: "ada lovelace"', 10, 'error')
    Object.assign(error, { severity: 'ERROR', code: '22P02', routine: 'pg_strtoint32_safe' })
    const line = JSON.stringify(await jsonLine('failed', { error }, 'debug'))
    expect(line).toContain('22P02')
    expect(line).not.toContain('lovelace')
  })

  test('that is its own cause is cut off', async () => {
    const error = new Error('round')
    error.cause = error
    expect(JSON.stringify(await jsonLine('failed', { error })).length).toBeLessThan(500)
  })
})
