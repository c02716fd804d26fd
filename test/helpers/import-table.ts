/**
 * One row of the table: what the files of an area may import. An area is a folder (without its subfolders), or
 * one file that assembles what lies around it. Areas are named by path; the most specific row applies.
 */
type ImportRule = {
  area: string
  /** Areas, or single files, that may be imported. An area may always import itself. */
  imports?: string[]
  /** Areas, or single files, that may be imported for their types only. */
  types?: string[]
  /** Areas, or single files, that may be loaded with `import()`, so that a command pays for them only when it needs them. */
  dynamic?: string[]
  /** Packages and Node.js modules that may be imported, types included. */
  packages: RegExp
}

const anyPackageExcept = (...names: string[]) => new RegExp(`^(?!(?:${names.join('|')})$)`)
const httpPackages = ['elysia', '@elysiajs/swagger', '@elysia/eden', '@sinclair/typebox']
const databasePackages = ['drizzle-orm', 'bun:sqlite', 'pg']
const cliPackages = ['commander', 'ink', 'react', 'picocolors', 'openid-client']
const nodeCrypto = /^node:crypto$/
const noPackage = /^(?!)/
const anyPackage = /^/
const neutralPackages = anyPackageExcept(...httpPackages, ...databasePackages, ...cliPackages)
const storagePackages = /^(drizzle-orm|bun:sqlite|pg|node:[\w/]+)$/
const httpLayerPackages = /^(elysia|@elysiajs\/swagger|@sinclair\/typebox|node:[\w/]+)$/

const domain = (...folders: string[]) => folders.map((folder) => `src/domain/${folder}`)
const cli = (...names: string[]) => names.map((name) => `cli/${name}`)
const console = (...names: string[]) => names.map((name) => `cli/console/${name}`)
/** Imports of a part of the console: the parts below it, and what every part of the command line builds on. */
const consoleImports = (...names: string[]) => ['cli/console', ...console(...names), ...cliBase]

const storage = (...names: string[]) => names.map((name) => `src/store/${name}`)
const model = domain('model')
const capabilities = domain(
  'accounts',
  'apps',
  'guard',
  'limits',
  'log',
  'otp',
  'routing',
  'upkeep',
  'webhooks',
)

/** The folders at the bottom of the command line, which every part of it builds on. */
const cliBase = cli('client', 'session', 'terminal', 'context.ts', 'version.ts')

