// `npm run test:unit [-- FLAGS]`: tests that need only their own process, on SQLite. No compiled binary, no other program,
// no server, no PostgreSQL, no walk through the whole API. The set is derived from the sources, so there is no list to
// maintain; `--list` prints it.
import { accessSync, constants, statfsSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { readSources, withoutComments, type Source } from './helpers/sources.ts'

/** Code that starts a process, a server or PostgreSQL. */
const startsSomething =
  /\bBun\.(serve|listen|spawn|spawnSync|connect)\(|\bcreateServer\(|\bnew (Worker|PGlite)\(/

/** Tests of the whole program, and long runs. */
const wholeProgram = /^test\/(bench|e2e|faults|fuzz|host|record|upgrade)\//

/** Calls every operation of the API, which takes a test file seconds. */
const everyOperation = 'test/helpers/api-tester.ts'

/** Modules of the program that listen on a port. */
const listens = /^src\/(http\/listener|server\/start)\.ts$/

/** Opens only SQLite, because this script sets `OTPD_TEST_DATABASES`. */
const databases = 'test/helpers/databases.ts'

const sources = await readSources('test', 'src', 'cli')
const byPath = new Map(sources.map((source) => [source.path, source]))

/** Returns whether a file, or a file of `test` that it imports, needs more than its own process or seconds. */
function needsMore({ path, text, imports }: Source, visited = new Set<string>()): boolean {
  if (visited.has(path) || path === databases) return false
  visited.add(path)
  if (!path.startsWith('test/')) return listens.test(path)
  if (path === everyOperation) return true
  if (startsSomething.test(withoutComments(text))) return true
  return imports.some(({ target, kind }) => {
    const imported = byPath.get(target)
    return kind !== 'type' && imported !== undefined && needsMore(imported, visited)
  })
}

const files = sources
  .filter(({ path }) => /\.test\.tsx?$/.test(path) && !wholeProgram.test(path))
  .filter((source) => !needsMore(source))
  .map(({ path }) => `./${path}`)

/**
 * Returns a folder in memory, where a flush costs nothing: the tests flush 2,400 times. Linux has one, but a container's may be
 * too small; then it is the folder for temporary files.
 */
function databaseFolder(): string {
  const inMemory = '/dev/shm'
  try {
    accessSync(inMemory, constants.W_OK)
    const { bavail, bsize } = statfsSync(inMemory)
    return bavail * bsize > 512 * 1024 ** 2 ? inMemory : tmpdir()
  } catch {
    return tmpdir()
  }
}

/**
 * Options of the JavaScript engine: most code of a test runs a few times, so compiling it takes longer than it saves. A run
 * is an eighth shorter without the last compiler and with the one before it called later.
 */
const compileLess = {
  BUN_JSC_useFTLJIT: '0',
  BUN_JSC_thresholdForOptimizeAfterWarmUp: '5000',
  BUN_JSC_thresholdForOptimizeAfterLongWarmUp: '5000',
}

const flags = process.argv.slice(2)
if (flags.includes('--list')) process.stdout.write(`${files.join('\n')}\n`)
else {
  const { OTPD_TEST_POSTGRES_URL: _url, ...env } = process.env
  const { exited } = Bun.spawn(
    [
      'bun',
      'test',
      '--parallel',
      '--no-isolate',
      '--timings=test/timings.json',
      '--timeout',
      '60000',
      '--only-failures',
      ...flags,
      ...files,
    ],
    {
      stdio: ['inherit', 'inherit', 'inherit'],
      env: { ...compileLess, ...env, OTPD_TEST_DATABASES: 'sqlite', TMPDIR: databaseFolder() },
    },
  )
  process.exitCode = await exited
}
