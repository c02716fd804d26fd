import { expect, test } from 'bun:test'
import { parseSource, readSources, withoutComments, type Source } from '../helpers/sources.ts'

/** The uses that only `src/world` may have: everything by which a server notices, or changes, the world outside of its code. */
const outside = {
  clock: /(?<![.\w])(?:Date\.now\b|new Date\(\)|performance\.)/,
  timers: /(?<![.\w])(?:set(?:Timeout|Interval|Immediate)\b(?!:)|AbortSignal\.timeout\b|Bun\.sleep)/,
  chance:
    /(?<![.\w])(?:Math\.random\b|crypto\.(?:getRandomValues|randomUUID)\b|randomUUID\b|random(?:Bytes|Int)\b(?=.*'node:crypto'))/,
  network:
    /(?<![.\w]|async )(?:fetch\(|Bun\.(?:serve|listen|connect|udpSocket|dns)\b|(?:net|tls)\.connect\()/,
  processes: /(?<![.\w])(?:Bun\.spawn\w*|new Worker\()/,
  files: /'node:fs(?:\/promises)?'/,
} as const

type Kind = keyof typeof outside

/**
 * Files and folders that use the outside directly, and why a simulated server does not need them to do otherwise. A row may be
 * removed, and a new one needs a reason.
 */
const exceptions: ReadonlyArray<{ path: string; kinds: readonly Kind[]; reason: string }> = [
  {
    path: 'src/host/',
    kinds: ['clock', 'timers', 'chance', 'files'],
    reason: 'commands of the operator, each a process of its own next to the server',
  },
  { path: 'src/client/', kinds: ['clock', 'timers', 'chance', 'network'], reason: 'runs in other programs' },
  { path: 'src/docs/', kinds: ['processes'], reason: 'runs in the build' },
  {
    path: 'src/shared/regular-file.ts',
    kinds: ['files'],
    reason: 'synchronous calls on the files that the configuration names, for src/config and src/tls',
  },
  ...['src/http/page/assets.ts', 'src/shared/newest-migration.ts', 'src/store/engine/migration-files.ts'].map(
    (path) => ({ path, kinds: ['files'] as const, reason: 'reads files of the program, in the build' }),
  ),
  {
    path: 'src/backups/',
    kinds: ['timers', 'chance', 'files'],
    reason: 'runs in the process of `otpd backup`; the server only reads a file that says when',
  },
  {
    path: 'src/config/',
    kinds: ['clock', 'files'],
    reason: 'read before the server starts; it gets the result as an argument',
  },
  { path: 'src/log/sink.ts', kinds: ['timers', 'files'], reason: 'writes stderr; the server gets a log' },
  {
    path: 'src/store/data-dir/',
    kinds: ['chance', 'files'],
    reason: 'synchronous calls on the data directory, which do the same on any disk',
  },
  {
    path: 'src/auth/password-rules.ts',
    kinds: ['files'],
    reason: 'reads the common passwords of the program',
  },
  {
    path: 'src/store/sqlite/disk-sync.ts',
    kinds: ['files'],
    reason: 'opens the files that `flush` gets',
  },
  {
    path: 'src/server/setup-token.ts',
    kinds: ['files'],
    reason: 'synchronous calls on the file of the setup token',
  },
  {
    path: 'src/server/open-data-dir.ts',
    kinds: ['files'],
    reason: 'the temporary folder of development mode',
  },
  ...[
    'src/store/move/',
    'src/store/postgres/connect.ts',
    'src/store/postgres/keyring.ts',
    'src/store/postgres/migrate.ts',
    'src/store/postgres/groups.ts',
    'src/store/postgres/primary.ts',
    'src/store/postgres/server-checks.ts',
    'src/store/postgres/transactions.ts',
    'src/server/open-shared-database.ts',
  ].map((path) => ({
    path,
    kinds: ['clock', 'timers', 'chance'] as const,
    reason: 'PostgreSQL is another program with a clock of its own; `faults -- --only nodes-…` tests it',
  })),
  {
    path: 'src/server/upgrade-',
    kinds: ['clock', 'timers', 'chance', 'network', 'processes', 'files'],
    reason: 'a second thread that answers during an upgrade',
  },
  {
    path: 'src/server/providers.ts',
    kinds: ['timers'],
    reason: 'test messages of a command of the operator',
  },
  {
    path: 'src/delivery/providers/smpp-',
    kinds: ['clock', 'timers', 'chance'],
    reason: 'the library of SMPP opens its own sockets',
  },
  {
    path: 'src/metrics/',
    kinds: ['clock', 'files'],
    reason: 'figures about the process and its certificates, on which nothing depends',
  },
  {
    path: 'src/tls/',
    kinds: ['clock', 'timers', 'chance', 'network', 'files'],
    reason: 'certificates are not simulated; the tests with Pebble cover them',
  },
]

const findUses = ({ path, text }: Source): string[] => {
  if (path.startsWith('src/world/')) return []
  const code = withoutComments(text)
  return Object.entries(outside).flatMap(([kind, pattern]) =>
    pattern.test(code) ? [`${path}: ${kind}`] : [],
  )
}

const isException = (use: string) =>
  exceptions.some(
    ({ path, kinds }) => use.startsWith(path) && kinds.some((kind) => use.endsWith(`: ${kind}`)),
  )

test('only src/world uses clock, timers, chance, network, processes and files, but for named exceptions', async () => {
  const uses = (await readSources('src')).flatMap(findUses)
  expect(uses.filter((use) => !isException(use))).toEqual([])
  const unused = exceptions.flatMap(({ path, kinds }) =>
    kinds
      .filter((kind) => !uses.some((use) => use.startsWith(path) && use.endsWith(`: ${kind}`)))
      .map((kind) => `${path}: ${kind}`),
  )
  expect(unused.filter((one) => !/postgres|move|shared/.test(one))).toEqual([])
})

test.each([
  ['const at = Date.now()', 'clock'],
  ['const now = () => new Date()', 'clock'],
  ['const t = setTimeout(call, 5)', 'timers'],
  ['await new Promise(setImmediate)', 'timers'],
  ['const jitter = Math.random()', 'chance'],
  ["import { randomUUID } from 'node:crypto'", 'chance'],
  ['const response = await fetch(url)', 'network'],
  ['Bun.serve({ fetch })', 'network'],
  ["import { readFileSync } from 'node:fs'", 'files'],
  ['Bun.spawn([command])', 'processes'],
])('it finds %s', (text, kind) => {
  expect(findUses(parseSource('src/http/a.ts', text))).toEqual([`src/http/a.ts: ${kind}`])
})

test.each([
  'timers.setTimeout(call, 5)',
  'const { setTimeout: later } = timers',
  'world.fetch(url, {})',
  '// Date.now() is slower',
])('it does not take %s for a use', (text) => {
  expect(findUses(parseSource('src/http/a.ts', text))).toEqual([])
})
