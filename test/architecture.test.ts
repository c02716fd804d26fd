import { describe, expect, test } from 'bun:test'
import { dirname, join } from 'node:path'
import { facades } from '../src/domain/model/compat.ts'
import { findViolations, findArea, allowedGraph, allowedTargets } from './helpers/import-rules.ts'
import {
  findCycle,
  importGraph,
  listFiles,
  parseSource,
  readSources,
  withoutComments,
  type Import,
  type Source,
} from './helpers/sources.ts'

const sources = await readSources('src', 'cli', 'test')
const program = sources.filter(({ path }) => !path.startsWith('test/'))
const matching = (from: readonly Source[], pattern: RegExp) =>
  from.filter(({ text }) => pattern.test(withoutComments(text))).map(({ path }) => path)

const isStatic = (_: string, { kind }: Import) => kind === 'static'
const anyImport = () => true

describe('imports', () => {
  test('follow the rules between folders', () => {
    expect(program.length).toBeGreaterThan(50)
    expect(findViolations(program)).toEqual([])
  })

  test.each([
    // Domain
    ['src/domain/model/a.ts', "import type { RateLimit } from '../limits/rate-limit.ts'"],
    ['src/domain/model/a.ts', "import type { Stores } from '../store/store.ts'"],
    ['src/domain/store/a.ts', "import type { Event } from '../log/events.ts'"],
    ['src/domain/store/a.ts', "import { maskPhone } from '../model/phone.ts'\nmaskPhone()"],
    ['src/domain/store/a.ts', "import { createHmac } from 'node:crypto'\ncreateHmac()"],
    ['src/domain/limits/a.ts', "import type { Developer } from '../accounts/developers.ts'"],
    ['src/domain/accounts/a.ts', "import type { Application } from '../apps/applications.ts'"],
    ['src/domain/log/a.ts', "import type { Otp } from '../otp/otp.ts'"],
    ['src/domain/apps/a.ts', "import { recordEvent } from '../log/events.ts'\nrecordEvent()"],
    ['src/domain/guard/a.ts', "import type { Otp } from '../otp/otp.ts'"],
    ['src/domain/webhooks/a.ts', "import type { Otp } from '../otp/otp.ts'"],
    ['src/domain/otp/a.ts', "import { deliver } from '../webhooks/deliveries.ts'\ndeliver()"],
    ['src/domain/upkeep/a.ts', "import { createGuard } from '../guard/guard.ts'\ncreateGuard()"],
    ['src/domain/otp/a.ts', "import { db } from '../../store/engine/database.ts'\ndb()"],
    ['src/domain/otp/a.ts', "import type { Elysia } from 'elysia'"],
    ['src/domain/otp/a.ts', "type A = import('drizzle-orm').SQL"],
    ['src/domain/otp/a.ts', "export * from '../../http/app.ts'"],
    ['src/domain/otp/a.ts', "import 'node:fs'"],
    ['src/domain/otp/a.ts', "import 'libphonenumber-js'"],
    ['src/domain/another.ts', "import type { Otp } from './otp/otp.ts'"],
    // Storage
    ['src/store/engine/a.ts', "import { createStore } from '../store.ts'\ncreateStore()"],
    ['src/store/engine/a.ts', "import { backUp } from '../data-dir/backup.ts'\nbackUp()"],
    ['src/store/engine/a.ts', "import { openSqlite } from '../sqlite/database.ts'\nopenSqlite()"],
    ['src/store/sqlite/a.ts', "import { openPostgres } from '../postgres/database.ts'\nopenPostgres()"],
    ['src/store/postgres/a.ts', "import { openSqlite } from '../sqlite/database.ts'\nopenSqlite()"],
    ['src/store/data-dir/a.ts', "import { createStore } from '../store.ts'\ncreateStore()"],
    ['src/store/a.ts', "import { lock } from './data-dir/lock.ts'\nlock()"],
    ['src/store/a.ts', "import type { Otp } from '../domain/otp/otp.ts'"],
    [
      'src/store/engine/tables/a.ts',
      "import { attemptsMax } from '../../../domain/model/code.ts'\nattemptsMax",
    ],
    ['src/store/a.ts', "import type {\n  Sender,\n} from '../webhooks/sender.ts'"],
    // Delivery
    [
      'src/delivery/text/a.ts',
      "import { createProviderHttp } from '../kit/http-client.ts'\ncreateProviderHttp()",
    ],
    ['src/delivery/kit/a.ts', "import { twilio } from '../providers/twilio.ts'\ntwilio()"],
    ['src/delivery/providers/a.ts', "import type { DeliveryService } from '../delivery-service.ts'"],
    ['src/delivery/a.ts', "import { sendOtp } from '../domain/otp/send.ts'\nsendOtp()"],
    // Adapters
    ['src/auth/a.ts', "import { send } from '../delivery/delivery-service.ts'\nsend()"],
    ['src/webhooks/a.ts', "const load = () => import('../store/store.ts')"],
    ['src/http/a.ts', "import { jwtVerify } from 'jose'\njwtVerify()"],
    ['src/http/a.ts', "import { otpRoutes } from './routes/otp.ts'\notpRoutes()"],
    ['src/http/routes/a.ts', "import type { Store } from '../../store/store.ts'"],
    ['src/http/routes/a.ts', "import type { App } from '../app.ts'"],
    ['src/http/app.ts', "import type { Stores } from '../domain/store/store.ts'"],
    ['src/http/listener.ts', "import { otpRoutes } from './routes/otp.ts'\notpRoutes()"],
    ['src/config/x.ts', "import { open } from '../store/sqlite/database.ts'\nopen()"],
    ['src/config/x.ts', "import { smpp } from '../delivery/providers/smpp.ts'\nsmpp()"],
    ['src/log/log.ts', "import { loadConfig } from '../config/config.ts'\nloadConfig()"],
    ['src/metrics/metrics.ts', "import { recordEvent } from '../domain/log/events.ts'\nrecordEvent()"],
    ['src/host/host.ts', "import { createApp } from '../http/app.ts'\ncreateApp()"],
    ['src/server/start.ts', "import { run } from '../../cli/main.ts'\nrun()"],
    ['src/shared/a.ts', "import type { Otp } from '../domain/otp/otp.ts'"],
    ['src/shared/a.ts', "import { Type } from '@sinclair/typebox'"],
    ['src/another.ts', "import 'node:fs'"],
    // Command line
    ['cli/version.ts', "import type { Context } from './context.ts'"],
    ['cli/terminal/a.ts', "import { login } from '../session/login.ts'\nlogin()"],
    ['cli/terminal/a.ts', "import type { Application } from '../client/resources.ts'"],
    ['cli/terminal/a.ts', "import type { Context } from '../context.ts'"],
    ['cli/session/a.ts', "import { createApi } from '../client/api.ts'\ncreateApi()"],
    ['cli/session/a.ts', "import type { Context } from '../context.ts'"],
    ['cli/client/a.ts', "import { runDoctor } from '../doctor/checks-text.ts'\nrunDoctor()"],
    ['cli/client/a.ts', "import { version } from '../version.ts'\nversion.length"],
    ['cli/context.ts', "import type { RunCommand } from './program.ts'"],
    ['cli/doctor/a.ts', "import { serve } from '../commands/serve.ts'\nserve()"],
    ['cli/host/a.ts', "import { createHost } from '../../src/host/host.ts'\ncreateHost()"],
    ['cli/webhooks/a.ts', "import { App } from '../console/App.tsx'\nApp()"],
    ['cli/console/a.ts', "import { useKeys } from './hooks/use-keys.ts'\nuseKeys()"],
    ['cli/console/lines/a.ts', "import { useKeys } from '../hooks/use-keys.ts'\nuseKeys()"],
    ['cli/console/hooks/a.ts', "import { Rule } from '../components/Rule.tsx'\nRule()"],
    ['cli/console/components/a.tsx', "import { Otp } from '../screens/Otp.tsx'\nOtp()"],
    ['cli/console/screens/a.tsx', "import { screens } from '../screens.ts'\nscreens()"],
    ['cli/console/screens.ts', "import { App } from './App.tsx'\nApp()"],
    ['cli/console/App.tsx', "import { runConsole } from './run-console.tsx'\nrunConsole()"],
    ['cli/console/run-console.tsx', "import { commands } from '../program.ts'\ncommands()"],
    ['cli/completion/script.ts', "import type { RunCommand } from '../program.ts'"],
    ['cli/help.ts', "import type { RunCommand } from './program.ts'"],
    ['cli/environment.ts', "import type { Context } from './context.ts'"],
    ['cli/main.ts', "import { startServer } from '../src/server/start.ts'\nstartServer()"],
    ['cli/commands/a.ts', "import { App } from '../console/App.tsx'\nApp()"],
    ['cli/commands/a.ts', "import { startServer } from '../../src/server/start.ts'\nstartServer()"],
    ['cli/commands/a.ts', "import type { Otp } from '../../src/domain/otp/otp.ts'"],
    ['cli/commands/a.ts', "const load = () => import('../../src/store/store.ts')"],
    ['cli/commands/a.ts', "import { App } from '../../src/http/app.ts'\nApp()"],
    [
      'cli/commands/a.ts',
      "import { startTestServer } from '../../test/helpers/binary.ts'\nstartTestServer()",
    ],
  ])('from %s are refused: %s', (path, text) => {
    expect(findViolations([parseSource(path, text)])).toHaveLength(1)
  })

  test.each([
    [
      'src/domain/model/a.ts',
      "import { createHmac } from 'node:crypto'\nimport type { B } from './b.ts'\ncreateHmac()",
    ],
    ['src/store/engine/a.ts', "import 'node:fs'\nimport 'drizzle-orm/pg-core'"],
    ['src/webhooks/a.ts', "import 'node:https'\nimport 'ipaddr.js'\nimport '../domain/webhooks/headers.ts'"],
    ['src/domain/otp/a.ts', "import { isLoopback } from '../../shared/loopback.ts'\nisLoopback()"],
    ['cli/client/api.ts', "import type { App } from '../../src/http/app.ts'"],
    ['cli/client/api.ts', "import { isLoopback } from '../../src/shared/loopback.ts'\nisLoopback()"],
    ['cli/commands/serve.ts', "const load = () => import('../../src/server/bundle.ts')"],
  ])('from %s are allowed: %s', (path, text) => {
    expect(findViolations([parseSource(path, text)])).toEqual([])
  })

  test('have no cycle at run time', () => {
    expect(findCycle(importGraph(sources, isStatic))).toBeUndefined()
  })

  test('have no cycle with types either', () => {
    expect(findCycle(importGraph(program, anyImport))).toBeUndefined()
  })

  test('in a cycle are found, with or without types', () => {
    const cycle = [
      parseSource('src/a.ts', "import { b } from './b.ts'\nb()"),
      parseSource('src/b.ts', "import { c } from './c.ts'\nc()"),
      parseSource('src/c.ts', "export * from './b.ts'"),
    ]
    const typeCycle = [...cycle.slice(0, 2), parseSource('src/c.ts', "import type { B } from './b.ts'")]
    expect(findCycle(importGraph(cycle, isStatic))).toEqual(['src/b.ts', 'src/c.ts', 'src/b.ts'])
    expect(findCycle(importGraph(typeCycle, isStatic))).toBeUndefined()
    expect(findCycle(importGraph(typeCycle, anyImport))).toEqual(['src/b.ts', 'src/c.ts', 'src/b.ts'])
  })

  test('of the driver of PostgreSQL are none in what a server on SQLite loads', () => {
    const graph = importGraph(program, isStatic)
    const loaded = new Set(['src/server/bundle.ts'])
    for (const path of loaded) for (const imported of graph.get(path) ?? []) loaded.add(imported)
    const users = program.filter(({ imports }) =>
      imports.some(({ target, kind }) => target === 'pg' && kind === 'static'),
    )
    expect(users.length).toBeGreaterThan(0)
    expect(loaded.size).toBeGreaterThan(500)
    expect(users.map(({ path }) => path).filter((path) => loaded.has(path))).toEqual([])
  })

  test('of the documentation generator are in one file', () => {
    const users = program.filter(({ imports }) =>
      imports.some(({ target }) => target === '@elysiajs/swagger'),
    )
    expect(users.map(({ path }) => path).filter((path) => path !== 'src/http/openapi/build.ts')).toEqual([])
  })
})

