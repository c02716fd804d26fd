import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { cpSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { postgresMigrations } from '../../src/store/engine/migration-files.ts'
import { runToEnd } from '../helpers/binary.ts'
import { createSharedDatabase, postgresUrl, type SharedDatabase } from '../helpers/shared-database.ts'

const root = join(import.meta.dir, '../..')
const first = postgresMigrations.length + 1
const migrationName = (number: number) => `${String(number).padStart(4, '0')}_test`
/** Releases: each has one migration more, and the last one drops what the first one may use. */
const migrations = [
  '-- expand\nalter table projects add column color text;\n',
  `-- contract ${migrationName(first).slice(0, 4)}\nalter table projects drop column color;\n`,
]

/** Copies the program with the first migrations of the test. It runs from its sources. */
function makeRelease(folder: string, count: number): string {
  const release = join(folder, `release-${count}`)
  mkdirSync(release)
  for (const name of ['cli', 'src', 'migrations', 'package.json', 'tsconfig.json'])
    cpSync(join(root, name), join(release, name), { recursive: true })
  symlinkSync(join(root, 'node_modules'), join(release, 'node_modules'))
  for (const [index, sql] of migrations.slice(0, count).entries())
    for (const dialect of ['sqlite', 'postgres'])
      writeFileSync(join(release, 'migrations', dialect, `${migrationName(first + index)}.sql`), sql)
  return join(release, 'cli/main.ts')
}

describe.skipIf(postgresUrl === undefined)('an upgrade node by node', () => {
  const folder = mkdtempSync(join(tmpdir(), 'otpd-rolling-'))
  let shared: SharedDatabase
  beforeAll(async () => {
    shared = await createSharedDatabase()
  })
  afterAll(async () => {
    await shared.dispose()
    rmSync(folder, { recursive: true })
  })
  const children: Array<{ kill(signal: 'SIGKILL'): void }> = []
  afterAll(() => {
    for (const child of children) child.kill('SIGKILL')
  })

  const environment = (name: string) => ({
    ...shared.env,
    PATH: process.env['PATH'] ?? '',
    HOME: folder,
    OTPD_LISTEN: '127.0.0.1:0',
    OTPD_LOG_FORMAT: 'json',
    OTPD_NODE: name,
  })

  async function startNode(main: string, name: string) {
    const child = Bun.spawn([process.execPath, main, 'serve', '--no-migrate'], {
      env: environment(name),
      stdout: 'pipe',
      stderr: 'pipe',
    })
    children.push(child)
    const stderr = child.stderr.text()
    let output = ''
    for await (const chunk of child.stdout) {
      output += new TextDecoder().decode(chunk)
      if (output.includes('"msg":"ready"')) break
    }
    if (output === '') throw new Error(await stderr)
    const { url } = JSON.parse(output) as { url: string }
    return { url, exited: child.exited, stderr, stop: () => (child.kill('SIGTERM'), child.exited) }
  }

  const run = (main: string, ...args: string[]) =>
    runToEnd([process.execPath, main, ...args], {
      env: environment('command'),
      // A password, for the command that reads one.
      input: 'correct horse battery staple\n',
    })

  test('loses no call, but those that a node refuses while it drains', async () => {
    const [old, expanding, contracting] = [0, 1, 2].map((count) => makeRelease(folder, count))
    if (!old || !expanding || !contracting) throw new Error('no release')
    expect((await run(old, 'migrate', 'up')).exitCode).toBe(0)
    const oldNode = await startNode(old, 'old')
    const created = await run(old, 'admin', 'create', '--email', 'ada@example.com', '--password-stdin')
    expect(created.exitCode).toBe(0)
    const token = (await run(old, 'admin', 'token', 'ada@example.com')).stdout.trim()
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }

    const project = await fetch(`${oldNode.url}/v1/projects`, {
      method: 'POST',
      headers,
      body: '{"name":"a"}',
    })
    const { data } = (await project.json()) as { data: { id: string } }
    const body = '{"name":"b"}'

    const failures: string[] = []
    let calls = 0
    const draining = new Set<string>()
    function load({ url, exited }: { url: string; exited: Promise<number> }, isEnding: () => boolean) {
      void exited.then(() => draining.add(url))
      return (async () => {
        while (!isEnding() && !draining.has(url)) {
          // A read and a write, within the limits of a developer.
          const call = calls++ % 2 === 0 ? { headers } : { headers, method: 'PATCH', body }
          const response = await fetch(`${url}/v1/projects/${data.id}`, call).catch(() => null)
          if (response?.status === 503 || response === null) draining.add(url)
          else if (response.status !== 200) failures.push(`${response.status} ${await response.text()}`)
          await Bun.sleep(1_100)
        }
      })()
    }
    let isEnding = false
    const oldLoad = load(oldNode, () => isEnding)
    expect((await run(expanding, 'migrate', 'up')).exitCode).toBe(0)
    const middleNode = await startNode(expanding, 'middle')
    const middleLoad = load(middleNode, () => isEnding)
    await Bun.sleep(11_000)
    expect(draining.size).toBe(0)

    const contracted = await run(contracting, 'migrate', 'up')
    expect([contracted.exitCode, contracted.stderr]).toEqual([0, expect.stringContaining('drain')])
    // It drained before the migration, and does not start again.
    expect(await oldNode.exited).toBe(1)
    expect(await oldNode.stderr).toContain('this version must not serve it any more')
    expect(startNode(old, 'old')).rejects.toThrow('newer than this otpd')
    const newNode = await startNode(contracting, 'new')
    const newLoad = load(newNode, () => isEnding)
    await Bun.sleep(11_000)
    expect([...draining]).toEqual([oldNode.url])
    isEnding = true
    await Promise.all([oldLoad, middleLoad, newLoad])
    expect(failures).toEqual([])
    expect(calls).toBeGreaterThan(50)
    await Promise.all([middleNode.stop(), newNode.stop()])
  }, 240_000)
})