/** The table of imports that each folder may have. */
export const importRules: readonly ImportRule[] = [
  // Pure types and rules: they compute, and know neither storage nor any capability.
  { area: 'src/domain/model', packages: /^(node:crypto|libphonenumber-js)$/ },
  // Interfaces of the tables: nothing runs here, so nothing but types comes in.
  { area: 'src/domain/store', types: domain('model'), packages: noPackage },
  // The capabilities, from the one that needs nothing to the one that needs most.
  { area: 'src/domain/limits', imports: domain('model', 'store'), packages: nodeCrypto },
  { area: 'src/domain/accounts', imports: domain('model', 'store'), packages: nodeCrypto },
  { area: 'src/domain/log', imports: domain('model', 'store'), packages: nodeCrypto },
  // Applications belong to a developer, and creating one is idempotent.
  { area: 'src/domain/apps', imports: domain('accounts', 'limits', 'model', 'store'), packages: nodeCrypto },
  // The guard logs what it blocks, and audits its rules; it knows nothing of requests beyond the model.
  { area: 'src/domain/guard', imports: domain('accounts', 'log', 'model', 'store'), packages: nodeCrypto },
  // Routes that choose learn from the ends of requests, which the server tells them. The savings are estimated from counted costs.
  { area: 'src/domain/routing', imports: domain('log', 'model', 'store'), packages: /^libphonenumber-js$/ },
  // Endpoints belong to a developer and are rate-limited; a test event goes through the log.
  {
    area: 'src/domain/webhooks',
    imports: domain('accounts', 'limits', 'log', 'model', 'store'),
    packages: nodeCrypto,
  },
  // One-time passcodes build on most of the others, but not on webhooks, which follow the log on their own.
  {
    area: 'src/domain/otp',
    imports: domain('apps', 'guard', 'limits', 'log', 'model', 'store'),
    packages: nodeCrypto,
  },
  // Retention and erasure clean up after the others, so nothing depends on them. Backfills rewrite the rows of the guard.
  {
    area: 'src/domain/upkeep',
    imports: [
      ...domain('accounts', 'limits', 'log', 'model', 'otp', 'store'),
      ...domain('guard/list-rules.ts', 'guard/row-keys.ts', 'guard/subject.ts'),
    ],
    packages: nodeCrypto,
  },

  // The interface to a database, which both implement. The files around a SQLite database build on it.
  { area: 'src/store/engine', imports: [...model, ...storage('engine/tables')], packages: storagePackages },
  // The columns of the tables, by subject, and their kinds; src/store/engine/tables.ts joins them.
  { area: 'src/store/engine/tables', types: model, packages: storagePackages },
  {
    area: 'src/store/sqlite',
    imports: [...model, ...storage('engine', 'engine/tables')],
    packages: storagePackages,
  },
  {
    area: 'src/store/data-dir',
    imports: [...model, ...storage('engine', 'sqlite')],
    packages: storagePackages,
  },
  // Also prepares a database that nodes share, as the data directory does for SQLite.
  {
    area: 'src/store/postgres',
    imports: [
      ...model,
      ...storage('data-dir/audit-verification.ts', 'data-dir/data-dir.ts', 'data-dir/rotation.ts'),
      ...storage('engine', 'engine/tables'),
    ],
    packages: storagePackages,
  },
  // Moves a data directory's database to PostgreSQL: it knows both, and every table of theirs.
  {
    area: 'src/store/move',
    imports: [...model, ...storage('data-dir', 'engine', 'engine/tables', 'postgres', 'sqlite')],
    packages: storagePackages,
  },
  // The SQL of each table implements an interface of src/domain/store; it knows no capability.
  {
    area: 'src/store',
    imports: [...domain('model', 'store'), ...storage('engine', 'sqlite')],
    packages: storagePackages,
  },

  // Texts know no provider, the kit knows no particular provider, and providers do not know the delivery service.
  { area: 'src/delivery/text', imports: domain('model'), packages: neutralPackages },
  { area: 'src/delivery/kit', imports: [...domain('model'), 'src/delivery/text'], packages: neutralPackages },
  {
    area: 'src/delivery/providers',
    imports: [...domain('model'), 'src/delivery/kit', 'src/delivery/text'],
    packages: neutralPackages,
  },
  {
    area: 'src/delivery/alerts',
    imports: [...domain('model'), 'src/delivery/kit'],
    packages: neutralPackages,
  },
  {
    area: 'src/delivery',
    imports: [...domain('model'), 'src/delivery/kit', 'src/delivery/providers', 'src/delivery/text'],
    types: domain('otp'),
    packages: neutralPackages,
  },

  // Adapters of the domain. They do not know one another; src/server connects them.
  { area: 'src/auth', imports: domain('accounts', 'apps', 'model', 'store'), packages: neutralPackages },
  { area: 'src/webhooks', imports: domain('model', 'store', 'webhooks'), packages: neutralPackages },
  { area: 'src/log', types: domain('model'), packages: neutralPackages },
  // Certificates: from files, or by ACME. It serves nothing itself.
  { area: 'src/tls', types: [...domain('model'), 'src/log'], packages: /^(jose|node:[\w/]+)$/ },
  { area: 'src/metrics', types: domain('accounts', 'model', 'store'), packages: neutralPackages },
  // The settings of providers, alerts, guard and retention are checked against what these accept.
  {
    area: 'src/config',
    imports: [
      ...domain('guard', 'model', 'upkeep'),
      'src/delivery/alerts',
      'src/delivery/kit/provider-kinds.ts',
      'src/delivery/providers/all-provider-kinds.ts',
      'src/tls/pair.ts',
    ],
    packages: neutralPackages,
  },
  // HTTP calls the capabilities and never a table; guard settings and retention are not on the network.
  {
    area: 'src/http',
    imports: [...domain('accounts', 'apps', 'limits', 'log', 'model'), 'src/docs'],
    packages: httpLayerPackages,
  },
  // Serves the document, built on the first request, and the page that shows it.
  {
    area: 'src/http/docs.ts',
    dynamic: ['src/http/openapi/build.ts'],
    imports: ['src/docs', 'src/http'],
    packages: /^elysia$/,
  },
  // The OpenAPI document describes the routes from their schemas, and their errors from the domain's.
  { area: 'src/http/openapi', imports: [...domain('model'), 'src/http'], packages: httpLayerPackages },
  {
    area: 'src/http/routes',
    imports: [
      ...domain('accounts', 'apps', 'guard', 'limits', 'log', 'model', 'otp', 'routing', 'webhooks'),
      'src/http',
    ],
    types: ['src/domain/upkeep/phone-service.ts'],
    packages: httpLayerPackages,
  },
  // Façades answer as other APIs do, each in a folder of its own. They call the same operations as the routes.
  {
    area: 'src/http/compat',
    imports: [...domain('model'), 'src/http', 'src/http/compat/camara', 'src/http/compat/twilio-verify'],
    packages: httpLayerPackages,
  },
  {
    area: 'src/http/compat/twilio-verify',
    imports: [...domain('apps', 'log', 'model', 'otp'), 'src/http'],
    packages: /^(elysia|@sinclair\/typebox(\/value)?|node:[\w/]+)$/,
  },
  {
    area: 'src/http/compat/camara',
    imports: [...domain('apps', 'model', 'otp'), 'src/http'],
    packages: /^(elysia|@sinclair\/typebox(\/value)?|node:[\w/]+)$/,
  },
  // The ready page, in the languages of the messages. It calls the same operations as the routes.
  {
    area: 'src/http/page',
    imports: [...domain('apps', 'limits', 'model', 'otp'), 'src/http', 'src/delivery/text/locale-choice.ts'],
    packages: /^(elysia|libphonenumber-js|node:[\w/]+)$/,
  },
  // The one file of src/http that knows the routes: it mounts them.
  {
    area: 'src/http/app.ts',
    imports: [
      ...domain('accounts', 'apps', 'guard', 'limits', 'log', 'model', 'otp', 'routing', 'webhooks'),
      'src/http',
      'src/http/docs.ts',
      'src/http/compat',
      'src/http/page',
      'src/http/routes',
    ],
    types: ['src/domain/upkeep/phone-service.ts'],
    packages: httpLayerPackages,
  },
  // The listener puts the application on a socket and sends its security headers, also where no route is reached.
  {
    area: 'src/http/listener.ts',
    imports: [...domain('model'), 'src/http', 'src/http/app.ts', 'src/http/compat'],
    types: ['src/tls/pair.ts'],
    packages: httpLayerPackages,
  },
  // Plain HTTP next to HTTPS: no application, only its headers.
  {
    area: 'src/http/http-listener.ts',
    imports: [...domain('model'), 'src/http', 'src/http/app.ts'],
    types: ['src/http/compat'],
    packages: httpLayerPackages,
  },
  // Where backups are kept: folders, and buckets to which they go encrypted.
  {
    area: 'src/backups',
    imports: [...domain('model'), 'src/store/data-dir'],
    types: ['src/config'],
    packages: /^node:[\w/]+$/,
  },
  // Operator commands work on the data directory without a server.
  {
    area: 'src/host',
    imports: [
      ...domain('accounts', 'guard', 'model', 'otp', 'store', 'upkeep'),
      'src/auth',
      'src/backups',
      'src/config',
      'src/store',
      ...storage('data-dir', 'engine', 'move', 'postgres', 'sqlite'),
      'src/tls/pair.ts',
      'src/tls/saved.ts',
    ],
    packages: anyPackageExcept(...httpPackages, ...cliPackages),
  },
  // The composition root: it alone may import every part of the server.
  {
    area: 'src/server',
    imports: [
      ...domain('model', 'store'),
      ...capabilities,
      'src/auth',
      'src/backups',
      'src/config',
      'src/delivery',
      'src/delivery/alerts',
      'src/delivery/kit',
      'src/delivery/providers',
      'src/delivery/text',
      'src/host',
      'src/http',
      'src/http/app.ts',
      'src/http/compat',
      'src/http/http-listener.ts',
      'src/http/listener.ts',
      'src/http/routes',
      'src/log',
      'src/metrics',
      'src/store',
      ...storage('data-dir', 'engine', 'postgres', 'sqlite'),
      'src/tls/pair.ts',
      'src/webhooks',
    ],
    dynamic: ['src/tls/tls.ts'],
    packages: anyPackageExcept(...cliPackages),
  },
  // Time, chance, network and processes, which a server takes from outside of its code; all layers of the server may use it.
  { area: 'src/world', packages: /^(bun|node:[\w/]+)$/ },
  // The rendered guides, which server and command line both show. It depends on neither.
  { area: 'src/docs', packages: neutralPackages },
  // A few definitions that server and command line share. It depends on neither.
  { area: 'src/shared', packages: neutralPackages },

  // The library for backends: it is delivered alone, so it imports nothing of ours.
  { area: 'src/client', packages: noPackage },

  { area: 'cli/version.ts', imports: ['package.json'], packages: anyPackage },
  // Writes the package of the library, with the version of otpd.
  { area: 'cli/build-client.ts', imports: ['package.json'], packages: anyPackage },
  // Input, output, texts and errors, for people and for scripts. Knows no server.
  { area: 'cli/terminal', packages: anyPackage },
  // The server that a command talks to: its address, HTTP to it, and the login there.
  { area: 'cli/session', imports: cli('terminal', 'version.ts'), packages: anyPackage },
  // Calls the API with the session's tokens, and formats its resources.
  {
    area: 'cli/client',
    imports: cli('session', 'terminal'),
    types: ['src/http/app.ts'],
    packages: anyPackage,
  },
  // State of one command: profile, API client and output.
  { area: 'cli/context.ts', imports: cli('client', 'session', 'terminal'), packages: anyPackage },
  // Host commands load the server's code only when they run.
  {
    area: 'cli/host',
    imports: cliBase,
    types: ['src/config/config.ts', 'src/host/host.ts', 'src/server/start.ts'],
    dynamic: ['src/server/bundle.ts'],
    packages: anyPackage,
  },
  { area: 'cli/webhooks', imports: cliBase, packages: anyPackage },
  {
    area: 'cli/doctor',
    imports: cliBase,
    types: ['src/config/config.ts', 'src/host/host.ts', 'src/server/start.ts'],
    packages: anyPackage,
  },
  // The console in layers: a screen is made of components, a component of lines and hooks.
  { area: 'cli/console', imports: cliBase, packages: anyPackage },
  { area: 'cli/console/lines', imports: consoleImports(), packages: anyPackage },
  { area: 'cli/console/hooks', imports: consoleImports('lines'), packages: anyPackage },
  { area: 'cli/console/components', imports: consoleImports('lines', 'hooks'), packages: anyPackage },
  {
    area: 'cli/console/screens',
    // Alerts are not in the API: the screen reads the database on the machine of the server.
    imports: ['cli/host/alerts.ts', 'cli/webhooks', ...consoleImports('lines', 'hooks', 'components')],
    packages: anyPackage,
  },
  // The files that assemble the console: the list of the screens, the frame around them, and the start.
  { area: 'cli/console/screens.ts', imports: ['cli/console', ...console('screens')], packages: anyPackage },
  {
    area: 'cli/console/App.tsx',
    imports: consoleImports('components', 'hooks', 'screens.ts'),
    packages: anyPackage,
  },
  { area: 'cli/console/run-console.tsx', imports: consoleImports('App.tsx'), packages: anyPackage },
  // Commands use everything; only `serve`, `doctor` and the host commands load the server, and only when they run.
  {
    area: 'cli/commands',
    imports: [
      ...cliBase,
      ...cli('completion', 'doctor', 'environment.ts', 'help.ts', 'host', 'man.ts', 'upgrade', 'webhooks'),
    ],
    types: [
      'src/config/config.ts',
      'src/delivery/text/template-lint.ts',
      'src/host/host.ts',
      'src/server/start.ts',
      'src/server/bundle.ts',
    ],
    dynamic: ['cli/console/run-console.tsx', 'src/docs', 'src/server/bundle.ts'],
    packages: anyPackage,
  },
  // Renders the guides while the executable is built, with parts that it makes from the definitions of the server.
  { area: 'cli/guides', imports: ['cli/guides/reference', 'src/docs'], packages: anyPackage },
  {
    area: 'cli/guides/reference',
    imports: [
      ...cli('help.ts', 'program.ts', 'terminal'),
      ...domain('guard', 'log', 'model'),
      'src/config/config.ts',
      'src/delivery/alerts/all-alert-kinds.ts',
      'src/delivery/providers/all-provider-kinds.ts',
      'src/http/openapi/error-catalogue.ts',
      'src/http/errors.ts',
    ],
    packages: anyPackage,
  },
  // The build is the one program that runs it.
  { area: 'cli/build.ts', imports: ['cli/guides/render.ts', 'cli/release'], packages: anyPackage },
  { area: 'cli/release', packages: anyPackage },
  { area: 'cli/upgrade', imports: [...cliBase, 'cli/release/signature.ts'], packages: anyPackage },
  { area: 'cli/release.ts', imports: ['cli/release', 'cli/version.ts'], packages: anyPackage },
  { area: 'cli/completion', imports: cli('help.ts'), packages: anyPackage },
  { area: 'cli/environment.ts', packages: anyPackage },
  { area: 'cli/help.ts', imports: cli('terminal'), packages: anyPackage },
  { area: 'cli/man.ts', imports: cli('help.ts'), packages: anyPackage },
  // The program itself: it collects the commands.
  {
    area: 'cli',
    imports: [...cliBase, ...cli('commands', 'completion', 'environment.ts', 'help.ts')],
    packages: anyPackage,
  },
]
