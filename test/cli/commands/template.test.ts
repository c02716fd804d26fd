import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createHome } from '../cli-fixture.ts'

let home: ReturnType<typeof createHome>

beforeEach(() => {
  home = createHome()
})

afterEach(() => home.remove())

/** Writes a configuration file with these lines. */
function writeTemplateConfig(text: string) {
  const path = join(home.directory, 'otpd.toml')
  writeFileSync(path, text)
  return ['--config', path]
}

const lines = (text: string) => text.trimEnd().split('\n')

describe('template lint', () => {
  test('has a row for every language, and no warnings', async () => {
    const result = await home.otpd(['template', 'lint', ...writeTemplateConfig('')])
    expect(result).toMatchObject({ exitCode: 0, stderr: '' })
    const [headings = '', ...rows] = lines(result.stdout)
    expect(headings.split(/ {2,}/).slice(0, 6)).toEqual([
      'TEXT',
      'LOCALE',
      'SOURCE',
      'ENCODING',
      'UNITS',
      'PARTS',
    ])
    expect(rows).toHaveLength(34)
    const german = rows.find((row) => / de /.test(row)) ?? ''
    expect(german.split(/ {2,}/)).toEqual(['sms', 'de', 'otpd', 'GSM-7', '83/160', '1', 'ok', 'ok', 'ok'])
    const russian = rows.find((row) => / ru /.test(row)) ?? ''
    expect(russian.split(/ {2,}/).slice(3, 9)).toEqual([
      'UCS-2',
      '67/70',
      '1',
      'no minutes',
      'no minutes',
      'no minutes, name',
    ])
  })

  test("warns of an operator's text of two parts, and still exits 0", async () => {
    const config = writeTemplateConfig(`[templates.sw]\nsms = "${'karibu '.repeat(30)}{code}"\n`)
    const result = await home.otpd(['template', 'lint', ...config])
    expect(result).toMatchObject({ exitCode: 0, stderr: 'Warning: sw (config) needs 2 SMS parts.\n' })
    const jsonResult = await home.otpd(['template', 'lint', '--json', ...config])
    const { data } = JSON.parse(jsonResult.stdout) as { data: Record<string, unknown>[] }
    expect(data.find(({ locale }) => locale === 'sw')).toMatchObject({
      template: 'sms',
      from: 'config',
      encoding: 'GSM-7',
      units: 216,
      unitsMax: 306,
      parts: 2,
    })
    expect(jsonResult.stderr).toBe('')
  })

  test('fails with an invalid configuration', async () => {
    const result = await home.otpd([
      'template',
      'lint',
      ...writeTemplateConfig('[templates.de]\nsms = "{kode}"'),
    ])
    expect(result).toMatchObject({ exitCode: 2, stdout: '' })
    expect(result.stderr).toContain('otpd.toml:2: There is no placeholder {kode}.')
    expect(result.stderr).toContain('Did you mean {code}?')
  })
})

describe('template preview', () => {
  const preview = (...args: string[]) =>
    home.otpd(['template', 'preview', ...args, ...writeTemplateConfig('')])

  test('prints only the text on stdout, and its size on stderr', async () => {
    const result = await preview('--locale', 'es-MX', '--app-name', 'Storefront')
    expect(result).toEqual({
      exitCode: 0,
      stdout: '123456 es tu código de Storefront. Expira en 5 minutos.\n',
      stderr: 'es, UCS-2 because of ó, 55 of 70 units, 1 part.\n',
      questions: [],
    })
  })

  test('is in English by default', async () => {
    expect((await preview()).stdout).toBe(
      '123456 is your Northwind Trading Co verification code. It expires in 5 minutes.\n',
    )
  })

  test('shows the WebOTP and Android lines', async () => {
    const result = await preview('--webotp', 'Shop.Example.com', '--android-hash', 'FA+9qCX9VSu')
    expect(lines(result.stdout).slice(1)).toEqual(['FA+9qCX9VSu', '@shop.example.com #123456'])
  })

  test('says what is left out', async () => {
    const result = await preview('--locale', 'ru', '--webotp', 'example.com')
    expect(result.stdout).toStartWith('Код подтверждения Northwind Trading Co: 123456.\n@')
    expect(result.stderr).toContain('Warning: Left out because they do not fit into one SMS: minutes.\n')
  })

  test("takes an operator's own text", async () => {
    const config = writeTemplateConfig('[templates.de]\nsms = "{app}: {code}"')
    const result = await home.otpd(['template', 'preview', '--locale', 'de', '--json', ...config])
    const { data } = JSON.parse(result.stdout) as { data: unknown }
    expect(data).toEqual({
      locale: 'de',
      text: 'Northwind Trading Co: 123456',
      leftOut: [],
      encoding: 'GSM-7',
      units: 28,
      unitsMax: 160,
      parts: 1,
      foreign: [],
    })
  })

  test.each([
    ['--locale', 'german'],
    ['--locale', 'de-1'],
    ['--webotp', 'https://example.com'],
    ['--webotp', 'example'],
    ['--webotp', '127.0.0.1'],
    ['--webotp', 'bücher.example'],
    ['--android-hash', 'FA+9qCX9VS'],
    ['--android-hash', 'FA+9qCX9VS!'],
  ])('rejects %s %s', async (flag, value) => {
    const result = await preview(flag, value)
    expect(result).toMatchObject({ exitCode: 2, stdout: '' })
    expect(result.stderr).toStartWith(`Error: ${flag} must be `)
  })
})
