import { describe, expect, test } from 'bun:test'
import { requireConfig, load, loadFile, requireProblem } from '../helpers/config.ts'

describe('the configuration file', () => {
  const defaultFiles = {
    '/etc/otpd/otpd.toml': '[log]\nlevel = "warn"',
    '/home/ada/.config/otpd/server.toml': '',
  }

  test('is first looked for in /etc', () => {
    const config = requireConfig(load({ files: defaultFiles }))
    expect([config.configFile, config.log.level]).toEqual(['/etc/otpd/otpd.toml', 'warn'])
  })

  test("is looked for in the user's folder next", () => {
    const files = { '/x/otpd/server.toml': '[log]\nlevel = "debug"' }
    expect(requireConfig(load({ env: { HOME: '/h', XDG_CONFIG_HOME: '/x' }, files })).log.level).toBe('debug')
  })

  test('can be named explicitly, relative to the working folder', () => {
    const files = { ...defaultFiles, '/work/o.toml': '' }
    expect(requireConfig(load({ flags: { config: 'o.toml' }, files })).configFile).toBe('/work/o.toml')
  })

  test('must exist if it is named explicitly', () => {
    const problem = requireProblem(
      load({ env: { HOME: '/h', OTPD_CONFIG: '/nowhere.toml' }, files: defaultFiles }),
    )
    expect(problem).toMatchObject({ source: 'OTPD_CONFIG', message: 'There is no file /nowhere.toml.' })
  })

  test('is not skipped if this user has no permission to read it', () => {
    const denied = Object.assign(new Error('denied'), { code: 'EACCES' })
    const problem = requireProblem(load({ files: { '/etc/otpd/otpd.toml': denied } }))
    expect(problem).toMatchObject({ source: '/etc/otpd/otpd.toml' })
    expect(problem.message).toContain('No permission to read')
  })

  test('is reported if it is a folder', () => {
    const folder = Object.assign(new Error('folder'), { code: 'EISDIR' })
    expect(requireProblem(load({ flags: { config: '/d' }, files: { '/d': folder } })).message).toBe(
      '/d is a folder, not a file.',
    )
  })

  test('resolves relative paths against its own folder', () => {
    expect(requireConfig(loadFile('[server]\ndataDir = "data"')).dataDir).toBe('/etc/data')
  })

  test.each([
    [
      'a value without quotes',
      '# mine\n[server]\nlisten = 127.0.0.1:80\n[log]\nlevel = "info"\n',
      '3:15',
      'numeric literal',
    ],
    ['a key without a value', '[server]\n\nlisten =\n', '3:9', 'invalid value'],
    [
      'a string that is not closed',
      '[log]\nlevel = "info\nformat = "json"\n',
      '2:14',
      'not closed on this line',
    ],
    ['a repeated key', '[log]\nlevel = "info"\nformat = "text"\nlevel = "warn"', '4:1', 'already defined'],
    ['a repeated table', '[log]\nlevel = "info"\n[server]\n[log]\nformat = "text"', '4:2', 'already defined'],
    ['an integer beyond 64 bits', '[limits]\nphoneCheckBudget = 99999999999999999999', '2:20', 'integer'],
    ['a NUL in a string', '[log]\nlevel = "\u0000"', '2:10', 'control characters'],
    ['a broken first line', ']\n[log]\n', '1:1', 'illegal character'],
  ])('reports the line and the column of %s', (_, toml, position, reason) => {
    const problem = requireProblem(loadFile(toml))
    expect(problem.source).toBe(`/etc/o.toml:${position}`)
    expect(problem.message).toStartWith('The file is not valid TOML: ')
    expect(problem.message).toContain(reason)
  })

  test('does not quote text that it could not parse', () => {
    const { problems } = loadFile(`[server]\nmasterKey = 0011223344x\nlisten = Secret\n`)
    expect(JSON.stringify(problems)).not.toMatch(/0011|Secret/)
  })

  test('must be UTF-8', () => {
    expect(requireProblem(loadFile(new Uint8Array([0x61, 0xff, 0xfe]))).message).toBe(
      'The file is not UTF-8 text.',
    )
  })

  test('may have a byte order mark and Windows line ends', () => {
    expect(requireConfig(loadFile('\ufeff[log]\r\nlevel = "warn"\r\n')).log.level).toBe('warn')
  })

  test('must not exceed 256 KiB', () => {
    expect(requireProblem(loadFile('#'.repeat(300_000))).message).toContain('256 KiB')
  })

  test('is refused if it is too large to read', () => {
    const large = Object.assign(new Error('large'), { code: 'EFBIG' })
    expect(requireProblem(load({ flags: { config: '/db' }, files: { '/db': large } })).message).toBe(
      '/db is over 1 MiB.',
    )
  })

  test.each([
    ['a key', `server${'.a'.repeat(20_000)} = 1`],
    ['a heading', `[server${'.a'.repeat(20_000)}]\nb = 1`],
  ])('refuses %s nested deeper than the call stack', (_, toml) => {
    const { source, message } = requireProblem(loadFile(toml))
    expect([source, message]).toEqual(['/etc/o.toml:1', 'There is no setting server.a.a.a.a.a.a.a.'])
  })

  test('refuses a key that is as long as the file soon', () => {
    const startedAt = process.cpuUsage()
    expect(requireProblem(loadFile(`${'x'.repeat(200_000)} = 1`)).source).toBe('/etc/o.toml:1')
    // Comparing every letter with those of every setting would take more than 10 s. Unlike elapsed time, the same on a busy
    // machine.
    expect(process.cpuUsage(startedAt).user / 1000).toBeLessThan(5_000)
  })

  test.each([
    ['a plain key', '\n[server]\n# c\npublicUrl = "x"', 4],
    ['a dotted key', 'log.level = "info"\nserver.publicUrl = "x"', 2],
    ['a quoted key', '[server]\n"publicUrl" = "x"', 2],
    ['an inline table', 'log = { level = "info" }\nserver = { publicUrl = "x" }', 2],
  ])('finds the line of %s', (_, toml, line) => {
    expect(requireProblem(loadFile(toml)).source).toBe(`/etc/o.toml:${line}`)
  })

  test.each([
    ['[server]\nlistn = "x"', 2, 'Did you mean server.listen?'],
    ['[server]\ndata_dir = "x"', 2, 'Did you mean server.dataDir?'],
    ['listen = "x"', 1, 'Did you mean server.listen?'],
    ['[logs]\nlevel = "info"', 2, 'Did you mean log.level?'],
    ['[server]\nsendsPerMinute = 3', 2, 'Did you mean limits.sendPerMinute?'],
    ['[limits]\nprojects = 3', 2, 'Did you mean plans.NAME.projects?'],
    ['[plans.free]\nphoneSendBudget = "off"', 2, 'Did you mean limits.phoneSendBudget?'],
    ['[plans.free]\nsendPerMinut = 5', 2, 'Did you mean sendPerMinute?'],
    ['[retention]\nphoneCheckBudgets = 3', 2, 'Did you mean limits.phoneCheckBudget?'],
    ['[log]\nmetricsListen = "x"', 2, 'Did you mean metrics.listen?'],
    ['[server]\ncompat = ["camara"]', 2, 'Did you mean compat.enable?'],
    ['[server]\ntype = "x"', 2, 'Remove the line.'],
    ['[log]\ncolour = "red"', 2, 'Remove the line.'],
    ['[colours]', 1, 'Remove the line.'],
    ['[server]\nmasterKey = "x"', 2, 'OTPD_MASTER_KEY'],
    ['dev = true', 1, 'OTPD_DEV'],
    ['__proto__ = 1', 1, 'Remove the line.'],
    ['server = 1', 1, 'There is no setting server.'],
    ['server = 1979-05-27', 1, 'There is no setting server.'],
    ['server = "x"', 1, 'Write [server], and its settings below it.'],
    ['guard = "enforce"', 1, 'Write [guard], and its settings below it.'],
    ['[guard]\nchallenge = "altcha"', 2, 'Write [guard.challenge], and its settings below it.'],
    ['[server.listen]\nport = 1', 2, 'There is no setting server.listen.port.'],
  ])('refuses the unknown key of %p', (toml, line, expectedText) => {
    const problem = requireProblem(loadFile(toml))
    expect(problem.source).toBe(`/etc/o.toml:${line}`)
    expect(problem.text).toContain(expectedText)
  })

  test.each([
    ['[webhooks]\nendpointsMax = "20"', 'a whole number'],
    ['[webhooks]\nendpointsMax = 1.5', 'a whole number'],
    ['[webhooks]\nendpointsMax = inf', 'a whole number'],
    ['[server]\nlisten = 8080', 'a string'],
    ['[server]\nnoMigrate = "true"', 'true or false'],
    ['[server]\ncorsOrigins = "https://a.example"', 'an array of strings'],
    ['[server]\ncorsOrigins = [1]', 'an array of strings'],
    ['[[log]]\nlevel = "info"', 'There is no setting log'],
  ])('requires the right type in %p', (toml, expectedText) => {
    expect(requireProblem(loadFile(toml)).message).toContain(expectedText)
  })

  test('allows known tables without keys', () => {
    expect(requireConfig(loadFile('[server]\n[plans]\n[webhooks]\n')).configFile).toBe('/etc/o.toml')
  })

  test.each([
    ['empty', (spaces: string) => `${spaces}\n[server]\nlisten = 1`],
    ['in a text', (spaces: string) => `[log]\nlevel = """${spaces}"""\n[server]\nlisten = 1`],
    ['before a bracket', (spaces: string) => `[server]\n[plans]${spaces}\n[server.x]\ny = 1`],
  ])('is read at once with a long line of spaces, %s', (_name, write) => {
    expect(loadFile(write(' '.repeat(100_000))).problems.length).toBeGreaterThan(0)
  })

  test('names the line of an indented key and of a quoted one', () => {
    expect(requireProblem(loadFile('  [server]\n\t"listen"  = 8080')).source).toBe('/etc/o.toml:2')
  })
})