describe('the table of import rules', () => {
  test('allows no cycle of folders', () => {
    expect(findCycle(allowedGraph())).toBeUndefined()
  })

  test('has a row for every folder, and none for a folder or file that does not exist', () => {
    const areas = new Set(program.map(({ path }) => findArea(path)))
    expect([...allowedGraph().keys()].toSorted()).toEqual([...areas].toSorted())
  })

  test('names only folders and files that exist', () => {
    const existing = new Set([...allowedGraph().keys(), ...program.map(({ path }) => path), 'package.json'])
    const migrations = ['migrations/sqlite', 'migrations/postgres']
    expect(allowedTargets().filter((name) => !existing.has(name) && !migrations.includes(name))).toEqual([])
  })
})

describe('façades', () => {
  test('live in one folder each, which src/http/compat/facades.ts alone knows', () => {
    const folders = new Set(listFiles('src/http/compat/*/*').map((path) => path.split('/')[3]))
    expect([...folders].toSorted()).toEqual([...facades].toSorted())
    const users = program.filter(({ path, imports }) =>
      imports.some(
        ({ target }) => /^src\/http\/compat\/[^/]+\//.test(target) && !path.startsWith(dirname(target)),
      ),
    )
    expect(users.map(({ path }) => path)).toEqual(['src/http/compat/facades.ts'])
  })

  test.each([
    "import type { Store } from '../../../domain/store/store.ts'",
    "import { createStore } from '../../../store/store.ts'\ncreateStore()",
    "import { otpRoutes } from '../../routes/otp.ts'\notpRoutes()",
    "import { deriveGuard } from '../../../domain/guard/guard.ts'\nderiveGuard()",
  ])('call operations, and no table or route: %s', (text) => {
    for (const facade of facades)
      expect(findViolations([parseSource(`src/http/compat/${facade}/a.ts`, text)])).toHaveLength(1)
  })
})

