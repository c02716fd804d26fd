import { describe, expect, test } from 'bun:test'
import { findCycle, listFiles, parseSource, readSources, withoutComments } from './helpers/sources.ts'
import type { Import, Source } from './helpers/sources.ts'

/** Who may import whom: patterns of our own files, and packages by name. Types count like everything else. */
type Rule = { folder: RegExp; ownImports: RegExp; packages: RegExp }

const anyPackageExcept = (...names: string[]) => new RegExp(`^(?!(?:${names.join('|')})$)`)
const server = ['elysia', '@elysiajs/swagger', '@elysia/eden', '@sinclair/typebox', 'swagger-ui-dist']
const database = ['drizzle-orm', 'bun:sqlite', 'pg']
const terminal = ['commander', 'ink', 'react', 'picocolors', 'openid-client']
const foreign = anyPackageExcept(...server, ...database, ...terminal)

const rules: Rule[] = [
  { folder: /^src\/domain\//, ownImports: /^src\/domain\//, packages: /^(node:crypto|libphonenumber-js)$/ },
  {
    folder: /^src\/store\//,
    ownImports: /^src\/(store|domain)\//,
    packages: /^(drizzle-orm|bun:sqlite|pg|node:[\w/]+)$/,
  },
  { folder: /^src\/auth\//, ownImports: /^src\/(auth|domain)\//, packages: foreign },
  { folder: /^src\/delivery\//, ownImports: /^src\/(delivery|domain)\//, packages: foreign },
  { folder: /^src\/webhooks\//, ownImports: /^src\/(webhooks|domain)\//, packages: foreign },
  {
    folder: /^src\/http\//,
    ownImports: /^src\/(http|domain)\//,
    packages: /^(elysia|@elysiajs\/swagger|@sinclair\/typebox|swagger-ui-dist(\/.*)?|node:[\w/]+)$/,
  },
  {
    folder: /^src\/config\//,
    ownImports:
      /^src\/(config\/|domain\/|delivery\/(kit\/provider-kinds|providers\/all-provider-kinds)\.ts$)/,
    packages: foreign,
  },
  { folder: /^src\/metrics\//, ownImports: /^src\/(metrics|domain)\//, packages: foreign },
  { folder: /^src\/log\//, ownImports: /^src\/(log|domain)\//, packages: foreign },
  {
    folder: /^src\/host\//,
    ownImports: /^src\/(host|config|domain|store|auth)\//,
    packages: anyPackageExcept(...server, ...terminal),
  },
  { folder: /^src\/server\//, ownImports: /^src\//, packages: anyPackageExcept(...terminal) },
]

/** What of the server the command line may know: types, and what the host commands load when they run. */
const cliTypes =
  /^src\/(http\/app|config\/config|delivery\/text\/template-lint|host\/host|server\/(start|bundle))\.ts$/
const cliDynamic = /^src\/server\/bundle\.ts$/

const isOurs = (target: string) => /^(src|cli|test)\//.test(target) || target === 'package.json'

function isAllowed(path: string, { target, kind }: Import): boolean {
  if (path.startsWith('cli/')) {
    if (!target.startsWith('src/')) return !target.startsWith('test/')
    return kind === 'type' ? cliTypes.test(target) : kind === 'dynamic' && cliDynamic.test(target)
  }
  const rule = rules.find(({ folder }) => folder.test(path))
  if (!rule) return false
  return (isOurs(target) ? rule.ownImports : rule.packages).test(target)
}

const findBreaches = (sources: readonly Source[]) =>
  sources.flatMap(({ path, imports }) =>
    imports.filter((one) => !isAllowed(path, one)).map(({ target, kind }) => `${path} → ${target} (${kind})`),
  )

const sources = await readSources('src', 'cli', 'test')
const program = sources.filter(({ path }) => !path.startsWith('test/'))
const matching = (from: readonly Source[], pattern: RegExp) =>
  from.filter(({ text }) => pattern.test(withoutComments(text))).map(({ path }) => path)

describe('imports', () => {
  test('obey the table', () => {
    expect(program.length).toBeGreaterThan(50)
    expect(findBreaches(program)).toEqual([])
  })

  test.each([
    ['src/domain/a.ts', "import { db } from '../store/database.ts'\ndb()"],
    ['src/domain/a.ts', "import type { Elysia } from 'elysia'"],
    ['src/domain/a.ts', "type A = import('drizzle-orm').SQL"],
    ['src/domain/a.ts', "export * from '../http/app.ts'"],
    ['src/domain/a.ts', "import 'node:fs'"],
    ['src/store/a.ts', "import type {\n  Sender,\n} from '../webhooks/sender.ts'"],
    ['src/auth/a.ts', "import { send } from '../delivery/router.ts'\nsend()"],
    ['src/webhooks/a.ts', "const load = () => import('../store/store.ts')"],
    ['src/http/a.ts', "import { jwtVerify } from 'jose'\njwtVerify()"],
    ['src/http/routes/a.ts', "import type { Store } from '../../store/store.ts'"],
    ['src/config/x.ts', "import { open } from '../store/engine/sqlite.ts'\nopen()"],
    ['src/log/log.ts', "import { loadConfig } from '../config/config.ts'\nloadConfig()"],
    ['src/host/host.ts', "import { createApp } from '../http/app.ts'\ncreateApp()"],
    ['src/server/start.ts', "import { run } from '../../cli/main.ts'\nrun()"],
    ['src/another.ts', "import 'node:fs'"],
    ['cli/commands/a.ts', "import { startServer } from '../../src/server/start.ts'\nstartServer()"],
    ['cli/commands/a.ts', "import type { Otp } from '../../src/domain/otp/otp.ts'"],
    ['cli/commands/a.ts', "const load = () => import('../../src/store/store.ts')"],
    ['cli/commands/a.ts', "import { App } from '../../src/http/app.ts'\nApp()"],
  ])('from %s would be refused: %s', (path, text) => {
    expect(findBreaches([parseSource(path, text)])).toHaveLength(1)
  })

  test.each([
    [
      'src/domain/a.ts',
      "import { createHmac } from 'node:crypto'\nimport type { B } from './b.ts'\ncreateHmac()",
    ],
    ['src/store/a.ts', "import 'node:fs'\nimport 'drizzle-orm/pg-core'\nimport '../domain/log/events.ts'"],
    ['src/webhooks/a.ts', "import 'node:https'\nimport 'ipaddr.js'\nimport '../domain/log/events.ts'"],
    ['cli/client/api.ts', "import type { App } from '../../src/http/app.ts'"],
    ['cli/commands/serve.ts', "const load = () => import('../../src/server/bundle.ts')"],
  ])('from %s are fine: %s', (path, text) => {
    expect(findBreaches([parseSource(path, text)])).toEqual([])
  })

  test('never go in a ring', () => {
    expect(findCycle(sources)).toBeUndefined()
  })

  test('in a ring would be found, and types are no ring', () => {
    const ring = [
      parseSource('src/a.ts', "import { b } from './b.ts'\nb()"),
      parseSource('src/b.ts', "import { c } from './c.ts'\nc()"),
      parseSource('src/c.ts', "export * from './b.ts'"),
    ]
    expect(findCycle(ring)).toEqual(['src/b.ts', 'src/c.ts', 'src/b.ts'])
    expect(
      findCycle([...ring.slice(0, 2), parseSource('src/c.ts', "import type { B } from './b.ts'")]),
    ).toBeUndefined()
  })

  test('of the documentation generator stand in one file', () => {
    const users = program.filter(({ imports }) =>
      imports.some(({ target }) => target === '@elysiajs/swagger'),
    )
    expect(users.map(({ path }) => path).filter((path) => path !== 'src/http/docs.ts')).toEqual([])
  })
})

describe('the rules', () => {
  const domain = program.filter(({ path }) => path.startsWith('src/domain/'))

  test.each([
    ['the clock', /\bDate\.now\(|\bnew Date\(\)|\bperformance\./],
    ['the network', /\bfetch\(/],
    ['the process', /\bprocess\.|\bBun\./],
    ['timers', /\bset(Timeout|Interval|Immediate)\(/],
    ['chance', /\bMath\.random\(|\bimport \{[^}]*\brandom\w+[^}]*\} from|\bcrypto\.(random|getRandom)\w+/],
  ])('get %s as an argument', (_, pattern) => {
    expect(domain.length).toBeGreaterThan(10)
    expect(matching(domain, pattern)).toEqual([])
  })

  test('and everything else of the server leave the environment to the configuration', () => {
    const otherFiles = program.filter(
      ({ path }) => path.startsWith('src/') && path !== 'src/config/config.ts',
    )
    expect(matching(otherFiles, /\b(process|Bun)\.env\b/)).toEqual([])
    expect(matching(program, /\bprocess\.env\b/)).toContain('src/config/config.ts')
  })
})

describe('files', () => {
  test('have at most 400 lines', () => {
    expect(sources.filter(({ text }) => text.split('\n').length > 401).map(({ path }) => path)).toEqual([])
  })

  test('are named in kebab-case, or as the component that they hold', () => {
    const kebab = /(^|\/)[a-z0-9]+(-[a-z0-9]+)*(\.[a-z0-9-]+)*\.tsx?$/
    const component = /^(cli|test\/cli)\/console\/.*\/?[A-Z][A-Za-z0-9]*(\.test)?\.tsx$/
    const misnamedFiles = sources
      .map(({ path }) => path)
      .filter((path) => !kebab.test(path) && !component.test(path))
    expect(misnamedFiles).toEqual([])
  })

  test('export by name, but for the stand-in of a module that does not', () => {
    const pattern = /^export default\b|^export \{[^}]*\bas default\b/m
    expect(matching(sources, pattern).filter((path) => path !== 'cli/console/devtools-stub.ts')).toEqual([])
  })
})

test('every migration is written for both databases and numbered without a gap', () => {
  const [sqlite, postgres] = ['sqlite', 'postgres'].map((kind) =>
    listFiles(`migrations/${kind}/*`).map((path) => path.split('/').at(-1) ?? ''),
  )
  expect(sqlite?.length).toBeGreaterThan(0)
  expect(postgres).toEqual(sqlite ?? [])
  for (const [index, name] of (sqlite ?? []).entries()) {
    expect(name).toMatch(new RegExp(`^${String(index + 1).padStart(4, '0')}_[a-z0-9_]+\\.sql$`))
  }
})
