import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { formatElapsed, type FuzzPart } from './fuzz-part.ts'
import { schemathesisConfig } from './schema-config.ts'
import { startSchemaFixture } from './schema-fixture.ts'
import { installSchemathesis, schemathesisSkipReason } from './schemathesis.ts'

/** Part of Schemathesis' JSON report that is printed. */
type Report = {
  operations: { tested: number }
  test_cases: { generated: number }
  failures: { title: string; count: number }[]
  errors: unknown[]
}

export const schema: FuzzPart = {
  name: 'schema',
  title: 'Schemathesis, with every check, over the OpenAPI document of the compiled binary',
  skipReason: schemathesisSkipReason,
  async run({ cases, seed }, print) {
    const program = await installSchemathesis()
    const folder = mkdtempSync(join(tmpdir(), 'otpd-fuzz-'))
    const fixture = await startSchemaFixture(20)
    const started = performance.now()
    try {
      const configFile = join(folder, 'schemathesis.toml')
      const reportFile = join(folder, 'report.json')
      writeFileSync(configFile, schemathesisConfig(fixture), { mode: 0o600 })
      const options = {
        checks: 'all',
        'max-examples': cases,
        seed,
        // CPython 3.11 shares the depth counter of `ast.parse` between threads, so concurrent parsing fails:
        // https://github.com/python/cpython/issues/106905
        workers: 1,
        'generation-database': 'none',
        report: 'json',
        'report-json-path': reportFile,
      }
      const flags = Object.entries(options).flatMap(([name, value]) => [`--${name}`, String(value)])
      const child = Bun.spawn(
        [
          program,
          '--config-file',
          configFile,
          'run',
          `${fixture.url}/v1/openapi.json`,
          '--no-color',
          ...flags,
        ],
        {
          cwd: folder,
          env: {
            PATH: process.env['PATH'] ?? '',
            HOME: folder,
            PYTHONPATH: import.meta.dir,
            PYTHONDONTWRITEBYTECODE: '1',
          },
          stdin: 'ignore',
          stdout: 'pipe',
          stderr: 'pipe',
        },
      )
      const [exitCode, output, errors] = await Promise.all([
        child.exited,
        child.stdout.text(),
        child.stderr.text(),
      ])
      if (!(await Bun.file(reportFile).exists()))
        return [`Schemathesis ended with ${exitCode}.\n${output}${errors}`]
      const report: Report = await Bun.file(reportFile).json()
      const { calls, serverErrors } = readLog(fixture.log())
      print(
        `${report.operations.tested} operations, up to ${cases} cases each: ${report.test_cases.generated} cases, ` +
          `${calls} calls answered, ${serverErrors.length} of them by 5xx, ${formatElapsed(started)}`,
      )
      for (const { title, count } of report.failures) print(`${count} × ${title}`)
      const details = output.slice(output.search(/^=+ (FAILURES|ERRORS) =+$/m))
      return [...(exitCode === 0 ? [] : [details + errors]), ...serverErrors]
    } finally {
      await fixture.stop()
      rmSync(folder, { recursive: true, force: true })
    }
  },
}

/** Reads the server's log of the calls, at the level `debug`. */
function readLog(text: string) {
  let calls = 0
  const serverErrors: string[] = []
  for (const line of text.split('\n').filter((one) => one.startsWith('{'))) {
    const entry: { msg: string; level: string; status?: number } = JSON.parse(line)
    if (entry.msg === 'request') calls++
    if (entry.level === 'error' || (entry.status ?? 0) >= 500) serverErrors.push(line)
  }
  return { calls, serverErrors }
}