describe('the domain', () => {
  const domain = program.filter(({ path }) => path.startsWith('src/domain/'))

  test.each([
    ['the clock', /\bDate\.now\(|\bnew Date\(\)|\bperformance\./],
    ['the network', /\bfetch\(/],
    ['the process', /\bprocess\.|\bBun\./],
    ['timers', /\bset(Timeout|Interval|Immediate)\(/],
    [
      'randomness',
      /\bMath\.random\(|\bimport \{[^}]*\brandom\w+[^}]*\} from|\bcrypto\.(random|getRandom)\w+/,
    ],
  ])('gets %s as an argument', (_, pattern) => {
    expect(domain.length).toBeGreaterThan(10)
    expect(matching(domain, pattern)).toEqual([])
  })

  test('and the rest of the server get environment variables as an argument', () => {
    const environment = /\b(process|Bun)\.env\b/
    const server = program.filter(({ path }) => path.startsWith('src/'))
    expect(matching(server, environment)).toEqual([])
    expect(matching(program, environment)).toContain('cli/terminal/terminal.ts')
  })
})

describe('the loopback predicate', () => {
  /** Files outside of src/shared that name a loopback host by itself, and what for. */
  const otherUses: Record<string, string> = {
    'cli/doctor/config.ts': 'an example of a setting',
    'cli/environment.ts': 'NO_PROXY, a list that libraries compare with',
    'cli/host/run-server.ts': 'the address to show for a wildcard address',
    'cli/session/oidc-callback.ts': 'where the login listens',
    'cli/webhooks/forward.ts': 'the host of a target that is only a port',
    'src/config/config.ts': 'where the server listens by default',
    'src/config/tls.ts': 'no certificate authority signs these names',
    'src/http/http-listener.ts': 'the base of a path without a Host header',
    'src/http/listener.ts': 'the origin of a request inside the process',
    'src/webhooks/targets.ts': 'names that are local by definition',
  }
  const mention = /127\\*[.([]|localhost|'loopback'/i
  const completeAddress = /(?:127\.0\.0\.1|localhost)[:/][\w$]/g

  const findMentions = (from: readonly Source[]) =>
    from
      .filter(({ path }) => !path.startsWith('src/shared/'))
      .filter(({ text }) => mention.test(withoutComments(text).replaceAll(completeAddress, '')))
      .map(({ path }) => path)

  test('exists once: the other mentions of loopback hosts have a reason', () => {
    expect(findMentions(program)).toEqual(Object.keys(otherUses))
  })

  test.each([
    "const isLocal = host === 'localhost'",
    "const isLocal = ['LOCALHOST', '::1'].includes(host)",
    String.raw`const isLocal = /^127\.0\.0\.1$/.test(host)`,
    String.raw`const isLocal = /^127(\.\d+){3}$/.test(host)`,
    "const isLocal = host.startsWith('127.')",
    "const isLocal = ipaddr.parse(host).range() === 'loopback'",
  ])('would be found a second time: %s', (text) => {
    expect(findMentions([parseSource('src/auth/a.ts', text)])).toEqual(['src/auth/a.ts'])
  })

  test.each([
    "const listen = '127.0.0.1:8080'",
    "const example = 'http://localhost:3000/hook'",
    'const url = `http://127.0.0.1:${port}/callback`',
    "// Not a rule: host === 'localhost'",
  ])('is not taken for found in %s', (text) => {
    expect(findMentions([parseSource('cli/a.ts', text)])).toEqual([])
  })
})

describe('files', () => {
  // A longer file has two subjects. Tests may be longer: their cases are read one at a time.
  test('have at most 300 lines, in tests 400', () => {
    const isTooLong = ({ path, text }: Source) =>
      text.split('\n').length > (path.startsWith('test/') ? 401 : 301)
    expect(sources.filter(isTooLong).map(({ path }) => path)).toEqual([])
  })

  test('have names in kebab-case, or the name of their component', () => {
    const kebab = /(^|\/)[a-z0-9]+(-[a-z0-9]+)*(\.[a-z0-9-]+)*\.tsx?$/
    const component = /^(cli|test\/cli)\/console\/.*\/?[A-Z][A-Za-z0-9]*(\.test)?\.tsx$/
    const misnamedFiles = sources
      .map(({ path }) => path)
      .filter((path) => !kebab.test(path) && !component.test(path))
    expect(misnamedFiles).toEqual([])
  })

  test('export by name, except the stub of a module that has a default export', () => {
    const pattern = /^export default\b|^export \{[^}]*\bas default\b/m
    expect(matching(sources, pattern).filter((path) => path !== 'cli/console/devtools-stub.ts')).toEqual([])
  })
})

test('every migration exists for both databases, and their numbers have no gap', () => {
  const [sqlite, postgres] = ['sqlite', 'postgres'].map((kind) =>
    listFiles(`migrations/${kind}/*`).map((path) => path.split('/').at(-1) ?? ''),
  )
  expect(sqlite?.length).toBeGreaterThan(0)
  expect(postgres).toEqual(sqlite ?? [])
  for (const [index, name] of (sqlite ?? []).entries()) {
    expect(name).toMatch(new RegExp(`^${String(index + 1).padStart(4, '0')}_[a-z0-9_]+\\.sql$`))
  }
})

test('the README of test/helpers lists every helper, and no other file', async () => {
  const readme = await Bun.file(join(import.meta.dir, 'helpers/README.md')).text()
  const listed = [...readme.matchAll(/^\| `([^`]+)`/gm)].map(([, name]) => `test/helpers/${name}`)
  const helpers = listFiles('test/helpers/*').filter((path) => !path.endsWith('/README.md'))
  expect(listed.toSorted()).toEqual(helpers)
})

test('the architecture guide has a row for each folder of the server and of the domain', async () => {
  const guide = await Bun.file(join(import.meta.dir, '../src/docs/architecture.md')).text()
  const rows = new Set([...guide.matchAll(/^\| `([^`]+)`/gm)].map(([, name = '']) => name))
  const folders = new Set(program.map(({ path }) => /^src\/(domain\/)?[\w-]+(?=\/)/.exec(path)?.[0] ?? 'cli'))
  expect([...folders].filter((folder) => !rows.has(folder))).toEqual([])
})
